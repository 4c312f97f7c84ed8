"""The five fp8 types: all their numbers, conversions in both roundings, arithmetic, and where kernels use them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import FLOATS, RELEASE, Array, check, compute, launch, poisoned
from foundry_core.scalars import ELEMENTS, FP8
from foundry_core.tensor import Tensor

BITS = np.arange(256, dtype=np.uint8)
WIDER = {"f16": "tl.float16", "bf16": "tl.bfloat16", "f32": "tl.float32", "f64": "tl.float64"}
NAMES = {name: name.replace("fp", "tl.float") for name in FP8}
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


def check_numbers(name: str, codes: Array, expected: Array) -> None:
    """Compare the numbers of an fp8 type that bytes stand for: zeros with their signs, any NaN with any other."""
    check(numbers(name)[codes], expected)


@pytest.mark.operation("to {target}", type="{name}")
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("name", FP8)
def test_every_number_as_a_wider_one(name: str, target: str) -> None:
    expression = f"a.to({NAMES[name]}, bitcast=True).to({WIDER[target]})"
    check(compute(expression, FLOATS[target], a=BITS), numbers(name))


@pytest.mark.operation("to {target}", type="{source}")
@pytest.mark.parametrize("target", FP8)
@pytest.mark.parametrize("source", FP8)
def test_every_number_as_another_fp8_type(source: str, target: str) -> None:
    expression = f"a.to({NAMES[source]}, bitcast=True).to({NAMES[target]}).to(tl.uint8, bitcast=True)"
    codes, exact = compute(expression, np.uint8, a=BITS).array, numbers(source)
    check_numbers(target, codes, exact if source == target else nearest(exact, target))
    if source == target:
        np.testing.assert_array_equal(codes[~np.isnan(exact)], BITS[~np.isnan(exact)])


@pytest.mark.operation("to {name}", type="{source}")
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("name", FP8)
def test_a_wider_number_is_rounded_once_and_saturates(name: str, source: str, rounding: str) -> None:
    x = hard(FLOATS[source])
    how = ', fp_downcast_rounding="rtz"' if rounding == "rtz" else ""
    codes = compute(f"a.to({NAMES[name]}{how}).to(tl.uint8, bitcast=True)", np.uint8, a=x).array
    with np.errstate(invalid="ignore"):
        check_numbers(name, codes, nearest(x.astype(np.float64), name, rounding))


@pytest.mark.operation("to {name} and back", type="f32")
@pytest.mark.parametrize("name", FP8)
def test_a_number_that_is_not_stored_is_rounded_all_the_same(name: str) -> None:
    x = hard(np.float32)
    check(compute(f"a.to({NAMES[name]}).to(tl.float32)", np.float32, a=x), nearest(x.astype(np.float64), name))


@triton.jit
def chosen(x, y, bits, out, copy, constants, CONSTANT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(copy + i, tl.load(bits + i).to(x.dtype.element_ty, bitcast=True))
    tl.store(out + i, tl.where(i % 3 == 0, tl.load(x + i), tl.load(y + i, mask=i % 3 == 1, other=0.0)))
    tl.store(constants + i, tl.full((BLOCK,), CONSTANT, x.dtype.element_ty))


def typed(bits: np.ndarray, name: str) -> Any:
    """Return a tensor of an fp8 type over an array of bytes: of ml_dtypes' type, or by the type's name."""
    kind = ELEMENTS[name].dtype
    return Tensor(bits.view(getattr(ml_dtypes, kind))) if kind else Tensor(bits, dtype=name)


@pytest.mark.operation("values chosen, masked and constant", type="{name}")
@pytest.mark.parametrize("name", FP8)
def test_choosing_and_masking_keep_numbers_and_constants_are_rounded(name: str) -> None:
    y, (out, copy, constants) = BITS[::-1].copy(), (np.full(256, 0x5A, np.uint8) for _ in range(3))
    tensors = [typed(array, name) for array in (BITS, y, out, copy, constants)]
    constant = 1.3 if RELEASE >= (3, 9) else 0.0  # until 3.6 Triton has no other constant of an fp8 type
    chosen[(1,)](*tensors[:2], Tensor(y), *tensors[2:], CONSTANT=constant, BLOCK=256)
    place = np.arange(256) % 3
    check_numbers(name, out, np.where(place == 0, numbers(name), np.where(place == 1, numbers(name)[y], 0.0)))
    check_numbers(name, copy, numbers(name)[y])
    check_numbers(name, constants, np.full(256, nearest(np.array([constant]), name)))


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


# fp8e4b15 is an integer in Triton's IR, so that Triton can convert it but not compute with it.
@pytest.mark.operation("+, -, *, comparisons, tl.max", type="{name}")
@pytest.mark.parametrize("name", [name for name in FP8 if name != "fp8e4b15"])
def test_comparisons_and_arithmetic_go_by_way_of_f32(name: str) -> None:
    """Arithmetic rounds once and overflows as in ml_dtypes."""
    random = np.random.default_rng(8)
    x, y = random.permutation(BITS), random.permutation(BITS)
    a, b = x.view(KINDS[name]).astype(np.float32), y.view(KINDS[name]).astype(np.float32)
    order, outs = poisoned(256, dtype=np.int8), [np.full(256, 0x5A, np.uint8) for _ in range(5)]
    launch(arithmetic, (1,), typed(x, name), typed(y, name), order, *(typed(out, name) for out in outs), BLOCK=256)
    check(order, (a < b) + 2 * (a == b) + 4 * (a != b) + 8 * (a >= b))
    with np.errstate(all="ignore"):
        expected = [found.astype(KINDS[name]).astype(np.float64) for found in (a + b, a - b, a * b, 0 - a)]
    for out, found in zip(outs, expected, strict=False):
        np.testing.assert_array_equal(numbers(name)[out], found)
    # tl.max gives an f32, whose conversion saturates.
    assert numbers(name)[outs[4][0]] == nearest(np.nanmax(a, keepdims=True).astype(np.float64), name)


@triton.jit
def product(a, b, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@pytest.mark.operation("tl.dot", type="{left}")
@pytest.mark.parametrize(("left", "right"), [("fp8e5", "fp8e4nv"), ("fp8e4b8", "fp8e5b16"), ("fp8e4b15", "fp8e4b15")])
def test_dot_multiplies_them_exactly(left: str, right: str) -> None:
    random, out = np.random.default_rng(1), poisoned(16, 16, dtype=np.float32)

    def drawn(name: str) -> np.ndarray:
        size = np.abs(numbers(name))
        return random.choice(np.flatnonzero((size <= 6) & (size >= 0.5)).astype(np.uint8), (16, 16))

    a, b = drawn(left), drawn(right)
    launch(product, (1,), typed(a, left), typed(b, right), out, N=16)
    check(out, numbers(left)[a] @ numbers(right)[b])
