"""Defines operations on two integers for the analysis of addresses: one row each, for intervals and in C.

Walk computes with intervals in place of integers, for all programs at once. A host without Python runs C for one
program after another (code.py). Both use this table, so they know the same operations and agree on their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith

from . import interval
from .interval import Interval


@dataclass(frozen=True)
class Meaning:
    """The result of one operation on two integers of the same width, before it wraps around.

    Attributes:
        intervals: computes it for two intervals of signed integers, and their width in bits.
        c: a C expression of {0} and {1}, which are int64_t with signed integers, or unsigned integers if is_unsigned.
            Sums are unsigned in C, where they wrap around. `quotient` and `remainder_of` return 0 if there is no
            result.
        is_unsigned: whether the operation reads the bits of its operands as unsigned numbers.
    """

    intervals: Callable[[Interval, Interval, int], Interval]
    c: str
    is_unsigned: bool = False


def _signed(function: Callable[[Interval, Interval], Interval], c: str) -> Meaning:
    return Meaning(lambda a, b, width: function(a, b), c)


def _unsigned(function: Callable[[Interval, Interval], Interval], c: str) -> Meaning:
    """Build the meaning for unsigned numbers: as for signed ones if no operand is negative; else any number."""

    def intervals(a: Interval, b: Interval, width: int) -> Interval:
        return interval.not_negative(interval.minimum(a, b), function(a, b), width)

    return Meaning(intervals, c, is_unsigned=True)


def _bitwise(operation: str, c: str) -> Meaning:
    return Meaning(lambda a, b, width: interval.bits(a, b, operation, width), c)


INTEGERS: dict[str, Meaning] = {
    arith.AddiOp.name: _signed(interval.add, "(int64_t)((uint64_t){0} + (uint64_t){1})"),
    arith.SubiOp.name: _signed(interval.sub, "(int64_t)((uint64_t){0} - (uint64_t){1})"),
    arith.MuliOp.name: _signed(interval.mul, "(int64_t)((uint64_t){0} * (uint64_t){1})"),
    arith.DivSIOp.name: _signed(interval.div, "quotient({0}, {1})"),
    arith.RemSIOp.name: _signed(interval.rem, "remainder_of({0}, {1})"),
    arith.MinSIOp.name: _signed(interval.minimum, "({0} < {1} ? {0} : {1})"),
    arith.MaxSIOp.name: _signed(interval.maximum, "({0} > {1} ? {0} : {1})"),
    arith.ShLIOp.name: _signed(interval.shift_left, "(int64_t)((uint64_t){0} << ({1} & 63))"),
    arith.ShRSIOp.name: _signed(interval.shift_right, "({0} >> ({1} & 63))"),
    arith.AndIOp.name: _bitwise("and", "({0} & {1})"),
    arith.OrIOp.name: _bitwise("or", "({0} | {1})"),
    arith.XOrIOp.name: _bitwise("xor", "({0} ^ {1})"),
    arith.DivUIOp.name: _unsigned(interval.div, "(int64_t)({1} ? {0} / {1} : 0)"),
    arith.RemUIOp.name: _unsigned(interval.rem, "(int64_t)({1} ? {0} % {1} : 0)"),
    arith.MinUIOp.name: _unsigned(interval.minimum, "(int64_t)({0} < {1} ? {0} : {1})"),
    arith.MaxUIOp.name: _unsigned(interval.maximum, "(int64_t)({0} > {1} ? {0} : {1})"),
    arith.ShRUIOp.name: _unsigned(interval.shift_right, "(int64_t)({0} >> ({1} & 63))"),
}
