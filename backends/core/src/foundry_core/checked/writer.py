"""Writes the operations on integers and conditions that checks are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ..front.offsets import alike
from ..ir import tt
from ..ir.arith import CmpiOp, ConstantOp, ExtSIOp


def _binary(kind: type[Any]) -> Callable[[Writer, SSAValue, SSAValue], SSAValue]:
    return lambda writer, x, y: writer.write(kind, x, y)


def _compare(predicate: int) -> Callable[[Writer, SSAValue, SSAValue], SSAValue]:
    return lambda writer, x, y: writer.insert(CmpiOp(predicate, x, y)).result


class Writer(Builder):
    """A builder of which each method writes an operation and returns its result. Operands are scalars or tiles."""

    add, subtract, multiply = _binary(arith.AddiOp), _binary(arith.SubiOp), _binary(arith.MuliOp)
    shift_left, shift_right_unsigned = _binary(arith.ShLIOp), _binary(arith.ShRUIOp)
    differing_bits = _binary(arith.XOrIOp)
    equal, unequal, below_unsigned = _compare(0), _compare(1), _compare(6)

    @classmethod
    def before(cls, op: Operation) -> Writer:
        return cls(InsertPoint.before(op))

    @classmethod
    def after(cls, op: Operation) -> Writer:
        return cls(InsertPoint.after(op))

    @classmethod
    def at_start(cls, block: Block) -> Writer:
        return cls(InsertPoint.at_start(block))

    @classmethod
    def after_value(cls, value: SSAValue) -> Writer:
        """Return a writer directly after a value's definition, where it dominates all uses of the value."""
        owner = value.owner
        return cls.at_start(owner) if isinstance(owner, Block) else cls.after(owner)

    def write(self, kind: type[Any], *operands: Any) -> SSAValue:
        """Write an operation, given what its constructor takes."""
        result: SSAValue = self.insert(kind(*operands)).results[0]
        return result

    def integer(self, number: int, type: Attribute) -> SSAValue:
        """Write an integer, or a tile with the integer in all elements."""
        return self.insert(ConstantOp.integer(number, type)).result

    def load(self, pointer: SSAValue, mask: SSAValue, other: SSAValue) -> SSAValue:
        return self.insert(tt.LoadOp.build(operands=[pointer, [mask], [other]], result_types=[other.type])).result

    def all(self, first: SSAValue | None, *more: SSAValue) -> SSAValue:
        """Write the conjunction of conditions, or of bits; the first may be missing."""
        return functools.reduce(lambda x, y: self.write(arith.AndIOp, x, y), more if first is None else (first, *more))

    def any(self, first: SSAValue | None, *more: SSAValue) -> SSAValue:
        """Write the disjunction of conditions, or of bits; the first may be missing."""
        return functools.reduce(lambda x, y: self.write(arith.OrIOp, x, y), more if first is None else (first, *more))

    def inverted(self, condition: SSAValue) -> SSAValue:
        return self.differing_bits(condition, self.integer(1, condition.type))

    def unless(self, mask: SSAValue | None, ok: SSAValue) -> SSAValue:
        """Write a condition that holds where the mask is not set, too."""
        return ok if mask is None else self.any(self.inverted(mask), ok)

    def sign_extend(self, offset: SSAValue) -> SSAValue:
        """Write an integer as an i64."""
        wide = alike(offset.type, i64)
        return offset if offset.type == wide else self.insert(ExtSIOp(offset, wide)).result


def clone_movement(value: SSAValue, other: SSAValue, element: Attribute) -> SSAValue:
    """Write what moves elements to a value for other elements of this type, behind the value."""
    op, type = value.owner, alike(value.type, element)
    assert isinstance(op, Operation)
    made = op.create(operands=[other], result_types=[type], properties=op.properties, attributes=op.attributes)
    return Writer.after_value(value).insert(made).results[0]


def integer_width(value: SSAValue) -> int:
    """Return the width of an integer, or of those of a tile; 64 for anything else."""
    type = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return type.width.data if isinstance(type, IntegerType) else 64
