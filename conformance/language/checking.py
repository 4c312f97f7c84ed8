"""Shared by the tests: operands with special values, poisoned outputs, kernels of one expression, comparisons."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import triton
from foundry_core.tensor import Tensor
from guarded import Guarded

Array = npt.NDArray[Any]
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SIGNED: dict[str, Any] = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
UNSIGNED: dict[str, Any] = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
INTEGERS = SIGNED | UNSIGNED
DTYPES = FLOATS | INTEGERS
# Of Triton: (3, 9).
RELEASE = tuple(map(int, triton.__version__.split(".")[:2]))
BLOCK = 128
# Not a multiple of the block, so the last program is masked.
N = 300
# The types whose subnormal numbers may be zeros in arithmetic on this device, as NumPy's types. What only moves numbers
# keeps them on every device.
FLUSHED = frozenset(np.dtype(FLOATS[name]) for name in getattr(triton.runtime.driver.active, "flushed", frozenset)())
# What `check` has allowed in the test that runs, in units in the last place.
bounds: list[float] = []

_TEMPLATE = """
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def kernel({pointers}, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
{loads}
    tl.store(out_ptr + i, {expression}, mask=inside)
"""


@functools.cache
def elementwise(expression: str, names: str) -> Any:
    """Return a kernel that computes an expression of these operands element by element; `names` is like "a b"."""
    text = _TEMPLATE.format(
        pointers=", ".join(f"{name}_ptr" for name in names.split()),
        loads="\n".join(f"    {name} = tl.load({name}_ptr + i, mask=inside)" for name in names.split()),
        expression=expression,
    )
    return imported(text).kernel


@functools.cache
def imported(text: str) -> Any:
    """Import a module of this text from a file, because Triton reads a kernel's source from its file."""
    path = Path(tempfile.mkdtemp(), "generated.py")
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compute(expression: str, dtype: npt.DTypeLike, **operands: Array) -> Guarded:
    """Compute an expression of operands of equal length, and return the result in memory of this type."""
    count = next(iter(operands.values())).size
    out = Open((count,), dtype, fence=BLOCK)
    for each in operands.values():
        out.open |= subnormal(each)
    kernel = elementwise(expression, " ".join(operands))
    launch(kernel, (triton.cdiv(count, BLOCK),), *operands.values(), out, count, BLOCK=BLOCK)
    return out


class Open(Guarded):
    """Memory for a result.

    Attributes:
        open: where this device may compute anything, because an operand is a subnormal number.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike, **placed: Any) -> None:
        super().__init__(shape, dtype, **placed)
        self.open = np.zeros(shape, bool)
        _poison(self)


def subnormal(array: Array) -> Array:
    """Return where an array has numbers that this device may take for zeros in arithmetic."""
    if array.dtype not in FLUSHED:
        return np.zeros(array.shape, bool)
    least = float(ml_dtypes.finfo(array.dtype).smallest_normal)
    size = np.abs(array.astype(np.float64))
    found: Array = (size > 0) & (size < least)
    return found


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Launch a kernel; arrays and guarded arrays become tensors."""
    kernel[grid](*map(_argument, arguments), **constants)


def _argument(value: Any) -> Any:
    if isinstance(value, Guarded):
        return Tensor(value.array)
    return Tensor(value) if isinstance(value, np.ndarray) else value


def poisoned(*shape: int, dtype: npt.DTypeLike) -> Guarded:
    """Return memory for a result, filled with a pattern that is never a correct result."""
    memory = Guarded(shape, dtype, fence=BLOCK)
    _poison(memory)
    return memory


def _poison(memory: Guarded) -> None:
    """Fill floats with a number: any NaN would equal an expected one."""
    if memory.array.dtype.kind not in "iub" and memory.array.size:
        memory.array.view(np.uint8).fill(0x5A)


def operand(dtype: npt.DTypeLike, seed: int, count: int = N, *, special: bool = True, moved: bool = True) -> Array:
    """Return random numbers mixed with the ends of the range, both zeros, subnormals, infinities and NaN.

    Args:
        moved: whether the kernel only moves them. Without it there are no subnormals that this device may take for
            zeros. `compute` needs no such care: it leaves the results of subnormals open.
    """
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        found = random.integers(limits.min, limits.max, count, kind, endpoint=True)
        ends: list[Any] = [0, 1, limits.min, limits.max, limits.max - 1]
    else:
        info = ml_dtypes.finfo(kind)
        found = (random.standard_normal(count) * 4).astype(kind)
        tiny, least, most = float(info.smallest_normal), float(info.smallest_subnormal), float(info.max)
        if kind in FLUSHED and not moved:
            least = tiny
        ends = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, most, -most, tiny, least, -least]
    if special:
        # Two operands have the same special values in different order, so that each value meets each other one.
        places = random.permutation(count)[: len(ends) ** 2]
        found[places] = np.resize(np.array(ends, kind) if seed % 2 else np.repeat(ends, len(ends)), places.size)
    return found


