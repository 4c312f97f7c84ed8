"""The functions of foundry_core.functions on NumPy's arrays, against extended precision, with the bounds that
docs/functions.md states.

test_libdevice.py has the other half: that devices compute the same bits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arrays import FLOATS, compute

# x86's extended precision has 64 bits of mantissa.
Wide = np.longdouble
INF, NAN = math.inf, math.nan
SPECIAL = [0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 1e-3, 1e-20, 1e-40, 1e-45, 8388607.5, 16777217.0, 1e10, 3.4e38, INF, NAN]


def rounded_away(x: Any) -> Any:
    rest = np.abs(np.where(np.isfinite(x), x, 0)) % 1
    return np.copysign(np.abs(x) - rest + (rest >= 0.5), x)


def half_turns(function: Callable[[Any], Any], zero: float) -> Callable[[Any], Any]:
    """sin or cos of pi x; `zero` is where between 0 and 1 it is 0."""

    def turned(x: Any) -> Any:
        rest = np.fmod(x, Wide(2))
        found = function(rest * (Wide(np.pi) + Wide(1.2246467991473531772e-16)))
        return np.where(np.abs(rest) % 1 == zero, 0 * x if zero == 0 else 0, found)

    return turned


# Name: reference, bound in ulp for f32 and f64 (None: there is none), where arguments lie close.
UNARY: dict[str, tuple[Callable[[Any], Any], float, float | None, float, float]] = {
    "exp": (np.exp, 1.1, 1.1, -105, 90),
    "exp2": (np.exp2, 1.3, 1.3, -151, 129),
    "exp10": (lambda x: Wide(10) ** x, 1.3, 1.3, -46, 39),
    "expm1": (np.expm1, 1.6, 1.6, -20, 89),
    "sinh": (np.sinh, 2.2, 2.2, -12, 12),
    "cosh": (np.cosh, 1.6, 1.6, -90, 90),
    "tanh": (np.tanh, 2.5, 2.5, -10, 10),
    "log": (np.log, 1.0, 1.0, 0.3, 3),
    "log2": (np.log2, 1.0, 1.0, 0.3, 3),
    "log10": (np.log10, 1.0, 1.0, 0.3, 3),
    "log1p": (np.log1p, 1.6, 1.6, -0.9999, 3),
    "acosh": (np.arccosh, 2.5, 2.5, 1, 5),
    "asinh": (np.arcsinh, 2.5, 2.5, -5, 5),
    "atanh": (np.arctanh, 2.5, 2.5, -1, 1),
    "sin": (np.sin, 1.0, None, -20, 20),
    "cos": (np.cos, 1.0, None, -20, 20),
    "tan": (np.tan, 2.5, None, -20, 20),
    "sinpi": (half_turns(np.sin, 0.0), 2.0, None, -5, 5),
    "cospi": (half_turns(np.cos, 0.5), 1.0, None, -5, 5),
    "asin": (np.arcsin, 2.5, None, -1, 1),
    "acos": (np.arccos, 1.5, None, -1, 1),
    "atan": (np.arctan, 2.3, None, -20, 20),
    "sqrt": (np.sqrt, 0.5, 0.5, 0, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5, 1.5, 0, 4),
    "cbrt": (np.cbrt, 1.0, 1.0, -5, 5),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 2.0, 2.0, -5, 5),
    "trunc": (np.trunc, 0, 0, -100, 100),
    "floor": (np.floor, 0, 0, -100, 100),
    "ceil": (np.ceil, 0, 0, -100, 100),
    "rint": (np.rint, 0, 0, -100, 100),
    "round": (rounded_away, 0, 0, -100, 100),
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], float, float | None]] = {
    "pow": (np.power, 1.3, None),
    "atan2": (np.arctan2, 2.3, None),
    "hypot": (np.hypot, 1.3, 1.3),
    "rhypot": (lambda x, y: 1 / np.hypot(x, y), 2.3, 2.3),
    "fmod": (np.fmod, 0, None),
    "fdim": (lambda x, y: np.where(np.isnan(x) | np.isnan(y), NAN, np.where(x > y, x - y, 0)), 0.5, 0.5),
}
# Where a row has the bound of a type.
PLACES = (("f32", 1), ("f64", 2))


def everywhere(elem: str, low: float = -1, high: float = 1, seed: int = 0) -> np.ndarray:
    """Special values with both signs, random bits (so every exponent), and numbers close together in a range."""
    dtype = FLOATS[elem]
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        special = np.array([sign * value for value in SPECIAL for sign in (1.0, -1.0)]).astype(dtype)
        special = np.concatenate([special, np.nextafter(special, dtype(0)), np.nextafter(special, dtype(INF))])
    bits = random.integers(0, 256, 480000, np.uint8).view(dtype)
    return np.concatenate([special, bits, random.uniform(low, high, 60000).astype(dtype)])


def check(name: str, out: np.ndarray, reference: Any, bound: float, *args: np.ndarray, least: float = 0.0) -> None:
    """Within a bound in ulp, of `least` where a result is smaller; infinities, NaN and signs of zeros exactly."""
    info = np.finfo(out.dtype)
    with np.errstate(all="ignore"):
        rounded = np.asarray(reference, Wide).astype(out.dtype)
        np.testing.assert_array_equal(np.isnan(out), np.isnan(rounded))
        size = np.maximum(np.maximum(np.abs(np.asarray(reference, Wide)), float(info.smallest_normal)), least)
        ulps = np.abs(out.astype(Wide) - reference) / np.exp2(np.floor(np.log2(size)) - info.nmant)
    # At the end of the range, one ulp is between the largest number and infinity.
    finite = np.isfinite(rounded) & (np.abs(rounded) < info.max) & np.isfinite(out)
    edge = np.abs(np.asarray(reference, Wide)) >= float(info.max) * (1 - 4 * bound * float(info.eps))
    same = (out == rounded) | np.isnan(rounded)
    bad = np.where(finite, ulps > bound, ~(same | (edge & np.isfinite(reference) & (np.abs(out) > info.max * 0.99))))
    worst = int(np.argmax(np.where(finite, ulps, 0)))
    at = [arg[bad][:3] for arg in args]
    worst_at = [arg[worst] for arg in args]
    assert not bad.any(), f"{name}: {at} gives {out[bad][:3]}, not {rounded[bad][:3]}; {ulps[worst]} ulp at {worst_at}"
    zero = (np.asarray(reference) == 0) & (out == 0)
    np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(rounded[zero]))


@pytest.mark.parametrize(
    ("name", "elem", "bound"),
    [(name, elem, row[place]) for name, row in UNARY.items() for elem, place in PLACES if row[place] is not None],
)
def test_a_function_is_as_exact_as_stated(name: str, elem: str, bound: float) -> None:
    function, _, _, low, high = UNARY[name]
    x = everywhere(elem, low, high)
    if name in ("sin", "cos", "tan"):
        # The reference's own reduction ends at 2^63.
        x = x[~(np.abs(x) > 1e18) | np.isinf(x)]
    if elem == "f64" and bound:
        # The reference has 11 bits more than f64: its own error is 2^-10 ulp and what its functions err.
        bound += 0.1
    with np.errstate(all="ignore"):
        check(name, compute(name, elem, x), function(x.astype(Wide)), bound, x)


def pairs(elem: str) -> list[tuple[np.ndarray, np.ndarray]]:
    dtype = FLOATS[elem]
    with np.errstate(over="ignore"):
        special = np.array([sign * value for value in SPECIAL for sign in (1.0, -1.0)]).astype(dtype)
    x, y = (column.ravel().copy() for column in np.meshgrid(special, special))
    random = np.random.default_rng(1)
    anything, other = everywhere(elem, seed=2), everywhere(elem, seed=3)
    with np.errstate(all="ignore"):
        beside = (anything * random.uniform(-3, 3, anything.size)).astype(dtype)
    return [
        (x, y),
        (anything, other),
        (anything, beside),
        (random.uniform(0, 20, 60000).astype(dtype), random.uniform(-30, 30, 60000).astype(dtype)),
        (1 + random.uniform(-1e-3, 1e-3, 60000).astype(dtype), random.uniform(-80000, 80000, 60000).astype(dtype)),
        (anything, random.integers(-12, 12, anything.size).astype(dtype)),
    ]


@pytest.mark.parametrize(
    ("name", "elem", "bound"),
    [(name, elem, row[place]) for name, row in BINARY.items() for elem, place in PLACES if row[place] is not None],
)
def test_a_function_of_two_numbers_is_as_exact_as_stated(name: str, elem: str, bound: float) -> None:
    function = BINARY[name][0]
    for x, y in pairs(elem):
        with np.errstate(all="ignore"):
            check(name, compute(name, elem, x, y), function(x.astype(Wide), y.astype(Wide)), bound, x, y)


def exactly_reduced(x: float) -> float:
    """x less a multiple of 2 pi, by pi to 100 digits (Machin's formula in integers)."""
    scale = 10**120

    def arctangent_of_inverse(n: int) -> int:
        total, term, k = 0, scale // n, 0
        while term:
            total += term // (2 * k + 1) * (-1) ** k
            term //= n * n
            k += 1
        return total

    two_pi = 2 * (16 * arctangent_of_inverse(5) - 4 * arctangent_of_inverse(239))
    return (int(x) * scale % two_pi) / scale


def test_sine_and_cosine_of_huge_numbers_are_those_of_their_exact_rest() -> None:
    random = np.random.default_rng(4)
    x = np.ldexp(random.uniform(1, 2, 3000), random.integers(40, 128, 3000)).astype(np.float32)
    rest = np.array([exactly_reduced(float(value)) for value in x]).astype(Wide)
    for name, function in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
        # The rest is rounded to f64, which only counts where the result is almost 0.
        check(name, compute(name, "f32", x), function(rest), 2.5 if name == "tan" else 1.0, x, least=1e-3)


@pytest.mark.parametrize("elem", FLOATS)
def test_functions_of_bits_are_those_of_c(elem: str) -> None:
    dtype = FLOATS[elem]
    for x, y in pairs(elem)[:3]:
        np.testing.assert_array_equal(compute("nextafter", elem, x, y), np.nextafter(x, y))
        found, expected = compute("copysign", elem, x, y), np.copysign(x, y)
        assert found.tobytes() == expected.tobytes()
    x = everywhere(elem)
    power = np.random.default_rng(5).integers(-2200, 2200, x.size).astype(np.int32)
    for exponent in (power, power // 16, power // 500):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(compute("ldexp", elem, x, exponent), np.ldexp(x, exponent))
    usual = np.isfinite(x) & (x != 0)
    np.testing.assert_array_equal(compute("logb", elem, x[usual]), (np.frexp(x[usual])[1] - 1).astype(dtype))
    edges = np.array([0.0, -0.0, INF, -INF, NAN], dtype)
    np.testing.assert_array_equal(compute("logb", elem, edges), np.array([-INF, -INF, INF, INF, NAN], dtype))


def test_the_remainder_is_that_of_the_nearest_quotient() -> None:
    for x, y in pairs("f32")[:3]:
        x, y = x[:20000], y[:20000]
        usual = np.isfinite(x) & (y != 0) & ~np.isnan(y)
        expected = [math.remainder(float(a), float(b)) if good else NAN for a, b, good in zip(x, y, usual, strict=True)]
        found = compute("remainder", "f32", x, y)
        np.testing.assert_array_equal(found, np.array(expected, np.float32))
        zero = found == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(x[zero]))


def rounded(exact: Fraction, mode: str, elem: str) -> float:
    """The number of a type next to an exact one that is not 0, in a direction."""
    precision, smallest, largest = (24, -149, 128) if elem == "f32" else (53, -1074, 1024)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** max(exponent - precision + 1, smallest)
    outwards = mode == ("rd" if exact < 0 else "ru")
    found = unit * (math.ceil(size / unit) if outwards else math.floor(size / unit))
    limit = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** (largest - 1)
    number = float(found) if found <= limit else INF if outwards else float(limit)
    return -number if exact < 0 else number


def directed_arguments(elem: str, count: int) -> list[np.ndarray]:
    """Special values with each other, random bits, and numbers whose sums and products cancel, or nearly so."""
    dtype, random, info = FLOATS[elem], np.random.default_rng(6), np.finfo(FLOATS[elem])
    sizes = [0.0, 1.0, 0.5, 3.0, info.smallest_subnormal, info.smallest_normal, info.max, 1 + info.eps, INF, NAN, 1e30]
    special = np.array([sign * size for size in sizes for sign in (1.0, -1.0)], dtype)
    columns = np.meshgrid(special, special) if count == 2 else [random.choice(special, 1500) for _ in range(count)]
    bits = random.integers(0, 256, 1000 * dtype().itemsize, np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        near = (bits * random.choice([1, -1, 2, 0.5, 1 + 2.0**-20], bits.size)).astype(dtype)
        parts = [[bits, near, -bits * near], [random.permutation(bits) for _ in range(3)]]
    parts.append([random.uniform(1, 2, 1000).astype(dtype) for _ in range(3)])
    return [np.concatenate([columns[i].ravel(), *(part[i] for part in parts)]) for i in range(count)]


# Exactly, and what a sum of zeros or none has for terms.
DIRECTED: dict[str, tuple[Callable[..., Fraction], int]] = {
    "add": (operator.add, 2),
    "sub": (operator.sub, 2),
    "mul": (operator.mul, 2),
    "div": (operator.truediv, 2),
    "rcp": (lambda x: 1 / x, 1),
    "fma": (lambda x, y, z: x * y + z, 3),
}


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize(
    ("name", "elem"), [(name, elem) for name in DIRECTED for elem in FLOATS if (name, elem) != ("fma", "f64")]
)
def test_arithmetic_rounded_in_a_direction_is_exact(name: str, elem: str, mode: str) -> None:
    function, count = DIRECTED[name]
    columns = directed_arguments(elem, count)
    found = compute(f"{name}_{mode}", elem, *columns)
    checked = 0
    for number, *row in zip(found.tolist(), *(column.tolist() for column in columns), strict=True):
        try:
            exact = function(*(Fraction(value) for value in row))
        except (OverflowError, ValueError, ZeroDivisionError):
            continue
        checked += 1
        if exact:
            expected = rounded(exact, mode, elem)
            assert number == expected and math.copysign(1, number) == math.copysign(1, expected), (row, number)
        else:
            assert number == 0, (row, number)
    assert checked > 2000


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("elem", FLOATS)
def test_what_is_exact_needs_no_direction(elem: str, mode: str) -> None:
    """Infinities, NaN, and the signs of zeros: a sum that is 0 is -0 downwards, unless both terms are 0."""
    x, y = directed_arguments(elem, 2)
    with np.errstate(all="ignore"):
        edge = ~np.isfinite(x) | ~np.isfinite(y)
        for name, expected in (("add", x + y), ("sub", x - y), ("mul", x * y), ("div", x / y)):
            found = compute(f"{name}_{mode}", elem, x, y)
            np.testing.assert_array_equal(found[edge], expected[edge])
        product, quotient = compute(f"mul_{mode}", elem, x, y), compute(f"div_{mode}", elem, x, y)
        for found, expected, zero in ((product, x * y, (x == 0) | (y == 0)), (quotient, x / y, (x == 0) | (y == 0))):
            np.testing.assert_array_equal(found[zero], expected[zero])
            usual = zero & ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found[usual]), np.signbit(expected[usual]))
        sum, found = x + y, compute(f"add_{mode}", elem, x, y)
    zero = sum == 0
    both_plus = (x == 0) & (y == 0) & ~np.signbit(x) & ~np.signbit(y)
    expected_sign = ~both_plus if mode == "rd" else np.signbit(sum)
    assert np.count_nonzero(zero) > 20
    np.testing.assert_array_equal(np.signbit(found[zero]), expected_sign[zero])


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("elem", FLOATS)
def test_a_root_rounded_in_a_direction_is_next_to_the_exact_one(elem: str, mode: str) -> None:
    (x,) = directed_arguments(elem, 1)
    found = compute(f"sqrt_{mode}", elem, x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(np.sqrt(x)))
    dtype = FLOATS[elem]
    for value, root in zip(x, found, strict=True):
        if not 0 < value < INF:
            assert root == value or np.isnan(root)
            continue
        exact, square = Fraction(float(value)), Fraction(float(root)) ** 2
        beside = Fraction(float(np.nextafter(root, dtype(0 if mode == "ru" else INF)))) ** 2
        assert beside < exact <= square if mode == "ru" else square <= exact < beside, value
