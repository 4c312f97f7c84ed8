"""Offsets as they were meant: sums and products of integers, computed again in 64 bits, where they do not wrap around.

A loop that carries such an integer carries it in 64 bits, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tt, ttg
from ..dialects.arith import ConstantOp, ExtSIOp, SelectOp, TruncIOp

# Operations that move the elements of a tile: an index moves as the pointer does.
MOVES = (tt.SplatOp, tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp, tt.ReshapeOp, ttg.ConvertLayoutOp)
_SUMS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp)
_FOLLOWED = (*_SUMS, *MOVES, ExtSIOp, TruncIOp, SelectOp)


class WideOffsets:
    """The integers of a kernel in 64 bits. Loops that carry offsets are replaced when it is made."""

    def __init__(self, function: tt.FuncOp) -> None:
        self._known: dict[SSAValue, SSAValue] = {}
        carried = _carried(function)
        added: list[tuple[scf.ForOp, int, int]] = []
        for loop in [op for op in function.body.walk() if isinstance(op, scf.ForOp)]:
            numbers = [i for i, argument in enumerate(loop.body.block.args[1:]) if argument in carried]
            if numbers:
                made = self._extend(loop, numbers)
                added += [(made, i, len(loop.iter_args) + at) for at, i in enumerate(numbers)]
        self._carried = set(self._known)
        for loop, narrow, wide in added:
            loop.operands[wide + 3] = self.of(loop.iter_args[narrow])
            end = loop.body.block.last_op
            assert end is not None
            end.operands[wide] = self.of(end.operands[narrow])

    def _extend(self, loop: scf.ForOp, numbers: Sequence[int]) -> scf.ForOp:
        """Let a loop carry some of its integers in 64 bits, too, which stay 0; return what replaces the loop."""
        before, block = Builder(InsertPoint.before(loop)), loop.body.block
        end = block.last_op
        assert end is not None
        initial, more = list(loop.iter_args), []
        for number in numbers:
            argument = block.args[number + 1]
            wide = alike(argument.type, i64)
            initial.append(before.insert(ConstantOp.integer(0, wide)).result)
            more.append(block.insert_arg(wide, len(block.args)))
            self._known[argument] = more[-1]
        end.operands = [*end.operands, *more]
        made = scf.ForOp(loop.lb, loop.ub, loop.step, initial, loop.detach_region(loop.body))
        made.attributes |= loop.attributes
        made.location = loop.location
        before.insert(made)
        for old, new in zip(loop.results, made.results, strict=False):
            old.replace_all_uses_with(new)
            new.name_hint = old.name_hint
        for at, number in enumerate(numbers):
            self._known[made.results[number]] = made.results[len(loop.results) + at]
        Rewriter.erase_op(loop)
        return made

    def of(self, value: SSAValue) -> SSAValue:
        """Return an integer as an i64, computed without wrapping around; the value itself if nothing computes it."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> SSAValue:
        op, wide = value.owner, alike(value.type, i64)
        match op:
            case ExtSIOp() | TruncIOp():
                return self.of(op.input)
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.ShLIOp():
                parts = self.of(op.lhs), self.of(op.rhs)
                if parts == (op.lhs, op.rhs):
                    return value
                return behind(value).insert(type(op)(*parts)).results[0]
            case SelectOp():
                ways = self.of(op.lhs), self.of(op.rhs)
                if ways == (op.lhs, op.rhs):
                    return value
                return behind(value).insert(SelectOp(op.cond, *ways)).result
            case _ if isinstance(op, MOVES):
                source = self.of(op.operands[0])
                return value if source is op.operands[0] else moved(op, source, wide)
            case ConstantOp():
                return value if value.type == wide else behind(value).insert(ConstantOp(_words(op), wide)).result
        return widened(value, behind(value))

    def differs(self, offset: SSAValue) -> bool:
        """Return whether an offset is computed by sums or products in fewer than 64 bits."""
        pending, seen = [offset], set[SSAValue]()
        while pending:
            value = pending.pop()
            op = value.owner
            if value in self._carried:
                return True
            if value in seen or not isinstance(op, _FOLLOWED):
                continue
            seen.add(value)
            if isinstance(op, (*_SUMS, TruncIOp)) and width(value) < 64:
                return True
            pending += op.operands
        return False


def _carried(function: tt.FuncOp) -> set[SSAValue]:
    """Return the integers of fewer than 64 bits that a loop carries, and changes by sums, on their way to an offset."""
    offsets = [op.offset for op in function.body.walk() if isinstance(op, tt.AddPtrOp)]
    found, seen, pending = set[SSAValue](), set[SSAValue](), offsets
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.owner
        loop = op.parent_op() if isinstance(op, Block) else op
        if isinstance(loop, scf.ForOp):
            number = list(op.args if isinstance(op, Block) else op.results).index(value) - isinstance(op, Block)
            end = loop.body.block.last_op
            if number < 0 or end is None:
                continue
            argument = loop.body.block.args[number + 1]
            pending += [argument, loop.iter_args[number], end.operands[number]]
            if width(value) < 64 and isinstance(end.operands[number].owner, _FOLLOWED):
                found.add(argument)
        elif isinstance(op, _FOLLOWED):
            pending += op.operands
    return found


def moved(op: Operation, source: SSAValue, type: Attribute) -> SSAValue:
    """Write what moves elements for another source, behind the operation."""
    made = op.create(operands=[source], result_types=[type], properties=op.properties, attributes=op.attributes)
    return behind(op.results[0]).insert(made).results[0]


def _words(op: ConstantOp) -> list[int]:
    return [number % (1 << 64) for number in op.integers]


def width(value: SSAValue) -> int:
    """Return the width of an integer, or of those of a tile; 64 for anything else."""
    type = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return type.width.data if isinstance(type, IntegerType) else 64


def behind(value: SSAValue) -> Builder:
    """Return a builder that writes directly after a value's definition, where it dominates all uses of the value."""
    owner = value.owner
    return Builder(InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner))


def alike(type: Attribute, element: Attribute) -> Attribute:
    """Return the type of a scalar or tile with other elements: shape and layout stay."""
    return TensorType(element, type.get_shape(), type.encoding) if isinstance(type, TensorType) else element


def widened(offset: SSAValue, here: Builder) -> SSAValue:
    """Return an integer as an i64."""
    wide = alike(offset.type, i64)
    return offset if offset.type == wide else here.insert(ExtSIOp(offset, wide)).result
