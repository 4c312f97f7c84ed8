"""Conversions between all types, and the bits of a number as another type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from checking import DTYPES, FLOATS, INTEGERS, check, compute, operand

TRITON = {
    "f16": "tl.float16",
    "bf16": "tl.bfloat16",
    "f32": "tl.float32",
    "f64": "tl.float64",
    **{name: f"tl.{'u' if name[0] == 'u' else ''}int{name[1:]}" for name in INTEGERS},
}
PAIRS = [(source, target) for source in DTYPES for target in DTYPES if source != target]


@pytest.mark.operation("to {target}", type="{source}")
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_conversion(source: str, target: str) -> None:
    """Integers wrap around; floating-point numbers round to nearest, or towards zero if the target is an integer."""
    a = operand(DTYPES[source], 1)
    if source in FLOATS and target in INTEGERS:
        # A value outside the target type's range has no defined result.
        limits = np.iinfo(DTYPES[target])
        wide = a.astype(np.float64)
        inside = np.isfinite(wide) & (wide > max(limits.min, -(2.0**62))) & (wide < min(limits.max, 2.0**62))
        a = np.where(inside, a, np.array(1, a.dtype))
    with np.errstate(all="ignore"):
        if source in INTEGERS and target in ("f16", "bf16", "f32"):
            # Convert by way of an integer that is made odd if bits were dropped, so that nothing is rounded twice.
            reference = np.array([_rounded(int(value), DTYPES[target]) for value in a], DTYPES[target])
        else:
            reference = a.astype(np.float64).astype(DTYPES[target]) if source in FLOATS else a.astype(DTYPES[target])
    check(compute(f"a.to({TRITON[target]})", DTYPES[target], a=a), reference)


def _rounded(value: int, dtype: type) -> float:
    """Return the number of a type that is nearest to an integer."""
    magnitude = abs(value)
    drop = max(0, magnitude.bit_length() - 50)
    kept = magnitude >> drop
    if drop and magnitude & ((1 << drop) - 1):
        kept |= 1
    exact = float(kept) * 2.0**drop
    with np.errstate(over="ignore"):
        return float(np.float64(-exact if value < 0 else exact).astype(dtype))


@pytest.mark.operation("bits as {target}", type="{source}")
@pytest.mark.parametrize(
    ("source", "target"),
    [("f32", "i32"), ("i32", "f32"), ("f16", "u16"), ("i16", "bf16"), ("f64", "i64"), ("u8", "i8")],
)
def test_bits_as_another_type(source: str, target: str) -> None:
    a = operand(DTYPES[source], 1)
    if target in FLOATS:
        a[np.isnan(a.view(DTYPES[target]))] = 0
    check(compute(f"a.to({TRITON[target]}, bitcast=True)", DTYPES[target], a=a), a.view(DTYPES[target]))


@pytest.mark.operation("to i1")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_as_a_condition(dtype: str) -> None:
    a = operand(DTYPES[dtype], 1)
    check(compute("a.to(tl.int1)", np.int8, a=a), (a != 0).astype(np.int8))


FP8 = {"tl.float8e5": ml_dtypes.float8_e5m2, "tl.float8e4nv": ml_dtypes.float8_e4m3fn}


@pytest.mark.operation("to f32", type="{name}")
@pytest.mark.parametrize("name", FP8)
def test_every_fp8_number_as_f32(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    reference = codes.view(FP8[name]).astype(np.float64)
    check(compute(f"a.to({name}, bitcast=True).to(tl.float32)", np.float32, a=codes), reference)


@pytest.mark.operation("to {name}", type="f32")
@pytest.mark.parametrize("name", FP8)
def test_f32_as_fp8(name: str) -> None:
    """Use numbers within the range: whether larger numbers saturate depends on the hardware."""
    a = np.linspace(-400, 400, 1000).astype(np.float32)
    a[::3] /= 2.0**14
    reference = a.astype(FP8[name]).view(np.uint8)
    check(compute(f"a.to({name}).to(tl.uint8, bitcast=True)", np.uint8, a=a), reference)
