"""Trigonometric functions and their inverses.

Payne and Hanek's reduction ("Radian reduction for trigonometric functions", 1983) in integers: of the product of the
mantissa with 2/pi, we compute only the bits that are not multiples of a whole turn. So the result is as precise for the
largest number as for any other.
"""

from __future__ import annotations

import itertools

from .arithmetic import Arithmetic
from .value import Value

# The fraction bits of 2/pi, as many as the largest f64 needs.
_FRACTION_BITS = 1216
_TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046FC7B6BAB",
    16,
)
# pi/2 * 2^63.
_HALF_PI = 0xC90FDAA22168C235


def _words(width: int, count: int) -> list[int]:
    """Return the first bits of 2/pi in words of this width, after one word of zeros."""
    return [0, *(_TWO_OVER_PI >> (_FRACTION_BITS - width * i) & ((1 << width) - 1) for i in range(1, count))]


def _quarter_turns(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Return (r, low, k): |x| is r + low + k pi/2, |r| is at most pi/4, and k counts modulo 4."""
    return _quarter_turns_f64(m, x) if m.width == 64 else _quarter_turns_f32(m, x)


def _quarter_turns_f64(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Return _quarter_turns of an f64, with 192 bits of 2/pi, and 126 bits of the product's fraction."""
    size = m.bits(x) & ~m.sign
    exponent = (size >> m.mantissa) - m.bias
    mantissa = size & ((1 << m.mantissa) - 1) | (1 << m.mantissa)
    # Earlier bits of 2/pi, after the 64 zeros, only add whole turns.
    place = m.select(exponent < -1, -1, exponent) + 10
    index, by = place >> 6, place & 63
    words = [m.word(word, x, 64) for word in [*_words(64, 20), *[0] * 15]]
    for step in (16, 8, 4, 2, 1):
        further = m.equal(index & step, step)
        words = [m.select(further, words[i + step], words[i]) for i in range(step + 3)]
    a, b, c = ((u << by) | m.shift_right(m.shift_right(v, 1), 63 - by) for u, v in itertools.pairwise(words))
    # The upper 128 of 192 bits; the unit is 2^-126 quarter turns.
    carried = m.upper_product(mantissa, c)
    low = mantissa * b + carried
    high = mantissa * a + m.upper_product(mantissa, b) + m.select(m.less_unsigned(low, carried), m.word(1, x, 64), 0)
    quarter = m.shift_right(high + (1 << 61), 62)
    high = high - (quarter << 62)
    negative = high < 0
    high = m.select(negative, (0 - high) - m.select(m.equal(low, 0), 0, m.word(1, x, 64)), high)
    low = m.select(negative, 0 - low, low)
    # Move the highest bit to place 62 of the upper word.
    lost = m.word(61, x, 64)
    empty = m.equal(high, 0)
    high, low = m.select(empty, m.shift_right(low, 1), high), m.select(empty, low << 63, low)
    lost = m.select(empty, lost + 63, lost)
    for shift in (32, 16, 8, 4, 2, 1):
        small = high < 1 << (63 - shift)
        high = m.select(small, (high << shift) | m.shift_right(low, 64 - shift), high)
        low = m.select(small, low << shift, low)
        lost = m.select(small, lost + shift, lost)
    # Multiply by pi/2; a 64th bit of the product would be below the precision.
    angle = m.upper_product(high, m.word(_HALF_PI, x, 64))
    unit = m.power_of_two(0 - lost)
    first = m.to_float(angle)
    second = m.to_float(angle - m.to_wide(first)) * unit
    first = first * unit
    # Below pi/4, the result is the number itself.
    near = size < 0x3FE921FB54442D18
    sign = m.select(negative, m.word(m.sign, x, 64), 0)
    zero = m.constant(0.0, x)
    return (
        m.select(near, m.number(size), m.flip_sign(first, sign)),
        m.select(near, zero, m.flip_sign(second, sign)),
        m.select(near, 0, quarter),
    )


def _quarter_turns_f32(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Return (r, low, k) of an f32, see _quarter_turns."""
    size = m.bits(x) & ~m.sign
    exponent = (size >> m.mantissa) - m.bias
    mantissa = m.wide(size & 0x7FFFFF | 0x800000)
    # Earlier bits of 2/pi, after the 32 zeros, only add whole turns.
    exponent = m.select(exponent < -1, -1, exponent)
    place = exponent + 7
    index, by = place >> 5, place & 31
    words = [m.word(word, x) for word in _words(32, 8)]

    def word(offset: int) -> Value:
        result = words[offset]
        for number in range(1, 5):
            result = m.select(index > number - 1, words[offset + number], result)
        return result

    a, b, c, d = (word(offset) for offset in range(4))

    def joined(upper: Value, lower: Value) -> Value:
        # Shift in two steps, because a shift by 32 is undefined.
        return (upper << by) | m.shift_right(m.shift_right(lower, 1), 31 - by)

    first, second, third = (m.wide(joined(*pair), signed=False) for pair in ((a, b), (b, c), (c, d)))
    product = ((first * mantissa) << 32) + second * mantissa + m.shift_right(third * mantissa, 32)
    # The unit is 2^-62 quarter turns.
    quarter = m.shift_right(product + (1 << 61), 62)
    fraction = product - (quarter << 62)
    negative = fraction < 0
    rest = m.select(negative, 0 - fraction, fraction) << 2
    # Multiply by pi/2 and keep the upper 64 bits; the unit is 2^-63.
    angle = m.upper_product(rest, m.word(_HALF_PI, rest, 64))
    high = m.to_float(angle)
    low = m.to_float(angle - m.to_wide(high)) * 2.0**-63
    high = high * 2.0**-63
    # Below pi/4, the result is the number itself.
    near = size < 0x3F490FDB
    sign = m.select(negative, m.word(m.sign, x), 0)
    k = m.narrow(quarter)
    zero = m.constant(0.0, x)
    return (
        m.select(near, m.number(size), m.flip_sign(high, sign)),
        m.select(near, zero, m.flip_sign(low, sign)),
        m.select(near, 0, k),
    )


def _sine(m: Arithmetic, r: Value, low: Value) -> Value:
    square = r * r
    return r + (r * square * m.polynomial(square, "sin") + low * (1.0 - 0.5 * square))


def _cosine(m: Arithmetic, r: Value, low: Value) -> Value:
    square = r * r
    half = 0.5 * square
    most = 1.0 - half
    # The error of the subtraction, which is smaller than the polynomial.
    return most + (((1.0 - most) - half) + (square * square * m.polynomial(square, "cos") - r * low))


def _nan_if_not_finite(m: Arithmetic, result: Value, x: Value) -> Value:
    """Return NaN if the argument is infinite or NaN."""
    return m.select(m.absolute(x) < float("inf"), result, float("nan"))


def _sine_of_quarters(m: Arithmetic, r: Value, low: Value, k: Value) -> Value:
    """Return the sine of r + low + k pi/2."""
    odd = m.equal(k & 1, 1)
    result = m.choose(odd, lambda: _cosine(m, r, low), lambda: _sine(m, r, low))
    return m.flip_sign(result, _half_turn(m, k))


def _half_turn(m: Arithmetic, k: Value) -> Value:
    """Return a sign bit that is set if k quarter turns are half a turn or more."""
    return (k & 2) << (m.width - 2)


def sin(m: Arithmetic, x: Value) -> Value:
    """Return the sine of an angle in radians."""
    r, low, k = _quarter_turns(m, x)
    return _nan_if_not_finite(m, m.flip_sign(_sine_of_quarters(m, r, low, k), m.sign_of(x)), x)


def cos(m: Arithmetic, x: Value) -> Value:
    """Return the cosine of an angle in radians."""
    r, low, k = _quarter_turns(m, x)
    return _nan_if_not_finite(m, _sine_of_quarters(m, r, low, k + 1), x)


def sine_and_cosine(m: Arithmetic, x: Value) -> tuple[Value, Value]:
    """Return the sine and the cosine of an angle in radians, with the bits of `sin` and `cos`."""
    r, low, k = _quarter_turns(m, x)
    sine, cosine = _sine(m, r, low), _cosine(m, r, low)
    odd = m.equal(k & 1, 1)
    one = m.flip_sign(m.select(odd, cosine, sine), _half_turn(m, k))
    other = m.flip_sign(m.select(odd, sine, cosine), _half_turn(m, k + 1))
    return _nan_if_not_finite(m, m.flip_sign(one, m.sign_of(x)), x), _nan_if_not_finite(m, other, x)


def tan(m: Arithmetic, x: Value) -> Value:
    """Return the tangent of an angle in radians."""
    r, low, k = _quarter_turns(m, x)
    sine, cosine = _sine(m, r, low), _cosine(m, r, low)
    odd = m.equal(k & 1, 1)
    result = m.select(odd, m.negative(cosine), sine) / m.select(odd, sine, cosine)
    return _nan_if_not_finite(m, m.flip_sign(result, m.sign_of(x)), x)


def _quarter_turns_of_pi(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Return (r, low, k) of |x| pi; subtracting multiples of 1/2 leaves an exact rest."""
    size = m.absolute(x)
    # All numbers with more bits than a mantissa are even.
    size = m.select(size < 2.0 ** (m.mantissa + 1), size, 0.0)
    # Rounding by addition works below 2^(mantissa - 1). For larger numbers, the bits above the lowest 9 are even.
    rest = size - m.select(size < 2.0 ** (m.mantissa - 3), 0.0, m.number(m.bits(size) & ~0x1FF))
    turns, k = m.nearest(rest * 2.0)
    rest = rest - turns * 0.5
    first, second = m.split("pi")
    upper = m.upper(rest)
    head, tail = m.split("pi-split")
    high = rest * first
    # Dekker's product: the rounding error.
    lower = rest - upper
    low = (upper * head - high) + (upper * tail + lower * head) + lower * tail
    return high, low + rest * second, k


def sinpi(m: Arithmetic, x: Value) -> Value:
    """Return the sine of x half turns."""
    r, low, k = _quarter_turns_of_pi(m, x)
    result = _sine_of_quarters(m, r, low, k)
    # For integers, the result is 0 with the argument's sign.
    result = m.select(m.equal(result, 0.0), 0.0, result)
    return _nan_if_not_finite(m, m.flip_sign(result, m.sign_of(x)), x)


def cospi(m: Arithmetic, x: Value) -> Value:
    """Return the cosine of x half turns."""
    r, low, k = _quarter_turns_of_pi(m, x)
    result = _sine_of_quarters(m, r, low, k + 1)
    return _nan_if_not_finite(m, m.select(m.equal(result, 0.0), 0.0, result), x)


def _arctangent(m: Arithmetic, small: Value, large: Value) -> Value:
    """Return the arctangent of small / large, both at least 0, and small not above large."""
    # Above tan(pi/8), it is pi/4 - arctan((large - small) / (large + small)).
    near = small <= 0.4142135 * large
    top = m.select(near, small, small - large)
    bottom = m.select(near, large, small + large)
    quotient = top / bottom
    square = quotient * quotient
    result = quotient + quotient * square * m.polynomial(square, "atan")
    high, low = m.split("quarter-pi")
    return m.select(near, result, high + (result + low))


def atan(m: Arithmetic, x: Value) -> Value:
    """Return the angle in radians, from -pi/2 to pi/2, whose tangent is x."""
    size = m.absolute(x)
    beyond = size > 1.0
    one = m.constant(1.0, x)
    most = 2.0 ** (m.mantissa + 3)
    huge = size > most
    # 1 / size may become 0, but (size - 1) / (size + 1) must not be infinity divided by infinity.
    kept = m.select(huge, most, size)
    result = _arctangent(m, m.select(beyond, one, size), m.select(beyond, kept, one))
    high, low = m.split("half-pi")
    result = m.select(beyond, high - (result - low), result)
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))


