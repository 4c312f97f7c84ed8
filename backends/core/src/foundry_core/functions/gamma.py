"""The gamma function and its logarithm, by Stirling's series.

For arguments below 4, the series is evaluated at the argument plus 4, and the result is divided by the factors between.
For negative numbers, Euler's reflection is used.
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .exponential import exp2_of_sum
from .logarithm import log
from .power import Pair, fast_sum, log2_pair, product
from .trigonometric import sinpi
from .value import Value


def _stirling(m: Arithmetic, size: Value) -> tuple[Pair, Value, Value]:
    """Return (e, p, d) for a number above 0: its gamma is 2^(the sum of e) p / d."""
    low = size < 4.0
    x = m.select(low, size + 4.0, size)
    # The rounding error of the sum.
    lost = m.select(low, size - (x - 4.0), 0.0)
    factors = size * (size + 1.0) * ((size + 2.0) * (size + 3.0))
    log_high, log_low = log2_pair(m, x)
    # (x - 1/2) log2 x - x log2 e
    half = x - 0.5
    high, rest = product(m, half, log_high)
    scale, scale_low = m.split("log2e")
    other, other_rest = product(m, x, m.constant(scale, x))
    total, total_low = fast_sum(high, m.negative(other))
    # Near 4, the second term is as large as the first.
    total_low = m.select(high > other, total_low, (high - (total + other)))
    inverse = 1.0 / x
    # The derivative of the logarithm, to account for the rounding error.
    slope = log_high - 0.7213475204444817 * inverse
    total_low = total_low + (rest + half * log_low - (other_rest + x * scale_low) + lost * slope)
    exponent = fast_sum(total, total_low)
    return exponent, m.polynomial(inverse, "stirling"), m.select(low, factors, 1.0)


def tgamma(m: Arithmetic, x: Value) -> Value:
    """Return the gamma function."""
    size = m.absolute(x)
    # Beyond, gamma is infinite on the right, and 0 on the left.
    most = m.pick(50.0, 200.0)
    kept = m.select(size < most, size, most)
    tiny = size < m.pick(2.0**-30, 2.0**-60)
    (high, low), scale, factors = _stirling(m, m.select(tiny, 1.0, kept))
    positive = exp2_of_sum(m, high, low) * scale / factors
    # gamma(-x) = -pi / (x sin(pi x) gamma(x)), computed with the inverse of gamma's power of two: gamma may be infinite
    # although this result is not.
    sine = m.negative(sinpi(m, size))
    # If that power is too small, a part of it is applied last.
    limit, part = m.pick(100.0, 900.0), m.pick(24.0, 200.0)
    small = high > limit
    power = exp2_of_sum(m, m.select(small, part - high, m.negative(high)), m.negative(low))
    pi, _ = m.split("pi")
    reflected = pi / (kept * sine) * factors / scale * power * m.select(small, 2.0**-part, m.constant(1.0, x))
    left = m.sign_of(x) < 0
    result = m.select(left, reflected, positive)
    result = m.select(m.equal(size, float("inf")), m.select(left, float("nan"), size), result)
    # Negative integers have no result.
    pole = m.select(left, m.absolute(sine), 1.0)
    result = m.select(m.equal(pole, 0.0), float("nan"), result)
    result = m.select(tiny, 1.0 / x, result)
    return m.any_nan(result, x)


def lgamma(m: Arithmetic, x: Value) -> Value:
    """Return the logarithm of the absolute value of the gamma function."""
    size = m.absolute(x)
    infinity = float("inf")
    large = size > m.pick(2.0**26, 2.0**58)
    tiny = size < m.pick(2.0**-40, 2.0**-60)
    kept = m.select(large, 1.0, m.select(tiny, 1.0, size))
    (high, low), scale, factors = _stirling(m, kept)
    less, less_low = log2_pair(m, factors / scale)
    total = high - less
    back = total - high
    total_low = (high - (total - back)) - (less + back) + (low - less_low)
    two, two_low = m.split("ln2")
    result, rest = product(m, total, m.constant(two, x))
    result = result + (rest + total * two_low + total_low * two)
    logarithm = log(m, m.select(tiny, 1.0, size))
    result = m.select(large, size * (logarithm - 1.0), result)
    # log(pi / (x sin(pi x))) minus the logarithm of gamma.
    sine = m.absolute(sinpi(m, kept))
    pi, _ = m.split("pi")
    reflected = log(m, pi / (kept * sine)) - result
    result = m.select(m.sign_of(x) < 0, m.select(large, infinity, reflected), result)
    result = m.select(tiny, m.negative(log(m, size)), result)
    result = m.select(m.equal(size, infinity), size, result)
    return m.any_nan(result, x)
