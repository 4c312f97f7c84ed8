"""Conversions between all types, roundings, bits as another type, and scalars. fp8 types are in test_fp8.py."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, FLOATS, INTEGERS, check, compute, launch, operand, poisoned

TRITON = {
    "f16": "tl.float16",
    "bf16": "tl.bfloat16",
    "f32": "tl.float32",
    "f64": "tl.float64",
    **{name: f"tl.{'u' if name[0] == 'u' else ''}int{name[1:]}" for name in INTEGERS},
}
SOURCES = DTYPES | {"i1": np.bool_}
PAIRS = [(source, target) for source in SOURCES for target in DTYPES if source != target]


@pytest.mark.operation("to {target}", type="{source}")
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_conversion(source: str, target: str) -> None:
    """Floats are rounded once; integers keep the low bits; what an integer type does not have is not specified."""
    a, kind = numbers(source), DTYPES[target]
    if target in FLOATS:
        values = (a if a.dtype.kind in "iub" else a.astype(np.float64)).tolist()
        reference = np.array([rounded(value, target) for value in values])
    else:
        if source in FLOATS:
            limits, wide = np.iinfo(kind), a.astype(np.float64)
            inside = np.isfinite(wide) & (np.trunc(wide) >= limits.min) & (np.trunc(wide) < float(limits.max) + 1)
            a = np.where(inside, a, np.array(1, a.dtype))
        reference = a.astype(kind)
    check(compute(f"a.to({TRITON[target]})", kind, a=a), reference)


def numbers(name: str) -> np.ndarray:
    """Return extremes, ties of all floats and their neighbours, and random numbers; of i1, booleans."""
    kind, random = np.dtype(SOURCES[name]), np.random.default_rng(7)
    if name == "i1":
        return np.arange(300) % 3 == 0
    if name in INTEGERS:
        limits, bits = np.iinfo(kind), 8 * kind.itemsize
        places = [(((1 << digits) + odd) << at, at) for digits in (8, 11, 24) for odd in (1, -1, 3) for at in range(64)]
        ties = [sign * (tie + step) for tie, at in places for step in (-1, 0, 1) for sign in (1, -1) if at < bits]
        fitting = [each for each in dict.fromkeys(ties) if limits.min <= each <= limits.max]
        chosen = [fitting[at] for at in random.permutation(len(fitting))[:600]]
        return np.concatenate([operand(kind, 1), np.array(chosen, kind)])
    near = np.concatenate([1 + np.exp2(-at) + np.array([0, 1, -1, 1e-9, -1e-9]) * np.exp2(-2.6 * at) for at in (8, 11)])
    ends = [65504, 65519.99, 65520, 65536, 3.4e38, 1e39, 6e-8, 3e-8, 2.9e-8, 1e-45, 127.9, 128.9, 255.5, 32767.5, 0.9]
    ends += [0.0, np.inf, np.nan, 2.0**31 - 128, 2.0**62, 1e300, 3.4028235e38]
    wide = np.concatenate([near, ends, random.standard_normal(300) * np.exp2(random.integers(-30, 70, 300))])
    with np.errstate(over="ignore"):
        return np.concatenate([operand(kind, 1), np.concatenate([wide, -wide]).astype(kind)])


def rounded(value: Any, name: str, rounding: str = "rtne") -> float:
    """Return the number of a type nearest to a number or, with rtz, the next one towards zero: exactly computed."""
    if isinstance(value, float) and (not np.isfinite(value) or value == 0):
        return value
    info = ml_dtypes.finfo(FLOATS[name])
    exact, largest = abs(Fraction(value)), Fraction(float(info.max))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length() if exact else 0
    exponent -= Fraction(2) ** exponent > exact
    step = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    size = step * (round(exact / step) if rounding == "rtne" else exact // step)
    if size > largest:
        return float(np.copysign(np.inf if rounding == "rtne" else float(largest), float(np.sign(value))))
    return float(np.copysign(float(size), 1 if value >= 0 else -1))


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


@pytest.mark.parametrize(
    ("dtype", "way"),
    [
        ("i16", "float16 uint16 bfloat16 int16"),
        ("u32", "float32 int32 float32 uint32"),
        ("i64", "float64 uint64 float64 int64"),
    ],
)
def test_bits_are_kept_on_the_way_through_other_types(dtype: str, way: str) -> None:
    """Those of NaN, too: nothing computes with them."""
    size = 256 * np.dtype(DTYPES[dtype]).itemsize
    a = np.random.default_rng(2).integers(0, 256, size, np.uint8).view(DTYPES[dtype])
    check(compute("a" + "".join(f".to(tl.{each}, bitcast=True)" for each in way.split()), a.dtype, a=a), a)


@pytest.mark.operation("to i1")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_as_a_condition(dtype: str) -> None:
    a = operand(DTYPES[dtype], 1)
    check(compute("a.to(tl.int1)", np.int8, a=a), (a != 0).astype(np.int8))


@pytest.mark.operation("to {target}, towards zero", type="{source}")
@pytest.mark.parametrize(
    ("source", "target"), [("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "bf16"), ("f64", "f32")]
)
def test_a_cast_may_round_towards_zero(source: str, target: str) -> None:
    a = numbers(source)
    reference = np.array([rounded(value, target, "rtz") for value in a.astype(np.float64).tolist()])
    check(compute(f'a.to({TRITON[target]}, fp_downcast_rounding="rtz")', FLOATS[target], a=a), reference)


@triton.jit
def scalars(x, out, high):
    """From a scalar to other types, and the upper halves of products."""
    a = tl.load(x)
    tl.store(out, a.to(tl.int8).to(tl.int64))
    tl.store(out + 1, a.to(tl.float32).to(tl.int64))
    tl.store(out + 2, a.to(tl.bfloat16).to(tl.float32).to(tl.int64))
    tl.store(out + 3, a.to(tl.uint16).to(tl.int64))
    tl.store(out + 4, (a != 0).to(tl.float16).to(tl.int64))
    tl.store(high, tl.umulhi(a, a))
    tl.store(high + 1, tl.umulhi(a.to(tl.uint32), a.to(tl.uint32)).to(tl.int64))


@pytest.mark.parametrize("value", [-(2**63), -129, 2**40 + 2**32 + 1, 257])
def test_a_scalar_is_converted_as_a_tile_is(value: int) -> None:
    out, high = poisoned(5, dtype=np.int64), poisoned(2, dtype=np.int64)
    launch(scalars, (1,), np.array([value], np.int64), out, high)
    low = (value + 128) % 256 - 128
    check(out, [low, int(rounded(value, "f32")), int(rounded(value, "bf16")), value % 65536, 1])
    unsigned, word = value % 2**64, value % 2**32
    check(high, [(unsigned**2 >> 64) - (unsigned**2 >> 127 << 64), word**2 >> 32])


@triton.jit
def cut(a, to16, to32, to64, i, n, TO: tl.constexpr, BITS: tl.constexpr, ROW: tl.constexpr):
    a += 3 * ROW  # one extension for each cut: LLVM does not combine others
    if BITS < 16:
        tl.store(to16 + ROW * n + i, a.to(TO).to(tl.int16))
    if BITS < 32:
        tl.store(to32 + ROW * n + i, (a + 1).to(TO).to(tl.int32))
    tl.store(to64 + ROW * n + i, (a + 2).to(TO).to(tl.int64))


@triton.jit
def cuts(x, to16, to32, to64, n, BITS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    cut(a, to16, to32, to64, i, n, tl.uint8, 8, 0)
    cut(a, to16, to32, to64, i, n, tl.int8, 8, 1)
    if BITS > 16:
        cut(a, to16, to32, to64, i, n, tl.uint16, 16, 2)
        cut(a, to16, to32, to64, i, n, tl.int16, 16, 3)
    if BITS > 32:
        cut(a, to16, to32, to64, i, n, tl.uint32, 32, 4)
        cut(a, to16, to32, to64, i, n, tl.int32, 32, 5)


@pytest.mark.parametrize("block", [1, 2, 16])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_a_number_that_is_cut_and_extended_again_keeps_the_low_bits(bits: int, block: int) -> None:
    """LLVM's SPIR-V backend makes a mask of a cut and an extension, of the first width, and not of all vectors."""
    n, limit = 96, 2 ** (bits - 1)
    x = np.random.default_rng(3).integers(-limit, limit, n).astype(f"i{bits // 8}")
    x[:4] = -limit, limit - 1, -1, 0
    outs = {wide: np.full((6, n), 77, f"i{wide // 8}") for wide in (16, 32, 64)}
    launch(cuts, (n // block,), x, *outs.values(), n, BITS=bits, BLOCK=block)
    for row, narrow in enumerate(("u1", "i1", "u2", "i2", "u4", "i4")):
        for more, (wide, out) in enumerate(outs.items()):
            is_stored = 8 * int(narrow[1]) < min(bits, wide)
            expected = (x + x.dtype.type(3 * row + more)).astype(narrow) if is_stored else np.full(n, 77)
            check(out[row], expected)


@triton.jit
def convert(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def test_every_f16_survives_the_way_to_f32_and_back() -> None:
    halves, wide = np.arange(1 << 16, dtype=np.uint16).view(np.float16), poisoned(1 << 16, dtype=np.float32)
    launch(convert, (256,), halves, wide, BLOCK=256)
    check(wide, halves.astype(np.float64))
    back = np.full(1 << 16, 77, np.float16)
    launch(convert, (256,), wide, back, BLOCK=256)
    check(back, halves)


def test_f32_around_the_middle_between_two_f16_rounds_to_the_next_one() -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype("d")
    middles = ((halves + np.append(halves[1:], 65536.0)) / 2).astype("f")
    x = np.concatenate([middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(1e38))])
    # Values that are too large, and f32's subnormals.
    x = np.concatenate([x, [1e38, np.inf, 1e-45, 2.0**-126]]).astype("f")
    x = np.resize(np.concatenate([x, -x]), -(-2 * len(x) // 256) * 256)
    out = np.full(len(x), np.nan, np.float16)
    launch(convert, (len(x) // 256,), x, out, BLOCK=256)
    with np.errstate(over="ignore"):
        check(out.view(np.uint16), x.astype(np.float16).view(np.uint16))