def atan2(m: Arithmetic, y: Value, x: Value) -> Value:
    """Return the angle in radians, from -pi to pi, of the point (x, y)."""
    height, width = m.absolute(y), m.absolute(x)
    # Halve large numbers, so that their sum is finite; multiply others, so that they are not subnormal.
    large = m.select(height > width, height, width)
    factor = m.select(large > m.pick(2.0**100, 2.0**960), 0.5, 2.0 ** (m.mantissa + 1))
    height, width = height * factor, width * factor
    steep = height > width
    small, large = m.select(steep, width, height), m.select(steep, height, width)
    infinity = float("inf")
    both = m.equal(small, infinity)
    small = m.select(both, 1.0, m.select(m.equal(large, infinity), 0.0, small))
    large = m.select(both, 1.0, m.select(m.equal(large, infinity), 1.0, large))
    large = m.select(m.equal(large, 0.0), 1.0, large)
    result = _arctangent(m, small, large)
    high, low = m.split("half-pi")
    result = m.select(steep, high - (result - low), result)
    left = m.sign_of(x) < 0
    high, low = m.split("pi")
    result = m.select(left, high - (result - low), result)
    return m.with_sign(m.any_nan(result, x, y), m.sign_of(y))


def _arcsine(m: Arithmetic, x: Value, square: Value) -> Value:
    """Return arcsin(x) - x, for x at most 1/2 and its square."""
    return x * square * m.polynomial(square, "asin")


