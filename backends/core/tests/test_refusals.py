"""Kernels that no target takes are refused by name and line, with the next step. No function of libdevice is."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.codegen.pipeline import to_structured
from foundry_core.emit.mlir import Reg, Text
from foundry_core.errors import LoweringError, UnsupportedOperation
from foundry_core.mapping.base.vectors import VectorNumeric
from foundry_core.mapping.tasklet.numeric import TaskletNumeric
from foundry_core.ops.elementwise import SYMBOLS
from foundry_core.ops.libdevice import call_libdevice as libdevice_call
from foundry_core.tensor import Tensor
from image import ON_DPU, RELEASE
from kernels import structured
from triton.language.extra.cuda import libdevice as libdevice_of_cuda

# Bytes for one program's tiles, of a DPU's 64 KiB of WRAM (foundry_core.mapping.base.target).
WRAM_FOR_TILES = 60416


@triton.jit
def huge(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    b = a * 2
    for _ in range(n):
        a, b = b, a
    tl.store(out + at, a + b)


def test_tiles_that_do_not_fit_private_memory_are_refused_with_the_numbers() -> None:
    x = Tensor(np.zeros(1024 * 1024 + 1, "f"))
    limit = f"a DPU has {WRAM_FOR_TILES} bytes" if ON_DPU else "gives a program 6144 KiB"
    with pytest.raises(LoweringError, match=rf"huge keeps \d{{5,}} \w+ .* {limit}"):
        huge[(1,)](x, x, 3, N=1024)


@triton.jit
def assembly(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [i], tl.int32, is_pure=True, pack=1))


def test_an_unsupported_operation_is_refused_by_name_and_line() -> None:
    with pytest.raises(UnsupportedOperation) as refused:
        assembly[(1,)](Tensor(np.zeros(16, "i4")), BLOCK=16)
    assert refused.value.operation == "tt.elementwise_inline_asm"
    assert str(refused.value).endswith("next: write it with functions of tl, or of triton.language.extra.libdevice")
    line = assembly.fn.__code__.co_firstlineno + 3
    assert refused.value.place.endswith(f"test_refusals.py:{line}")


@triton.jit
def either_order(x0, x1, y0, y1):
    return x1, x0, y1, y0


@triton.jit
def maps_pairs(x, BLOCK: tl.constexpr):
    a = tl.load(x + tl.arange(0, BLOCK))
    tl.store(x + tl.arange(0, BLOCK), tl.map_elementwise(either_order, a, a, pack=2)[0])


@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this release of Triton has no tl.map_elementwise")
def test_a_pack_of_more_elements_than_there_are_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="of 2 elements at a time of a tensor with 1"):
        maps_pairs[(1,)](Tensor(np.zeros(1, np.int32)), BLOCK=1)


@triton.jit(noinline=True)
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@triton.jit
def recursive(out, n):
    tl.store(out, factorial(n))


@triton.jit
def power(x, N: tl.constexpr):
    if N == 0:
        return 1
    else:  # noqa: RET505  Triton generates what follows an if
        return x * power(x, N - 1)


@triton.jit
def unrolled(out, n):
    tl.store(out, power(n, 5))


@triton.jit
def endless(x, N: tl.constexpr):
    return x * endless(x, N + 1)


@triton.jit
def never(out, n):
    tl.store(out, endless(n, 1))


@pytest.mark.skipif(RELEASE < (3, 3), reason="3.2 cannot hash a function that calls itself")
def test_recursion_is_refused_unless_it_ends_at_compile_time() -> None:
    out = np.full(1, -1, np.int32)
    for kernel, said in ((recursive, "factorial calls itself\n"), (never, "endless calls itself without end")):
        with pytest.raises(triton.compiler.errors.CompilationError, match=f"{said}(?s:.*)next: write a loop"):
            kernel[(1,)](out, 3)
    assert out[0] == -1
    unrolled[(1,)](out, 3)
    assert out[0] == 3**5


TTIR = """
tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) {{
  %r = tt.call @"f.g"(%q, %n) : (!tt.ptr<i32>, i32) -> i32
  tt.return
}}
tt.func private @"f.g"(%to: !tt.ptr<i32>, %n: i32) -> i32 attributes {{noinline = true}} {{
  {body}
}}
"""


def test_a_recursion_in_ttir_is_refused() -> None:
    ttir = TTIR.format(body='%r = tt.call @"f.g"(%to, %n) : (!tt.ptr<i32>, i32) -> i32\n tt.return %r : i32')
    with pytest.raises(UnsupportedOperation, match=r"tt\.call is not supported: recursion: f\.g calls itself"):
        to_structured(ttir)


@triton.jit
def too_many(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    v = 0
    for i in tl.static_range(6):
        if n > 10 * i:
            if n == 10 * i + 1:
                return
            v += 1
        else:
            v += 2
    tl.store(x + program, v)


def test_too_many_ways_are_refused_by_name_and_line() -> None:
    with pytest.raises(UnsupportedOperation, match="a return under one of too many conditions") as caught:
        structured(too_many, {"x": "*i32", "n": "i32"}, {"BLOCK": 64})
    assert caught.value.operation in ("cf.br", "cf.cond_br", "tt.return")
    assert f"{__file__}:" in caught.value.place


def symbols() -> dict[str, tuple[str, ...]]:
    """Return the types of the arguments of every symbol that a function of Triton's module calls, from its source."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(libdevice_of_cuda))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                words = re.findall("'([a-z0-9_]+)'", ast.unparse(value), re.IGNORECASE)
                types = re.findall("'([a-z0-9]+)'", ast.unparse(key))  # type: ignore[arg-type]
                assert types and words[0].startswith("__nv_")
                found[words[0]] = tuple(types)
    return found


def test_every_function_of_triton_is_lowered() -> None:
    elements = {"fp32": "f32", "fp64": "f64"} | {
        f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (32, 64)
    }
    missing = set()
    for symbol, types in symbols().items():
        numeric = (TaskletNumeric if ON_DPU else VectorNumeric)(Text())
        arguments = [Reg(f"%a{place}", elements[type]) for place, type in enumerate(types)]
        if symbol not in SYMBOLS and libdevice_call(numeric, symbol, arguments) is None:
            missing.add(symbol)
    assert len(symbols()) > 300
    assert missing == set()


@triton.jit
def unheard_of(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, nothing(tl.load(x + i)))


@tl.core.extern
def nothing(x: Any, _semantic: Any = None) -> Any:
    single = tl.core.dtype("fp32")
    symbols = {(single,): ("__nv_nothingf", single)}
    return tl.core.extern_elementwise("", "", [x], symbols, is_pure=True, _semantic=_semantic)


def test_unknown_libdevice_function_is_refused_by_name_and_line() -> None:
    x = Tensor(np.ones(16, np.float32))
    with pytest.raises(UnsupportedOperation, match=r"tt.extern_elementwise at .*\.py:\d+ .*__nv_nothingf") as caught:
        unheard_of[(1,)](x, x, 16, BLOCK=16)
    assert caught.value.place.endswith(f"test_refusals.py:{unheard_of.starting_line_number + 3}")
