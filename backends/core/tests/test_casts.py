"""Conversions from every type to every type at once, roundings, bits as another type, and scalars.

fp8 types are in test_fp8.py.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from results import check_same, poisoned

HAS_F64 = triton.runtime.driver.active.get_current_target().backend != "vsi"
INTEGERS = {f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)}
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
TYPES = {**INTEGERS, **FLOATS, "b": np.bool_}
SOURCES = [name for name in TYPES if name != "f64" or HAS_F64]


@triton.jit
def every(
    x, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, b, n, HAS_F64: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    tl.store(i8 + i, a.to(tl.int8), mask=inside)
    tl.store(i16 + i, a.to(tl.int16), mask=inside)
    tl.store(i32 + i, a.to(tl.int32), mask=inside)
    tl.store(i64 + i, a.to(tl.int64), mask=inside)
    tl.store(u8 + i, a.to(tl.uint8), mask=inside)
    tl.store(u16 + i, a.to(tl.uint16), mask=inside)
    tl.store(u32 + i, a.to(tl.uint32), mask=inside)
    tl.store(u64 + i, a.to(tl.uint64), mask=inside)
    tl.store(f16 + i, a.to(tl.float16), mask=inside)
    tl.store(bf16 + i, a.to(tl.bfloat16), mask=inside)
    tl.store(f32 + i, a.to(tl.float32), mask=inside)
    if HAS_F64:
        tl.store(f64 + i, a.to(tl.float64), mask=inside)
    tl.store(b + i, a.to(tl.int1), mask=inside)


@triton.jit
def towards_zero(x, f16, bf16, f32, n, FROM_F64: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    tl.store(f16 + i, a.to(tl.float16, fp_downcast_rounding="rtz"), mask=inside)
    tl.store(bf16 + i, a.to(tl.bfloat16, fp_downcast_rounding="rtz"), mask=inside)
    if FROM_F64:
        tl.store(f32 + i, a.to(tl.float32, fp_downcast_rounding="rtz"), mask=inside)


@triton.jit
def through_all(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i).to(A, bitcast=True)
    tl.store(out + i, a.to(B, bitcast=True).to(C, bitcast=True).to(D, bitcast=True).to(tl.int64))


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


def numbers(name: str) -> np.ndarray:
    """Return extremes, ties of all floats and their neighbours, and random numbers."""
    kind, random = np.dtype(TYPES[name]), np.random.default_rng(7)
    if name == "b":
        return np.arange(300) % 3 == 0
    if name in INTEGERS:
        limits, bits = np.iinfo(kind), 8 * kind.itemsize
        places = [(((1 << digits) + odd) << at, at) for digits in (8, 11, 24) for odd in (1, -1, 3) for at in range(64)]
        ties = [sign * (tie + step) for tie, at in places for step in (-1, 0, 1) for sign in (1, -1) if at < bits]
        fitting = [each for each in dict.fromkeys(ties) if limits.min <= each <= limits.max]
        chosen = [fitting[at] for at in random.permutation(len(fitting))[:600]]
        return np.array([limits.min, limits.max, 0, 1, limits.max - 1, *chosen], kind)
    near = np.concatenate([1 + np.exp2(-at) + np.array([0, 1, -1, 1e-9, -1e-9]) * np.exp2(-2.6 * at) for at in (8, 11)])
    ends = [65504, 65519.99, 65520, 65536, 3.4e38, 1e39, 6e-8, 3e-8, 2.9e-8, 1e-45, 127.9, 128.9, 255.5, 32767.5, 0.9]
    ends += [0.0, np.inf, np.nan, 2.0**31 - 128, 2.0**62, 1e300, 3.4028235e38]
    wide = np.concatenate([near, ends, random.standard_normal(300) * np.exp2(random.integers(-30, 70, 300))])
    with np.errstate(over="ignore"):
        return np.concatenate([wide, -wide]).astype(kind)


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


def plain(array: np.ndarray) -> list[Any]:
    """Return the elements as Python's numbers."""
    found: list[Any] = (array if array.dtype.kind in "iub" else array.astype(np.float64)).tolist()
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_every_type_becomes_every_other(source: str) -> None:
    """Floats are rounded once; integers keep the low bits; what an integer type does not have is not specified."""
    x = numbers(source)
    outs = {name: poisoned(x.size, dtype=kind) for name, kind in TYPES.items()}
    every[(triton.cdiv(x.size, 128),)](Tensor(x), *map(Tensor, outs.values()), x.size, HAS_F64=HAS_F64, BLOCK=128)
    values = plain(x)
    for name in SOURCES:
        if name in FLOATS:
            check_same(outs[name], np.array([rounded(value, name) for value in values]))
        elif name == "b":
            assert plain(outs[name]) == [value != 0 for value in values]
        else:
            limits = np.iinfo(TYPES[name])
            for value, found in zip(values, plain(outs[name]), strict=True):
                if not isinstance(value, float):
                    assert found == int(np.array(int(value) & 2**limits.bits - 1, np.uint64).astype(TYPES[name]))
                elif np.isfinite(value) and limits.min <= int(value) <= limits.max:
                    assert found == int(value), value


