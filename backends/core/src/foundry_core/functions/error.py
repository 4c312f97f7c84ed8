"""The error function, functions derived from it, and their inverses.

erfcx(x) = e^(x^2) erfc(x), times 1 + 2 x, is a polynomial of (x - k) / (x + k) for all numbers that are not negative
(Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x) in 0 <= x < infinity", 1981).

erfinv(x) / x is a function without singularities of w = -log(1 - x^2) and, far from 0, of the square root of w (Giles,
"Approximating the erfinv function", 2011).
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .exponential import exp_of_sum
from .logarithm import log
from .value import Value

# Above this, erf is computed as 1 - erfc.
_NEAR = 0.84375


def _scaled_tail(m: Arithmetic, x: Value) -> Value:
    """Return erfcx of a number that is not negative."""
    far = x > 2.0 ** (m.mantissa + 2)
    kept = m.select(far, 1.0, x)
    place = m.select(far, 1.0, (kept - 2.0) / (kept + 2.0))
    # Both terms are halved, because twice the largest number is infinite.
    return 0.5 * m.polynomial(place, "erfcx") / (x + 0.5)


def _square(m: Arithmetic, x: Value) -> tuple[Value, Value]:
    """Return x^2 and its rounding error; for large numbers, whose e^(-x^2) is 0, those of a smaller number."""
    limit = m.pick(20.0, 60.0)
    x = m.select(x > limit, limit, x)
    upper = m.upper(x)
    return upper * upper, (x - upper) * (x + upper)


def _tail(m: Arithmetic, size: Value) -> Value:
    """Return erfc of a number that is not negative."""
    square, low = _square(m, size)
    return exp_of_sum(m, m.negative(square), m.negative(low)) * _scaled_tail(m, size)


def _erf_near_0(m: Arithmetic, x: Value) -> Value:
    """Return erf of a number near 0."""
    return x + x * m.polynomial(x * x, "erf")


def erf(m: Arithmetic, x: Value) -> Value:
    """Return the error function of x."""
    size = m.absolute(x)
    result = m.choose(size < _NEAR, lambda: _erf_near_0(m, size), lambda: 1.0 - _tail(m, size))
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))


def erfc(m: Arithmetic, x: Value) -> Value:
    """Return 1 - erf(x)."""
    size = m.absolute(x)

    def far() -> Value:
        tail = _tail(m, size)
        return m.select(x < 0.0, 2.0 - tail, tail)

    # Near 0, 1 - erf loses no digits; elsewhere the tail is computed directly.
    result = m.choose(size < 0.25, lambda: 1.0 - _erf_near_0(m, x), far)
    return m.any_nan(result, x)


def erfcx(m: Arithmetic, x: Value) -> Value:
    """Return e^(x^2) erfc(x)."""
    size = m.absolute(x)
    tail = _scaled_tail(m, size)

    def left() -> Value:
        square, low = _square(m, size)
        return exp_of_sum(m, square, low, power=1) - tail

    result = m.choose(x < 0.0, left, lambda: tail)
    return m.any_nan(result, x)


def normcdf(m: Arithmetic, x: Value) -> Value:
    """Return the share of the standard normal distribution below x."""
    size = m.absolute(x)
    square, low = _square(m, size)
    tail = 0.5 * exp_of_sum(m, -0.5 * square, -0.5 * low) * _scaled_tail(m, size * 0.7071067811865476)
    return m.any_nan(m.select(x > 0.0, 1.0 - tail, tail), x)


def _erfcinv_far(m: Arithmetic, w: Value, tail: Value) -> Value:
    """Return the number whose erfc is `tail`, for w = -log(tail (2 - tail)) above 6."""
    root = m.root(w)
    result = root * m.polynomial(1.0 / root, "erfinv-far")
    if m.elem == "f32":
        return result
    # The polynomial has 32 bits of precision; one step of Halley's method triples them.
    square, low = _square(m, result)
    power = exp_of_sum(m, 0.5 * square, 0.5 * low)
    newton = (_scaled_tail(m, result) - tail * power * power) * 0.886226925452758
    return result + newton / (1.0 + result * newton)


def erfinv(m: Arithmetic, x: Value) -> Value:
    """Return the number whose erf is x."""
    size = m.absolute(x)
    tail = 1.0 - size
    w = m.negative(log(m, tail * (1.0 + size)))
    result = m.choose(w < 6.25, lambda: size * m.polynomial(w - 3.125, "erfinv-near"), lambda: _erfcinv_far(m, w, tail))
    result = m.select(m.equal(size, 1.0), float("inf"), result)
    result = m.select(size > 1.0, float("nan"), result)
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))


def erfcinv(m: Arithmetic, x: Value) -> Value:
    """Return the number whose erfc is x."""
    rest = 1.0 - x
    tail = m.select(x > 1.0, 2.0 - x, x)
    # Two logarithms, because the product of a small number with another may be subnormal.
    w = m.negative(log(m, tail) + log(m, 2.0 - tail))
    size = m.absolute(rest)
    result = m.choose(w < 6.25, lambda: size * m.polynomial(w - 3.125, "erfinv-near"), lambda: _erfcinv_far(m, w, tail))
    result = m.select(m.equal(tail, 0.0), float("inf"), result)
    result = m.select(tail < 0.0, float("nan"), result)
    return m.with_sign(m.any_nan(result, x), m.sign_of(rest))


def normcdfinv(m: Arithmetic, x: Value) -> Value:
    """Return the number below which the share x of the standard normal distribution is."""
    left = x < 0.5
    small = m.select(left, x, 1.0 - x)
    result = 1.4142135623730951 * erfcinv(m, small + small)
    return m.any_nan(m.select(left, m.negative(result), result), x)
