"""Check foundry_core.functions on NumPy's arrays against extended precision, with the bounds in docs/functions.md.

host/tests/test_libdevice.py checks the other half: that devices compute the same bits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from arrays import compute
from libm import BINARY, FLOATS, INF, NAN, PI, SPECIAL, UNARY, Wide, check

# Of a function of libm.UNARY: bound in ulp for f32 and f64 (None: no f64 bound), range for close arguments.
OF_ONE: dict[str, tuple[float, float | None, float, float]] = {
    "exp": (1.1, 1.1, -105, 90),
    "exp2": (1.3, 1.3, -151, 129),
    "exp10": (1.3, 1.3, -46, 39),
    "expm1": (1.6, 1.6, -20, 89),
    "sinh": (2.2, 2.2, -12, 12),
    "cosh": (1.6, 1.6, -90, 90),
    "tanh": (2.5, 2.5, -10, 10),
    "log": (1.0, 1.0, 0.3, 3),
    "log2": (1.0, 1.0, 0.3, 3),
    "log10": (1.0, 1.0, 0.3, 3),
    "log1p": (1.6, 1.6, -0.9999, 3),
    "acosh": (2.5, 2.5, 1, 5),
    "asinh": (2.5, 2.5, -5, 5),
    "atanh": (2.5, 2.5, -1, 1),
    "sin": (1.0, 1.0, -20, 20),
    "cos": (1.0, 1.0, -20, 20),
    "tan": (2.5, 2.5, -20, 20),
    "sinpi": (2.0, 2.0, -5, 5),
    "cospi": (1.0, 1.0, -5, 5),
    "asin": (2.5, 2.5, -1, 1),
    "acos": (1.5, 1.5, -1, 1),
    "atan": (2.3, 2.3, -20, 20),
    "sqrt": (0.5, 0.5, 0, 4),
    "rsqrt": (1.5, 1.5, 0, 4),
    "cbrt": (1.0, 1.0, -5, 5),
    "rcbrt": (2.0, 2.0, -5, 5),
    "trunc": (0, 0, -100, 100),
    "floor": (0, 0, -100, 100),
    "ceil": (0, 0, -100, 100),
    "rint": (0, 0, -100, 100),
    "round": (0, 0, -100, 100),
}
OF_TWO: dict[str, tuple[float, float | None]] = {
    "pow": (1.3, None),
    "atan2": (2.3, 2.3),
    "hypot": (1.3, 1.3),
    "rhypot": (2.3, 2.3),
    "fmod": (0, 0),
    "fdim": (0.5, 0.5),
}
# The index of a type's bound in a row.
PLACES = (("f32", 0), ("f64", 1))


def everywhere(elem: str, low: float = -1, high: float = 1, seed: int = 0) -> np.ndarray:
    """Return special values with both signs, random bits (so every exponent), and close numbers in a range."""
    dtype = FLOATS[elem]
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        special = np.array([*SPECIAL, *(-value for value in SPECIAL)]).astype(dtype)
        special = np.concatenate([special, np.nextafter(special, dtype(0)), np.nextafter(special, dtype(INF))])
    bits = random.integers(0, 256, 480000, np.uint8).view(dtype)
    return np.concatenate([special, bits, random.uniform(low, high, 60000).astype(dtype)])


@pytest.mark.parametrize(
    ("name", "elem", "bound"),
    [(name, elem, row[place]) for name, row in OF_ONE.items() for elem, place in PLACES if row[place] is not None],
)
def test_a_function_is_as_exact_as_stated(name: str, elem: str, bound: float) -> None:
    (function, _, _), (_, _, low, high) = UNARY[name], OF_ONE[name]
    x = everywhere(elem, low, high)
    if name in ("sin", "cos", "tan"):
        # The reference's own argument reduction is valid up to 2^63.
        x = x[~(np.abs(x) > 1e18) | np.isinf(x)]
    if elem == "f64" and bound:
        # The reference has 11 bits more than f64: its rounding error is 2^-10 ulp, plus the error of its functions.
        bound += 0.1
    with np.errstate(all="ignore"):
        check(name, compute(name, elem, x), function(x.astype(Wide)), bound, x)


def pairs(elem: str) -> list[tuple[np.ndarray, np.ndarray]]:
    dtype = FLOATS[elem]
    with np.errstate(over="ignore"):
        special = np.array([*SPECIAL, *(-value for value in SPECIAL)]).astype(dtype)
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
    [
        pytest.param(name, elem, row[place], marks=[pytest.mark.slow] * (name in ("fmod", "pow")))
        for name, row in OF_TWO.items()
        for elem, place in PLACES
        if row[place] is not None
    ],
)
def test_a_function_of_two_numbers_is_as_exact_as_stated(name: str, elem: str, bound: float) -> None:
    function = BINARY[name][0]
    for x, y in pairs(elem):
        with np.errstate(all="ignore"):
            check(name, compute(name, elem, x, y), function(x.astype(Wide), y.astype(Wide)), bound, x, y)


@cache
def pi_times(scale: int) -> int:
    """Return pi scale, by Machin's formula in integers."""

    def arctangent_of_inverse(n: int) -> int:
        total, term, k = 0, scale // n, 0
        while term:
            total += term // (2 * k + 1) * (-1) ** k
            term //= n * n
            k += 1
        return total

    return 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))


