"""Where values go that loops and branches pass on."""

from __future__ import annotations

from xdsl.dialects import cf, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use


def incoming(value: SSAValue) -> list[SSAValue] | None:
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


def yielded(use: Use) -> list[SSAValue]:
    """Return what an operand of the end of a `for` loop's or a branch's block becomes; nothing for any other."""
    around = use.operation.parent_op()
    if not isinstance(use.operation, scf.YieldOp):
        return []
    match around:
        case scf.ForOp():
            return [around.body.block.args[use.index + 1], around.results[use.index]]
        case scf.IfOp():
            return [around.results[use.index]]
    return []


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
