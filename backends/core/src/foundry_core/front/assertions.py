"""Ends a program where one of its assertions failed: what follows a tile.check is put under its result.

    %ok = tile.check ...              becomes        %ok = tile.check ...
    rest                                             scf.if %ok { rest }

A branch or a loop that contains a check has one more result, which says whether the program goes on. A loop carries it,
and does nothing in the iterations after a failure.

Triton's own checks of integer arithmetic do not end a program: they stand at every sum, and a sum reaches no memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ..analysis.flow import extend_operands
from ..errors import unsupported
from ..ir import tile, tt
from ..ir.arith import ConstantOp
from ..ir.build import recast


def end_failed_programs(function: tt.FuncOp) -> None:
    """Rewrite a kernel in structured form in place.

    Raises:
        UnsupportedOperation: a pointer leaves a branch after a check, and the kernel has no argument of such a type.
    """
    block = function.body.block
    assert block.last_op is not None
    _Guard(block).guard(block, block.last_op)


class _Guard:
    def __init__(self, body: Block) -> None:
        self._arguments = body.args

    def guard(self, block: Block, last: Operation, instead: Sequence[SSAValue] | None = None) -> SSAValue | None:
        """Put what follows the first check of a block under a condition.

        Args:
            last: the block's terminator. Its operands become those values that leave the block in either case.
            instead: the values that leave the block after a failure, one for each operand; None for zeros.

        Returns:
            whether the program goes on, at the end of the block; None if it does anyway.
        """
        operations = [op for op in block.ops if op is not last]
        first = next((at for at, op in enumerate(operations) if _may_end(op)), None)
        if first is None:
            return None
        alive = self._rewritten(operations[first])
        rest = operations[first + 1 :]
        return self._under(alive, rest, last, instead) if rest else alive

    def _under(
        self, alive: SSAValue, rest: Sequence[Operation], last: Operation, instead: Sequence[SSAValue] | None
    ) -> SSAValue:
        """Move operations under a condition; return whether the program goes on after them."""
        here, block = Builder(InsertPoint.before(last)), last.parent_block()
        assert block is not None
        inner, otherwise = Block(), Block()
        for op in rest:
            block.detach_op(op)
            inner.add_op(op)
        leaving = [at for at, value in enumerate(last.operands) if value.owner in rest]
        ends = scf.YieldOp(*(last.operands[at] for at in leaving))
        inner.add_op(ends)
        kept = [instead[at] if instead is not None else None for at in leaving]
        goes_on = self.guard(inner, ends, kept if instead is not None else None)  # type: ignore[arg-type]
        results: list[Attribute] = [value.type for value in ends.operands]
        if not isinstance(last, tt.ReturnOp):
            results.append(i1)
            ends.operands = [*ends.operands, goes_on or _flag(True, Builder(InsertPoint.before(ends)))]
            zeros = Builder(InsertPoint.at_end(otherwise))
            values = [
                self._zero(type, zeros, last) if value is None else value
                for type, value in zip(results, kept, strict=False)
            ]
            otherwise.add_op(scf.YieldOp(*values, _flag(False, zeros)))
        else:
            otherwise.add_op(scf.YieldOp())
        made = here.insert(scf.IfOp(alive, results, Region(inner), Region(otherwise)))
        made.location = last.location
        for at, result in zip(leaving, made.results, strict=False):
            last.operands[at] = result
        return made.results[-1] if results else alive

    def _rewritten(self, op: Operation) -> SSAValue:
        """Give an operation that may end the program a result that says whether it did not."""
        match op:
            case tile.CheckOp():
                return op.result
            case scf.IfOp():
                return self._if(op)
            case scf.ForOp():
                return self._for(op)
            case scf.WhileOp():
                return self._while(op)
        raise unsupported(op, "an assertion inside")

    def _if(self, op: scf.IfOp) -> SSAValue:
        for region in op.regions:
            if not region.blocks:
                region.add_block(Block([scf.YieldOp()]))
            last = region.block.last_op
            assert last is not None
            alive = self.guard(region.block, last)
            last.operands = [*last.operands, alive or _flag(True, Builder(InsertPoint.before(last)))]
        return extend_operands(op, [], [i1]).results[-1]

    def _for(self, op: scf.ForOp) -> SSAValue:
        block = op.body.block
        last = block.last_op
        assert last is not None
        before = block.insert_arg(i1, len(block.args))
        operations = [inner for inner in block.ops if inner is not last]
        after = self._under(before, operations, last, list(block.args[1:-1]))
        last.operands = [*last.operands, after]
        return extend_operands(op, [_flag(True, Builder(InsertPoint.before(op)))], [i1]).results[-1]

    def _while(self, op: scf.WhileOp) -> SSAValue:
        before, after = op.before_region.block, op.after_region.block
        condition, last = before.last_op, after.last_op
        assert condition is not None and last is not None
        flag = before.insert_arg(i1, len(before.args))
        alive = self._under(flag, [inner for inner in before.ops if inner is not condition], condition, None)
        both = Builder(InsertPoint.before(condition)).insert(arith.AndIOp(condition.operands[0], alive)).result
        condition.operands = [both, *condition.operands[1:], alive]
        inside = after.insert_arg(i1, len(after.args))
        # It replaces operands of the terminator, so they are read afterwards.
        goes_on = self.guard(after, last)
        last.operands = [*last.operands, goes_on or inside]
        return extend_operands(op, [_flag(True, Builder(InsertPoint.before(op)))], [i1]).results[-1]

    def _zero(self, type: Attribute, builder: Builder, op: Operation) -> SSAValue:
        """Return any value of a type, for what nobody uses."""
        if not isinstance(type, tt.PointerType):
            return builder.insert(ConstantOp([0], type)).result
        for argument in self._arguments:
            if argument.type == type:
                return argument
            if isinstance(argument.type, tt.PointerType):
                return recast(builder, argument, type)
        raise unsupported(op, "a pointer that comes out of what follows an assertion")


def _may_end(op: Operation) -> bool:
    return any(isinstance(inner, tile.CheckOp) and inner.ends is not None for inner in op.walk())


def _flag(value: bool, builder: Builder) -> SSAValue:
    return builder.insert(ConstantOp([int(value)], i1)).result
