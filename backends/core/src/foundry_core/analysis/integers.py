"""Defines the operations on integers that addresses are computed with: one row each, for all domains.

Walk computes with intervals in place of integers, for all programs at once. A host without Python runs C for one
program after another (code.py). Tests compute with numbers. All use this table, so they know the same operations and
agree on their meaning. An i1 is 0 or 1 in all of them; every other integer is signed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Operation

from ..ir.arith import CmpiOp, ExtSIOp, ExtUIOp, SelectOp, TruncIOp
from . import interval
from .interval import Interval


@dataclass(frozen=True)
class OperationForm:
    """The bits of the last operand and of the result of an operation, and the predicate of a comparison."""

    source: int
    result: int
    predicate: str = ""


@dataclass(frozen=True)
class Meaning:
    """The result of one operation, from its operands.

    Attributes:
        intervals: computes it for intervals, before it wraps around; None if nothing is known of it.
        c: a C expression of int64_t with signed integers; None if there is none. `quotient` and `remainder_of` return 0
            if there is no result.
        number: computes it for numbers.
    """

    intervals: Callable[[OperationForm, Sequence[Interval]], Interval | None]
    c: Callable[[OperationForm, Sequence[str]], str | None]
    number: Callable[[OperationForm, Sequence[int]], int]


def element_type(type: Attribute) -> Attribute:
    """Return the type of a tensor's elements. The analysis treats a tensor as any one of its elements."""
    return type.element_type if isinstance(type, TensorType) else type


def integer_bits(type: Attribute) -> int | None:
    """Return the bits of an integer or of a tensor of integers; None for any other type."""
    match element_type(type):
        case IntegerType() as integer:
            return int(integer.width.data)
        case IndexType():
            return 64
        case _:
            return None


def form(op: Operation) -> OperationForm | None:
    """Return the form of an operation; None if it takes or makes anything but integers."""
    source, result = (integer_bits(values[-1].type) if values else None for values in (op.operands, op.results))
    if source is None or result is None:
        return None
    return OperationForm(source, result, op.predicate_name if isinstance(op, CmpiOp) else "")


def wrap_integer(number: int, bits: int) -> int:
    """Return the number that is stored in this many bits."""
    half = 1 << (bits - 1)
    return number & 1 if bits == 1 else (number + half) % (2 * half) - half


def _wrapped_c(code: str, bits: int) -> str:
    return f"({code} & 1)" if bits == 1 else code if bits == 64 else f"(int{bits}_t){code}"


def _unsigned_c(number: str, bits: int) -> str:
    return f"(uint{max(bits, 8)}_t){number}"


def _signed(intervals: Callable[[Interval, Interval], Interval], c: str, number: Callable[[int, int], int]) -> Meaning:
    """Build the meaning of an operation on two signed numbers of more than one bit."""
    return Meaning(
        lambda form, a: intervals(*a) if form.result > 1 else None,
        lambda form, a: _wrapped_c(c.format(*a), form.result) if form.result > 1 else None,
        lambda form, a: wrap_integer(number(*(-x if form.source == 1 else x for x in a)), form.result),
    )


def _unsigned(
    intervals: Callable[[Interval, Interval], Interval], c: str, number: Callable[[int, int], int]
) -> Meaning:
    """Build the meaning for unsigned numbers: as for signed ones if no operand is negative; else any number."""

    def guarded(form: OperationForm, a: Sequence[Interval]) -> Interval | None:
        if form.result == 1:
            return None
        return interval.not_negative(interval.minimum(*a), intervals(*a), form.result)

    return Meaning(
        guarded,
        lambda form, a: (
            _wrapped_c(c.format(*(_unsigned_c(x, form.source) for x in a)), form.result) if form.result > 1 else None
        ),
        lambda form, a: wrap_integer(number(*(x % (1 << form.source) for x in a)), form.result),
    )


def _bitwise(name: str, sign: str, number: Callable[[int, int], int]) -> Meaning:
    return Meaning(
        lambda form, a: interval.bits(a[0], a[1], name, form.result),
        lambda form, a: _wrapped_c(f"({a[0]} {sign} {a[1]})", form.result),
        lambda form, a: wrap_integer(number(*a), form.result),
    )


