"""Arithmetic, and conversions of integers, rounded towards zero (rz), downwards (rd) and upwards (ru).

A result is an exact integer times a power of two, or such an integer with a lowest bit that is set if the exact result
has more bits. `_round_to_float` rounds it once. Sums use the error of rounding to nearest, which is itself a number
(Dekker, 1971).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .arithmetic import Arithmetic, Function
from .remainders import nextafter
from .rounding import root_and_rest
from .value import Value

MODES = ("rz", "rd", "ru")
Pair = tuple[Value, Value]


def _away_from_zero(m: Arithmetic, mode: str, negative: Value, like: Value) -> Value:
    """Return 1 if rounding goes away from zero, else 0, in an i64."""
    if mode == "rz":
        return m.word(0, like, 64)
    yes, no = m.word(1, like, 64), m.word(0, like, 64)
    return m.select(negative, yes, no) if mode == "rd" else m.select(negative, no, yes)


def _round_to_float(m: Arithmetic, mode: str, negative: Value, magnitude: Value, exponent: Value) -> Value:
    """Round magnitude * 2^exponent to a float; magnitude is an i64 from 1 to 2^63 - 1.

    Args:
        mode: one of MODES, or rn for to nearest, ties to even.
        exponent: an i64.
    """
    for by in (32, 16, 8, 4, 2, 1):
        small = magnitude < 1 << (63 - by)
        magnitude = m.select(small, magnitude << by, magnitude)
        exponent = m.select(small, exponent - by, exponent)
    # Now 2^62 is the highest set bit. Results below the normal numbers lose more bits.
    exponent = exponent + 62
    lowest = 1 - m.bias
    below = m.select(exponent < lowest, lowest - exponent, 0)
    dropped = below + (62 - m.mantissa)
    far = dropped > 63
    dropped = m.select(far, 63, dropped)
    kept = m.shift_right(magnitude, dropped)
    rest, one = magnitude - (kept << dropped), m.word(1, magnitude, 64)
    if mode == "rn":
        outwards, half = one, one << (dropped - 1)
        up = m.select(rest > half, one, m.select(m.equal(rest, half), kept & 1, 0))
        kept = kept + m.select(far, 0, up)
    else:
        outwards = _away_from_zero(m, mode, negative, magnitude)
        kept = kept + (m.select(m.equal(rest, 0), 0, one) & outwards)
    field = m.select(exponent < lowest, lowest, exponent) + (m.bias - 1)
    limit = m.infinity_bits - 1
    # The highest bit of `kept` adds 1 to the exponent field. A field of infinities, or more, may not fit in the bits.
    most = 2 * m.bias - 1
    over = field > most
    bits = (m.select(over, most, field) << m.mantissa) + kept
    bits = m.select(over, limit + 1, bits)
    bits = m.select(bits > limit, outwards + limit, bits)
    if m.width == 32:
        bits = m.narrow(bits)
    return m.flip_sign(m.number(bits), m.select(negative, m.word(m.sign, bits, m.width), 0))


def _wide(m: Arithmetic, x: Value) -> Value:
    """Return the bits of a float in an i64."""
    return m.wide(x) if m.width == 32 else x


def _mantissa(m: Arithmetic, x: Value) -> Pair:
    """Return (mantissa, exponent), both i64, of the absolute value of a finite nonzero number; normalized."""
    size = m.absolute(x)
    subnormal = size < 2.0 ** (1 - m.bias)
    bits = _wide(m, m.bits(m.select(subnormal, size * 2.0 ** (m.mantissa + 1), size)))
    exponent = (bits >> m.mantissa) - (m.bias + m.mantissa)
    one = 1 << m.mantissa
    return (bits & (one - 1)) | one, m.select(subnormal, exponent - (m.mantissa + 1), exponent)


def _is_finite_nonzero(m: Arithmetic, x: Value) -> Value:
    """Return whether a number is finite and not 0."""
    size = m.absolute(x)
    return m.select(size > 0.0, size, float("inf")) < float("inf")


def _sticky(m: Arithmetic, rest: Value) -> Value:
    """Return 1 if the rest is not 0, else 0."""
    return m.select(m.equal(rest, 0), 0, m.word(1, rest, 64))


def add_directed(mode: str, m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x + y."""
    result = x + y
    swap = m.absolute(x) < m.absolute(y)
    large, small = m.select(swap, y, x), m.select(swap, x, y)
    # The exact rounding error: in this order, no sum overflows before the first does.
    rest = small - (result - large)
    infinity = float("inf")
    finite = m.select(m.absolute(large) < infinity, 0.0, infinity)
    # If finite numbers have an infinite sum, the result is the largest number or, rounded outwards, infinity.
    overflow = m.select(m.equal(m.absolute(result), infinity), finite, 1.0) < 1.0
    rest = m.select(overflow, m.negative(result), rest)
    inwards = m.flip_sign(rest, m.sign_of(result)) < 0.0
    down = nextafter(m, result, m.constant(-infinity, x))
    up = nextafter(m, result, m.constant(infinity, x))
    if mode == "rz":
        return m.select(inwards, m.select(result > 0.0, down, up), result)
    if mode == "ru":
        return m.select(rest > 0.0, up, result)
    result = m.select(rest < 0.0, down, result)
    # A sum of 0 is -0, unless both operands are +0.
    both = m.equal(m.bits(x) | m.bits(y), 0)
    zero = m.select(m.equal(result, 0.0), m.select(both, 1.0, 0.0 * m.absolute(result)), 1.0)
    return m.select(zero < 1.0, -0.0, result)


