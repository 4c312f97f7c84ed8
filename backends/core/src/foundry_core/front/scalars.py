"""Scalar arithmetic in i64 that folds what is known while lowering and writes the rest into the IR."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i1, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ..dialects.arith import CmpiOp, ConstantOp, ExtSIOp, SelectOp

# A number known now, or an i64 of the program.
Scalar: TypeAlias = int | SSAValue


class Writer:
    """Writes scalar operations right behind the definition of a value, so that they dominate all its uses.

    Being there rather than at the use, what does not change in a loop is computed outside of it. What is written later
    behind the same definition comes after what was written before. The operation that follows a definition must stay
    where it is while a Writer is in use.
    """

    def __init__(self) -> None:
        self._behind: dict[Operation | Block, Scalars] = {}

    def behind(self, value: SSAValue) -> Scalars:
        owner = value.owner
        if owner not in self._behind:
            point = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
            self._behind[owner] = Scalars(Builder(point))
        return self._behind[owner]


class Scalars:
    """Scalar operations written at one place."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def value(self, scalar: Scalar) -> SSAValue:
        """The scalar as an i64 of the program."""
        if isinstance(scalar, int):
            return self.builder.insert(ConstantOp.integer(scalar, i64)).result
        return scalar

    def widen(self, value: SSAValue) -> Scalar:
        """An integer of any width as an i64, sign extended."""
        known = constant(value)
        if known is not None:
            return known
        if value.type == i64:
            return value
        return self.builder.insert(ExtSIOp(value, i64)).result

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

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.builder.insert(arith.MaxSIOp(self.value(a), self.value(b))).result

    def compare(self, predicate: int, a: Scalar, b: Scalar) -> SSAValue:
        """An i1; the predicate is arith.cmpi's number."""
        return self.builder.insert(CmpiOp(predicate, self.value(a), self.value(b))).result

    def choose(self, condition: SSAValue, a: Scalar, b: Scalar) -> Scalar:
        return self.builder.insert(SelectOp(condition, self.value(a), self.value(b))).result

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        assert a.type == i1
        return self.builder.insert(arith.AndIOp(a, b)).result


def constant(value: SSAValue) -> int | None:
    """The number that a scalar integer constant has."""
    op = value.owner
    return op.integers[0] if isinstance(op, ConstantOp) and isinstance(value.type, IntegerType) else None
