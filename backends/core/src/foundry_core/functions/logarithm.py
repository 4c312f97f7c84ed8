"""Logarithms and functions derived from them.

A number is 2^k (1 + f), with 1 + f between the square roots of 1/2 and of 2. log(1 + f) = 2 artanh(s), s = f / (2 + f),
is a short series in s^2, as in "Software manual for the elementary functions" (Cody and Waite, 1980).
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .value import Value


def split_exponent(m: Arithmetic, x: Value) -> tuple[Value, Value]:
    """Return (f, k) of a number above 0, which is 2^k (1 + f)."""
    subnormal = x < 2.0 ** (1 - m.bias)
    bits = m.bits(m.select(subnormal, x * 2.0 ** (m.mantissa + 1), x))
    root = m.word(int(m.pick(0x3F3504F3, 0x3FE6A09E667F3BCD)), bits, m.width)
    above = bits - root
    exponent = above >> m.mantissa
    rest = m.number((above & ((1 << m.mantissa) - 1)) + root) - 1.0
    return rest, m.select(subnormal, exponent - (m.mantissa + 1), exponent)


def _edges(m: Arithmetic, result: Value, x: Value) -> Value:
    """Return the results of logarithms for 0, infinity, negative numbers and NaN."""
    infinity = float("inf")
    result = m.select(m.equal(x, infinity), x, result)
    result = m.select(m.equal(x, 0.0), -infinity, result)
    return m.select(x < 0.0, float("nan"), m.any_nan(result, x))


def _series(m: Arithmetic, f: Value) -> tuple[Value, Value]:
    """Return (half, rest): log(1 + f) is f - (half - rest), and half is f^2 / 2."""
    s = f / (2.0 + f)
    square = s * s
    half = 0.5 * f * f
    return half, s * (half + square * m.polynomial(square, "log"))


def log(m: Arithmetic, x: Value) -> Value:
    """Return the natural logarithm."""
    f, exponent = split_exponent(m, x)
    return _edges(m, _log_of_parts(m, f, m.to_float(exponent)), x)


def _log_of_parts(m: Arithmetic, f: Value, k: Value) -> Value:
    half, rest = _series(m, f)
    first, second = m.split("ln2-split")
    return k * first - ((half - (rest + k * second)) - f)


def log1p(m: Arithmetic, x: Value) -> Value:
    """Return log(1 + x), precise to the last digits even if x is small."""
    sum = 1.0 + x
    # The rounding error of the sum, relative to the sum: it adds that much to the logarithm.
    back = sum - 1.0
    lost = (x - back) + (1.0 - (sum - back))
    infinite = m.equal(sum, float("inf"))
    f, exponent = split_exponent(m, sum)
    result = _log_of_parts(m, f, m.to_float(exponent)) + lost / m.select(infinite, 1.0, sum)
    result = m.select(m.absolute(x) < m.pick(2.0**-25, 2.0**-54), x, _edges(m, result, sum))
    return m.select(infinite, sum, result)


def _split_log(m: Arithmetic, f: Value) -> tuple[Value, Value]:
    """Return log(1 + f) as (high, rest); the product of high with another half mantissa is exact."""
    half, rest = _series(m, f)
    high = m.upper(f - half)
    return high, ((f - high) - half) + rest


def log2(m: Arithmetic, x: Value) -> Value:
    """Return the logarithm to base 2."""
    f, exponent = split_exponent(m, x)
    high, low = _split_log(m, f)
    first, second = m.split("log2e-split")
    return _edges(m, _summed(m, m.to_float(exponent), high * first, (low + high) * second + low * first), x)


def log10(m: Arithmetic, x: Value) -> Value:
    """Return the logarithm to base 10."""
    f, exponent = split_exponent(m, x)
    k = m.to_float(exponent)
    high, low = _split_log(m, f)
    first, second = m.split("log10e-split")
    two_first, two_second = m.split("log10-2-split")
    rest = (low + high) * second + low * first + k * two_second
    return _edges(m, _summed(m, k * two_first, high * first, rest), x)


def _summed(m: Arithmetic, large: Value, small: Value, rest: Value) -> Value:
    """Return large + small + rest, where large is 0 or the largest."""
    sum = large + small
    return sum + (rest + ((large - sum) + small))


def acosh(m: Arithmetic, x: Value) -> Value:
    """Return the number, not negative, whose cosh is x."""
    less = x - 1.0
    near = log1p(m, less + m.root(2.0 * less + less * less))
    # log(2 x) without doubling x, which may be near the largest number.
    f, exponent = split_exponent(m, x)
    far = _log_of_parts(m, f, m.to_float(exponent + 1))
    result = m.select(x < m.pick(2.0**12, 2.0**28), near, far)
    result = m.select(m.equal(x, float("inf")), x, result)
    return m.select(x < 1.0, float("nan"), m.any_nan(result, x))


def asinh(m: Arithmetic, x: Value) -> Value:
    """Return the number whose sinh is x."""
    size = m.absolute(x)
    square = size * size
    near = log1p(m, size + square / (1.0 + m.root(1.0 + square)))
    f, exponent = split_exponent(m, size)
    far = _log_of_parts(m, f, m.to_float(exponent + 1))
    result = m.select(size < m.pick(2.0**12, 2.0**28), near, far)
    result = m.select(m.equal(size, float("inf")), size, result)
    result = m.select(size < m.pick(2.0**-13, 2.0**-28), size, result)
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))


def atanh(m: Arithmetic, x: Value) -> Value:
    """Return the number whose tanh is x."""
    size = m.absolute(x)
    twice = size + size
    near = 0.5 * log1p(m, twice + twice * size / (1.0 - size))
    far = 0.5 * log1p(m, twice / (1.0 - size))
    result = m.select(size < 0.5, near, far)
    result = m.select(size < m.pick(2.0**-13, 2.0**-28), size, result)
    result = m.select(m.equal(size, 1.0), float("inf"), result)
    result = m.select(size > 1.0, float("nan"), result)
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))
