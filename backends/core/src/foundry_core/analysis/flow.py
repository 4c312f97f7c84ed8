"""Loops and branches: what their blocks are, where values go that they pass on, and how to let them pass on more.

Who follows values asks here. Only what interprets, rewrites or writes loops and branches names their operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects import cf, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from ..errors import unsupported
from ..ir import tt


class CountedLoop(NamedTuple):
    """A loop that counts from a first number by a step, before an end.

    Attributes:
        counter: the number in an iteration; an argument of the body.
    """

    op: Operation
    first: SSAValue
    end: SSAValue
    step: SSAValue
    counter: SSAValue
    body: Block


def counted_loop(op: Operation | None) -> CountedLoop | None:
    """Return how a loop counts; None for any other operation."""
    if not isinstance(op, scf.ForOp):
        return None
    return CountedLoop(op, op.lb, op.ub, op.step, op.body.block.args[0], op.body.block)


def loop_blocks(op: Operation | None) -> list[Block]:
    """Return the blocks that an iteration executes, in this order; none of anything but a loop.

    A `while` ends behind the first of its two blocks, which tests whether it goes on.
    """
    return [region.block for region in op.regions] if isinstance(op, scf.ForOp | scf.WhileOp) else []


class Branch(NamedTuple):
    """A condition, and the blocks for true and for false; without an else, there is one block."""

    condition: SSAValue
    ways: list[Block]


def branch(op: Operation | None) -> Branch | None:
    """Return what an operation decides and between what, if it is a branch."""
    if not isinstance(op, scf.IfOp):
        return None
    return Branch(op.cond, [region.block for region in op.regions if region.blocks])


def incoming_values(value: SSAValue) -> list[SSAValue] | None:
    """Return what a block's argument, or a result of control flow, may be; None for a counter and any other value."""
    owner = value.owner
    assert isinstance(value, BlockArgument | OpResult)
    number = value.index
    if isinstance(owner, Block):
        around = owner.parent_op()
        match around:
            case scf.ForOp():
                return [around.iter_args[number - 1], _end(owner, number - 1)] if number else None
            case scf.WhileOp() if owner is around.before_region.block:
                return [around.arguments[number], _end(around.after_region.block, number)]
            case scf.WhileOp():
                return [_end(around.before_region.block, number + 1)]
        found = [_passed(block.last_op, owner, number) for block in owner.predecessors()]
        return [each for passed in found for each in passed] or None
    match owner:
        case scf.ForOp():
            return [owner.iter_args[number], _end(owner.body.block, number)]
        case scf.WhileOp():
            return [_end(owner.before_region.block, number + 1)]
        case scf.IfOp():
            return [_end(region.block, number) for region in owner.regions if region.blocks]
    return None


def entry_targets(op: Operation, number: int) -> list[SSAValue]:
    """Return the values that take an operand of a `for` loop on the way in; none for its bounds and anything else."""
    if not isinstance(op, scf.ForOp) or number < 3:
        return []
    return [op.body.block.args[number - 2], op.results[number - 3]]


def yield_targets(op: Operation, number: int) -> list[SSAValue]:
    """Return the values that take an operand of the yield of a `for` loop or a branch; none for any other operand."""
    around = op.parent_op()
    if not isinstance(op, scf.YieldOp):
        return []
    match around:
        case scf.ForOp():
            return [around.body.block.args[number + 1], around.results[number]]
        case scf.IfOp():
            return [around.results[number]]
    return []


def joined_values(op: Operation) -> list[SSAValue]:
    """Return the values for which `incoming_values` has several: of a `for` loop or a branch; none of anything else."""
    match op:
        case scf.ForOp():
            return [*op.body.block.args[1:], *op.results]
        case scf.IfOp():
            return list(op.results)
    return []


def yields(op: Operation | None) -> list[scf.YieldOp]:
    """Return the operations that end the blocks of a `for` loop or a branch; none of anything else."""
    choice = branch(op)
    blocks = choice.ways if choice else loop_blocks(op) if counted_loop(op) else []
    return [block.last_op for block in blocks if isinstance(block.last_op, scf.YieldOp)]


def is_combined(op: Operation) -> bool:
    """Return whether an operation is in a region that is not control flow: of a reduction, a scan or a map."""
    around = op.parent_op()
    while around is not None and not isinstance(around, tt.FuncOp):
        if not around.name.startswith("scf."):
            return True
        around = around.parent_op()
    return False


def extend_operands(op: Operation, more: Sequence[SSAValue], types: Sequence[Attribute]) -> Operation:
    """Replace a loop or branch by one that passes on more values; its blocks take and pass them already.

    Args:
        more: their initial values; none for a branch.
        types: the types of the further results.

    Returns:
        what replaces it; the further results come last.
    """
    regions = [op.detach_region(region) for region in list(op.regions)]
    match op:
        case scf.ForOp():
            made: Operation = scf.ForOp(op.lb, op.ub, op.step, [*op.iter_args, *more], *regions)
        case scf.WhileOp():
            made = scf.WhileOp([*op.arguments, *more], [*op.result_types, *types], *regions)
        case scf.IfOp():
            made = scf.IfOp(op.cond, [*op.result_types, *types], regions[0], regions[1])
        case _:
            raise unsupported(op)
    made.attributes |= op.attributes
    made.location = op.location
    for old, new in zip(op.results, made.results, strict=False):
        new.name_hint = old.name_hint
    Rewriter.replace_op(op, made, made.results[: len(op.results)])
    return made


def _end(block: Block, number: int) -> SSAValue:
    assert block.last_op is not None
    return block.last_op.operands[number]


def _passed(end: Operation | None, block: Block, number: int) -> list[SSAValue]:
    """Return what the end of a block passes for another block's argument."""
    match end:
        case cf.BranchOp():
            return [end.arguments[number]]
        case cf.ConditionalBranchOp():
            ways = ((end.then_block, end.then_arguments), (end.else_block, end.else_arguments))
            return [arguments[number] for to, arguments in ways if to is block]
    return []
