"""A beginner's first mistakes: each message names the line and the remedy. docs/first-mistakes.md lists them."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.checked import memory
from foundry_core.checked.arrays import CheckWarning
from foundry_core.checked.findings import CheckError
from foundry_core.runtime.arguments import ArgumentError
from foundry_core.runtime.launches import GridError
from foundry_core.tensor import Tensor
from foundry_core.triton_hooks.grids import FunctionError
from image import python
from triton.compiler.errors import CompilationError

HERE = Path(__file__).name


def line(of: Callable[..., Any], text: str) -> str:
    """Return `FILE:LINE` of a function's first line that contains a text."""
    source, first = inspect.getsourcelines(getattr(of, "fn", of))
    return f"{HERE}:{first + next(i for i, each in enumerate(source) if text in each)}"


def assert_said(message: object, *parts: str) -> None:
    for part in parts:
        assert part in str(message), f"{part!r} is not in:\n{message}"


def array() -> np.ndarray:
    return np.zeros(1000, np.float32)


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_a_block_that_is_no_power_of_two() -> None:
    with pytest.raises(CompilationError) as refused:
        copy[(10,)](array(), array(), 1000, BLOCK=100)
    assert_said(
        refused.value, line(copy, "tl.arange"), "BLOCK=100", "launch with BLOCK=128", "next_power_of_2(100)", "mask"
    )


@triton.jit
def sized(out, n, M: tl.constexpr):
    tl.store(out + tl.arange(0, 16), tl.zeros((M,), tl.float32))


@pytest.mark.any_release
def test_an_extent_that_is_no_power_of_two_in_triton_s_own_function() -> None:
    with pytest.raises(CompilationError) as refused:
        sized[(1,)](array(), 5, M=12)
    assert_said(refused.value, line(sized, "tl.zeros"), "M=12", "launch with M=16")


@triton.jit
def misspelt(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.lod(x + i))


@triton.jit
def in_the_wrong_module(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.math.tanh(tl.load(x + i)))


@triton.jit
def as_a_method(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).rsqrt().tanh())


@pytest.mark.any_release
@pytest.mark.parametrize(
    ("kernel", "why", "next"),
    [
        (misspelt, "tl has no lod", "did you mean tl.load?"),
        (
            in_the_wrong_module,
            "tl has no tanh",
            "use libdevice.tanh, after: from triton.language.extra import libdevice",
        ),
        (as_a_method, "tl has no tanh", "use libdevice.tanh"),
    ],
)
def test_a_function_that_triton_does_not_have(kernel: Any, why: str, next: str) -> None:
    with pytest.raises(CompilationError) as refused:
        kernel[(1,)](array(), array(), BLOCK=16)
    assert_said(refused.value, line(kernel, "tl.store"), f"  why:  {why}", f"  next: {next}")


@pytest.mark.any_release
def test_a_block_with_more_elements_than_triton_takes() -> None:
    with pytest.raises(CompilationError) as refused:
        copy[(1,)](array(), array(), 1000, BLOCK=1 << 21)
    assert_said(
        refused.value,
        line(copy, "tl.arange"),
        "why:  a block of Triton has at most 1048576 elements",
        "next: launch with a smaller BLOCK, such as BLOCK=1024, and more programs: triton.cdiv(n, BLOCK)",
    )


@triton.jit
def asserting(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 3, "the last line")


def test_the_place_is_above_triton_s_own_message_whose_last_line_is_the_last() -> None:
    with pytest.raises(CompilationError) as refused:
        asserting[(1,)](array(), BLOCK=16)
    first, *_, last = str(refused.value).splitlines()
    assert first.startswith("at:   ") and first.endswith(f"{line(asserting, 'static_assert')}, in asserting")
    assert last == "the last line"


@triton.jit
def undeclared(x, out, n, BLOCK):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_a_parameter_that_is_not_declared_constexpr() -> None:
    with pytest.raises(CompilationError) as refused:
        undeclared[(10,)](array(), array(), 1000, 128)
    assert_said(refused.value, line(undeclared, "tl.arange"), "declare the parameter as BLOCK: tl.constexpr")


