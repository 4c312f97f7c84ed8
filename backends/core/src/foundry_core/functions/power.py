"""Powers, roots and lengths.

Where a logarithm or a product needs more digits than a number has, it is the sum of two numbers. The sums and products
of such pairs are Dekker's ("A floating-point technique for extending the available precision", 1971) and Knuth's.
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .exponential import exp2_of_sum
from .logarithm import split_exponent
from .value import Value

Pair = tuple[Value, Value]


def product(m: Arithmetic, x: Value, y: Value) -> Pair:
    """Return x * y and its rounding error."""
    result = x * y
    x_high, y_high = m.upper(x), m.upper(y)
    x_low, y_low = x - x_high, y - y_high
    return result, ((x_high * y_high - result) + (x_high * y_low + x_low * y_high)) + x_low * y_low


def fast_sum(x: Value, y: Value) -> Pair:
    """Return x + y and its rounding error, for |x| >= |y|."""
    result = x + y
    return result, y - (result - x)


def log2_pair(m: Arithmetic, x: Value) -> Pair:
    """Return the logarithm to base 2 of a number above 0, with about 10 more digits than the number has."""
    f, exponent = split_exponent(m, x)
    # s = f / (2 + f) as a pair, using the remainder of the division.
    whole, lost = fast_sum(m.constant(2.0, x), f)
    s = f / whole
    back, back_low = product(m, s, whole)
    s_low = (((f - back) - back_low) - s * lost) / whole
    # log(1 + f) / 2 = s + s^3 / 3 + the rest of the series; times 2 / ln 2.
    square, square_low = product(m, s, s)
    square_low = square_low + 2.0 * s * s_low
    third_high, third_low = m.split("third")
    cube, cube_low = product(m, s, square)
    cube_low = cube_low + (s * square_low + s_low * square)
    term, term_low = product(m, cube, m.constant(third_high, x))
    term_low = term_low + (cube * third_low + cube_low * third_high) + cube * square * m.polynomial(square, "log-rest")
    sum, sum_low = fast_sum(s, term)
    sum_low = sum_low + (s_low + term_low)
    scale_high, scale_low = m.split("two-log2e")
    result, found_low = product(m, sum, m.constant(scale_high, x))
    found_low = found_low + (sum * scale_low + sum_low * scale_high)
    k = m.to_float(exponent)
    # If k is 0, the sum is exact in either order.
    total, total_low = fast_sum(k, result)
    nothing = m.equal(k, 0.0)
    total_low = m.select(nothing, found_low, total_low + found_low)
    return fast_sum(m.select(nothing, result, total), total_low)


def _power_of_positive(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x^y for x above 0, as 2^(y log2 x)."""
    high, low = log2_pair(m, x)
    # Beyond this limit, all results except 1 are 0 or infinite. With the limit, products stay finite.
    limit = m.pick(2.0**40, 2.0**80)
    y = m.select(y > limit, limit, m.select(y < -limit, -limit, y))
    power, rest = product(m, high, y)
    # The rounding error of a product far beyond the exponent range may be beyond it as well.
    return exp2_of_sum(m, power, m.select(m.absolute(power) < 2.0 * m.bias, rest + low * y, 0.0))


