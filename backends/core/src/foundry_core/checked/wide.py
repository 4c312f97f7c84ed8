"""Offsets as they were meant: sums and products of integers, computed again in 64 bits, where they do not wrap around.

A loop that carries such an integer carries it in 64 bits, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..analysis.flow import extend_operands, incoming_values
from ..front.offsets import alike
from ..ir import tt
from ..ir.arith import ConstantOp, ExtSIOp, SelectOp, TruncIOp
from ..ir.elements import source
from ..ir.facts import pointer_sum
from .writer import Writer, clone_movement, integer_width

_SUMS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp)
_FOLLOWED = (*_SUMS, ExtSIOp, TruncIOp, SelectOp)


class WideOffsets:
    """The integers of a kernel in 64 bits. Loops that carry offsets are replaced when it is made."""

    def __init__(self, function: tt.FuncOp) -> None:
        self._known: dict[SSAValue, SSAValue] = {}
        # Operations that pass values to a loop, and which operands are a value in 64 bits and the value.
        self._passed: list[tuple[Operation, int, int]] = []
        carried = _carried_integers(function)
        for loop in list(function.body.walk()):
            if isinstance(loop, scf.ForOp):
                self._extend_for(loop, carried)
            elif isinstance(loop, scf.WhileOp):
                self._extend_while(loop, carried)
        self._carried = set(self._known)
        for op, wide, narrow in self._passed:
            op.operands[wide] = self.extend(op.operands[narrow])

    def _extend_for(self, loop: scf.ForOp, arguments: set[SSAValue]) -> None:
        """Let a loop carry its integers among these in 64 bits, too. They stay 0 until `_passed` is read."""
        block = loop.body.block
        numbers = [number for number, argument in enumerate(block.args[1:]) if argument in arguments]
        if not numbers or block.last_op is None:
            return
        zeros = _zeros(loop, [block.args[number + 1] for number in numbers])
        self._add_arguments(block, [number + 1 for number in numbers])
        self._pass(block.last_op, numbers, zeros)
        first, count = len(loop.operands) - len(loop.iter_args), len(loop.operands)
        replaced = self._replace(loop, zeros, numbers, zeros)
        self._passed += [(replaced, count + at, first + number) for at, number in enumerate(numbers)]

    def _extend_while(self, loop: scf.WhileOp, arguments: set[SSAValue]) -> None:
        """Do what `_extend_for` does; what the condition passes to the body may be others than what the body passes."""
        before, after = loop.before_region.block, loop.after_region.block
        tested = [number for number, argument in enumerate(before.args) if argument in arguments]
        passed = [number for number, argument in enumerate(after.args) if argument in arguments]
        if before.last_op is None or after.last_op is None:
            return
        zeros, more = (
            _zeros(loop, [block.args[number] for number in numbers])
            for block, numbers in ((before, tested), (after, passed))
        )
        self._add_arguments(before, tested)
        self._add_arguments(after, passed)
        self._pass(after.last_op, tested, zeros)
        # The first operand of what ends the test is the condition.
        self._pass(before.last_op, [number + 1 for number in passed], more)
        count = len(loop.arguments)
        replaced = self._replace(loop, zeros, passed, more)
        self._passed += [(replaced, count + at, number) for at, number in enumerate(tested)]

    def _add_arguments(self, block: Block, numbers: Sequence[int]) -> None:
        """Append an i64 to a block's arguments for each of these."""
        for number in numbers:
            argument = block.args[number]
            self._known[argument] = block.insert_arg(alike(argument.type, i64), len(block.args))

    def _pass(self, op: Operation, numbers: Sequence[int], zeros: Sequence[SSAValue]) -> None:
        """Let an operation that ends a block pass an i64, too, for each of these operands."""
        self._passed += [(op, len(op.operands) + at, number) for at, number in enumerate(numbers)]
        op.operands = [*op.operands, *zeros]

    def _replace(
        self, loop: Operation, zeros: Sequence[SSAValue], numbers: Sequence[int], alike: Sequence[SSAValue]
    ) -> Operation:
        """Replace a loop by one with more results: in 64 bits, those of these numbers."""
        count = len(loop.results)
        replaced = extend_operands(loop, zeros, [value.type for value in alike])
        for at, number in enumerate(numbers):
            self._known[replaced.results[number]] = replaced.results[count + at]
        return replaced

    def extend(self, value: SSAValue) -> SSAValue:
        """Return an integer as an i64, computed without wrapping around; the value itself if nothing computes it."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> SSAValue:
        op, wide = value.owner, alike(value.type, i64)
        match op:
            case ExtSIOp() | TruncIOp():
                return self.extend(op.input)
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.ShLIOp():
                parts = self.extend(op.lhs), self.extend(op.rhs)
                if parts == (op.lhs, op.rhs):
                    return value
                return Writer.after_value(value).write(type(op), *parts)
            case SelectOp():
                ways = self.extend(op.lhs), self.extend(op.rhs)
                if ways == (op.lhs, op.rhs):
                    return value
                return Writer.after_value(value).write(SelectOp, op.cond, *ways)
            case _ if (narrow := source(value)) is not None:
                found = self.extend(narrow)
                return value if found is narrow else clone_movement(value, found, i64)
            case ConstantOp():
                if value.type == wide:
                    return value
                words = [number % (1 << 64) for number in op.integers]
                return Writer.after_value(value).insert(ConstantOp(words, wide)).result
        return Writer.after_value(value).sign_extend(value)

    def differs(self, offset: SSAValue) -> bool:
        """Return whether an offset is computed by sums or products in fewer than 64 bits."""
        pending, seen = [offset], set[SSAValue]()
        while pending:
            value = pending.pop()
            op = value.owner
            if value in self._carried:
                return True
            if value in seen or not _follows(value):
                continue
            seen.add(value)
            assert isinstance(op, Operation)
            if isinstance(op, (*_SUMS, TruncIOp)) and integer_width(value) < 64:
                return True
            pending += op.operands
        return False


def _carried_integers(function: tt.FuncOp) -> set[SSAValue]:
    """Return the integers of fewer than 64 bits that a loop carries, and changes by sums, on their way to an offset.

    They are arguments of the loops' blocks.
    """
    offsets = [moved[1] for op in function.body.walk() if (moved := pointer_sum(op))]
    found, seen, pending = set[SSAValue](), set[SSAValue](), offsets
    # What the condition of a `while` passes to its body, by the body's argument.
    passed: dict[SSAValue, SSAValue] = {}
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        sources, op = incoming_values(value), value.owner
        if sources is None or isinstance(op, scf.IfOp):
            pending += op.operands if isinstance(op, Operation) and _follows(value) else []
            continue
        argument = value
        if isinstance(value, OpResult) and isinstance(op, Operation):
            argument = op.regions[-1].block.args[value.index + isinstance(op, scf.ForOp)]
        pending += [argument, *sources]
        last = sources[-1]
        if len(sources) == 1:
            passed[argument] = last
        elif integer_width(value) < 64 and (_follows(last) or isinstance(last.owner, scf.ForOp | scf.WhileOp)):
            found.add(argument)
    return found | {argument for argument, source in passed.items() if source in found}


def _follows(value: SSAValue) -> bool:
    return isinstance(value.owner, _FOLLOWED) or source(value) is not None


def _zeros(loop: Operation, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Write zeros of 64 bits before a loop, alike these integers."""
    here = Writer.before(loop)
    return [here.integer(0, alike(value.type, i64)) for value in values]