def exactly_reduced(x: float) -> Any:
    """Return an integer minus a multiple of 2 pi, with enough digits of pi for the largest number."""
    scale = 10**400
    rest = int(x) * scale % (2 * pi_times(scale))
    return Wide(rest * 10**30 // scale) / Wide(10**30)


@pytest.mark.parametrize("elem", FLOATS)
def test_sine_and_cosine_of_huge_numbers_are_those_of_their_exact_rest(elem: str) -> None:
    random = np.random.default_rng(4)
    most = 128 if elem == "f32" else 1024
    x = np.ldexp(random.uniform(1, 2, 3000), random.integers(54, most, 3000)).astype(FLOATS[elem])
    rest = np.array([exactly_reduced(float(value)) for value in x])
    # The rest is rounded to extended precision, which matters near the zeros.
    far = np.abs(np.sin(2 * rest)) > 0.1
    x, rest = x[far], rest[far]
    assert x.size > 2500
    for name, function in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
        check(name, compute(name, elem, x), function(rest), 2.6 if name == "tan" else 1.1, x)


@pytest.mark.parametrize("elem", FLOATS)
def test_functions_of_bits_are_those_of_c(elem: str) -> None:
    dtype = FLOATS[elem]
    for x, y in pairs(elem)[:3]:
        with np.errstate(all="ignore"):
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


@pytest.mark.parametrize("elem", FLOATS)
def test_the_remainder_is_that_of_the_nearest_quotient(elem: str) -> None:
    for x, y in pairs(elem)[:3]:
        x, y = x[:20000], y[:20000]
        usual = np.isfinite(x) & (y != 0) & ~np.isnan(y)
        expected = [math.remainder(float(a), float(b)) if good else NAN for a, b, good in zip(x, y, usual, strict=True)]
        found = compute("remainder", elem, x, y)
        np.testing.assert_array_equal(found, np.array(expected, FLOATS[elem]))
        zero = found == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(x[zero]))


