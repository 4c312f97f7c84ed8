"""Remainders of divisions, neighbours of a number, and powers of two as factors; all exact or rounded once."""

from __future__ import annotations

from .arithmetic import Arithmetic
from .value import Value


def _whole_parts(m: Arithmetic, size: Value) -> tuple[Value, Value]:
    """Return (mantissa, exponent) of a number that is not negative: it is mantissa * 2^exponent, exponent at least 0.

    The unit is the smallest number, so that subnormal numbers have the exponent 0.
    """
    bits = m.bits(size)
    field = m.shift_right(bits, m.mantissa)
    normal = field > 0
    mantissa = bits & ((1 << m.mantissa) - 1)
    return m.select(normal, mantissa | (1 << m.mantissa), mantissa), m.select(normal, field - 1, 0)


def _reduced(m: Arithmetic, x: Value, y: Value) -> tuple[Value, Value]:
    """Return the remainder of two absolute values, both finite and y above 0, and the lowest bit of the quotient.

    This is long division, as many bits of the quotient at a time as fit, until no exponent of the type is left.
    """
    step, count = (32, 8) if m.width == 32 else (10, 205)

    x_mantissa, x_exponent = _whole_parts(m, x)
    y_mantissa, y_exponent = _whole_parts(m, y)
    left = x_exponent - y_exponent
    smaller = left < 0
    divisor, start = (m.wide(mantissa) if m.width == 32 else mantissa for mantissa in (y_mantissa, x_mantissa))
    quotient = m.divide(start, divisor)
    rest = start - quotient * divisor

    def turn(rest: Value, odd: Value, left: Value) -> tuple[Value, ...]:
        by = m.select(left > step, step, m.select(left < 0, 0, left))
        moved = rest << (m.wide(by) if m.width == 32 else by)
        quotient = m.divide(moved, divisor)
        # If no exponent is left, the quotient's bit stays.
        odd = m.select(left > 0, quotient & 1, odd)
        return moved - quotient * divisor, odd, left - by

    rest, odd, _ = m.repeat(count, [rest, quotient & 1, left], turn)
    # The remainder is below y and a multiple of its last place, so the type represents it.
    result = m.scale(m.to_float(rest), y_exponent - (m.bias + m.mantissa - 1))
    return m.select(smaller, x, result), m.select(smaller, 0, m.narrow(odd) if m.width == 32 else odd)


def fmod(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x minus a multiple of y, with the sign of x and an absolute value below that of y."""
    size, divisor = m.absolute(x), m.absolute(y)
    usual = _has_remainder(m, size, divisor)
    result, _ = _reduced(m, m.select(usual, size, 1.0), m.select(usual, divisor, 1.0))
    return _edges(m, m.with_sign(result, m.sign_of(x)), x, y)


def remainder(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x minus the nearest multiple of y; in a tie, the even one."""
    size, divisor = m.absolute(x), m.absolute(y)
    usual = _has_remainder(m, size, divisor)
    divisor = m.select(usual, divisor, 1.0)
    rest, odd = _reduced(m, m.select(usual, size, 1.0), divisor)
    # Whether more than half of the divisor is left. Twice the rest may be infinite; this difference is exact.
    over = divisor - rest
    more = m.select(m.equal(odd, 1), rest >= over, rest > over)
    result = m.select(more, m.negative(over), rest)
    return _edges(m, m.flip_sign(result, m.sign_of(x)), x, y)


def _has_remainder(m: Arithmetic, size: Value, divisor: Value) -> Value:
    """Return whether both numbers are finite and the divisor is not 0."""
    infinity = float("inf")
    return m.select(size < infinity, m.select(divisor > 0.0, divisor, infinity), infinity) < infinity


def _edges(m: Arithmetic, result: Value, x: Value, y: Value) -> Value:
    """Return the results of special cases: NaN, or x if y is infinite."""
    infinity = float("inf")
    result = m.select(m.equal(m.absolute(y), infinity), x, result)
    result = m.select(m.equal(m.absolute(x), infinity), float("nan"), result)
    result = m.select(m.equal(y, 0.0), float("nan"), result)
    return m.any_nan(result, x, y)


def nextafter(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return the neighbour of x in the direction of y."""
    bits = m.bits(x)
    up = m.select(m.sign_of(x) < 0, m.word(-1, x, m.width), 1)
    step = m.select(x < y, up, 0 - up)
    smallest = m.number(m.select(x < y, m.word(1, x, m.width), m.sign + 1))
    result = m.select(m.equal(x, 0.0), smallest, m.number(bits + step))
    return m.any_nan(m.select(m.equal(x, y), y, result), x, y)


def ldexp(m: Arithmetic, x: Value, power: Value) -> Value:
    """Return x * 2^power, rounded once."""
    limit = int(m.pick(300, 2200))
    power = m.select(power > limit, limit, m.select(power < -limit, -limit, power))
    if m.width == 64:
        power = m.wide(power)
    # Make a subnormal number normal first; then add the exponent, so that only the last factor may round.
    subnormal = m.absolute(x) < 2.0 ** (1 - m.bias)
    normal = m.select(subnormal, x * 2.0 ** (m.mantissa + 1), x)
    power = m.select(subnormal, power - (m.mantissa + 1), power)
    bits = m.bits(normal)
    field = m.shift_right(bits, m.mantissa) & (2 * m.bias + 1)
    sum = field + power
    unscaled = bits & ~((2 * m.bias + 1) << m.mantissa)
    within = m.number(unscaled | (sum << m.mantissa))
    # Below the normal numbers: raise the exponent by 64 and multiply by 2^-64, which rounds; far below, return 0.
    raised = m.select(sum < -62, 1, sum + 64)
    small = m.number(unscaled | (raised << m.mantissa)) * 2.0**-64
    small = m.select(sum < -62, m.with_sign(m.constant(0.0, x), m.sign_of(x)), small)
    large = m.with_sign(m.constant(float("inf"), x), m.sign_of(x))
    result = m.select(sum < 1, small, m.select(sum > 2 * m.bias, large, within))
    still = m.select(m.absolute(x) > 0.0, m.absolute(x), float("inf")) < float("inf")
    return m.select(still, result, x)


def logb(m: Arithmetic, x: Value) -> Value:
    """Return the exponent, as a float."""
    size = m.absolute(x)
    subnormal = size < 2.0 ** (1 - m.bias)
    bits = m.bits(m.select(subnormal, size * 2.0 ** (m.mantissa + 1), size))
    exponent = m.shift_right(bits, m.mantissa) - m.bias
    result = m.to_float(m.select(subnormal, exponent - (m.mantissa + 1), exponent))
    result = m.select(m.equal(x, 0.0), -float("inf"), result)
    return m.any_nan(m.select(m.equal(size, float("inf")), size, result), x)


def fdim(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x - y, or 0 if that is negative."""
    return m.any_nan(m.select(x > y, x - y, 0.0), x, y)


def pown(m: Arithmetic, x: Value, power: Value) -> Value:
    """Return x to an integer power."""
    # f32 may round the power to an even number, so the sign comes from the integer's lowest bit.
    sign = m.sign_of(x)
    size = m.call("pow", m.absolute(x), m.to_float(power))
    return m.flip_sign(size, m.select(m.equal(power & 1, 1), sign, 0))