def pow(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x^y; special cases follow C (ISO C99, F.9.4.4)."""
    size, height = m.absolute(x), m.absolute(y)
    infinity = float("inf")
    # All numbers from 2^(mantissa + 1) on are even.
    bounded = m.select(height < 2.0 ** (m.mantissa + 1), height, 0.0)
    whole = m.call("trunc", bounded)
    half = bounded * 0.5
    odd = m.select(m.equal(whole, bounded), half, 0.0) > m.call("trunc", m.select(m.equal(whole, bounded), half, 0.0))
    ordinary = m.select(size > 0.0, size, infinity) < infinity
    result = _power_of_positive(m, m.select(ordinary, size, 1.0), m.select(m.is_nan(y), 0.0, y))
    rising = y > 0.0
    edge = m.select(m.equal(size, 0.0), m.select(rising, 0.0, infinity), m.select(rising, infinity, 0.0))
    result = m.select(ordinary, result, edge)
    negative = m.sign_of(x) < 0
    result = m.flip_sign(result, m.select(odd, m.sign_of(x), 0))
    # A power of a negative number with a non-integer exponent is NaN, except for 0, infinity and infinite exponents.
    broken = m.select(m.equal(whole, bounded), 0.0, 1.0) > 0.0
    broken = m.select(negative, m.select(ordinary, m.select(broken, 1.0, 0.0), 0.0), 0.0) > 0.0
    result = m.select(broken, float("nan"), result)
    result = m.any_nan(result, x, y)
    result = m.select(m.equal(x, 1.0), 1.0, result)
    result = m.select(m.equal(size, 1.0), m.select(m.equal(height, infinity), 1.0, result), result)
    return m.select(m.equal(y, 0.0), 1.0, result)


def cbrt(m: Arithmetic, x: Value) -> Value:
    """Return the cube root: a third of the exponent, then Newton's and Halley's methods."""
    size = m.absolute(x)
    # Scaled away from the ends of the range, so that cubes are normal numbers.
    small, large = size < 2.0**-100, size > 2.0**100
    scaled = size * m.select(small, 2.0**54, m.select(large, 2.0**-54, m.constant(1.0, x)))
    ordinary = m.select(scaled > 0.0, scaled, float("inf")) < float("inf")
    scaled = m.select(ordinary, scaled, 1.0)
    # Kahan's initial guess, with 5 bits ("Computing a real cube root", 1991).
    bits = m.bits(scaled)
    guess = m.number(m.divide(bits, m.word(3, bits, m.width)) + int(m.pick(709958130, 0x2A9F7893782DA1CE)))
    for _ in range(int(m.pick(1, 2))):
        cube = guess * guess * guess
        guess = guess * ((cube + 2.0 * scaled) / (2.0 * cube + scaled))
    # With half the digits, the square is exact; one step of Halley's method then gives all digits.
    guess = m.upper(guess)
    rest = scaled / (guess * guess)
    guess = guess + guess * ((rest - guess) / (2.0 * guess + rest))
    result = guess * m.select(small, 2.0**-18, m.select(large, 2.0**18, m.constant(1.0, x)))
    return m.with_sign(m.select(ordinary, result, m.any_nan(size, x)), m.sign_of(x))


def rcbrt(m: Arithmetic, x: Value) -> Value:
    return 1.0 / cbrt(m, x)


def _scaled_square(m: Arithmetic, args: tuple[Value, ...]) -> tuple[Value, Value]:
    """Return the sum of squares of args / 2^k, the largest of which is between 1 and 2, and k."""
    sizes = [m.absolute(x) for x in args]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = m.select(size > largest, size, largest)
    # Limit the exponent to those for which 2^-exponent is a normal number.
    exponent = (m.bits(largest) >> m.mantissa) - m.bias
    exponent = m.select(exponent < 2 - m.bias, 2 - m.bias, m.select(exponent > m.bias - 1, m.bias - 1, exponent))
    # Subnormal numbers are scaled by one more power, which is exact.
    tiny = largest < 2.0 ** (2 - m.bias)
    exponent = m.select(tiny, 2 - m.bias - m.mantissa, exponent)
    scale = m.power_of_two(m.select(tiny, m.bias - 2, 0 - exponent))
    more = m.select(tiny, 2.0**m.mantissa, 1.0)
    squares = [(size * scale * more) for size in sizes]
    sum = squares[0] * squares[0]
    for square in squares[1:]:
        sum = sum + square * square
    return sum, exponent


def length(m: Arithmetic, *args: Value) -> Value:
    """Return the length of a vector of 2 to 4 numbers, without overflow in between."""
    sum, exponent = _scaled_square(m, args)
    result = m.scale(m.root(sum), exponent)
    return _infinite(m, result, float("inf"), args)


def inverse_length(m: Arithmetic, *args: Value) -> Value:
    sum, exponent = _scaled_square(m, args)
    result = m.scale(1.0 / m.root(sum), 0 - exponent)
    return _infinite(m, result, 0.0, args)


def _infinite(m: Arithmetic, result: Value, value: float, args: tuple[Value, ...]) -> Value:
    """Return `value` if an argument is infinite, even if another is NaN; else NaN if one is NaN."""
    result = m.any_nan(result, *args)
    for x in args:
        result = m.select(m.equal(m.absolute(x), float("inf")), value, result)
    return result
