"""Calls of library functions are right on every processor and for every vector width of the compiled kernel.

CI runs these tests for each kind of x86-64 processor that PoCL's library supports (toolchains/verbs/test.py).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from image import ON_VSI
from kernels import structured
from libm import BINARY, FLOATS, LARGEST, SAME, SPECIAL, UNARY, Wide, check_opencl, drawn
from results import check_product, check_same
from shared_kernels import imported, product

pytest.importorskip("pyopencl", reason="this image has no OpenCL")

from foundry_core.codegen.pipeline import WorkItemTarget, to_llvm, to_mlir, to_spirv
from foundry_core.codegen.spirv import widest_call
from foundry_core.runtime import opencl
from foundry_core.runtime.opencl import OpenCLDevice

pytestmark = pytest.mark.every_cpu

BLOCK = 64
HEAD = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def functions(xs, ys, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
"""
ONE = """
    x, y = tl.load(xs + {number} * n + i), tl.load(ys + {number} * n + i)
    tl.store(out + {number} * n + i, libdevice.{name}({arguments}))
"""


def rows(values: np.ndarray, count: int) -> np.ndarray:
    """Repeat values up to a count: the first ones again at the end."""
    return np.resize(values, count)


# zen-compiler gets no request for Float64.


@pytest.mark.any_release
@pytest.mark.parametrize("type", ["f32"] if ON_VSI else FLOATS)
def test_every_function_of_the_library_is_right_on_this_processor(type: str, tmp_path: Path) -> None:
    dtype = FLOATS[type]
    functions: dict[str, Any] = {name: (found, "x") for name, found in UNARY.items()}
    functions |= {name: (found, "x, y") for name, found in BINARY.items()}
    n = 2 * BLOCK
    xs, ys = np.empty((len(functions), n), dtype), np.empty((len(functions), n), dtype)
    lines = [HEAD]
    for number, (name, ((_, low, high), arguments)) in enumerate(functions.items()):
        special = [value for value in SPECIAL if arguments == "x" and not LARGEST.get(name, np.inf) < value < np.inf]
        xs[number] = rows(np.concatenate([drawn(low, high, dtype, 1, 90), np.array(special).astype(dtype)]), n)
        ys[number] = drawn(-abs(high), high, dtype, 2, n)
        lines.append(ONE.format(number=number, name=name, arguments=arguments))
    out = np.full_like(xs, -77)
    run = imported(tmp_path / f"functions_{type}.py", "".join(lines)).functions
    run[(n // BLOCK,)](Tensor(xs), Tensor(ys), Tensor(out), n, BLOCK=BLOCK)
    for number, (name, ((function, _, _), arguments)) in enumerate(functions.items()):
        x, y = (values[number] if name in SAME else values[number].astype(Wide) for values in (xs, ys))
        with np.errstate(all="ignore"):
            reference = function(x) if arguments == "x" else function(x, y)
        if name == "remainder":
            # math.remainder is of f64; C returns a number of the type.
            reference = np.asarray(reference).astype(dtype)
        check_opencl(name, out[number], reference, xs[number])


# PoCL's names of its libraries, and the bytes and the number of the vector registers of these processors.
REGISTERS = {"sse2": (16, 16), "avx2": (32, 16), "avx512": (64, 32)}


def test_kernels_are_compiled_for_the_registers_of_the_processor_that_pocl_compiles_for(
    device: OpenCLDevice,
) -> None:
    target = opencl.work_item_target(device.cl)
    chosen = os.environ.get("POCL_KERNELLIB_NAME")
    expected = [REGISTERS[chosen]] if chosen else REGISTERS.values()
    assert (target.vector_bytes, target.vector_registers) in expected


@triton.jit
def halves(x, narrow, y, wide, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(wide + i, tl.load(x + i).to(tl.float32))
    tl.store(narrow + i, tl.load(y + i).to(tl.float16))


@pytest.mark.any_release
def test_every_f16_is_converted_and_every_tie_rounded_to_even_on_this_processor() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    # The numbers of f16, what is halfway between neighbours, and the next f32 on both sides of that.
    finite = x[:0x7C00].astype(np.float32)
    ties = (finite[1:] + finite[:-1]) / 2
    large = np.array([65519.99, 65520, 65536, 3.4e38, np.inf, np.nan, 1e-45, 0], np.float32)
    positive = np.concatenate([ties, np.nextafter(ties, 0), large])
    y = np.resize(np.concatenate([positive, -positive]), 1 << 17)
    xs = np.resize(x, y.size)
    narrow, wide = np.full(y.size, -77, np.float16), np.full(y.size, -77, np.float32)
    halves[(y.size // 1024,)](Tensor(xs), Tensor(narrow), Tensor(y), Tensor(wide), BLOCK=1024)
    with np.errstate(over="ignore"):
        check_same(narrow, y.astype(np.float16))
    check_same(wide, xs.astype(np.float32))


@triton.jit
def exponential(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.exp(tl.load(x + i)))


@pytest.fixture(scope="module")
def device() -> OpenCLDevice:
    return OpenCLDevice(opencl.find("", variable="none"))


def launch(device: OpenCLDevice, spirv: bytes, kernel: Any, *arrays: np.ndarray) -> None:
    """Run one program of a kernel whose arguments are these arrays only."""
    launcher = device.launcher(device.build(spirv), kernel.__name__, ["*fp32"] * len(arrays))
    launcher((1, 1, 1), [Tensor(array) for array in arrays])


def compiled(kernel: Any, names: str, target: WorkItemTarget, **constants: int) -> bytes:
    return to_spirv(to_llvm(to_mlir(structured(kernel, dict.fromkeys(names, "*fp32"), constants), target)))


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_a_kernel_for_any_width_of_vectors_is_right_on_this_processor(device: OpenCLDevice, vector_bytes: int) -> None:
    x = drawn(-4, 4, np.float32, 3, 64)
    expected = np.exp(x.astype(np.float64))
    spirv = compiled(exponential, "x", WorkItemTarget(vector_bytes), BLOCK=64)
    assert widest_call(spirv) == 16
    launch(device, spirv, exponential, x)
    np.testing.assert_allclose(x, expected, rtol=4 * 2.0**-24)  # 3 ulp by OpenCL C, and rounding


@triton.jit
def increased(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + 1)


@pytest.mark.skipif(ON_VSI, reason="zen-compiler gets no request for Float64")
def test_an_element_wider_than_a_device_s_registers_is_processed_alone(device: OpenCLDevice) -> None:
    x = np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324, 1.7e308, 2.0**53, -1])
    out = np.full_like(x, -77)
    types = dict.fromkeys(("x", "out"), "*fp64")
    # What PoCL 6 reports if it does not know the processor: vectors of one f32.
    spirv = to_spirv(to_llvm(to_mlir(structured(increased, types, {"BLOCK": 8}), WorkItemTarget(vector_bytes=4))))
    launcher = device.launcher(device.build(spirv), increased.__name__, list(types.values()))
    launcher((1, 1, 1), [Tensor(x), Tensor(out)])
    check_same(out, x + 1)


def test_imported_llvm_fma_is_right_on_a_processor_without_fma(
    device: OpenCLDevice,
) -> None:
    a, b = (drawn(-1, 1, np.float32, seed, 32 * 32).reshape(32, 32) for seed in (4, 5))
    c = np.full((32, 32), np.nan, np.float32)
    spirv = compiled(product, "abc", WorkItemTarget(64, llvm_intrinsics=True), N=32)
    assert b"llvm.fma.v16f32" in spirv
    launch(device, spirv, product, a, b, c)
    check_product(c, a, b)


def test_a_kernel_compiled_for_another_device_is_right_or_refused(
    device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    spirv = compiled(exponential, "x", WorkItemTarget(64, call_bytes=64), BLOCK=64)
    assert widest_call(spirv) == 64
    x = drawn(-4, 4, np.float32, 6, 64)
    expected = np.exp(x.astype(np.float64))
    if opencl.call_bytes(device.cl) >= 64:
        launch(device, spirv, exponential, x)
        np.testing.assert_allclose(x, expected, rtol=4 * 2.0**-24)
        monkeypatch.setattr(opencl, "call_bytes", lambda device: 32)
    with pytest.raises(opencl.BuildError, match=r"vectors of 64 bytes; this device takes up to (16|32)"):
        device.build(spirv)