def subtract(mode: str, m: Arithmetic, x: Value, y: Value) -> Value:
    return add_directed(mode, m, x, m.negative(y))


def multiply_directed(mode: str, m: Arithmetic, x: Value, y: Value) -> Value:
    plain = m.select(_is_finite_nonzero(m, x), m.select(_is_finite_nonzero(m, y), 1.0, m.constant(0.0, x)), 0.0) > 0.0
    (a, e), (b, f) = (_mantissa(m, m.select(plain, z, 1.0)) for z in (x, y))
    if m.width == 32:
        magnitude, exponent = a * b, e + f
    else:
        a, b = a << 10, b << 10
        upper = m.upper_product(a, b)
        # The upper 62 of 126 bits, and whether any other bit is set.
        magnitude = (upper << 1) | _sticky(m, a * b)
        exponent = e + f + (64 - 20 - 1)
    negative = (m.bits(x) ^ m.bits(y)) < 0
    return m.select(plain, _round_to_float(m, mode, negative, magnitude, exponent), x * y)


def divide(mode: str, m: Arithmetic, x: Value, y: Value) -> Value:
    plain = m.select(_is_finite_nonzero(m, x), m.select(_is_finite_nonzero(m, y), 1.0, m.constant(0.0, x)), 0.0) > 0.0
    (a, e), (b, f) = (_mantissa(m, m.select(plain, z, 1.0)) for z in (x, y))
    quotient = m.divide(a, b)
    rest = a - quotient * b
    # The largest number of bits per step for which a shifted remainder has room.
    step, count = (38, 1) if m.width == 32 else (10, 6)
    for _ in range(count):
        rest = rest << step
        digit = m.divide(rest, b)
        quotient, rest = (quotient << step) | digit, rest - digit * b
    magnitude = (quotient << 1) | _sticky(m, rest)
    negative = (m.bits(x) ^ m.bits(y)) < 0
    return m.select(plain, _round_to_float(m, mode, negative, magnitude, e - f - (step * count + 1)), x / y)


def reciprocal(mode: str, m: Arithmetic, x: Value) -> Value:
    return divide(mode, m, m.constant(1.0, x), x)


def root(mode: str, m: Arithmetic, x: Value) -> Value:
    plain = m.select(_is_finite_nonzero(m, x), x, -1.0) > 0.0
    result, rest, exponent = root_and_rest(m, m.select(plain, x, 1.0))
    magnitude = (_wide(m, result) << 1) | _sticky(m, _wide(m, rest))
    scale = _wide(m, exponent) - (m.mantissa + 2)
    packed = _round_to_float(m, mode, m.constant(0.0, x) > x, magnitude, scale)
    # The roots of 0, infinity and NaN are the numbers themselves.
    return m.select(plain, packed, m.select(x < 0.0, float("nan"), x))


