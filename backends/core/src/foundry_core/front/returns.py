"""Rewrites a conditional `return`, which Triton writes as branches between blocks, to an scf.if.

    cf.cond_br %c, ^out, ^rest       becomes        scf.if %c {} else { rest }

This concerns kernels, and the functions that reductions, scans and tt.map_elementwise take.

If the paths of a branch meet again and none of them returns, the code after the meeting point follows the scf.if. If
one of them may have returned, that code is copied into each of the others. The results of the function are then those
of the scf.if.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import cf, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ..errors import LoweringError, unsupported
from ..ir import tt

# How often a block may be copied: paths that meet after returns double with each condition.
_MOST_COPIES = 16


def replace_returns(function: tt.FuncOp) -> None:
    """Merge the blocks of a kernel, or of a function that it calls, into one, and those of each region in it.

    Raises:
        UnsupportedOperation: the branches form a cycle, or too many paths.
    """
    # Inner regions first: merging the outer one copies them.
    for op in reversed(list(function.walk())):
        for region in op.regions:
            if len(region.blocks) > 1:
                _merge(region)


def _merge(body: Region) -> None:
    first = body.blocks[0]
    structured = Block(arg_types=[argument.type for argument in first.args])
    values: dict[SSAValue, SSAValue] = dict(zip(first.args, structured.args, strict=True))
    for old, new in zip(first.args, structured.args, strict=True):
        new.name_hint = old.name_hint
    writer = _Writer(body)
    returned = writer.block(first, structured, values, None)
    structured.add_op(type(writer.end).create(operands=returned))
    for block in list(body.blocks):
        body.detach_block(block)
    body.add_block(structured)


class _Writer:
    """Copies blocks into structured blocks.

    Attributes:
        end: one of the operations that end a path: a tt.return, or what passes on the results of another region.
    """

    def __init__(self, body: Region) -> None:
        self._passed: dict[Block, tuple[Block, ...]] = {}
        self._copies: dict[Block, int] = {}
        self.end = next(end for block in body.blocks if not (end := _end(block)).successors)
        self._meet(body.blocks[0], ())

    def _meet(self, block: Block, before: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return the blocks that every path from here to a return passes, in order, starting with this block."""
        if block in before:
            raise unsupported(_end(block), "branches that go around in a circle")
        if block not in self._passed:
            ways = [self._meet(successor, (*before, block)) for successor in _end(block).successors]
            common = tuple(b for b in ways[0] if all(b in way for way in ways)) if ways else ()
            self._passed[block] = (block, *common)
        return self._passed[block]

    def block(self, block: Block, into: Block, values: dict[SSAValue, SSAValue], until: Block | None) -> list[SSAValue]:
        """Copy a block and all blocks after it, up to a return or to the block `until`, which is not copied.

        Returns:
            the arguments that are passed to `until`, or what the function returns if `until` is None: all paths to a
            block that they share pass it before they return.
        """
        end = _end(block)
        self._copies[block] = self._copies.get(block, 0) + (end is not block.first_op)
        if self._copies[block] > _MOST_COPIES:
            raise unsupported(end, "what follows a return under one of too many conditions")
        builder = Builder(InsertPoint.at_end(into))
        for op in block.ops:
            if op is not end:
                builder.insert(op.clone(values))
        match end:
            case _ if isinstance(end, type(self.end)):
                return [values.get(value, value) for value in end.operands]
            case cf.BranchOp():
                return self._go(end.successor, end.arguments, into, values, until)
            case cf.ConditionalBranchOp():
                return self._choose(end, into, values, until)
        raise unsupported(end)

    def _go(
        self,
        target: Block,
        arguments: Sequence[SSAValue],
        into: Block,
        values: dict[SSAValue, SSAValue],
        until: Block | None,
    ) -> list[SSAValue]:
        given = [values.get(value, value) for value in arguments]
        if target is until:
            return given
        values.update(zip(target.args, given, strict=True))
        return self.block(target, into, values, until)

    def _choose(
        self, op: cf.ConditionalBranchOp, into: Block, values: dict[SSAValue, SSAValue], until: Block | None
    ) -> list[SSAValue]:
        ways = [(op.then_block, op.then_arguments), (op.else_block, op.else_arguments)]
        block = op.parent_block()
        assert block is not None
        # The block where the paths meet again, if none of them returns before. It may be the block `until`.
        meeting = next(iter(self._passed[block][1:]), None)
        results = [argument.type for argument in meeting.args] if meeting is not None else self.end.operand_types
        regions = []
        for target, arguments in ways:
            inner = Block()
            # Copy the dictionary: a value that one path defines does not exist in the other.
            yielded = self._go(target, arguments, inner, dict(values), meeting)
            inner.add_op(scf.YieldOp(*yielded))
            regions.append(Region(inner))
        condition = values.get(op.cond, op.cond)
        made = scf.IfOp(condition, results, regions[0], regions[1])
        made.location = op.location
        Builder(InsertPoint.at_end(into)).insert(made)
        if meeting is until:
            return list(made.results)
        assert meeting is not None
        return self._go(meeting, made.results, into, values, until)


def _end(block: Block) -> Operation:
    if block.last_op is None:
        raise LoweringError("a block of the kernel is empty")
    return block.last_op
