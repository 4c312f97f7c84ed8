"""Check arithmetic that the mapping writes differently where a device has an instruction for it, on each description.

The machine errs as far as a device of that description may. So what is asked here is what a device is promised to do.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.mapping.simt.target import SimtTarget
from foundry_core.ops.limits import ULPS

from ..devices import DEVICES, KEEPING, promised, run
from ..kernels import elementwise
from ..memory import Array
from .test_neighbours import instructions

DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16, "i32": np.int32}


def computed(target: SimtTarget, inputs: list[tuple[str, Array]], result: str, lines: list[str]) -> Array:
    """Return the value %v of a kernel, for each element of its inputs."""
    size = 16 * target.warp_size
    count = len(inputs[0][1])
    padded = [np.concatenate([x, np.zeros(-count % size, x.dtype)]) for _, x in inputs]
    out = np.full(len(padded[0]), 77, DTYPES[result])
    text = elementwise([elem for elem, _ in inputs], {"%v": result}, lines, lanes=target.warp_size, size=size)
    with np.errstate(all="ignore"):
        return run(text, target, [*padded, out], len(out) // size)[-1][:count]


def flushed(x: Array, target: SimtTarget) -> Array:
    """Return floats as the device may take them in conversions: without subnormal numbers. Integers keep them."""
    return promised(target).flush(x) if target.converts_f16 else x


def to_bf16(x: Array) -> Array:
    """Return the bits of f32 rounded to bf16, ties to even; a NaN stays one."""
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def everywhere(elem: str = "f32", count: int = 6) -> Array:
    """Return numbers with every exponent and both signs: powers of two, their neighbours, and drawn ones."""
    dtype = DTYPES[elem]
    known = np.finfo(dtype)
    bits, width = np.dtype(f"u{known.dtype.itemsize}"), 8 * known.dtype.itemsize
    exponents = np.arange(1 << known.nexp, dtype=bits)[:, None] << bits.type(known.nmant)
    mask = bits.type((1 << known.nmant) - 1)
    drawn = np.random.default_rng(1).integers(0, int(mask), (1 << known.nexp, count), bits, endpoint=True)
    inside = np.concatenate([np.broadcast_to(np.array([0, 1, mask], bits), (1 << known.nexp, 3)), drawn], 1)
    found = (exponents | inside).ravel()
    return np.concatenate([found, found | bits.type(1 << (width - 1))]).view(dtype)


def check_ulps(found: Array, exact: Array, bound: float) -> None:
    """Check a bound in units in the last place, and infinities and NaNs.

    A result that is this close to the first number beyond the range may be the largest number or infinity.
    """
    known = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        wanted = exact.astype(found.dtype)
        size = np.maximum(np.abs(exact), float(known.smallest_normal))
        unit = np.exp2(np.floor(np.log2(np.minimum(size, float(known.max)))) - known.nmant)
        off = np.abs(found.astype(np.float64) - exact) / unit
        edge = np.abs(np.abs(exact) - 2.0**known.maxexp) <= bound * unit
    special = ~np.isfinite(wanted) | ~np.isfinite(found)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | edge
    wrong = np.flatnonzero(np.where(special, ~same, ~(off <= bound)))
    assert not len(wrong), f"{len(wrong)} wrong, first: {found[wrong[0]]} and not {exact[wrong[0]]}"


def near_overflow() -> Array:
    """Return arguments of exp where it ends: every f32 around the last with a finite result and around the last with
    one that is not zero, and numbers beyond."""
    edges = [np.log(np.float64(2)) * power for power in (128, -126, -149, -150)]
    steps = np.arange(-300, 301)
    around = [(np.float32(edge).view(np.int32) + steps).astype(np.int32).view(np.float32) for edge in edges]
    return np.concatenate([*around, np.linspace(-260, 260, 4001).astype(np.float32)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", ["exp", "exp2"])
def test_exponential_for_every_exponent(device: str, function: str) -> None:
    target, x = DEVICES[device], np.concatenate([everywhere(), near_overflow(), near_overflow() * np.float32(1.442695)])
    found = computed(target, [("f32", x)], "f32", [f"%v = math.{function} %x0 : TILE(f32)"])
    with np.errstate(all="ignore"):
        exact = getattr(np, function)(x.astype(np.float64))
    if 32 not in target.preserves_denormals:
        # A subnormal result may be zero, or the least normal number.
        least = np.finfo(np.float32).smallest_normal
        is_small = np.abs(exact) < least
        assert np.all(np.abs(found[is_small]) <= least)
        found, exact = found[~is_small], exact[~is_small]
    check_ulps(found, exact, ULPS[function])


@pytest.mark.parametrize("elem", ["f16", "f32"])
@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu"])
def test_activation_for_every_exponent(name: str, elem: str) -> None:
    x = np.concatenate([everywhere(elem), near_overflow().astype(DTYPES[elem]), -near_overflow().astype(DTYPES[elem])])
    lines = [
        "%one = arith.constant dense<1.0> : TILE(f32)",
        "%zero = arith.constant dense<0.0> : TILE(f32)",
        f"%scale = arith.constant dense<{'1.702' if name == 'gelu' else '1.0'}> : TILE(f32)",
        "%f = arith.extf %x0 : TILE(f16) to TILE(f32)" if elem == "f16" else "%f = arith.addf %x0, %zero : TILE(f32)",
        "%s = arith.mulf %f, %scale : TILE(f32)",
        "%m = arith.subf %zero, %s : TILE(f32)",
        "%e = math.exp %m : TILE(f32)",
        "%d = arith.addf %one, %e : TILE(f32)",
        "%q = arith.divf %one, %d : TILE(f32)",
        "%w = arith.mulf %f, %q : TILE(f32)" if name != "sigmoid" else "%w = arith.addf %q, %zero : TILE(f32)",
        "%v = arith.truncf %w : TILE(f32) to TILE(f16)" if elem == "f16" else "%v = arith.addf %w, %zero : TILE(f32)",
    ]
    found = computed(KEEPING, [(elem, x)], elem, lines)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        scaled = (x.astype(np.float32) * np.float32(1.702 if name == "gelu" else 1)).astype(np.float64)
        # Beyond the range of f32 the power is infinity, and the quotient 0.
        power = np.where(-scaled > math.log(2) * 128, np.inf, np.exp(-scaled))
        exact = 1 / (1 + power) * (1 if name == "sigmoid" else wide)
    # Errors of the power, the sum, the quotient and the product.
    check_ulps(found, exact, 0.5 + (ULPS["exp"] + 2.5 if elem == "f32" else 0.01))


@pytest.mark.parametrize("device", DEVICES)
def test_f16_keeps_every_bit_pattern(device: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    found = computed(DEVICES[device], [("f16", x)], "f32", ["%v = arith.extf %x0 : TILE(f16) to TILE(f32)"])
    wanted = flushed(x, DEVICES[device]).astype(np.float32)
    np.testing.assert_array_equal(found.view(np.int32)[~np.isnan(x)], wanted.view(np.int32)[~np.isnan(x)])
    assert np.all(np.isnan(found[np.isnan(x)]))
    # A number that is only moved keeps its bits, also those of a NaN.
    zeros = np.zeros(1 << 16, np.int32)
    lines = ["%c = arith.cmpi eq, %x1, %x1 : TILE(i32)", "%v = arith.select %c, %x0, %x0 : TILE(i1), TILE(f16)"]
    moved = computed(DEVICES[device], [("f16", x), ("i32", zeros)], "f16", lines)
    np.testing.assert_array_equal(moved.view(np.uint16), x.view(np.uint16))


def halfway(lost: int) -> Array:
    """Return every exponent of f32 with mantissas at and around the middle of two numbers that have `lost` fewer
    bits, and of numbers that are subnormal there."""
    half = 1 << (lost - 1)
    inside = {k << lost | half + d for k in (0, 1, 2, 5) for d in (-1, 0, 1)} | {1 << k for k in range(23)} | {0x7FFFFF}
    inside |= (
        {(1 << k) - 1 for k in range(1, 23)} | {3 << k for k in range(21)} | {0x7FFFFF - half, 0x7FFFFF - half + 1}
    )
    bits = (np.arange(256, dtype=np.uint32)[:, None] << 23 | np.array(sorted(inside), np.uint32)).ravel()
    return np.concatenate([bits, bits | 1 << 31]).view(np.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("elem", ["f16", "bf16"])
def test_narrowing_rounds_to_nearest_even(device: str, elem: str) -> None:
    target, x = DEVICES[device], halfway(13 if elem == "f16" else 16)
    found = computed(target, [("f32", x)], elem, [f"%v = arith.truncf %x0 : TILE(f32) to TILE({elem})"])
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float16) if elem == "f16" else to_bf16(x)
    is_nan = np.isnan(x)
    made, expected = found.view(np.uint16), wanted.view(np.uint16)
    np.testing.assert_array_equal(made[~is_nan], expected[~is_nan])
    bits = 0x7C00 if elem == "f16" else 0x7F80
    assert np.all(made[is_nan] & 0x7FFF > bits)


@pytest.mark.parametrize("device", DEVICES)
def test_narrow_value_is_rounded_before_it_is_used(device: str) -> None:
    x = halfway(13)
    lines = [
        "%n = arith.truncf %x0 : TILE(f32) to TILE(f16)",
        "%s = arith.addf %n, %n : TILE(f16)",
        "%v = arith.extf %s : TILE(f16) to TILE(f32)",
    ]
    found = computed(DEVICES[device], [("f32", x)], "f32", lines)
    with np.errstate(all="ignore"):
        half = flushed(x.astype(np.float16), DEVICES[device])
        wanted = flushed(half + half, DEVICES[device]).astype(np.float32)
    np.testing.assert_array_equal(found, wanted)


def nearest(exact: Fraction, dtype: Any) -> Any:
    """Return the float that is nearest to a number, of two the even one."""
    sign, most = 1 if exact > 0 else -1, int(np.finfo(dtype).maxexp)
    # The quotient of two int is rounded once to f64; from there it is no more than one step.
    start = dtype(exact.numerator / exact.denominator if abs(exact) < 2**1023 else sign * math.inf)
    around = [start, np.nextafter(start, dtype(-math.inf)), np.nextafter(start, dtype(math.inf))]

    def order(x: Any) -> tuple[Fraction, int]:
        # Infinity is the first power of two beyond the range.
        value = Fraction(float(x)) if np.isfinite(x) else sign * Fraction(2**most)
        return abs(value - exact), int(x.view(f"u{x.itemsize}")) & 1

    return min(around, key=order)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fuses", [(), (32,), (32, 64)])
def test_fused_multiply_and_add_is_rounded_once(device: str, fuses: tuple[int, ...]) -> None:
    target = dataclasses.replace(DEVICES[device], fuses=fuses)
    for elem in ("f32", "f64") if 64 in fuses else ("f32",):
        dtype = DTYPES[elem]
        random = np.random.default_rng(3)
        step = np.finfo(dtype).nmant // 2 + 1
        little = random.integers(1, 64, 600) * 2.0**-step
        x, y = (dtype(1) + little).astype(dtype), (dtype(1) - little[::-1]).astype(dtype)
        z = -(x * y)
        z[::3] = (random.choice([1, -1], len(z[::3])) * 2.0 ** random.integers(-60, 30, len(z[::3]))).astype(dtype)
        special = np.array([0.0, -0.0, 1, np.inf, -np.inf, np.nan, np.finfo(dtype).max, 3], dtype)
        x, y, z = (
            np.concatenate([a, b.ravel()])
            for a, b in zip((x, y, z), np.meshgrid(special, special, special), strict=True)
        )
        found = computed(
            target, [(elem, x), (elem, y), (elem, z)], elem, [f"%v = math.fma %x0, %x1, %x2 : TILE({elem})"]
        )
        for a, b, c, got in zip(x, y, z, found, strict=True):
            if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
                with np.errstate(all="ignore"):
                    wanted = dtype(a.astype(np.longdouble) * b + c)
            else:
                with np.errstate(all="ignore"):
                    wanted = nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)), dtype)
            assert got == wanted or (np.isnan(got) and np.isnan(wanted)), (a, b, c, got, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("elem", ["f32", "f64"])
def test_atomic_addition_adds_each_element_once(device: str, elem: str) -> None:
    # With the device's instruction, or by exchanging until nobody came between.
    target = DEVICES[device]
    size = 16 * target.warp_size
    x = np.random.default_rng(5).integers(-50, 50, 2 * size).astype(DTYPES[elem])
    lines = [
        "%c7 = arith.constant dense<7> : TILE(i32)",
        "%yes = arith.constant dense<true> : TILE(i1)",
        "%at = arith.andi %r, %c7 : TILE(i32)",
        f"%s = tt.splat %p1 : !tt.ptr<{elem}> -> TILE(!tt.ptr<{elem}>)",
        f"%to = tt.addptr %s, %at : TILE(!tt.ptr<{elem}>), TILE(i32)",
        f"%old = tt.atomic_rmw fadd, relaxed, gpu, %to, %x0, %yes : (TILE(!tt.ptr<{elem}>), TILE({elem}), TILE(i1))"
        f" -> TILE({elem})",
    ]
    text = elementwise([elem, elem], {}, lines, lanes=target.warp_size, size=size)
    total = np.zeros(2 * size, DTYPES[elem])
    _, found = run(text, target, [x, total], 2)
    np.testing.assert_array_equal(found[:8], x.reshape(-1, 8).sum(0))
    assert not found[8:].any()


def of_bits(bits: int, below: int, to: str, cast: str) -> list[str]:
    """Return lines that make %v, an f32, of the lowest bits of %x0 less a number, as a float of another type."""
    return [
        f"%mask = arith.constant dense<{(1 << bits) - 1}> : TILE(i32)",
        f"%below = arith.constant dense<{below}> : TILE(i32)",
        "%bits = arith.andi %x0, %mask : TILE(i32)",
        "%y = arith.subi %bits, %below : TILE(i32)",
        f"%h = arith.{cast} %y : TILE(i32) to TILE({to})",
        f"%v = arith.extf %h : TILE({to}) to TILE(f32)",
    ]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", ["f16", "bf16"])
@pytest.mark.parametrize("bits", [4, 8, 9, 11, 12, 13])
@pytest.mark.parametrize("below", [0, 8, 300, 2049, -1, -4000])
def test_integer_of_few_bits_becomes_the_nearest_float(bits: int, below: int, to: str, device: str) -> None:
    """Some of these are exact, and others are rounded; what is known of the integer may only save the rounding."""
    x = np.concatenate([np.arange(1 << bits), [-1, -8, 1 << 30, -(1 << 31)]]).astype(np.int32)
    y = ((x & ((1 << bits) - 1)) - below).astype(np.float32)
    wanted = y.astype(np.float16).astype(np.float32)
    if to == "bf16":
        wanted = (to_bf16(y).astype(np.uint32) << 16).view(np.float32)
    found = computed(DEVICES[device], [("i32", x)], "f32", of_bits(bits, below, to, "sitofp"))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("bits", "to"), [(11, "f16"), (12, "f16"), (30, "bf16")])
def test_difference_of_integers_of_few_bits_becomes_the_nearest_float(bits: int, to: str, device: str) -> None:
    x, y = np.random.default_rng(bits).integers(-(1 << 31), 1 << 31, (2, 5000)).astype(np.int32)
    # Rounded to f32 first, it would be halfway between two bf16.
    x[0], y[0] = (1 << 29) + (1 << 21) + 1, 0
    lines = [
        *of_bits(bits, 0, to, "sitofp")[:3],
        "%others = arith.andi %x1, %mask : TILE(i32)",
        "%z = arith.subi %bits, %others : TILE(i32)",
        f"%h = arith.sitofp %z : TILE(i32) to TILE({to})",
        f"%v = arith.extf %h : TILE({to}) to TILE(f32)",
    ]
    mask = (1 << bits) - 1
    exact = ((x & mask) - (y & mask)).astype(np.float64)
    # NumPy has no bf16: to the nearest multiple of its last digit, ties to even.
    digit = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 1))) - 7)
    wanted = (np.rint(exact / digit) * digit if to == "bf16" else exact.astype(np.float16)).astype(np.float32)
    np.testing.assert_array_equal(computed(DEVICES[device], [("i32", x), ("i32", y)], "f32", lines), wanted)


@pytest.mark.parametrize("to", ["f16", "bf16"])
@pytest.mark.parametrize("cast", ["sitofp", "uitofp"])
@pytest.mark.parametrize("device", DEVICES)
def test_every_integer_of_8_bits_becomes_an_exact_float(device: str, cast: str, to: str) -> None:
    x = np.arange(256).astype(np.uint8)
    lines = [f"%h = arith.{cast} %x0 : TILE(i8) to TILE({to})", f"%v = arith.extf %h : TILE({to}) to TILE(f32)"]
    found = computed(DEVICES[device], [("i8", x.view(np.int8))], "f32", lines)
    np.testing.assert_array_equal(found, (x.view(np.int8) if cast == "sitofp" else x).astype(np.float32))


# An integer that the type holds is converted, and no more; others are first rounded to 24 bits, to odd.
@pytest.mark.parametrize(("bits", "below", "rounding"), [(4, 8, 0), (11, 0, 0), (12, 0, 3), (12, 2048, 0)])
def test_integer_that_is_exact_in_a_float_is_not_rounded(bits: int, below: int, rounding: int) -> None:
    text = elementwise(["i32"], {"%v": "f32"}, of_bits(bits, below, "f16", "sitofp"), lanes=32, size=128, each=1)
    counts = instructions(lower_simt(text, DEVICES["h100"]).module)
    assert counts["Select"] + counts["IEqual"] == rounding