def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * _quotient(a, b)


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compare() -> Meaning:
    def c(form: OperationForm, a: Sequence[str]) -> str:
        sides = [_unsigned_c(x, form.source) for x in a] if form.predicate[0] == "u" else a
        return f"({sides[0]} {_SIGNS[form.predicate[-2:]]} {sides[1]})"

    def number(form: OperationForm, a: Sequence[int]) -> int:
        ordered = form.predicate[0]
        sides = [x % (1 << form.source) if ordered == "u" else -x if form.source == 1 else x for x in a]
        return int(getattr(operator, form.predicate[-2:])(*sides))

    def intervals(form: OperationForm, a: Sequence[Interval]) -> Interval | None:
        is_known = form.source > 1 or form.predicate in ("eq", "ne")
        return interval.compare(form.predicate, *a) if is_known else None

    return Meaning(intervals, c, number)


def _extend_unsigned(form: OperationForm, a: Sequence[Interval]) -> Interval:
    full = Interval(np.float64(0), np.exp2(form.source))
    return interval.choose(interval.compare("sge", a[0], interval.exactly(0.0)), a[0], full)


# Sums are unsigned in C, where they wrap around.
INTEGERS: dict[str, Meaning] = {
    arith.AddiOp.name: _signed(interval.add, "(int64_t)((uint64_t){0} + (uint64_t){1})", operator.add),
    arith.SubiOp.name: _signed(interval.sub, "(int64_t)((uint64_t){0} - (uint64_t){1})", operator.sub),
    arith.MuliOp.name: _signed(interval.mul, "(int64_t)((uint64_t){0} * (uint64_t){1})", operator.mul),
    arith.DivSIOp.name: _signed(interval.div, "quotient({0}, {1})", _quotient),
    arith.RemSIOp.name: _signed(interval.rem, "remainder_of({0}, {1})", _remainder),
    arith.MinSIOp.name: _signed(interval.minimum, "({0} < {1} ? {0} : {1})", min),
    arith.MaxSIOp.name: _signed(interval.maximum, "({0} > {1} ? {0} : {1})", max),
    arith.ShLIOp.name: _signed(
        interval.shift_left, "(int64_t)((uint64_t){0} << ({1} & 63))", lambda a, b: a << (b & 63)
    ),
    arith.ShRSIOp.name: _signed(interval.shift_right, "({0} >> ({1} & 63))", lambda a, b: a >> (b & 63)),
    arith.AndIOp.name: _bitwise("and", "&", operator.and_),
    arith.OrIOp.name: _bitwise("or", "|", operator.or_),
    arith.XOrIOp.name: _bitwise("xor", "^", operator.xor),
    arith.DivUIOp.name: _unsigned(interval.div, "(int64_t)({1} ? {0} / {1} : 0)", _quotient),
    arith.RemUIOp.name: _unsigned(interval.rem, "(int64_t)({1} ? {0} % {1} : 0)", _remainder),
    arith.MinUIOp.name: _unsigned(interval.minimum, "(int64_t)({0} < {1} ? {0} : {1})", min),
    arith.MaxUIOp.name: _unsigned(interval.maximum, "(int64_t)({0} > {1} ? {0} : {1})", max),
    arith.ShRUIOp.name: _unsigned(interval.shift_right, "(int64_t)({0} >> ({1} & 63))", lambda a, b: a >> (b & 63)),
    CmpiOp.name: _compare(),
    SelectOp.name: Meaning(
        lambda form, a: interval.choose(*a),
        lambda form, a: f"({a[0]} ? {a[1]} : {a[2]})",
        lambda form, a: a[1] if a[0] else a[2],
    ),
    # A set i1 is 1. Its sign extension has all bits set.
    ExtSIOp.name: Meaning(
        lambda form, a: interval.sub(interval.exactly(np.float64(0)), a[0]) if form.source == 1 else a[0],
        lambda form, a: f"-{a[0]}" if form.source == 1 else a[0],
        lambda form, a: -a[0] if form.source == 1 else a[0],
    ),
    ExtUIOp.name: Meaning(
        _extend_unsigned,
        lambda form, a: f"(int64_t){_unsigned_c(a[0], form.source)}",
        lambda form, a: a[0] % (1 << form.source),
    ),
}
# Intervals do not track numbers modulo 2.
INTEGERS |= dict.fromkeys(
    (TruncIOp.name, arith.IndexCastOp.name),
    Meaning(
        lambda form, a: a[0] if form.result > 1 else None,
        lambda form, a: _wrapped_c(a[0], form.result),
        lambda form, a: wrap_integer(a[0], form.result),
    ),
)