def inverse_root(m: Arithmetic, x: Value) -> Value:
    """Return 1 / sqrt(x) for f32, correctly rounded to nearest."""
    near = 1.0 / m.root(x)
    plain = m.select(_is_finite_nonzero(m, x), x, -1.0) > 0.0
    mantissa, exponent = _mantissa(m, m.select(plain, x, 1.0))
    odd = exponent & 1
    mantissa, half = mantissa << odd, (exponent - odd) >> 1
    # t is 2^36 or 2^37 / sqrt(mantissa), rounded down to 25 bits: the largest number with t^2 mantissa below 2^72 or
    # 2^74. `near` is at most 3 away. Only of a power of two is the root exact, and then t is 1 less than the root.
    scale = half + odd + 36
    t = m.to_wide(m.scale(m.select(plain, near, 1.0), m.narrow(m.select(plain, scale, 24)))) - 4
    limit = m.word(1, x, 64) << (odd + odd + 60)
    for _ in range(8):
        more = t + 1
        square = m.upper_product((more * more) << 13, mantissa << 39)
        t = m.select(square < limit, more, t)
    result = m.scale(m.to_float((t + 1) >> 1), m.narrow(1 - m.select(plain, scale, 24)))
    return m.select(plain, result, near)


def _shift_right_128(m: Arithmetic, number: Pair, by: Value) -> Pair:
    """Shift an unsigned 128-bit number right, by 0 to 127; the lowest bit is set if a set bit is lost."""
    high, low = number
    far, by = by > 63, by & 63
    carried = (high << 1) << (63 - by)
    lost = m.select(far, low | carried, (low << 1) << (63 - by))
    high, near = m.shift_right(high, by), m.shift_right(low, by) | carried
    return m.select(far, 0, high), m.select(far, high, near) | _sticky(m, lost)


def _fused_wide(mode: str, m: Arithmetic, x: Value, y: Value, z: Value) -> Value:
    """Return x * y + z for finite f64, x and y not 0, with one rounding: integers of 128 bits, as (upper, lower)."""
    (a, e), (b, f) = _mantissa(m, x), _mantissa(m, y)
    alone = m.equal(z, 0.0)
    c, g = _mantissa(m, m.select(alone, 1.0, z))
    # The product is from 2^124 to 2^126, the other number from 2^124 to 2^125, so their sum fits.
    a, b = a << 10, b << 10
    product, e = (m.upper_product(a, b), a * b), e + f - 20
    zero = m.word(0, x, 64)
    other, g = (m.select(alone, zero, c << 8), zero), m.select(alone, e, g - 72)
    difference = e - g
    product_less = difference < 0
    distance = m.select(product_less, 0 - difference, difference)
    distance = m.select(distance > 127, 127, distance)
    high, low = (m.select(product_less, p, o) for p, o in zip(product, other, strict=True))
    less = _shift_right_128(m, (high, low), distance)
    product = m.select(product_less, less[0], product[0]), m.select(product_less, less[1], product[1])
    other = m.select(product_less, other[0], less[0]), m.select(product_less, other[1], less[1])
    exponent = m.select(product_less, g, e)
    sign = m.bits(x) ^ m.bits(y)
    unlike = (sign ^ m.bits(z)) < 0
    one = m.word(1, x, 64)
    sum, rest = product[1] + other[1], product[1] - other[1]
    carry = m.select(m.less_unsigned(sum, other[1]), one, zero)
    borrow = m.select(m.less_unsigned(product[1], other[1]), one, zero)
    high = m.select(unlike, product[0] - other[0] - borrow, product[0] + other[0] + carry)
    low = m.select(unlike, rest, sum)
    turned = high < 0
    high = m.select(turned, 0 - high - m.select(m.equal(low, 0), zero, one), high)
    low = m.select(turned, 0 - low, low)
    nothing = m.equal(high | low, 0)
    empty = m.equal(high, 0)
    high, low = m.select(empty, m.shift_right(low, 1), high), m.select(empty, low << 63, low)
    exponent = m.select(empty, exponent - 63, exponent) + 64
    for by in (32, 16, 8, 4, 2, 1):
        small = high < 1 << (63 - by)
        high = m.select(small, (high << by) | m.shift_right(low, 64 - by), high)
        low = m.select(small, low << by, low)
        exponent = m.select(small, exponent - by, exponent)
    magnitude = m.select(nothing, one, high | _sticky(m, low))
    negative = m.select(turned, sign ^ m.sign, sign) < 0
    result = _round_to_float(m, mode, negative, magnitude, exponent)
    return m.select(nothing, -0.0 if mode == "rd" else 0.0, result)


