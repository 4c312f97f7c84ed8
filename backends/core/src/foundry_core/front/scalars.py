"""Scalar arithmetic in i64: folds what is known at compile time and writes the rest to the IR."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i1, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ..analysis.flow import counted_loop, incoming_values
from ..ir.arith import CmpiOp, ConstantOp, ExtSIOp, ExtUIOp, SelectOp, TruncIOp

# A number known at compile time, or an i64 value of the program.
Scalar: TypeAlias = int | SSAValue
# The number of operations that `zeros` looks at.
_LOOKED_AT = 200


class Writer:
    """Writes scalar operations directly after the definition of a value, so that they dominate all its uses.

    At the definition rather than at the use, loop-invariant operations are computed outside of loops. Operations
    written after the same definition stay in the order in which they were written. The operation that follows a
    definition must not move while a Writer is in use.
    """

    def __init__(self) -> None:
        self._behind: dict[Operation | Block, Scalars] = {}

    def scalars_after(self, value: SSAValue) -> Scalars:
        owner = value.owner
        if owner not in self._behind:
            point = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
            self._behind[owner] = Scalars(Builder(point))
        return self._behind[owner]


class Scalars:
    """Writes scalar operations at one place."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def value(self, scalar: Scalar) -> SSAValue:
        """Return the scalar as an i64 value of the program."""
        if isinstance(scalar, int):
            return self.builder.insert(ConstantOp.integer(scalar, i64)).result
        return scalar

    def widen(self, value: SSAValue) -> Scalar:
        """Sign extend an integer of any width to i64."""
        known = constant_value(value)
        if known is not None:
            return known
        if value.type == i64:
            return value
        return self.builder.insert(ExtSIOp(value, i64)).result

    def wrap(self, a: Scalar, width: int) -> Scalar:
        """Wrap a number around to an integer of `width` bits; return it as an i64."""
        if isinstance(a, int):
            half = 1 << (width - 1)
            return (a + half) % (2 * half) - half
        if width >= 64 or _width_behind(a) <= width:
            return a
        return self.builder.insert(ExtSIOp(self.builder.insert(TruncIOp(a, IntegerType(width))).result, i64)).result

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        return self.builder.insert(arith.AddiOp(self.value(a), self.value(b))).result

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if b == 0:
            return a
        return self.builder.insert(arith.SubiOp(self.value(a), self.value(b))).result

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        if b == 1:
            return a
        return self.builder.insert(arith.MuliOp(self.value(a), self.value(b))).result

    def rem(self, a: Scalar, b: Scalar) -> Scalar:
        return self.builder.insert(arith.RemSIOp(self.value(a), self.value(b))).result

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.builder.insert(arith.MinSIOp(self.value(a), self.value(b))).result

    def minimum_unsigned(self, a: Scalar, b: Scalar) -> Scalar:
        return self.builder.insert(arith.MinUIOp(self.value(a), self.value(b))).result

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.builder.insert(arith.MaxSIOp(self.value(a), self.value(b))).result

    def compare(self, predicate: int, a: Scalar, b: Scalar) -> SSAValue:
        """Return an i1; the predicate is arith.cmpi's number."""
        return self.builder.insert(CmpiOp(predicate, self.value(a), self.value(b))).result

    def choose(self, condition: SSAValue, a: Scalar, b: Scalar) -> Scalar:
        return self.builder.insert(SelectOp(condition, self.value(a), self.value(b))).result

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        assert a.type == i1
        return self.builder.insert(arith.AndIOp(a, b)).result


def _width_behind(a: SSAValue) -> int:
    """Return the bits of the integer that a number was sign extended from; 64 for any other number."""
    source = a.owner.input.type if isinstance(a.owner, ExtSIOp) else i64
    return source.width.data if isinstance(source, IntegerType) else 64


def is_small(a: Scalar) -> bool:
    """Return whether a number is known to be far from the limits of 64 bits."""
    return abs(a) < 1 << 62 if isinstance(a, int) else _width_behind(a) <= 32


def zeros(scalar: Scalar) -> int:
    """Return how many of the lowest bits of a number are known to be 0; 64 for the number 0."""
    looked_at = 0

    def low_zeros(a: Scalar, visited: frozenset[SSAValue]) -> int:
        nonlocal looked_at
        looked_at += 1
        if looked_at > _LOOKED_AT:
            return 0
        number = a if isinstance(a, int) else constant_value(a)
        if number is not None:
            return (number & -number).bit_length() - 1 if number else 64
        assert isinstance(a, SSAValue)
        op = a.owner
        match op:
            case ExtSIOp() | ExtUIOp() | TruncIOp():
                return low_zeros(op.operands[0], visited)
            case arith.MuliOp():
                return min(64, low_zeros(op.lhs, visited) + low_zeros(op.rhs, visited))
            case arith.ShLIOp() if (by := constant_value(op.rhs)) is not None and by >= 0:
                return min(64, low_zeros(op.lhs, visited) + by)
            case arith.AndIOp():
                return max(low_zeros(op.lhs, visited), low_zeros(op.rhs, visited))
            case SelectOp():
                return min(low_zeros(value, visited) for value in op.operands[1:])
            case arith.AddiOp() | arith.SubiOp() | arith.MinSIOp() | arith.MaxSIOp() | arith.RemSIOp() | arith.OrIOp():
                return min(low_zeros(op.lhs, visited), low_zeros(op.rhs, visited))
        sources = incoming_values(a)
        if sources is not None:
            # A carried value has the zeros that its first value has and that each iteration preserves.
            return 64 if a in visited else min(low_zeros(source, visited | {a}) for source in sources)
        loop = counted_loop(op.parent_op()) if isinstance(op, Block) else None
        # The counter.
        return min(low_zeros(loop.first, visited), low_zeros(loop.step, visited)) if loop else 0

    return low_zeros(scalar, frozenset())


def constant_value(value: SSAValue) -> int | None:
    """Return the number of a scalar integer constant; None for any other value."""
    op = value.owner
    return op.integers[0] if isinstance(op, ConstantOp) and isinstance(value.type, IntegerType) else None
