"""Bessel functions.

Up to 8, j and y are polynomials of the square; y also has a term with its logarithm. Above 8, they have Hankel's
asymptotic form, waves of slowly changing amplitudes (Abramowitz and Stegun, "Handbook of mathematical functions",
9.1.13 and 9.2.5). i grows as e^x / sqrt(x); the remaining factor is a polynomial of 1 / x (9.7.1).

Other orders follow by the recurrence between three neighbouring orders (9.1.27).
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .exponential import exp_of_sum
from .logarithm import log
from .trigonometric import sine_and_cosine
from .value import Value

_TWO_OVER_PI = 0.6366197723675814
_ROOT_OF_INVERSE_PI = 0.5641895835477563


def _centred(m: Arithmetic, x: Value) -> Value:
    """Return the argument of a polynomial on [0, 1]. A long one, of f64, is on [-1, 1], where less cancels."""
    return x if m.width == 32 else (x + x) - 1.0


def _waves(m: Arithmetic, size: Value, order: int) -> tuple[Value, Value]:
    """Return (j, y) of an order, for a number of 8 or more."""
    kept = m.select(size < float("inf"), size, 8.0)
    sine, cosine = sine_and_cosine(m, kept)
    part = 8.0 / kept
    square = _centred(m, part * part)
    even = m.polynomial(square, f"hankel-p{order}")
    odd = part * m.polynomial(square, f"hankel-q{order}")
    scale = _ROOT_OF_INVERSE_PI / m.root(kept)
    if order == 0:
        plus, minus = cosine + sine, sine - cosine
    else:
        plus, minus = sine - cosine, m.negative(sine + cosine)
    j, y = (even * plus - odd * minus) * scale, (even * minus + odd * plus) * scale
    infinite = m.equal(size, float("inf"))
    return m.select(infinite, 0.0, j), m.select(infinite, 0.0, y)


def _near(m: Arithmetic, size: Value, name: str) -> Value:
    """Return a polynomial of the square, on [0, 8]."""
    return m.polynomial(size * size * 0.03125 - 1.0, name)


def _at_most_8(m: Arithmetic, size: Value) -> Value:
    """Return a number, but at most 8."""
    return m.select(size < 8.0, size, 8.0)


def _j0_near(m: Arithmetic, size: Value) -> Value:
    """Return j0 on [0, 8]; near 0, where it is 1, from its difference from 1."""
    square = size * size
    return m.choose(size < 2.0, lambda: 1.0 + square * m.polynomial(square, "j0-small"), lambda: _near(m, size, "j0"))


def _j1_near(m: Arithmetic, size: Value) -> Value:
    """Return j1 on [0, 8]; near 0, where it is half the number, from its difference from that."""
    square = size * size
    small = m.polynomial(square, "j1-small")
    return size * m.choose(size < 2.0, lambda: 0.5 + square * small, lambda: _near(m, size, "j1"))


def j0(m: Arithmetic, x: Value) -> Value:
    """Return the Bessel function of the first kind of order 0."""
    size = m.absolute(x)
    result = m.choose(size < 8.0, lambda: _j0_near(m, _at_most_8(m, size)), lambda: _waves(m, size, 0)[0])
    return m.any_nan(result, x)


def j1(m: Arithmetic, x: Value) -> Value:
    """Return the Bessel function of the first kind of order 1."""
    size = m.absolute(x)
    result = m.choose(size < 8.0, lambda: _j1_near(m, _at_most_8(m, size)), lambda: _waves(m, size, 1)[0])
    return m.any_nan(m.flip_sign(result, m.sign_of(x)), x)


def _second_kind(m: Arithmetic, result: Value, x: Value) -> Value:
    """Return the results of functions of the second kind for 0, negative numbers and NaN."""
    result = m.select(m.equal(x, 0.0), -float("inf"), result)
    return m.select(x < 0.0, float("nan"), m.any_nan(result, x))


def y0(m: Arithmetic, x: Value) -> Value:
    """Return the Bessel function of the second kind of order 0."""

    def near() -> Value:
        size = _at_most_8(m, x)
        return _TWO_OVER_PI * log(m, size) * _j0_near(m, size) + _near(m, size, "y0")

    return _second_kind(m, m.choose(x < 8.0, near, lambda: _waves(m, m.absolute(x), 0)[1]), x)


def y1(m: Arithmetic, x: Value) -> Value:
    """Return the Bessel function of the second kind of order 1."""

    def near() -> Value:
        size = _at_most_8(m, x)
        wave = log(m, size) * _j1_near(m, size) * _TWO_OVER_PI + size * _near(m, size, "y1")
        return wave - _TWO_OVER_PI / size

    return _second_kind(m, m.choose(x < 8.0, near, lambda: _waves(m, m.absolute(x), 1)[1]), x)


def _growing(m: Arithmetic, size: Value, name: str) -> Value:
    """Return i of a number of 8 or more."""
    kept = m.select(size < 8.0, 8.0, m.select(size < float("inf"), size, 1000.0))
    # e^x may be infinite although its quotient by the root is not.
    power = exp_of_sum(m, kept, power=-8)
    return power * (m.polynomial(_centred(m, 8.0 / kept), name) / m.root(kept)) * 256.0


def cyl_bessel_i0(m: Arithmetic, x: Value) -> Value:
    """Return the modified Bessel function of the first kind of order 0."""
    size = m.absolute(x)
    square = _at_most_8(m, size) * _at_most_8(m, size) * 0.015625
    near = m.choose(size < 8.0, lambda: m.polynomial(square, "i0"), lambda: _growing(m, size, "i0-far"))
    return m.any_nan(near, x)


def cyl_bessel_i1(m: Arithmetic, x: Value) -> Value:
    """Return the modified Bessel function of the first kind of order 1."""
    size = m.absolute(x)
    square = _at_most_8(m, size) * _at_most_8(m, size) * 0.015625
    result = m.choose(size < 8.0, lambda: size * m.polynomial(square, "i1"), lambda: _growing(m, size, "i1-far"))
    return m.any_nan(m.flip_sign(result, m.sign_of(x)), x)


def _order_and_sign(m: Arithmetic, n: Value) -> tuple[Value, Value, Value]:
    """Return the absolute value of an order, whether it is odd, and whether it is negative."""
    n = m.select(n < -0x7FFFFFFF, -0x7FFFFFFF, n)
    return m.select(n < 0, 0 - n, n), m.equal(n & 1, 1), n < 0


def _upwards(m: Arithmetic, count: Value, x: Value, first: Value, second: Value) -> Value:
    """Return the function of order count + 1 from those of order 0 and 1, by the recurrence between three orders."""

    def step(before: Value, now: Value, order: Value) -> tuple[Value, ...]:
        further = order * (2.0 / x) * now - before
        # Once infinite, y stays so: the difference of two infinities would be NaN.
        return now, m.select(m.absolute(now) < float("inf"), further, now), order + 1.0

    _, result, _ = m.repeat(count, [first, second, m.constant(1.0, x)], step)
    return result


def _is_beyond(m: Arithmetic, size: Value, x: Value) -> Value:
    """Return whether an order is so large that j is below the smallest number, and y above the largest."""
    return m.to_float(size) > x + x + 2000.0


def _downwards(m: Arithmetic, size: Value, x: Value) -> Value:
    """Return j of an order from 2 on that is not below x, by Miller's algorithm.

    The recurrence is stable downwards. It starts where j is negligible, with any number, and the sum
    j0 + 2 j2 + 2 j4 + ... = 1 gives the scale (Abramowitz and Stegun, 9.12).
    """
    kept = m.select(x < m.pick(2.0**-12, 2.0**-26), 1.0, x)
    order = m.to_float(size)
    start = m.narrow(m.to_wide(order + m.root(160.0 * order))) & ~1
    zero = m.constant(0.0, x)
    large, small = m.pick(2.0**30, 2.0**200), m.pick(2.0**-30, 2.0**-200)

    def step(after: Value, now: Value, sum: Value, result: Value, index: Value) -> tuple[Value, ...]:
        before = m.to_float(index) * (2.0 / kept) * now - after
        shrunk = m.select(m.absolute(before) > large, small, m.constant(1.0, x))
        after, now, sum, result = now * shrunk, before * shrunk, sum * shrunk, result * shrunk
        sum = m.select(m.equal(index & 1, 1), sum + now, sum)
        return after, now, sum, m.select(m.equal(index, size), after, result), index - 1

    _, first, sum, result, _ = m.repeat(start, [zero, m.constant(1.0, x), zero, zero, start], step)
    return result / (sum + sum - first)


def _first_term(m: Arithmetic, count: Value, x: Value) -> Value:
    """Return (x / 2)^count / count!, which is j of a small number."""

    def step(product: Value, order: Value) -> tuple[Value, ...]:
        return product * (0.5 * x / order), order + 1.0

    return m.repeat(count, [m.constant(1.0, x), m.constant(1.0, x)], step)[0]


def jn(m: Arithmetic, n: Value, x: Value) -> Value:
    """Return the Bessel function of the first kind of an integer order."""
    order, odd, negative = _order_and_sign(m, n)
    size = m.absolute(x)
    beyond, tiny = _is_beyond(m, order, size), size < m.pick(2.0**-12, 2.0**-26)
    # 1: upwards, 2: downwards, 3: the first term of the series is all. The ways that are not taken take no steps.
    one, two, three = (m.word(number, n) for number in (1, 2, 3))
    way = m.select(m.to_float(order) < size, one, two)
    way = m.select(tiny, three, m.select(order < 2, one, way))
    way = m.select(beyond, 0, way)
    first = m.select(m.equal(way, 1), size, 1.0)
    j0 = m.call("j0", size)
    up = _upwards(m, m.select(m.equal(way, 1), order - 1, 0), first, j0, m.call("j1", size))
    up = m.select(m.equal(order, 0), j0, up)
    down = _downwards(m, m.select(m.equal(way, 2), order, 0), m.select(m.equal(way, 2), size, 1.0))
    series = _first_term(m, m.select(m.equal(way, 3), order, 0), size)
    result = m.select(m.equal(way, 1), up, m.select(m.equal(way, 2), down, m.select(m.equal(way, 3), series, 0.0)))
    turned = m.sign_of(x) ^ m.select(negative, m.word(m.sign, x, m.width), 0)
    return m.any_nan(m.flip_sign(result, m.select(odd, turned, 0)), x)


def yn(m: Arithmetic, n: Value, x: Value) -> Value:
    """Return the Bessel function of the second kind of an integer order."""
    order, odd, negative = _order_and_sign(m, n)
    beyond = _is_beyond(m, order, x)
    usual = m.select(x > 0.0, x, 1.0)
    count = m.select(beyond, 0, m.select(x > 0.0, order - 1, 0))
    y0 = m.call("y0", usual)
    result = m.select(m.equal(order, 0), y0, _upwards(m, count, usual, y0, m.call("y1", usual)))
    result = m.select(beyond, -float("inf"), result)
    result = m.select(m.equal(x, 0.0), -float("inf"), result)
    turned = m.select(negative, m.word(m.sign, x, m.width), 0)
    result = m.flip_sign(result, m.select(odd, turned, 0))
    return m.select(x < 0.0, float("nan"), m.any_nan(result, x))
