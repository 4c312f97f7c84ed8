"""Operations on intervals hold every result of the operation on their numbers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from foundry_core.analysis import interval as iv
from foundry_core.analysis.interval import Interval


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATIONS: dict[str, tuple[Callable[[Interval, Interval], Interval], Callable[[int, int], int]]] = {
    "add": (iv.add, operator.add),
    "sub": (iv.sub, operator.sub),
    "mul": (iv.mul, operator.mul),
    "div": (iv.div, truncated),
    "rem": (iv.rem, lambda a, b: a - truncated(a, b) * b),
    "min": (iv.minimum, min),
    "max": (iv.maximum, max),
    "and": (lambda a, b: iv.bits(a, b, "and", 8), operator.and_),
    "or": (lambda a, b: iv.bits(a, b, "or", 8), operator.or_),
    "xor": (lambda a, b: iv.bits(a, b, "xor", 8), operator.xor),
    "shl": (iv.shift_left, lambda a, b: a << b if b >= 0 else a),
    "shr": (iv.shift_right, lambda a, b: a >> b if b >= 0 else a),
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "ult": lambda a, b: a % 256 < b % 256,
    "uge": lambda a, b: a % 256 >= b % 256,
}


@pytest.mark.parametrize("name", [*OPERATIONS, *COMPARISONS])
def test_an_operation_on_intervals_holds_all_results(name: str) -> None:
    of_intervals, of_numbers = OPERATIONS.get(name) or (partial(iv.compare, name), COMPARISONS[name])
    limits = [-7, -3, -1, 0, 1, 2, 5, 8]
    ranges = [(low, high) for low in limits for high in limits if low <= high]
    if name in ("shl", "shr"):
        pairs = [(a, b) for a in ranges for b in ranges if b[0] >= 0]
    else:
        pairs = list(itertools.product(ranges, ranges))
    columns = np.array([(*a, *b) for a, b in pairs], float).T
    found = of_intervals(Interval(columns[0], columns[1]), Interval(columns[2], columns[3]))
    lows, highs = (np.broadcast_to(bound, len(pairs)) for bound in (found.low, found.high))
    for ((a, A), (b, B)), low, high in zip(pairs, lows, highs, strict=True):
        numbers = itertools.product(range(a, A + 1), range(b, B + 1))
        results = [of_numbers(x, y) for x, y in numbers if not (name in ("div", "rem") and y == 0)]
        if results:
            assert low <= min(results) and max(results) <= high, (name, (a, A), (b, B), low, high)


def test_a_number_that_wraps_around_is_any_number() -> None:
    found = iv.fit(Interval(np.array([0.0, 0.0, -(2.0**31)]), np.array([2.0**31, 2.0**31 - 1, 0.0])), 32)
    np.testing.assert_array_equal(found.low, [-(2**31), 0, -(2**31)])
    np.testing.assert_array_equal(found.high, [2**31 - 1, 2**31 - 1, 0])
    assert np.isinf(iv.fit(iv.mul(iv.exactly(2.0**40), iv.exactly(2.0**40)), 64).high)
