"""The five fp8 types: all their numbers, conversions in both roundings, arithmetic, and where kernels use them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.scalars import ELEMENTS, FP8
from foundry_core.tensor import Tensor
from image import BACKEND, RELEASE
from results import check_same, poisoned
from shared_kernels import product

FLOATS = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": np.float64}
if BACKEND == "vsi":
    del FLOATS["fp64"]  # zen-compiler refuses it, because no device is known to have it
BITS = np.arange(256, dtype=np.uint8)
# The definitions of the types are those of ml_dtypes, which does not have fp8e4b15: the bits of the largest number, and
# which types have no -0. Triton's conversion on GPUs gives fp8e4b15 no 0x7F.
KINDS = {name: getattr(ml_dtypes, ELEMENTS[name].dtype) for name in FP8 if ELEMENTS[name].dtype}
LARGEST = {name: int(ml_dtypes.finfo(kind).max.view(np.uint8)) for name, kind in KINDS.items()} | {"fp8e4b15": 0x7E}
UNSIGNED_ZERO = [name for name, kind in KINDS.items() if not np.signbit(kind(-0.0))]


def numbers(name: str) -> np.ndarray:
    """Return all 256 numbers as float64."""
    if name in KINDS:
        return BITS.view(KINDS[name]).astype(np.float64)
    exponent, mantissa = BITS >> 3 & 15, (BITS & 7).astype(np.float64) / 8
    size = np.where(exponent == 0, mantissa * 2.0**-14, (1 + mantissa) * np.exp2(exponent.astype(np.float64) - 15))
    return np.where(BITS & 0x80, -size, size)


def nearest(x: np.ndarray, name: str, rounding: str = "rtne") -> np.ndarray:
    """Return the numbers that float64 is converted to: rounded once, and at most the largest number."""
    values = numbers(name)[: LARGEST[name] + 1]
    size = np.abs(x)
    at = np.searchsorted(values, np.nan_to_num(size, nan=0.0, posinf=1e300), "right") - 1
    if rounding == "rtne":
        middle = (values + np.append(values[1:], np.nan)) / 2
        at = at + ((size > middle[at]) | ((size == middle[at]) & (at % 2 == 1)))
    found = np.copysign(values[at], x)
    if name in UNSIGNED_ZERO:
        found = np.where(found == 0, 0.0, found)
    return np.where(np.isnan(x), np.copysign(values[-1], x) if name == "fp8e4b15" else np.nan, found)


def hard(dtype: Any) -> np.ndarray:
    """Return ties of all types, their neighbours, and extremes; f64's neighbours of a tie are ties in f32."""
    if np.dtype(dtype).itemsize == 2:
        return np.arange(65536, dtype=np.uint16).view(dtype)
    values = np.concatenate([numbers(name)[: LARGEST[name] + 1] for name in FP8])
    ties = np.concatenate([(values[:-1] + values[1:]) / 2, [f * x for f in (1.03125, 1.0625, 1.125) for x in values]])
    info = np.finfo(dtype)
    rest = [1e30, np.inf, np.nan, info.tiny, info.smallest_subnormal, 0.0, info.max, float(info.max) / 3]
    x = np.abs(np.concatenate([ties, values, rest])).astype(dtype)
    with np.errstate(over="ignore"):
        x = np.unique(np.concatenate([x, np.nextafter(x, dtype(0)), np.nextafter(x, dtype(np.inf))]))
    return np.concatenate([x, -x])


