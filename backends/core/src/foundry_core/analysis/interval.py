"""Intervals of integers for many programs at once: operations take and return one interval per program.

Bounds are float64, which represents integers exactly up to 2^53 and has infinity for "unknown". If one bound is beyond
2^50, both become infinite, because a number that wraps around reappears at the other end. So finite bounds are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

# One number for all programs, or one per program.
Bound: TypeAlias = "float | np.float64 | npt.NDArray[np.float64]"
Truth: TypeAlias = "bool | np.bool_ | npt.NDArray[np.bool_]"

_EXACT = 2.0**50
_INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Interval:
    """low <= value <= high."""

    low: Bound
    high: Bound

    @property
    def known(self) -> Truth:
        """The programs for which this is a single number."""
        return np.equal(self.low, self.high)


def exactly(number: Bound) -> Interval:
    """Return the interval of a single number."""
    return Interval(number, number)


def full_interval(width: int) -> Interval:
    """Return the interval of all integers of `width` bits; i1 is 0 or 1."""
    if width == 1:
        return Interval(0.0, 1.0)
    if width > 50:
        return Interval(-_INFINITY, _INFINITY)
    return Interval(-(2.0 ** (width - 1)), 2.0 ** (width - 1) - 1)


def fit(a: Interval, width: int) -> Interval:
    """Return a result as stored in `width` bits: any number if it may have wrapped around."""
    full = full_interval(width)
    low, high = (full.low, full.high) if width <= 50 else (-_EXACT, _EXACT)
    fits = np.less_equal(low, a.low) & np.less_equal(a.low, a.high) & np.less_equal(a.high, high)
    return a if np.all(fits) else _choose(fits, a, full)


def join(a: Interval, b: Interval) -> Interval:
    """Return the smallest interval that contains both."""
    return Interval(np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def choose(condition: Interval, a: Interval, b: Interval) -> Interval:
    """Return a where the condition is certainly 1, b where it is certainly 0, else either."""
    return _choose(np.greater(condition.low, 0), a, _choose(np.less(condition.high, 1), b, join(a, b)))


def _choose(where: Truth, a: Interval, b: Interval) -> Interval:
    return Interval(np.where(where, a.low, b.low), np.where(where, a.high, b.high))


def _hull(*corners: Bound) -> Interval:
    low = high = corners[0]
    for corner in corners[1:]:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    return Interval(low, high)


def add(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.high + b.high)


def sub(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def _product(a: Bound, b: Bound) -> Bound:
    with np.errstate(invalid="ignore"):
        product = np.multiply(a, b)
    return np.where(np.isnan(product), 0.0, product)  # 0 times any number


def mul(a: Interval, b: Interval) -> Interval:
    return _hull(*(_product(one, other) for one in (a.low, a.high) for other in (b.low, b.high)))


def div(a: Interval, b: Interval) -> Interval:
    """Divide, rounded towards zero. A divisor of 0 is ignored: such a division has no result."""
    result = Interval(_INFINITY, -_INFINITY)
    for low, high in ((np.maximum(b.low, 1), b.high), (b.low, np.minimum(b.high, -1))):
        exists = np.less_equal(low, high)
        if not np.any(exists):
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            quotients = _hull(*(np.trunc(np.divide(x, y)) for x in (a.low, a.high) for y in (low, high)))
        # Infinities have no quotient: an unlimited dividend gives an unlimited result.
        quotients = _choose(np.isinf(a.low) | np.isinf(a.high), Interval(-_INFINITY, _INFINITY), quotients)
        result = _choose(exists, join(result, quotients), result)
    return result


def rem(a: Interval, b: Interval) -> Interval:
    """Return the remainder with the sign of a, as in C."""
    most = np.maximum(np.abs(b.low), np.abs(b.high)) - 1
    loose = Interval(
        np.where(np.less(a.low, 0), np.maximum(a.low, -most), 0.0),
        np.where(np.greater(a.high, 0), np.minimum(a.high, most), 0.0),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        first, last = np.trunc(np.divide(a.low, b.low)), np.trunc(np.divide(a.high, b.low))
        # The result is exact if all of a is between two neighbouring multiples of one divisor.
        tight = b.known & np.greater(b.low, 0) & np.equal(first, last)
        tight &= np.isfinite(first) & (np.greater_equal(a.low, 0) | np.less_equal(a.high, 0))
        moved = _product(first, b.low)
        exact = Interval(a.low - moved, a.high - moved)
    # It is also exact if a is below every divisor.
    small = np.greater_equal(a.low, 0) & np.less(a.high, b.low)
    return _choose(small, a, _choose(tight, exact, loose))


def minimum(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))


def maximum(a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))


def shift_left(a: Interval, b: Interval) -> Interval:
    factor = Interval(np.exp2(np.clip(b.low, 0, 1023)), np.exp2(np.clip(b.high, 0, 1023)))
    return mul(a, factor)


def shift_right(a: Interval, b: Interval) -> Interval:
    """Shift a signed number right, rounded down."""
    factors = (np.exp2(-np.clip(b.low, 0, 1023)), np.exp2(-np.clip(b.high, 0, 1023)))
    shifted = _hull(*(np.floor(_product(x, factor)) for x in (a.low, a.high) for factor in factors))
    return _choose(np.isinf(a.low) | np.isinf(a.high), Interval(-_INFINITY, _INFINITY), shifted)


def bits(a: Interval, b: Interval, operation: str, width: int) -> Interval:
    """Return and, or, xor: exact for known numbers, else what the bits of non-negative numbers can give."""
    no_sign = np.greater_equal(a.low, 0) & np.greater_equal(b.low, 0)
    finite = np.isfinite(a.high) & np.isfinite(b.high)
    top = np.exp2(np.ceil(np.log2(np.where(finite & no_sign, np.maximum(a.high, b.high), 0) + 1))) - 1
    full = full_interval(width)
    match operation:
        case "and":
            either = np.greater_equal(a.low, 0) | np.greater_equal(b.low, 0)
            least = np.minimum(
                np.where(np.greater_equal(a.low, 0), a.high, _INFINITY),
                np.where(np.greater_equal(b.low, 0), b.high, _INFINITY),
            )
            loose = _choose(either, Interval(0.0, least), full)
        case "or":
            loose = _choose(no_sign & finite, Interval(np.maximum(a.low, b.low), top), full)
        case _:
            loose = _choose(no_sign & finite, Interval(0.0, top), full)
    known = a.known & b.known & np.isfinite(a.low) & np.isfinite(b.low)
    if not np.any(known):
        return loose
    numbers_a, numbers_b = (np.where(known, x.low, 0.0).astype(np.int64) for x in (a, b))
    exact = {"and": numbers_a & numbers_b, "or": numbers_a | numbers_b, "xor": numbers_a ^ numbers_b}[operation]
    return _choose(known, exactly(exact.astype(np.float64)), loose)


_COMPARISONS: dict[str, Callable[[Interval, Interval], tuple[Truth, Truth]]] = {
    # (certainly true, certainly false)
    "eq": lambda a, b: (a.known & b.known & np.equal(a.low, b.low), np.less(a.high, b.low) | np.less(b.high, a.low)),
    "lt": lambda a, b: (np.less(a.high, b.low), np.greater_equal(a.low, b.high)),
    "le": lambda a, b: (np.less_equal(a.high, b.low), np.greater(a.low, b.high)),
}


def compare(predicate: str, a: Interval, b: Interval) -> Interval:
    """Return the result of one of arith.cmpi's predicates, as 0 or 1."""
    if predicate == "ne":
        equal = compare("eq", a, b)
        return Interval(1.0 - np.asarray(equal.high), 1.0 - np.asarray(equal.low))
    if predicate[0] == "u":
        # As unsigned numbers, negative numbers are the largest.
        comparable = np.greater_equal(a.low, 0) & np.greater_equal(b.low, 0)
        return _choose(comparable, compare(f"s{predicate[1:]}", a, b), Interval(0.0, 1.0))
    name = predicate.removeprefix("s")
    if name in ("gt", "ge"):
        a, b, name = b, a, {"gt": "lt", "ge": "le"}[name]
    true, false = _COMPARISONS[name](a, b)
    return Interval(np.where(true, 1.0, 0.0), np.where(false, 0.0, 1.0))


def not_negative(a: Interval, result: Interval, width: int) -> Interval:
    """Return the result of an unsigned operation if its operand is not negative; else any number."""
    return _choose(np.greater_equal(a.low, 0), result, full_interval(width))
