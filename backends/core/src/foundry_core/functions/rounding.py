"""Rounding to integers, square roots, and other functions of a number's bits; all exact or correctly rounded."""

from __future__ import annotations

from .arithmetic import Arithmetic
from .value import Value


def trunc(m: Arithmetic, x: Value) -> Value:
    """Round to an integer towards zero."""
    bits = m.bits(x)
    exponent = (m.shift_right(bits, m.mantissa) & (2 * m.bias + 1)) - m.bias
    # The number of fraction bits, limited so that the shift is valid.
    behind = m.mantissa - m.select(exponent < 0, 0, m.select(exponent > m.mantissa, m.mantissa, exponent))
    kept = m.number(bits & (m.word(-1, x, m.width) << behind))
    return m.select(exponent < 0, m.number(bits & m.sign), kept)


def floor(m: Arithmetic, x: Value) -> Value:
    """Round down to an integer."""
    result = trunc(m, x)
    return m.select(result > x, result - 1.0, result)


def ceil(m: Arithmetic, x: Value) -> Value:
    """Round up to an integer."""
    result = trunc(m, x)
    return m.select(result < x, m.with_sign(m.absolute(result + 1.0), m.sign_of(x)), result)


def round(m: Arithmetic, x: Value) -> Value:
    """Round to the nearest integer, ties away from zero."""
    result = trunc(m, x)
    size = m.absolute(result)
    outwards = m.absolute(x - result) >= 0.5
    return m.select(outwards, m.with_sign(size + 1.0, m.sign_of(x)), result)


def rint(m: Arithmetic, x: Value) -> Value:
    """Round to the nearest integer, ties to even."""
    size = m.absolute(x)
    limit = 2.0**m.mantissa
    return m.select(size < limit, m.with_sign((size + limit) - limit, m.sign_of(x)), x)


def root_and_rest(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Return (r, rest, k) of a finite number above 0.

    Its root is r 2^(k - mantissa - 1), and a bit more if rest is not 0. r has one bit more than a mantissa and is
    computed bit by bit.
    """
    more = int(m.pick(24, 54))
    one = 1 << m.mantissa
    subnormal = m.bits(x) < one
    bits = m.bits(m.choose(subnormal, lambda: x * 2.0**more, lambda: x))
    exponent = (bits >> m.mantissa) - m.bias
    mantissa = ((bits & (one - 1)) | one) << (1 + (exponent & 1))

    def turn(rest: Value, place: Value, twice: Value) -> tuple[Value, ...]:
        trial = twice + place
        fits = trial <= rest
        return (
            m.select(fits, rest - trial, rest) << 1,
            m.shift_right(place, 1),
            m.select(fits, trial + place, twice),
        )

    # Each further bit is compared with twice the root found so far.
    start = [mantissa, m.word(2 * one, x, m.width), m.word(0, x, m.width)]
    rest, _, twice = m.repeat(m.mantissa + 2, start, turn)
    return twice >> 1, rest, m.select(subnormal, exponent - more, exponent) >> 1


def sqrt(m: Arithmetic, x: Value) -> Value:
    """Return the square root, correctly rounded."""
    bits = m.bits(x)
    # Above 0 and below infinity; compared as integers, because float comparisons are software on a DPU.
    ordinary = m.less_unsigned(bits - 1, m.infinity_bits - 1)
    root, rest, half = root_and_rest(m, x)
    # The last bit decides whether to round up, unless the rest is 0: no root is halfway between two numbers.
    root = (root + m.select(m.equal(rest, 0), 0, root & 1)) >> 1
    result = m.number(root + ((half + (m.bias - 1)) << m.mantissa))
    # 0, infinity and NaN are their own roots. As an unsigned integer, a negative number is above -0.
    negative = m.less_unsigned(m.word(m.sign, x, m.width), bits)
    return m.select(ordinary, result, m.select(negative, float("nan"), x))


def rsqrt(m: Arithmetic, x: Value) -> Value:
    return 1.0 / m.root(x)


def copysign(m: Arithmetic, x: Value, y: Value) -> Value:
    return m.with_sign(m.absolute(x), m.sign_of(y))