def asin(m: Arithmetic, x: Value) -> Value:
    """Return the angle in radians, from -pi/2 to pi/2, whose sine is x."""
    size = m.absolute(x)
    high, low = m.split("half-pi")

    def near() -> Value:
        return size + _arcsine(m, size, size * size)

    def far() -> Value:
        square = 0.5 * (1.0 - size)
        side = m.root(square)
        return high - (2.0 * (side + _arcsine(m, side, square)) - low)

    result = m.choose(size < 0.5, near, far)
    result = m.select(size > 1.0, float("nan"), result)
    return m.with_sign(m.any_nan(result, x), m.sign_of(x))


def acos(m: Arithmetic, x: Value) -> Value:
    """Return the angle in radians, from 0 to pi, whose cosine is x."""
    size = m.absolute(x)

    def near() -> Value:
        high, low = m.split("half-pi")
        return high - (x - (low - _arcsine(m, x, x * x)))

    def far() -> Value:
        square = 0.5 * (1.0 - size)
        side = m.root(square)
        result = 2.0 * (side + _arcsine(m, side, square))
        high, low = m.split("pi")
        return m.select(m.sign_of(x) < 0, high - (result - low), result)

    result = m.choose(size < 0.5, near, far)
    return m.select(size > 1.0, float("nan"), m.any_nan(result, x))
