"""Conversions between all types, and the bits of a number as another type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from checking import DTYPES, FLOATS, INTEGERS, check, compute, operand
from foundry_core.scalars import ROWS

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


BITS = [
    (a, b) for a in DTYPES for b in DTYPES if a != b and np.dtype(DTYPES[a]).itemsize == np.dtype(DTYPES[b]).itemsize
]


@pytest.mark.operation("bits as {target}", type="{source}")
@pytest.mark.parametrize(("source", "target"), BITS)
def test_bits_as_another_type(source: str, target: str) -> None:
    a = operand(DTYPES[source], 1)
    if target in FLOATS:
        a[np.isnan(a.view(DTYPES[target]))] = 0
    reference = a.view(DTYPES[target])
    if target in INTEGERS and source in FLOATS:
        # The bits of a NaN are not specified.
        a[np.isnan(a)] = 0
    check(compute(f"a.to({TRITON[target]}, bitcast=True)", DTYPES[target], a=a), reference)


@pytest.mark.operation("to i1")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_as_a_condition(dtype: str) -> None:
    a = operand(DTYPES[dtype], 1)
    check(compute("a.to(tl.int1)", np.int8, a=a), (a != 0).astype(np.int8))


@pytest.mark.operation("to {target}, towards zero", type="{source}")
@pytest.mark.parametrize(("source", "target"), [("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "f32")])
def test_a_cast_may_round_towards_zero(source: str, target: str) -> None:
    a, kind = operand(FLOATS[source], 1), FLOATS[target]
    with np.errstate(over="ignore"):
        near = a.astype(kind)
    bits = near.view(f"u{near.itemsize}")
    with np.errstate(invalid="ignore"):
        above = np.abs(near.astype(np.float64)) > np.abs(a.astype(np.float64))
    reference = np.where(above, bits - 1, bits).astype(bits.dtype).view(kind)
    check(compute(f'a.to({TRITON[target]}, fp_downcast_rounding="rtz")', kind, a=a), reference.astype(np.float64))


# ml_dtypes does not have fp8e4b15.
FP8 = {row.name.replace("fp", "tl.float"): getattr(ml_dtypes, row.dtype) for row in ROWS if row.dtype[:6] == "float8"}


@pytest.mark.operation("to {target}", type="{name}")
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("name", FP8)
def test_every_fp8_number_as_a_wider_one(name: str, target: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    reference = codes.view(FP8[name]).astype(np.float64)
    check(compute(f"a.to({name}, bitcast=True).to({TRITON[target]})", FLOATS[target], a=codes), reference)


@pytest.mark.operation("to {name}", type="{source}")
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("name", FP8)
def test_a_wider_number_as_fp8(name: str, source: str) -> None:
    """Use numbers within the range: whether larger numbers saturate depends on the hardware."""
    a = np.linspace(-230, 230, 1000).astype(FLOATS[source])
    a[::3] = a[::3] / 2.0**14
    a[1::70] = -0.0
    reference = a.astype(np.float32).astype(FP8[name]).view(np.uint8)
    check(compute(f"a.to({name}).to(tl.uint8, bitcast=True)", np.uint8, a=a), reference)


@pytest.mark.operation("to {target}", type="{source}")
@pytest.mark.parametrize("target", FP8)
@pytest.mark.parametrize("source", FP8)
def test_every_fp8_number_as_another_fp8_type(source: str, target: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    numbers = codes.view(FP8[source]).astype(np.float32)
    codes = codes[np.isfinite(numbers) & (np.abs(numbers) <= float(ml_dtypes.finfo(FP8[target]).max))]
    reference = codes.view(FP8[source]).astype(np.float32).astype(FP8[target]).view(np.uint8)
    expression = f"a.to({source}, bitcast=True).to({target}).to(tl.uint8, bitcast=True)"
    check(compute(expression, np.uint8, a=codes), reference)