def fma_directed(mode: str, m: Arithmetic, x: Value, y: Value, z: Value) -> Value:
    """Return x * y + z, with one rounding."""
    nonzero = m.select(_is_finite_nonzero(m, x), m.select(_is_finite_nonzero(m, y), 1.0, m.constant(0.0, x)), 0.0) > 0.0
    plain = m.select(nonzero, m.absolute(z), float("inf")) < float("inf")
    # If the product is 0 or not finite, the result is the sum of two numbers.
    sum = x * y + z if mode == "rn" else add_directed(mode, m, x * y, z)
    if m.width == 64:
        return m.select(plain, _fused_wide(mode, m, *(m.select(plain, number, 1.0) for number in (x, y, z))), sum)
    (a, e), (b, f) = (_mantissa(m, m.select(plain, number, 1.0)) for number in (x, y))
    alone = m.equal(z, 0.0)
    c, g = _mantissa(m, m.select(plain, m.select(alone, 1.0, z), 1.0))
    # The product is from 2^60 to 2^62, the other number from 2^60 to 2^61, so their sum fits.
    product, e = (a * b) << 14, e + f - 14
    other, g = m.select(alone, 0, c << 37), m.select(alone, e, g - 37)
    difference = e - g
    product_less = difference < 0
    distance = m.select(product_less, 0 - difference, difference)
    distance = m.select(distance > 63, 63, distance)
    less = m.select(product_less, product, other)
    moved = m.shift_right(less, distance)
    moved = moved | _sticky(m, less - (moved << distance))
    product, other = m.select(product_less, moved, product), m.select(product_less, other, moved)
    exponent = m.select(product_less, g, e)
    sign = m.bits(x) ^ m.bits(y)
    unlike = (sign ^ m.bits(z)) < 0
    total = m.select(unlike, product - other, product + other)
    turned = total < 0
    nothing = m.equal(total, 0)
    magnitude = m.select(nothing, 1, m.select(turned, 0 - total, total))
    negative = m.select(turned, sign ^ m.sign, sign) < 0
    result = _round_to_float(m, mode, negative, magnitude, exponent)
    result = m.select(nothing, -0.0 if mode == "rd" else 0.0, result)
    return m.select(plain, result, sum)


def from_integer(source: str, mode: str, m: Arithmetic, x: Value) -> Value:
    """Return an integer of a type (int, uint, ll or ull) as a float."""
    signed = source in ("int", "ll")
    wide = m.wide(x, signed=signed) if source in ("int", "uint") else x
    negative = wide < 0 if signed else m.less_unsigned(wide, 0)
    size = m.select(negative, 0 - wide, wide)
    # 2^63 and more: the lowest bit only matters as one that is set or not.
    large = size < 0
    one, zero = m.word(1, wide, 64), m.word(0, wide, 64)
    magnitude = m.select(large, m.shift_right(size, 1) | (size & 1), size)
    nothing = m.equal(size, 0)
    result = _round_to_float(m, mode, negative, m.select(nothing, one, magnitude), m.select(large, one, zero))
    return m.select(nothing, 0.0, result)


_OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": add_directed,
    "sub": subtract,
    "mul": multiply_directed,
    "div": divide,
    "rcp": reciprocal,
    "sqrt": root,
    "fma": fma_directed,
}
DIRECTED: dict[str, Function] = {
    f"{name}_{mode}": partial(function, mode) for name, function in _OPERATIONS.items() for mode in MODES
} | {"rsqrt_rn": inverse_root, "fma": partial(fma_directed, "rn")}
# Of integers: the name of the source's type, and the mode.
FROM_INTEGERS: dict[str, Function] = {
    f"{source}_{mode}": partial(from_integer, source, mode) for source in ("int", "uint", "ll", "ull") for mode in MODES
}
