"""Replaces tensors of pointers or offsets that a loop carries by what changes: a number, or a tensor of offsets.

    for ...: ptrs += BK * stride       becomes        for ...: moved += BK * stride,  ptrs = first_ptrs + moved

This lets the analysis of addresses see through the loop.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..ir import tt
from ..ir.arith import ConstantOp, TruncIOp
from ..ir.build import advance, splat
from ..ir.facts import pointer_sum
from .offsets import Offsets, offset_bits, widen
from .scalars import Scalars, Writer


def replace_inductions(loop: scf.ForOp) -> scf.ForOp:
    """Replace a loop's carried pointers and evenly moved offsets; return the new loop, which replaces the old one."""
    for index in range(len(loop.iter_args)):
        argument = loop.body.block.args[index + 1]
        if not isinstance(argument.type, TensorType):
            continue
        is_pointer = isinstance(argument.type.element_type, tt.PointerType)
        if not is_pointer and not isinstance(argument.type.element_type, IntegerType):
            continue
        last = loop.body.block.last_op
        assert last is not None
        steps = _steps(last.operands[index], argument)
        if steps is None:
            continue
        loop = _replace_one(loop, index, steps, is_pointer)
    return loop


def _steps(value: SSAValue, argument: BlockArgument) -> list[SSAValue] | None:
    """Return what each iteration adds to the argument; None if it changes the argument in any other way."""
    steps: list[SSAValue] = []
    while value is not argument:
        added = tuple(value.owner.operands) if isinstance(value.owner, arith.AddiOp) else pointer_sum(value.owner)
        if added is None:
            return None
        value, step = added
        steps.append(step)
    return steps


def _replace_one(loop: scf.ForOp, index: int, steps: list[SSAValue], is_pointer: bool) -> scf.ForOp:
    block = loop.body.block
    argument = block.args[index + 1]
    assert isinstance(argument.type, TensorType)
    # Use a new writer for each loop argument: the operation at which an older writer inserts may have been replaced.
    writer = Writer()
    offsets = Offsets(writer)
    sums = [offsets.sum_of(step) for step in steps]
    even = all(found.is_uniform and (is_pointer or found.bits >= offset_bits(argument)) for found in sums)
    if not even and not is_pointer:
        return loop
    extents = argument.type.get_shape()
    carried: Attribute = i64 if even else TensorType(i64, extents)

    before = Builder(InsertPoint.before(loop))
    initial = loop.iter_args[index]
    start = before.insert(ConstantOp.integer(0, carried)).result

    yielded = block.last_op
    assert yielded is not None
    moved: SSAValue = block.insert_arg(carried, index + 1)
    scalars = Scalars(Builder(InsertPoint.before(yielded)))
    total = moved
    for step, found in zip(steps, sums, strict=True):
        amount = scalars.value(found.start) if even else widen(step, scalars)
        total = scalars.builder.insert(arith.AddiOp(total, amount)).result
    yielded.operands[index] = total
    here = Builder(InsertPoint.at_start(block))
    argument.replace_all_uses_with(_moved(here, initial, moved))
    block.erase_arg(argument)

    iter_args = [start if i == index else value for i, value in enumerate(loop.iter_args)]
    region = loop.detach_region(loop.body)
    replaced = scf.ForOp(loop.lb, loop.ub, loop.step, iter_args, region)
    replaced.attributes |= loop.attributes
    replaced.location = loop.location
    Builder(InsertPoint.before(loop)).insert(replaced)
    after = Builder(InsertPoint.after(replaced))
    for i, (old, new) in enumerate(zip(loop.results, replaced.results, strict=True)):
        old.replace_all_uses_with(_moved(after, initial, new) if i == index and old.uses else new)
    Rewriter.erase_op(loop)
    return replaced


def _moved(here: Builder, initial: SSAValue, by: SSAValue) -> SSAValue:
    """Build initial + by, for pointers or offsets."""
    assert isinstance(initial.type, TensorType)
    element, extents = initial.type.element_type, initial.type.get_shape()
    if not isinstance(element, tt.PointerType) and element != i64:
        by = here.insert(TruncIOp(by, element)).result
    if not isinstance(by.type, TensorType):
        by = splat(here, by, extents)
    if isinstance(element, tt.PointerType):
        return advance(here, initial, by)
    return here.insert(arith.AddiOp(initial, by)).result


def loops(block: Block) -> list[scf.ForOp]:
    """Return every scf.for under a block, inner loops first, so that an outer one sees a sum in an inner one."""
    return [op for op in reversed(list(block.walk())) if isinstance(op, scf.ForOp)]
