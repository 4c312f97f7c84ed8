"""Exponential functions and functions derived from them.

A multiple of ln 2 is subtracted from an argument, so that it is within half of ln 2 of 0 (Cody and Waite, "Software
manual for the elementary functions", 1980). A polynomial suffices there. The multiple becomes the exponent of a power
of two in the result.
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .value import Value


def exp(m: Arithmetic, x: Value) -> Value:
    return exp_of_sum(m, x)


def exp_of_sum(m: Arithmetic, x: Value, low: Value | None = None, power: int = 0) -> Value:
    """Return 2^power e^(x + low), where low is small compared with x or 1."""
    x = _confined(m, x, m.pick(-105.0, -760.0), m.pick(105.0, 760.0))
    rest, exponent = _reduced(m, x, low)
    return m.scale(1.0 + (rest + rest * rest * m.polynomial(rest, "exp")), exponent + power)


def _confined(m: Arithmetic, x: Value, low: float, high: float) -> Value:
    """Limit x to a range beyond which the result is 0 or infinity; NaN stays NaN."""
    x = m.select(x < low, low, x)
    return m.select(x > high, high, x)


def _reduced(m: Arithmetic, x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """Return x less a multiple of ln 2, and the multiple."""
    turns, exponent = m.nearest(x * 1.4426950408889634)
    first, second = m.split("ln2-split")
    # The first part has so few bits that its product, and the difference, are exact.
    rest = (x - turns * first) - turns * second
    return (rest if low is None else rest + low), exponent


def exp2(m: Arithmetic, x: Value) -> Value:
    return exp2_of_sum(m, x)


def exp2_of_sum(m: Arithmetic, x: Value, low: Value | None = None) -> Value:
    """Return 2^(x + low), where low is small compared with 1."""
    x = _confined(m, x, m.pick(-151.0, -1080.0), m.pick(129.0, 1025.0))
    turns, exponent = m.nearest(x)
    rest = x - turns if low is None else (x - turns) + low
    return m.scale(1.0 + rest * m.polynomial(rest, "exp2"), exponent)


def exp10(m: Arithmetic, x: Value) -> Value:
    x = _confined(m, x, m.pick(-46.0, -330.0), m.pick(39.0, 310.0))
    turns, exponent = m.nearest(x * 3.321928094887362)
    first, second = m.split("log10-2-split")
    rest = (x - turns * first) - turns * second
    return m.scale(1.0 + rest * m.polynomial(rest, "exp10"), exponent)


def expm1(m: Arithmetic, x: Value) -> Value:
    """Return e^x - 1, precise to the last digits even if x is small."""
    near = _confined(m, x, m.pick(-20.0, -40.0), m.pick(89.0, 710.0))
    rest, exponent = _reduced(m, near)
    small = rest + rest * rest * m.polynomial(rest, "exp")
    # 2^k (small + 1) - 1 is computed as 2 (2^(k-1) small + (2^(k-1) - 1/2)), because f32 cannot represent 2^128.
    power = m.power_of_two(exponent - 1)
    result = 2.0 * (power * small + (power - 0.5))
    # For tiny numbers the result is the number itself; a zero keeps its sign.
    return m.select(m.absolute(x) < m.pick(2.0**-25, 2.0**-54), x, result)


def sinh(m: Arithmetic, x: Value) -> Value:
    """Return (e^x - e^-x) / 2."""
    size = m.absolute(x)

    def near() -> Value:
        less = expm1(m, size)
        return 0.5 * (less + less / (less + 1.0))

    # Above this limit, e^-x is smaller than the last digit of the result.
    result = m.choose(size < m.pick(10.0, 20.0), near, lambda: exp_of_sum(m, size, power=-1))
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))


def cosh(m: Arithmetic, x: Value) -> Value:
    """Return (e^x + e^-x) / 2."""
    half = exp_of_sum(m, m.absolute(x), power=-1)
    return half + 0.25 / half


def tanh(m: Arithmetic, x: Value) -> Value:
    """Return sinh(x) / cosh(x)."""
    size = m.absolute(x)
    less = expm1(m, 2.0 * m.select(size > 22.0, 22.0, size))
    result = less / (less + 2.0)
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))
