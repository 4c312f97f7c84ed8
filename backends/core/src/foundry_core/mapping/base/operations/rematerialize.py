"""Integers at a place before the one at which a kernel computes them: after a loop, or in its next iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue

from ....emit.mlir import Reg
from ....front.scalars import constant_value
from ....ir.arith import ConstantOp
from ....ops.elementwise import apply_row, is_elementwise
from ..mapping import Mapping

# The most operations that are written again for the values that one tl.dot needs.
_MOST_STEPS = 64


class Rematerializer:
    """Writes again what computes an integer. Functions return None if that takes more than integer arithmetic."""

    def __init__(self, program: Mapping) -> None:
        self._tiles = program.tiles
        self._steps = 0

    def value_at(self, value: SSAValue, loops: Collection[scf.ForOp] = ()) -> Reg | None:
        """Return an integer of this iteration of all loops, whether it is computed above or below this place.

        Args:
            loops: return None if an iteration of these computes what the integer depends on.
        """
        if isinstance(value.owner, ConstantOp):
            return self._tiles.scalar(value)
        if value in self._tiles.scalars:
            changes = any(is_inside(value, loop.body.block) for loop in loops)
            return None if changes else self._tiles.scalar(value)
        return self._computed(value, lambda operand: self.value_at(operand, loops))

    def index(self, value: SSAValue, loops: Collection[scf.ForOp] = ()) -> Reg | None:
        """Return what `value_at` returns, as an index; a constant as one of the text's constants."""
        if (number := constant_value(value)) is not None:
            return self._tiles.text.integer(number)
        found = self.value_at(value, loops)
        return None if found is None else self._tiles.text.to_index(found)

    def next_value(self, value: SSAValue, loop: scf.ForOp) -> Reg | None:
        """Return an integer as it will be in the next iteration of a loop whose body is being written."""
        block = loop.body.block
        if not is_inside(value, block):
            return self.value_at(value)
        if value is block.args[0]:
            return self._tiles.text.binary("arith.addi", self._tiles.scalar(value), self._tiles.scalar(loop.step))
        if value in block.args:
            last = block.last_op
            assert last is not None
            return self.value_at(last.operands[block.args.index(value) - 1])
        return self._computed(value, lambda operand: self.next_value(operand, loop))

    def _computed(self, value: SSAValue, operand: Callable[[SSAValue], Reg | None]) -> Reg | None:
        """Apply the operation that computes an integer to what a function returns for its operands."""
        op = value.owner
        self._steps += 1
        if not isinstance(op, Operation) or not is_elementwise(op) or self._steps > _MOST_STEPS:
            return None
        if not all(isinstance(each.type, IntegerType) for each in (value, *op.operands)):
            return None
        operands: list[Reg] = []
        for each in op.operands:
            found = operand(each)
            if found is None:
                return None
            operands.append(found)
        return apply_row(self._tiles.numeric, op, operands)


def is_inside(value: SSAValue, outer: Block) -> bool:
    """Return whether a value is computed in a block, or in a region of one of its operations; a constant never is."""
    if isinstance(value.owner, ConstantOp):
        return False
    block: Block | None = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    while block is not None and block is not outer:
        block = block.parent_block()
    return block is not None