def rounded(exact: Fraction, mode: str, elem: str) -> float:
    """Return the number of a type next to an exact one that is not 0, in a rounding direction."""
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
    """Return all pairs of special values, random bits, and numbers whose sums and products cancel, or nearly do."""
    dtype, random, info = FLOATS[elem], np.random.default_rng(6), np.finfo(FLOATS[elem])
    sizes = [0.0, 1.0, 0.5, 3.0, info.smallest_subnormal, info.smallest_normal, info.max, 1 + info.eps, INF, NAN, 1e30]
    # Their product is a little less than a power of two beyond the largest number.
    sizes += [1.5 * 2.0 ** (info.maxexp - 1), 8 / 3 * (1 - info.eps)]
    special = np.array([sign * size for size in sizes for sign in (1.0, -1.0)], dtype)
    columns = np.meshgrid(special, special) if count == 2 else [random.choice(special, 1500) for _ in range(count)]
    bits = random.integers(0, 256, 1000 * dtype().itemsize, np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        near = (bits * random.choice([1, -1, 2, 0.5, 1 + 2.0**-20], bits.size)).astype(dtype)
        parts = [[bits, near, -bits * near], [random.permutation(bits) for _ in range(3)]]
    parts.append([random.uniform(1, 2, 1000).astype(dtype) for _ in range(3)])
    return [np.concatenate([columns[i].ravel(), *(part[i] for part in parts)]) for i in range(count)]


INTEGERS: dict[str, Any] = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
# The exact function, and its number of arguments.
DIRECTED: dict[str, tuple[Callable[..., Fraction], int]] = {
    "add": (operator.add, 2),
    "sub": (operator.sub, 2),
    "mul": (operator.mul, 2),
    "div": (operator.truediv, 2),
    "rcp": (lambda x: 1 / x, 1),
    "fma": (lambda x, y, z: x * y + z, 3),
}


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", DIRECTED)
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


@pytest.mark.parametrize("elem", FLOATS)
def test_a_fused_multiply_add_is_rounded_once_to_nearest(elem: str) -> None:
    columns = directed_arguments(elem, 3)
    random = np.random.default_rng(16)
    x, y = (random.standard_normal(2000).astype(FLOATS[elem]) for _ in range(2))
    eps = np.finfo(FLOATS[elem]).eps
    # Products that are cancelled but for their rounding error, and those next to ties.
    factor = random.choice([1, 1 + eps, 0.5, eps, eps / 2, 1 / eps, 2 / eps, 4], 2000).astype(FLOATS[elem])
    columns = [np.concatenate(pair) for pair in zip(columns, (x, y, -(x * y) * factor), strict=True)]
    for number, *row in zip(compute("fma", elem, *columns).tolist(), *(c.tolist() for c in columns), strict=True):
        try:
            a, b, c = (Fraction(value) for value in row)
        except (OverflowError, ValueError):
            continue
        exact = a * b + c
        near = [rounded(exact, mode, elem) if exact else 0.0 for mode in ("rd", "ru")]
        size = 2.0**128 if elem == "f32" else Fraction(2) ** 1024
        below, above = (Fraction(size if v > 0 else -size) if math.isinf(v) else Fraction(v) for v in near)
        assert number in near, row
        chosen, left = (below, above - exact) if number == near[0] else (above, exact - below)
        assert abs(exact - chosen) <= left, row
        if below != above and abs(exact - chosen) == left:
            assert _is_even(number, elem), row


def _is_even(number: float, elem: str) -> bool:
    return math.isinf(number) or int(FLOATS[elem](number).view(f"i{FLOATS[elem]().itemsize}")) % 2 == 0


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_become_floats_rounded_in_a_direction(source: str, elem: str) -> None:
    kind, random = INTEGERS[source], np.random.default_rng(14)
    info = np.iinfo(kind)
    edges = [0, 1, 2, info.min, info.max, info.max - 1, info.max // 2 + 1, (1 << 24) + 1, (1 << 25) + 3]
    bits = np.frombuffer(random.bytes(2000 * info.bits // 8), kind)
    x = np.concatenate([np.array(edges, kind), bits, bits >> kind(info.bits // 2 - 1)])
    for mode in ("rz", "rd", "ru"):
        found = compute(f"{source}_{mode}", elem, x.view(f"i{info.bits // 8}"))
        expected = [rounded(Fraction(value), mode, elem) if value else 0.0 for value in x.tolist()]
        np.testing.assert_array_equal(found, np.array(expected, FLOATS[elem]))


def test_the_inverse_root_is_correctly_rounded() -> None:
    x = np.concatenate([everywhere("f32", 0, 4), np.exp2(np.arange(-149, 128)).astype(np.float32)])
    with np.errstate(all="ignore"):
        # Of 24 bits, no inverse root is so close to the middle of two numbers that 64 bits do not tell.
        expected = (1 / np.sqrt(x.astype(Wide))).astype(np.float32)
    found = compute("rsqrt_rn", "f32", x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("elem", FLOATS)
def test_directed_rounding_of_special_values_is_exact_with_the_right_zero_sign(elem: str, mode: str) -> None:
    """Infinities, NaN, and the signs of zeros: rounded down, a sum of 0 is -0 unless both terms are +0."""
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


def error_function(x: float) -> tuple[Decimal, Decimal]:
    """Return (erf, erfc) of a number from 0 to 30 to 40 digits, by a series of positive terms."""
    getcontext().prec = 60 + int(x * x / 2)
    exact = Decimal(x)
    square = exact * exact
    term, total, n = exact, exact, 0
    while term > total.scaleb(-getcontext().prec - 2):
        n += 1
        term = term * 2 * square / (2 * n + 1)
        total += term
    pi = pi_to(getcontext().prec)
    erf = 2 * total / (pi.sqrt() * square.exp())
    return erf, 1 - erf


def pi_to(digits: int) -> Decimal:
    scale = 10 ** (digits + 10)
    return Decimal(pi_times(scale)) / scale


def tail(x: float, scaled: bool = False) -> Decimal:
    """Return erfc, or e^(x^2) erfc(x), of a number from -30 to 30."""
    erf, erfc = error_function(abs(x))
    found = erfc if x >= 0 else 1 + erf
    return found * (Decimal(x) * Decimal(x)).exp() if scaled else found


def normal(x: float) -> Decimal:
    """Return the standard normal distribution: erfc(-x / sqrt 2) / 2, by the series for x sqrt(1/2)."""
    getcontext().prec = 60 + int(x * x / 2)
    size = abs(Decimal(x))
    term, total, n = size, size, 0
    while term > total.scaleb(-getcontext().prec - 2) and term:
        n += 1
        term = term * size * size / (2 * n + 1)
        total += term
    half = total / ((2 * pi_to(getcontext().prec)).sqrt() * (size * size / 2).exp())
    return Decimal("0.5") + (half if x >= 0 else -half)


def wide(x: Decimal) -> Any:
    """Convert to extended precision."""
    high = float(x)
    return Wide(high) + Wide(float(x - Decimal(high)))


ERRORS: dict[str, tuple[Callable[[float], Decimal], float, float, tuple[float, float], tuple[float, float]]] = {
    "erf": (lambda x: error_function(abs(x))[0].copy_sign(Decimal(x)), 1.0, 1.0, (-4, 4), (-6, 6)),
    "erfc": (tail, 3.0, 3.5, (-4, 10), (-6, 26)),
    "erfcx": (lambda x: tail(x, scaled=True), 3.5, 4.0, (-9.3, 20), (-20, 20)),
    "normcdf": (normal, 4.0, 5.0, (-14, 6), (-37, 9)),
}


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", ERRORS)
def test_the_error_functions_are_as_exact_as_stated(name: str, elem: str) -> None:
    function, single, double, *ranges = ERRORS[name]
    dtype, bound = FLOATS[elem], single if elem == "f32" else double
    random = np.random.default_rng(7)
    small = np.geomspace(1e-30, 1, 20)
    near = random.uniform(-2.5, 2.5, 150)
    x = np.concatenate([random.uniform(*ranges[elem == "f64"], 100), near, small, -small]).astype(dtype)
    reference = np.array([wide(function(float(value))) for value in x])
    check(name, compute(name, elem, x), reference, bound, x)
    edges = np.array([0.0, INF, -INF, NAN], dtype)
    expected = {"erf": [0, 1, -1, NAN], "erfc": [1, 0, 2, NAN], "erfcx": [1, 0, INF, NAN], "normcdf": [0.5, 1, 0, NAN]}
    np.testing.assert_allclose(compute(name, elem, edges), np.array(expected[name], dtype), rtol=np.finfo(dtype).eps)


def test_erfcx_of_large_numbers_is_that_of_its_asymptotic_series() -> None:
    for elem, largest in (("f32", 3.4e38), ("f64", 1.7e308)):
        x = np.geomspace(1e4, largest, 300).astype(FLOATS[elem])
        exact = x.astype(Wide)
        check("erfcx", compute("erfcx", elem, x), (1 - 1 / exact / exact / 2) / exact / np.sqrt(PI), 3.5, x)


@pytest.mark.parametrize("elem", FLOATS)
def test_inverses_of_the_error_functions_are_as_exact_as_stated(elem: str) -> None:
    """Compare the exact erfc of a result with the argument: a result's relative error changes it by a known amount."""
    dtype, random = FLOATS[elem], np.random.default_rng(8)
    least = 1e-44 if elem == "f32" else 1e-250
    tails = np.concatenate([random.uniform(0, 1, 120), np.geomspace(least, 0.5, 60), 1 - np.geomspace(1e-7, 0.5, 30)])
    tails = tails.astype(dtype)
    for name, bound in (("erfcinv", 3.0), ("normcdfinv", 3.5), ("erfinv", 3.0)):
        with np.errstate(all="ignore"):
            found = compute(name, elem, tails)
        for argument, result in zip(tails.tolist(), found.tolist(), strict=True):
            with localcontext():
                getcontext().prec = 60
                if name == "normcdfinv":
                    wrong = normal(result) - Decimal(argument)
                    slope = (-Decimal(result) * Decimal(result) / 2).exp() / (2 * pi_to(60)).sqrt()
                else:
                    erf, erfc = error_function(abs(result))
                    exact = (erf if result >= 0 else -erf) if name == "erfinv" else erfc if result >= 0 else 2 - erfc
                    wrong = exact - Decimal(argument)
                    slope = 2 * (-Decimal(result) * Decimal(result)).exp() / pi_to(60).sqrt()
                ulp = Decimal(float(np.spacing(dtype(abs(result)))))
                error = abs(wrong / slope) / ulp
            assert error <= bound, (name, argument, result, error)
    edges = np.array([0.0, 1.0, 2.0, -1.0, 3.0, NAN], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compute("erfcinv", elem, edges), np.array([INF, 0, -INF, NAN, NAN, NAN], dtype))
        np.testing.assert_array_equal(compute("erfinv", elem, edges), np.array([0, INF, NAN, -INF, NAN, NAN], dtype))
        expected = np.array([-INF, INF, NAN, NAN, NAN, NAN], dtype)
        np.testing.assert_array_equal(compute("normcdfinv", elem, edges), expected)


def test_the_gamma_functions_are_as_exact_as_stated() -> None:
    """Compare with C's functions in f64, whose errors are a few ulp of f64."""
    random = np.random.default_rng(9)
    spread = np.geomspace(1e-37, 1e36, 3000)
    x = np.concatenate([random.uniform(-42, 36, 20000), random.uniform(-4, 4, 20000), spread, -np.geomspace(1e-37, 30)])
    x = x.astype(np.float32)
    x = x[(x > 0) | (x != np.floor(x))]
    inside = x[np.abs(x) < 36]
    check("tgamma", compute("tgamma", "f32", inside), np.array([gamma(float(v)) for v in inside]), 6, inside)
    reference = np.array([math.lgamma(float(value)) for value in x])
    check("lgamma", compute("lgamma", "f32", x), reference, 6, x, least=1.0)


def log_gamma(x: float) -> Decimal:
    """Return the logarithm of the absolute value of gamma: Stirling's series of a larger number, and reflection."""
    if x < 0:
        rest = Decimal(x) - 2 * int(Decimal(x) / 2)
        return (pi_to(60) / (Decimal(-x) * abs(sine(pi_to(60) * rest)))).ln() - log_gamma(-x)
    exact, factors = Decimal(x), Decimal(1)
    while exact < 60:
        factors, exact = factors * exact, exact + 1
    total = (exact - Decimal("0.5")) * exact.ln() - exact + (2 * pi_to(60)).ln() / 2 - factors.ln()
    for k, number in enumerate(bernoulli(20), 1):
        total += Decimal(number.numerator) / number.denominator / (2 * k * (2 * k - 1) * exact ** (2 * k - 1))
    return total


def sine(x: Decimal) -> Decimal:
    term, total, n = x, x, 1
    while abs(term) > Decimal(10) ** -70:
        term = -term * x * x / ((n + 1) * (n + 2))
        total, n = total + term, n + 2
    return total


@cache
def bernoulli(count: int) -> list[Fraction]:
    """Return the first Bernoulli numbers of even index from 2 on."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        numbers.append(-sum(math.comb(n + 1, k) * numbers[k] for k in range(n)) / Fraction(n + 1))
    return numbers[2::2]


def test_the_gamma_functions_of_f64_are_as_exact_as_stated() -> None:
    random = np.random.default_rng(17)
    x = np.concatenate(
        [random.uniform(-180, 171, 150), random.uniform(-5, 5, 150), [171.62, 1e-300, -1e-300, 1e15, 1e300]]
    )
    with localcontext():
        getcontext().prec = 60
        exact = [log_gamma(value) for value in x.tolist()]
        reference = np.array([Wide(str(value.normalize(Context(prec=25)))) for value in exact])
        check("lgamma", compute("lgamma", "f64", x), reference, 6, x, least=1.0)
        near = np.abs(x) < 172
        size = [value.exp() for value, inside in zip(exact, near, strict=True) if inside]
        reference = np.array([Wide(str(value.normalize(Context(prec=25)))) for value in size])
    x = x[near]
    reference = reference * np.where((x < 0) & (np.floor(x) % 2 == 1), -1, 1)
    check("tgamma", compute("tgamma", "f64", x), reference, 6, x)


@pytest.mark.parametrize("elem", FLOATS)
def test_the_gamma_functions_of_special_values(elem: str) -> None:
    dtype = FLOATS[elem]
    edges = np.array([0.0, -0.0, -1.0, -2.0, INF, -INF, NAN, 1e-40, 3e38, -1e30], dtype)
    expected = np.array([INF, -INF, NAN, NAN, INF, NAN, NAN, INF if elem == "f32" else 1e40, INF, NAN], dtype)
    np.testing.assert_allclose(compute("tgamma", elem, edges), expected, rtol=4 * np.finfo(dtype).eps)
    logarithm = INF if elem == "f32" else math.lgamma(float(dtype(3e38)))
    expected = np.array([INF, INF, INF, INF, INF, INF, NAN, 92.103, logarithm, INF], dtype)
    np.testing.assert_allclose(compute("lgamma", elem, edges), expected, rtol=1e-5)
    # Below the smallest number; the sign is that of (-1)^n.
    left = np.array([-60.5, -61.5, -1001.5, -1000.5]) if elem == "f32" else np.array([-200.5, -201.5, -1001.5, -1000.5])
    found = compute("tgamma", elem, left.astype(dtype))
    np.testing.assert_array_equal(found, 0)
    np.testing.assert_array_equal(np.signbit(found), np.floor(left) % 2 == 1)


def gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(INF, x)


@pytest.mark.parametrize("elem", FLOATS)
def test_lengths_of_more_dimensions_are_as_exact_as_those_of_two(elem: str) -> None:
    dtype, random = FLOATS[elem], np.random.default_rng(10)
    scale = np.exp2(random.uniform(-120, 120, 20000))
    x = [(random.uniform(-1, 1, 20000) * scale).astype(dtype) for _ in range(4)]
    for count in (3, 4):
        length = np.sqrt(sum(value.astype(Wide) ** 2 for value in x[:count]))
        check(f"norm{count}d", compute(f"norm{count}d", elem, *x[:count]), length, 1.6, *x[:count])
        check(f"rnorm{count}d", compute(f"rnorm{count}d", elem, *x[:count]), 1 / length, 2.8, *x[:count])


def test_powers_of_f64_are_as_exact_as_stated() -> None:
    random = np.random.default_rng(11)
    x, y = random.uniform(0, 5, 400), random.uniform(-200, 200, 400)
    with localcontext():
        getcontext().prec = 50
        reference = np.array([wide(Decimal(float(a)) ** Decimal(float(b))) for a, b in zip(x, y, strict=True)])
    check("pow", compute("pow", "f64", x, y), reference, 2.0, x, y)


EULER = Decimal(
    "0.57721566490153286060651209008240243104215933593992359880576723488486772677766467093694706329174674951463"
)


def bessel(name: str, number: float, order: int | None = None) -> Decimal:
    """Return a Bessel function of a number above 0, by its ascending series (Abramowitz and Stegun, 9.1.10).

    Args:
        order: 0 or more, and for y up to 1; by default, the last digit of the name.
    """
    getcontext().prec = 60 + int(number)
    order, x = int(name[-1]) if order is None else order, Decimal(number)
    square = x * x / 4 * (-1 if name[0] in "jy" else 1)
    term = (x / 2) ** order / math.factorial(order)
    plain, harmonic, sums = Decimal(0), Decimal(0), [Decimal(0), Decimal(1) if order else Decimal(0)]
    k = 0
    while k < 10 or abs(term) > Decimal(10) ** -(50 + int(number)):
        plain += term
        harmonic += term * (sums[0] + sums[1] - 2 * EULER) / 2
        k += 1
        term = term * square / (k * (k + order))
        sums = [sums[0] + Decimal(1) / k, sums[1] + Decimal(1) / (k + order)]
    if name[0] != "y":
        return plain
    return (2 * ((x / 2).ln() * plain - harmonic) - (2 / x if order else 0)) / pi_to(getcontext().prec)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("j0", 8), ("j1", 8), ("y0", 10), ("y1", 10), ("cyl_bessel_i0", 4), ("cyl_bessel_i1", 4)],
)
@pytest.mark.parametrize("elem", FLOATS)
def test_bessel_functions_are_as_exact_as_stated(name: str, bound: float, elem: str) -> None:
    """Check j and y in ulp of the wave's amplitude, sqrt(2 / (pi x)), where they are smaller than it."""
    random = np.random.default_rng(12)
    above = random.uniform(8, 60, 150) if name[0] in "jy" else random.uniform(8, 91, 150)
    x = np.concatenate([random.uniform(0, 8, 300), above, np.geomspace(1e-30, 1, 40)]).astype(FLOATS[elem])
    reference = np.array([wide(bessel(name, float(value))) for value in x])
    size = np.sqrt(2 / (PI * np.maximum(x.astype(Wide), 1))) if name[0] in "jy" else 0
    with np.errstate(all="ignore"):
        found = compute(name, elem, x)
        ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(reference), size))) - np.finfo(x.dtype).nmant)
    error = np.abs(found - reference) / ulp
    assert np.all(error <= bound), (x[np.argmax(error)], np.max(error))
    edges = np.array([0.0, INF, -1.0, NAN], FLOATS[elem])
    expected = {
        "j0": [1, 0, 0.7651977, NAN],
        "j1": [0, 0, -0.4400506, NAN],
        "y0": [-INF, 0, NAN, NAN],
        "y1": [-INF, 0, NAN, NAN],
        "cyl_bessel_i0": [1, INF, 1.2660659, NAN],
        "cyl_bessel_i1": [0, INF, -0.5651591, NAN],
    }
    np.testing.assert_allclose(compute(name, elem, edges), expected[name], rtol=1e-6)
    # Where e^x is infinite, but i is not.
    if name[0] == "c" and elem == "f64":
        x = np.array([700, 709.5, 712, 713.9, 1e10])
        reference = np.array([*(wide(bessel(name, float(value))) for value in x[:-1]), INF])
        check(name, compute(name, elem, x), reference, bound, x)


def neighbouring(x: float, order: int) -> Decimal:
    """Return y of an order from 0 on, by the recurrence from those of order 0 and 1."""
    before, now = bessel("y0", x), bessel("y1", x)
    for k in range(1, order):
        before, now = now, 2 * k * now / Decimal(x) - before
    return now if order else before


@pytest.mark.parametrize("elem", FLOATS)
def test_bessel_functions_of_other_orders_are_as_exact_as_stated(elem: str) -> None:
    """Check, as for order 0 and 1, in ulp of the wave's amplitude where the number is above the order."""
    random, dtype = np.random.default_rng(15), FLOATS[elem]
    orders = [0, 1, 2, 3, 5, 9, 16, 31, 64]
    rows = [(n, x) for n in orders for x in [*random.uniform(0, 80, 12), *np.geomspace(1e-9, 1, 6), n * 1.001, n + 0.5]]
    n, x = np.array([row[0] for row in rows if row[1]], np.int32), np.array([row[1] for row in rows if row[1]], dtype)
    with np.errstate(all="ignore"):
        for name in ("jn", "yn"):
            exact = [
                bessel("j", value, order) if name == "jn" else neighbouring(value, order)
                for order, value in zip(n.tolist(), x.tolist(), strict=True)
            ]
            reference = np.array([Wide(str(value.normalize(Context(prec=25)))) for value in exact])
            found = compute(name, elem, n, x)
            amplitude = np.where(x > n, np.sqrt(2 / (PI * np.maximum(x.astype(Wide), 1))), 0)
            size = np.maximum(np.maximum(np.abs(reference), amplitude), float(np.finfo(dtype).smallest_normal))
            error = np.abs(found - reference) / np.exp2(np.floor(np.log2(size)) - np.finfo(dtype).nmant)
            finite = np.isfinite(reference.astype(dtype))
            assert np.all(error[finite] <= 10 + n[finite]), (name, rows[np.argmax(np.where(finite, error, 0))])
            np.testing.assert_array_equal(found[~finite], reference.astype(dtype)[~finite])
            # J and Y of -n are those of n, and J of -x is that of x, but for the sign of odd orders.
            sign = np.where(n % 2 == 1, -1, 1)
            np.testing.assert_array_equal(compute(name, elem, -n, x), sign * found)
            if name == "jn":
                np.testing.assert_array_equal(compute(name, elem, n, -x), sign * found)
        n, x = (
            np.array([0, 1, 2, 3, 2, 5, -3, 2**31 - 1], np.int32),
            np.array([INF, -INF, INF, 0, -1, NAN, 0, 5], dtype),
        )
        np.testing.assert_allclose(compute("jn", elem, n, x), [0, 0, 0, 0, 0.11490348, NAN, 0, 0], rtol=1e-6)
        expected = [0, NAN, 0, -INF, NAN, NAN, INF, -INF]
        np.testing.assert_array_equal(compute("yn", elem, n, x), np.array(expected, dtype))


@pytest.mark.parametrize("elem", FLOATS)
def test_bessel_functions_of_huge_numbers_are_waves_of_the_right_size_and_phase(elem: str) -> None:
    """Check that j0^2 + y0^2 is 2 / (pi x), and y0 / j0 is the tangent of x - pi / 4."""
    largest, error = (3e38, 2e-6) if elem == "f32" else (1e308, 4e-15)
    x = np.geomspace(1e17, largest, 500).astype(FLOATS[elem])
    j0, y0, j1, y1 = (compute(name, elem, x).astype(Wide) for name in ("j0", "y0", "j1", "y1"))
    size = 2 / (PI * x.astype(Wide))
    np.testing.assert_allclose((j0 * j0 + y0 * y0) / size, 1, rtol=error)
    np.testing.assert_allclose((j1 * y0 - j0 * y1) / size, 1, rtol=error)
    rest = np.array([exactly_reduced(float(value)) for value in x])
    np.testing.assert_allclose(j0 / np.sqrt(size), np.cos(rest - PI / 4), atol=error)
    np.testing.assert_allclose(y0 / np.sqrt(size), np.sin(rest - PI / 4), atol=error)