def test_a_constexpr_that_the_launch_does_not_give() -> None:
    def launch() -> None:
        copy[(10,)](array(), array(), 1000)

    with pytest.raises(ArgumentError) as refused:
        launch()
    assert_said(refused.value, "kernel copy", line(launch, "copy[("), "BLOCK is a tl.constexpr", "BLOCK=128)")


def test_a_constexpr_that_is_no_int() -> None:
    with pytest.raises(CompilationError) as refused:
        copy[(10,)](array(), array(), 1000, BLOCK=128.0)
    assert_said(refused.value, line(copy, "tl.arange"), "BLOCK=128.0 is of type float", "pass an int")


@triton.jit
def product(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + i)
    tl.store(out + i, tl.dot(a, a.to(tl.float16)))


@triton.jit
def exponential(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@triton.jit
def halved(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) / 2
    tl.store(out + i, tl.load(x + i))


@triton.jit
def odd(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) & 1)


@triton.jit
def total(x, out, BLOCK: tl.constexpr):
    acc = 0
    for k in range(4):
        acc += tl.load(x + k + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), acc)


@triton.jit
def one(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.load(x + tl.arange(0, BLOCK)))


@pytest.mark.parametrize(
    ("kernel", "wrong", "dtype", "remedy"),
    [
        (product, "tl.dot", np.float32, "convert one of them to the type of the other: a.to(b.dtype)"),
        (exponential, "tl.exp", np.int32, "convert the operand: x.to(tl.float32)"),
        (halved, "tl.store", np.float32, "convert the offset: offset.to(tl.int32)"),
        (odd, "& 1", np.float32, "convert the operands, x.to(tl.int32)"),
        (total, "for k", np.float32, "before the loop: acc = tl.zeros((16,), tl.float32)"),
        (one, "tl.store", np.float32, "reduce the value first: tl.sum(value)"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_wrong_type_in_a_kernel(kernel: triton.JITFunction, wrong: str, dtype: type, remedy: str) -> None:
    with pytest.raises(CompilationError) as refused:
        kernel[(1,)](array().astype(dtype), array(), BLOCK=16)
    assert_said(refused.value, line(kernel, wrong), f"in {kernel.__name__}", remedy)


@triton.jit
def inner(x, N: tl.constexpr):
    return tl.load(x + tl.arange(0, N))


@triton.jit
def outer(x, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, 16), inner(x, N))


@pytest.mark.any_release
def test_a_mistake_in_a_function_that_a_kernel_calls_names_both_lines() -> None:
    with pytest.raises(CompilationError) as refused:
        outer[(1,)](array(), array(), N=12)
    assert_said(
        refused.value, f"{line(inner, 'tl.load')}, in inner", "called at ", f"{line(outer, 'inner(')}, in outer"
    )


@pytest.mark.parametrize(
    ("passed", "remedy"),
    [
        ([1.0, 2.0], "numpy.asarray(x, numpy.float32)"),
        ("text", "declare the parameter as x: tl.constexpr"),
        (np.array([1, "a"], object), "numpy.asarray(array.tolist(), dtype)"),
        (np.zeros(8, np.complex64), "real and imaginary"),
        (np.float32(2), "pass number.item()"),
        (np.ma.zeros(8), "array.filled(value)"),
        (object(), "arrays of NumPy, tensors, and Python's numbers"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_argument_that_is_no_array_names_the_parameter_and_the_launch(passed: object, remedy: str) -> None:
    def launch() -> None:
        copy[(1,)](passed, array(), 8, BLOCK=8)

    with pytest.raises(TypeError) as refused:
        launch()
    assert_said(refused.value, "kernel copy", line(launch, "copy[("), " x=", remedy)


@pytest.mark.parametrize("passed", [5, None, 0.5])
def test_a_number_in_the_place_of_an_array(passed: object) -> None:
    with pytest.raises(CompilationError) as refused:
        copy[(1,)](passed, array(), 8, BLOCK=8)
    assert_said(refused.value, line(copy, "tl.load"), "x", "pass a")


def test_an_array_in_the_place_of_a_number() -> None:
    with pytest.raises(CompilationError) as refused:
        copy[(1,)](array(), array(), array(), BLOCK=8)
    assert_said(refused.value, line(copy, "tl.load"), "n is an array", "pass a number")


@pytest.mark.anywhere
def test_a_tensor_that_is_not_in_the_host_s_memory_is_refused_by_name() -> None:
    class Cuda:
        dtype, shape, device, is_cuda = np.dtype(np.float32), (8,), "cuda:0", True
        data_ptr = staticmethod(lambda: 0x7F0000000000)
        stride = staticmethod(lambda: (1,))

    with pytest.raises(ArgumentError, match=r"copy cannot reach out, a tensor on cuda:0(?s:.*)pass out\.cpu\(\)"):
        copy[(1,)](array(), Cuda(), 8, BLOCK=8)


@pytest.mark.anywhere
def test_a_launch_with_too_many_arguments_names_the_parameters() -> None:
    with pytest.raises(ArgumentError, match=r"gets 5 arguments(?s:.*)x, out, n, BLOCK"):
        copy[(1,)](array(), array(), 8, 8, 8)
    with pytest.raises(ArgumentError, match="gets two values for its parameter n"):
        copy[(1,)](array(), array(), 8, n=8, BLOCK=8)


@pytest.mark.anywhere
@pytest.mark.parametrize(
    ("given", "near"), [({"BLOCKS": 256, "n": 1000}, "BLOCK"), ({"BLOCK": 256, "N": 1000}, "n")], ids=["name", "case"]
)
def test_a_misspelt_keyword_is_named_with_the_nearest_parameter(given: dict[str, int], near: str) -> None:
    wrong = next(name for name in given if name not in ("BLOCK", "n"))
    with pytest.raises(ArgumentError, match=f"kernel copy, launched at .*, has no parameter {wrong}") as refused:
        copy[(4,)](array(), array(), **given)
    assert_said(refused.value, "its parameters are x, out, n, BLOCK", f"did you mean {near}=...?")
    with pytest.raises(ArgumentError, match="gets nothing for its parameter BLOCK") as refused:
        copy[(4,)](array(), array(), 1000, EXTENT=256)
    assert_said(refused.value, "its parameters are x, out, n, BLOCK, and not EXTENT")


@pytest.mark.anywhere
@pytest.mark.parametrize(
    "grid", [4, lambda meta: triton.cdiv(1000, meta["BLOCK"]), (), (1, 1, 1, 1)], ids=["int", "lambda", "none", "four"]
)
def test_a_grid_that_is_no_tuple_of_up_to_three(grid: object) -> None:
    def launch() -> None:
        copy[grid](array(), array(), 1000, BLOCK=256)

    with pytest.raises(GridError, match="a tuple of one, two or three numbers") as refused:
        launch()
    assert_said(refused.value, "kernel copy", line(launch, "copy[grid]"))


@pytest.mark.anywhere
@pytest.mark.parametrize(
    "kernel",
    [
        copy,
        triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])(copy),
        triton.heuristics({"BLOCK": lambda arguments: 256})(copy),
    ],
    ids=["jit", "autotune", "heuristics"],
)
def test_a_launch_without_a_grid(kernel: Callable[..., Any]) -> None:
    def launch() -> None:
        kernel(array(), array(), 1000)

    with pytest.raises(RuntimeError) as refused:
        launch()
    assert_said(
        refused.value, f"kernel copy is called at {Path(__file__).parent}", line(launch, "kernel("), "copy[grid](...)"
    )


@triton.jit
def with_numpy(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, np.exp(tl.load(x + i)))


@triton.jit
def with_math(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, math.exp(tl.load(x + i)))


@triton.jit
def with_floor(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, math.floor(tl.load(x + i)))


@triton.jit
def with_libdevice(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, math.tanh(tl.load(x + i)))


@triton.jit
def with_sum(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, math.fsum(tl.load(x + i)))


def doubled(x):
    return x * 2


@triton.jit
def not_decorated(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, doubled(tl.load(x + i)))


@triton.jit
def calling(x, out, BLOCK: tl.constexpr):
    not_decorated(x, out, BLOCK)


@pytest.mark.any_release
@pytest.mark.parametrize(
    ("kernel", "wrong", "function", "remedy"),
    [
        (with_numpy, with_numpy, "np.exp", "use tl.exp"),
        (with_math, with_math, "math.exp", "use tl.exp"),
        (with_floor, with_floor, "math.floor", "use tl.floor"),
        (with_libdevice, with_libdevice, "math.tanh", "use libdevice.tanh"),
        (with_sum, with_sum, "math.fsum", "write it with functions of Triton, as @triton.jit, def fsum(...)"),
        (not_decorated, not_decorated, "doubled", "decorate it with @triton.jit: def doubled(...)"),
        (calling, not_decorated, "doubled", "decorate it with @triton.jit: def doubled(...)"),
    ],
)
def test_a_function_that_cannot_be_compiled(kernel: Any, wrong: Any, function: str, remedy: str) -> None:
    # Triton 3.2 compiles the kernel until it reaches the function.
    with pytest.raises((FunctionError, CompilationError)) as refused:
        kernel[(1,)](array(), array(), BLOCK=16)
    assert_said(refused.value, line(wrong, f"{function}("), "it is a function of Python", remedy)


@triton.jit
def indexed(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, x[i])


@triton.jit
def branched(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if v > 0:
        tl.store(out + i, v)


@triton.jit
def left(x, out, BLOCK: tl.constexpr):
    for k in range(BLOCK):
        if tl.load(x + k) > 0:
            break
        tl.store(out + k, 1.0)


@triton.jit
def changed(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    v[0] = 1.0
    tl.store(out + i, v)


FACTOR = 5


@triton.jit
def scaled(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * FACTOR)


@pytest.mark.parametrize(
    ("kernel", "wrong", "remedy"),
    [
        (indexed, "x[i]", "x is a pointer, which has no elements\n  next: add the offset and load: tl.load(x + i)"),
        pytest.param(
            *(branched, "if v", "tl.where(condition, a, b), or mask the store"),
            marks=pytest.mark.skipif(triton.__version__.startswith("3.2."), reason="Triton 3.2 ends the process"),
        ),
        (left, "break", "a loop of a kernel cannot be left early"),
        (changed, "v[0]", "tl.where(i == 0, 1.0, x)"),
        (scaled, "* FACTOR", "define it as FACTOR = tl.constexpr(...)"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_python_that_a_kernel_does_not_have(kernel: triton.JITFunction, wrong: str, remedy: str) -> None:
    with pytest.raises(CompilationError) as refused:
        kernel[(1,)](array(), array(), BLOCK=16)
    assert_said(refused.value, line(kernel, wrong), f"in {kernel.__name__}", remedy)


@pytest.mark.parametrize(
    ("passed", "remedy"),
    [(array(), "pass a number"), (Tensor(array()), "pass a number"), ([256], "tuple(")],
    ids=["array", "Tensor", "list"],
)
def test_an_array_for_a_constexpr(passed: object, remedy: str) -> None:
    with pytest.raises(ArgumentError, match=r"BLOCK is a tl\.constexpr") as refused:
        copy[(1,)](array(), array(), 1000, BLOCK=passed)
    assert_said(refused.value, "kernel copy", f"type {type(passed).__name__} for BLOCK", remedy)


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def scale_rows(x, out, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x += tl.program_id(0) * stride
    tl.store(out + tl.program_id(0) * n + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def fresh(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return an array as numpy.empty makes it in the checked mode."""
    made = np.zeros(shape, dtype)
    memory.fill(made.reshape(-1).view(np.uint8))
    return made


def warned(launch: Callable[[], object]) -> str:
    with pytest.warns(CheckWarning) as found:
        launch()
    (warning,) = found
    return f"{Path(warning.filename).name}:{warning.lineno} {warning.message}"


def test_a_grid_that_is_too_small_leaves_elements_unwritten() -> None:
    out = fresh(1000)

    def launch() -> None:
        scale[(1,)](array(), out, 1000, BLOCK=512, check=True)

    said = warned(launch)
    assert_said(said, line(launch, "scale[("), "leaves elements 512 to 999 of 1000 of out unwritten")
    assert_said(said, "1 program(s)", line(scale, "tl.store"), "grid=(triton.cdiv(1000, BLOCK),)")


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.any_release
def test_unwritten_elements_of_other_types_in_two_dimensions(dtype: type) -> None:
    out = fresh(16, 64, dtype=dtype)
    said = warned(lambda: scale[(2,)](array().astype(dtype), out, 512, BLOCK=256, check=True))
    assert_said(said, "leaves elements [8, 0] to [15, 63] of 1024 of out unwritten", "triton.cdiv(1024, BLOCK)")


@pytest.mark.any_release
def test_arrays_that_are_written_as_a_whole_or_were_written_before_are_no_mistake() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scale[(2,)](array(), fresh(1000), 1000, BLOCK=512, check=True)
        scale[(1,)](array(), np.full(1000, np.nan, np.float32), 1000, BLOCK=512, check=True)
        # A part of an array is written as a whole.
        scale[(1,)](array(), fresh(1000)[:500], 500, BLOCK=512, check=True)


def test_an_array_that_is_not_contiguous_needs_its_stride() -> None:
    x = np.zeros(2000, np.float32)

    def launch() -> None:
        scale[(2,)](x[::2], array(), 1000, BLOCK=512, check=True)

    said = warned(launch)
    assert_said(
        said, line(launch, "scale[("), "gets x, which is not contiguous", "strides (2,)", line(scale, "tl.load")
    )
    assert_said(said, "x.strides[0] // x.itemsize", "numpy.ascontiguousarray(x)")
    rows = np.zeros((8, 64), np.float32)[:, :32]
    out = np.zeros((8, 32), np.float32)
    assert_said(warned(lambda: scale_rows[(8,)](rows, out, 32, 32, BLOCK=32, check=True)), "strides (64, 1)")
    turned = np.zeros((32, 8), np.float32).T
    assert_said(warned(lambda: scale[(1,)](turned, out, 256, BLOCK=256, check=True)), "strides (1, 8)")


@pytest.mark.any_release
def test_an_array_whose_stride_the_kernel_gets_or_does_not_need_is_no_mistake() -> None:
    rows, out = np.zeros((8, 64), np.float32)[:, :32], np.zeros((8, 32), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scale_rows[(8,)](rows, out, 64, 32, BLOCK=32, check=True)
        # All elements alike, in arrays with the same order of dimensions.
        turned = np.zeros((32, 8), np.float32).T
        scale[(1,)](turned, np.empty_like(turned), 256, BLOCK=256, check=True)


SCRIPT = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

out = np.empty(1000, np.float32)
assert np.isnan(out).all() and np.isnan(np.empty_like(out.astype(np.float64).reshape(8, 125).T)).all()
scale[(1,)](np.zeros(1000, np.float32), out, 1000, BLOCK=512)
scale[(2,)](out, np.zeros(1000, np.float32), 1000, BLOCK=512)
"""


@pytest.mark.any_release
def test_the_environment_turns_on_poison_and_warnings(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = python(script, FOUNDRY_CHECK="1")
    assert_said(done.stderr, "script.py:13: CheckWarning: kernel scale leaves elements 512 to 999 of 1000 of out")
    assert_said(done.stderr, "CheckError: kernel scale reads memory that nobody has written", "script.py:9", "x[512]")


def found(launch: Callable[[], object]) -> CheckError:
    with pytest.raises(CheckError) as raised:
        launch()
    return raised.value


@triton.jit
def unmasked(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i))


def test_a_missing_mask() -> None:
    said = found(lambda: unmasked[(2,)](array(), array(), 1000, BLOCK=512, check=True))
    assert_said(said, line(unmasked, "tl.load"), "load at x[1000], but x has 1000 elements", "mask=offsets < n")


@triton.jit
def row(x, out, at, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + at * stride + i))


@pytest.mark.any_release
def test_an_offset_that_overflows() -> None:
    said = found(lambda: row[(1,)](array(), array(), 4, 2**30, BLOCK=16, check=True))
    assert_said(said, line(row, "tl.load"), "an offset that wraps around", "tl.int64")


def test_memory_that_nobody_has_written_is_read() -> None:
    said = found(lambda: scale[(1,)](fresh(1000), array(), 1000, BLOCK=1024, check=True))
    assert_said(said, line(scale, "tl.load"), "x[0]", "numpy.zeros")


@triton.jit
def summed(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out, tl.sum(v + 1.0))


def test_a_load_without_other_whose_elements_are_used() -> None:
    said = found(lambda: summed[(1,)](array(), array(), 1000, BLOCK=1024, check=True))
    assert_said(said, line(summed, "tl.load"), "element (1000)", "the mask leaves x[1000] undefined", "other=0.0")