@pytest.mark.parametrize("source", sorted({"f32", "f64"} & set(SOURCES)))
def test_a_float_may_be_rounded_towards_zero(source: str) -> None:
    x = numbers(source)
    outs = {name: poisoned(x.size, dtype=FLOATS[name]) for name in ("f16", "bf16", "f32")}
    grid = (triton.cdiv(x.size, 128),)
    towards_zero[grid](Tensor(x), *map(Tensor, outs.values()), x.size, FROM_F64=source == "f64", BLOCK=128)
    for name in ("f16", "bf16", "f32") if source == "f64" else ("f16", "bf16"):
        check_same(outs[name], np.array([rounded(value, name, "rtz") for value in plain(x)]))


BITCASTS = [
    (np.uint8, (tl.float8e5, tl.int8, tl.float8e4nv, tl.uint8)),
    (np.int16, (tl.float16, tl.uint16, tl.bfloat16, tl.int16)),
    (np.uint32, (tl.float32, tl.int32, tl.float32, tl.uint32)),
    (np.int64, (tl.float64, tl.uint64, tl.float64, tl.int64)),
]


@pytest.mark.parametrize(("kind", "through"), BITCASTS, ids=["8", "16", "32", "64"])
def test_bits_are_the_same_as_another_type(kind: Any, through: tuple[Any, ...]) -> None:
    if kind == np.int64 and not HAS_F64:
        through = (tl.uint64, tl.int64) * 2
    x = np.random.default_rng(2).integers(np.iinfo(kind).min, np.iinfo(kind).max, 256, kind, endpoint=True)
    if kind == np.uint8:
        # A NaN need not keep its bits in a type without a payload.
        x = x[(x & 0x7F) < 0x7C][:128]
    out = poisoned(x.size, dtype=np.int64)
    through_all[(1,)](Tensor(x), Tensor(out), *through, BLOCK=128 if kind == np.uint8 else 256)
    np.testing.assert_array_equal(out[: x.size], x.astype(np.int64))


@pytest.mark.parametrize("value", [-(2**63), -129, 2**40 + 2**32 + 1, 257])
def test_a_scalar_is_converted_as_a_tile_is(value: int) -> None:
    out, high = poisoned(5, dtype=np.int64), poisoned(2, dtype=np.int64)
    scalars[(1,)](Tensor(np.array([value], np.int64)), Tensor(out), Tensor(high))
    low = (value + 128) % 256 - 128
    assert plain(out)[:3] == [low, int(rounded(value, "f32")), int(rounded(value, "bf16"))]
    assert plain(out)[3:] == [value % 65536, 1]
    unsigned, word = value % 2**64, value % 2**32
    assert plain(high) == [(unsigned**2 >> 64) - (unsigned**2 >> 127 << 64), word**2 >> 32]


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
    outs = {wide: poisoned(6 * n, dtype=f"i{wide // 8}").reshape(6, n) for wide in (16, 32, 64)}
    untouched = {wide: out.copy() for wide, out in outs.items()}
    cuts[(n // block,)](Tensor(x), *map(Tensor, outs.values()), n, BITS=bits, BLOCK=block)
    for row, narrow in enumerate(("u1", "i1", "u2", "i2", "u4", "i4")):
        for more, (wide, out) in enumerate(outs.items()):
            is_stored = 8 * int(narrow[1]) < min(bits, wide)
            expected = (x + x.dtype.type(3 * row + more)).astype(narrow) if is_stored else untouched[wide][row]
            np.testing.assert_array_equal(out[row], expected)