@triton.jit
def convert(x, raw, fp16, bf16, fp32, fp64, e5, e4nv, e4b8, e5b16, e4b15, HAS_F64: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(raw + i, a.to(tl.uint8, bitcast=True))
    tl.store(fp16 + i, a.to(tl.float16))
    tl.store(bf16 + i, a.to(tl.bfloat16))
    tl.store(fp32 + i, a.to(tl.float32))
    if HAS_F64:
        tl.store(fp64 + i, a.to(tl.float64))
    tl.store(e5 + i, a.to(tl.float8e5))
    tl.store(e4nv + i, a.to(tl.float8e4nv))
    tl.store(e4b8 + i, a.to(tl.float8e4b8))
    tl.store(e5b16 + i, a.to(tl.float8e5b16))
    tl.store(e4b15 + i, a.to(tl.float8e4b15))


@triton.jit
def narrow(x, e5, e4nv, e4b8, e5b16, e4b15, n, BLOCK: tl.constexpr):
    """Round to nearest, and at n towards zero."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    tl.store(e5 + i, a.to(tl.float8e5), mask=inside)
    tl.store(e4nv + i, a.to(tl.float8e4nv, fp_downcast_rounding="rtne"), mask=inside)
    tl.store(e4b8 + i, a.to(tl.float8e4b8), mask=inside)
    tl.store(e5b16 + i, a.to(tl.float8e5b16), mask=inside)
    tl.store(e4b15 + i, a.to(tl.float8e4b15), mask=inside)
    tl.store(e5 + n + i, a.to(tl.float8e5, fp_downcast_rounding="rtz"), mask=inside)
    tl.store(e4nv + n + i, a.to(tl.float8e4nv, fp_downcast_rounding="rtz"), mask=inside)
    tl.store(e4b8 + n + i, a.to(tl.float8e4b8, fp_downcast_rounding="rtz"), mask=inside)
    tl.store(e5b16 + n + i, a.to(tl.float8e5b16, fp_downcast_rounding="rtz"), mask=inside)
    tl.store(e4b15 + n + i, a.to(tl.float8e4b15, fp_downcast_rounding="rtz"), mask=inside)


@triton.jit
def through(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, a.to(tl.float8e5).to(tl.float32), mask=i < n)
    tl.store(out + n + i, a.to(tl.float8e4nv).to(tl.float32), mask=i < n)
    tl.store(out + 2 * n + i, a.to(tl.float8e4b8).to(tl.float32), mask=i < n)
    tl.store(out + 3 * n + i, a.to(tl.float8e5b16).to(tl.float32), mask=i < n)
    tl.store(out + 4 * n + i, a.to(tl.float8e4b15).to(tl.float32), mask=i < n)


@triton.jit
def chosen(x, y, bits, out, copy, constants, CONSTANT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(copy + i, tl.load(bits + i).to(x.dtype.element_ty, bitcast=True))
    tl.store(out + i, tl.where(i % 3 == 0, tl.load(x + i), tl.load(y + i, mask=i % 3 == 1, other=0.0)))
    tl.store(constants + i, tl.full((BLOCK,), CONSTANT, x.dtype.element_ty))


@triton.jit
def arithmetic(x, y, order, total, difference, times, minus, most, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    found = (a < b).to(tl.int8) + 2 * (a == b).to(tl.int8) + 4 * (a != b).to(tl.int8) + 8 * (a >= b).to(tl.int8)
    tl.store(order + i, found)
    tl.store(total + i, a + b)
    tl.store(difference + i, a - b)
    tl.store(times + i, a * b)
    tl.store(minus + i, -a)
    # As a tile: Triton 3.2 ends the process where a scalar becomes an fp8 type.
    tl.store(most + i, tl.max(a, 0) + tl.zeros((BLOCK,), tl.float32))


def typed(bits: np.ndarray, name: str) -> Any:
    """Return a tensor of an fp8 type over an array of bytes: of ml_dtypes' type, or by the type's name."""
    kind = ELEMENTS[name].dtype
    return Tensor(bits.view(getattr(ml_dtypes, kind))) if kind else Tensor(bits, dtype=name)


@pytest.mark.parametrize("source", FP8)
def test_every_number_as_every_other_type(source: str) -> None:
    raw = poisoned(256, dtype=np.uint8)
    wide = {target: poisoned(256, dtype=kind) for target, kind in FLOATS.items()}
    others = {name: poisoned(256, dtype=np.uint8) for name in FP8}
    tensors = [Tensor(wide[name]) for name in ("fp16", "bf16", "fp32", "fp64" if "fp64" in wide else "fp32")]
    tensors += [typed(out, name) for name, out in others.items()]
    convert[(1,)](typed(BITS, source), Tensor(raw), *tensors, HAS_F64="fp64" in wide, BLOCK=256)
    for out in wide.values():
        check_same(out, numbers(source))
    for name, out in others.items():
        check_same(numbers(name)[out], numbers(source) if name == source else nearest(numbers(source), name))
    given = ~np.isnan(numbers(source))
    np.testing.assert_array_equal(raw[given], BITS[given])
    assert np.isnan(numbers(source)[raw[~given]]).all()


@pytest.mark.parametrize("source", FLOATS)
def test_a_wider_number_is_rounded_once_and_saturates(source: str) -> None:
    x = hard(FLOATS[source])
    outs = [poisoned(2 * x.size, dtype=np.uint8) for _ in FP8]
    tensors = [typed(out, name) for out, name in zip(outs, FP8, strict=True)]
    narrow[(triton.cdiv(x.size, 256),)](Tensor(x), *tensors, x.size, BLOCK=256)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    for name, out in zip(FP8, outs, strict=True):
        for rounding, found in zip(("rtne", "rtz"), out.reshape(2, -1), strict=True):
            check_same(numbers(name)[found], nearest(wide, name, rounding))


def test_a_number_that_is_not_stored_is_rounded_all_the_same() -> None:
    x = hard(np.float32)
    out = poisoned(5 * x.size, dtype=np.float32)
    through[(triton.cdiv(x.size, 256),)](Tensor(x), Tensor(out), x.size, BLOCK=256)
    for name, found in zip(FP8, out.reshape(5, -1), strict=True):
        check_same(found, nearest(x.astype(np.float64), name))


@pytest.mark.parametrize("name", FP8)
def test_choosing_and_masking_keep_numbers_and_constants_are_rounded(name: str) -> None:
    y, (out, copy, constants) = BITS[::-1].copy(), (poisoned(256, dtype=np.uint8) for _ in range(3))
    tensors = [typed(array, name) for array in (BITS, y, out, copy, constants)]
    constant = 1.3 if RELEASE >= (3, 9) else 0.0  # until 3.6 Triton has no other constant of an fp8 type
    chosen[(1,)](*tensors[:2], Tensor(y), *tensors[2:], CONSTANT=constant, BLOCK=256)
    place = np.arange(256) % 3
    expected = np.where(place == 0, numbers(name), np.where(place == 1, numbers(name)[y], 0.0))
    check_same(numbers(name)[out], expected)
    check_same(numbers(name)[copy], numbers(name)[y])
    check_same(numbers(name)[constants], np.full(256, nearest(np.array([constant]), name)))


# fp8e4b15 is an integer in Triton's IR, so that Triton can convert it but not compute with it.
@pytest.mark.parametrize("name", [name for name in FP8 if name != "fp8e4b15"])
def test_comparisons_and_arithmetic_go_by_way_of_f32(name: str) -> None:
    """Arithmetic rounds once and overflows as in ml_dtypes."""
    kind = getattr(ml_dtypes, ELEMENTS[name].dtype)
    random = np.random.default_rng(8)
    x, y = random.permutation(BITS), random.permutation(BITS)
    a, b = x.view(kind).astype(np.float32), y.view(kind).astype(np.float32)
    order, outs = poisoned(256, dtype=np.int8), [poisoned(256, dtype=np.uint8) for _ in range(5)]
    results = [typed(out, name) for out in outs]
    arithmetic[(1,)](typed(x, name), typed(y, name), Tensor(order), *results, BLOCK=256)
    np.testing.assert_array_equal(order, (a < b) + 2 * (a == b) + 4 * (a != b) + 8 * (a >= b))
    with np.errstate(all="ignore"):
        expected = [found.astype(kind).astype(np.float64) for found in (a + b, a - b, a * b, 0 - a)]
    for out, found in zip(outs, expected, strict=False):
        np.testing.assert_array_equal(numbers(name)[out], found)
    # tl.max gives an f32, whose conversion saturates.
    assert numbers(name)[outs[4][0]] == nearest(np.nanmax(a, keepdims=True).astype(np.float64), name)


@pytest.mark.parametrize(("left", "right"), [("fp8e5", "fp8e4nv"), ("fp8e4b8", "fp8e5b16"), ("fp8e4b15", "fp8e4b15")])
def test_dot_multiplies_them_exactly(left: str, right: str) -> None:
    random = np.random.default_rng(1)

    def drawn(name: str) -> np.ndarray:
        size = np.abs(numbers(name))
        return random.choice(np.flatnonzero((size <= 6) & (size >= 0.5)).astype(np.uint8), (16, 16))

    a, b, out = drawn(left), drawn(right), poisoned(16, 16)
    product[(1,)](typed(a, left), typed(b, right), Tensor(out), N=16)
    np.testing.assert_array_equal(out, numbers(left)[a] @ numbers(right)[b])
