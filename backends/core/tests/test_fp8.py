"""tl.float8e5: conversions of its 256 numbers to every other type and back, and rounding of numbers between them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from triton.compiler.errors import CompilationError

F8 = ml_dtypes.float8_e5m2
BACKEND = triton.runtime.driver.active.get_current_target().backend
ON_DPU = BACKEND == "dpu"
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
if BACKEND == "vsi":
    del FLOATS["f64"]  # zen-compiler refuses it, because no device is known to have it
BITS = np.arange(256, dtype=np.uint8)
BLOCK = 256

on_devices_with_fp8 = pytest.mark.skipif(ON_DPU, reason="refused there, see below")


@triton.jit
def cast(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def as_bits(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.uint8, bitcast=True))


@triton.jit
def from_bits(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.float8e5, bitcast=True))


@triton.jit
def through(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.float8e5).to(tl.float32))


@triton.jit
def chosen(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.where(i % 3 == 0, tl.load(x + i), tl.load(y + i, mask=i % 3 == 1, other=0.0)))


@triton.jit
def product(a, b, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j)))


def converted(x: np.ndarray, target: Any) -> np.ndarray:
    out = np.empty(x.size, target)
    out.view(np.uint8).fill(0x5A)
    cast[(triton.cdiv(x.size, BLOCK),)](Tensor(x), Tensor(out), x.size, BLOCK=BLOCK)
    return out


def nearest(x: np.ndarray) -> np.ndarray:
    """Round float64 once to a mantissa of 2 bits, ties to even; 61440 and above become infinite."""
    _, exponent = np.frexp(x)
    step = np.exp2(np.maximum(exponent - 1, -14).astype(np.float64) - 2)
    with np.errstate(invalid="ignore"):
        rounded = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    return np.where(np.abs(rounded) > 57344, np.copysign(np.inf, x), rounded)


def same(out: np.ndarray, expected: np.ndarray) -> None:
    """Check that two arrays are equal, including NaN and signs."""
    with np.errstate(invalid="ignore"):  # for signalling NaNs
        got = out.astype(np.float64)
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@on_devices_with_fp8
@pytest.mark.parametrize("target", FLOATS)
def test_every_number_is_one_of_the_wider_types(target: str) -> None:
    same(converted(BITS.view(F8), FLOATS[target]), BITS.view(F8).astype(np.float64))


@on_devices_with_fp8
def test_copying_keeps_every_bit() -> None:
    assert converted(BITS.view(F8), F8).tobytes() == BITS.tobytes()


@on_devices_with_fp8
def test_bits_can_be_seen_and_given() -> None:
    out = np.full(256, 0x5A, np.uint8)
    as_bits[(1,)](Tensor(BITS.view(F8)), Tensor(out), BLOCK=256)
    np.testing.assert_array_equal(out, BITS)
    numbers = np.full(256, 0x5A, np.uint8)
    from_bits[(1,)](Tensor(BITS), Tensor(numbers.view(F8)), BLOCK=256)
    np.testing.assert_array_equal(numbers, BITS)


@on_devices_with_fp8
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_number_of_16_bits_is_rounded_to_nearest_even(source: str) -> None:
    x = np.arange(65536, dtype=np.uint16).view(FLOATS[source])
    with np.errstate(invalid="ignore"):
        expected = nearest(x.astype(np.float64))
    same(converted(x, F8), expected)


@on_devices_with_fp8
@pytest.mark.parametrize("source", sorted({"f32", "f64"} & FLOATS.keys()))
def test_ties_and_what_lies_just_beside_them_are_rounded_once(source: str) -> None:
    """f64's neighbours of a tie are ties in f32: rounding to f32 first would give a wrong result."""
    dtype = FLOATS[source]
    numbers = np.append(np.arange(0x7C, dtype=np.uint8).view(F8).astype(np.float64), 65536.0)
    ties = ((numbers[:-1] + numbers[1:]) / 2).astype(dtype)
    x = np.concatenate([ties, np.nextafter(ties, dtype(0)), np.nextafter(ties, dtype(1e30)), numbers.astype(dtype)])
    rest = np.array([1e30, np.inf, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal], dtype)
    x = np.concatenate([x, -x, rest, -rest])
    same(converted(x, F8), nearest(x.astype(np.float64)))


@on_devices_with_fp8
def test_a_number_that_is_not_stored_is_rounded_all_the_same() -> None:
    x, out = np.linspace(-3, 3, 256, dtype=np.float32), np.full(256, np.nan, np.float32)
    through[(1,)](Tensor(x), Tensor(out), BLOCK=256)
    same(out, nearest(x.astype(np.float64)))


@on_devices_with_fp8
def test_choosing_and_masking_keep_numbers() -> None:
    x, y, out = BITS.view(F8), BITS[::-1].copy().view(F8), np.full(256, 0x5A, np.uint8)
    chosen[(1,)](Tensor(x), Tensor(y), Tensor(out.view(F8)), BLOCK=256)
    place = np.arange(256) % 3
    expected = np.where(place == 0, x.astype(np.float64), np.where(place == 1, y.astype(np.float64), 0.0))
    same(out.view(F8), expected)


@on_devices_with_fp8
def test_dot_multiplies_them_exactly() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-6, 7, (32, 32)).astype(np.float32).astype(F8) for _ in range(2))
    out = np.full((32, 32), np.nan, np.float32)
    product[(1,)](Tensor(a), Tensor(b), Tensor(out), N=32)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.skipif(not ON_DPU, reason="a DPU refuses what others take")
def test_a_dpu_refuses_the_type_by_name() -> None:
    with pytest.raises(CompilationError, match="fp8e5"):
        converted(BITS.view(F8), np.float32)