def check(out: Guarded | Array, reference: npt.ArrayLike, *, ulp: float = 0.0) -> None:
    """Compare with the exact result: equal after one rounding, with the signs of zeros, or within some ulp of it.

    Args:
        out: the output; of a guarded one, the fences are checked, too.
        reference: float64 for floating-point numbers, or the type of the output.
        ulp: allowed distance in units in the last place of the output's type, in addition to half an ulp for the
            rounding.
    """
    found, reference = out.array if isinstance(out, Guarded) else out, np.asarray(reference)
    if isinstance(out, Guarded):
        out.check_fences("the output")
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(reference, found.shape).astype(found.dtype)
    if isinstance(out, Open):
        found, expected, reference = (
            np.where(out.open, 1, each).astype(each.dtype) for each in (found, expected, reference)
        )
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
        return
    # A result that is subnormal may be a zero of the same sign.
    zero = (found == 0) & (np.signbit(found) == np.signbit(expected)) & subnormal(expected)
    expected, reference = np.where(zero, found, expected), np.where(zero, found.astype(reference.dtype), reference)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    right = ~np.isnan(expected)
    bounds.append(ulp + 0.5)
    if ulp == 0:
        bits = np.dtype(f"u{found.itemsize}")
        same = found.view(bits) == expected.view(bits)
        assert np.all(same | ~right), difference(found, expected, ~same & right)
        return
    finite = right & np.isfinite(expected)
    assert np.array_equal(found[right & ~finite], expected[right & ~finite]), "infinities are not where they should be"
    allowed = (ulp + 0.5) * last_place(reference, found.dtype)
    far = finite & ~(np.abs(found.astype(np.float64) - reference.astype(np.float64)) <= allowed)
    assert not np.any(far), difference(found, reference, far)


def last_place(reference: Array, dtype: npt.DTypeLike) -> Array:
    """Return the distance from each element to the next number of its type."""
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(reference.astype(np.float64)), float(info.smallest_normal))))
    found: Array = np.exp2(exponent - info.nmant)
    return found


def error_of_sum(dtype: npt.DTypeLike, count: int, most: Array, exact: Array) -> Array:
    """Return how far a sum of floats may be from the exact one: it is in f32 or wider, in any order, and rounded once.

    Args:
        most: the sum of the magnitudes, which bounds each of the `count` partial sums.
    """
    eps = float(ml_dtypes.finfo(dtype).eps)
    allowed: Array = count * min(eps, 2.0**-23) * most + eps / 2 * np.abs(exact)
    return allowed


def difference(found: Array, expected: Array, wrong: Array) -> str:
    """Describe the first wrong elements."""
    places = np.argwhere(wrong)
    first = ", ".join(f"{tuple(map(int, at))}: {found[tuple(at)]}, not {expected[tuple(at)]}" for at in places[:4])
    return f"{len(places)} of {found.size} elements are wrong; {first}"
