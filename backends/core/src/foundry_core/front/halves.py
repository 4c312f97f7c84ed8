"""Replaces tt.split, which has two results, and tt.cat by operations that say which element is which."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile, tt


def replace_halves(body: Block) -> None:
    """Replace each tt.split by two tile.part, and each tt.cat by a tt.join whose halves follow each other."""
    for op in list(body.walk()):
        builder = Builder(InsertPoint.before(op))
        match op:
            case tt.SplitOp():
                results: list[SSAValue] = [builder.insert(tile.PartOp(op.src, number)).result for number in range(2)]
            case tt.CatOp():
                results = [_joined(op, builder)]
            case _:
                continue
        for old, new in zip(op.results, results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        Rewriter.erase_op(op)


def _joined(op: tt.CatOp, builder: Builder) -> SSAValue:
    """Build what Triton writes for tl.cat without can_reorder."""
    assert isinstance(op.lhs.type, TensorType)
    (count,), element = op.lhs.type.get_shape(), op.lhs.type.element_type

    def insert(made: Operation) -> SSAValue:
        made.location = op.location
        return builder.insert(made).results[0]

    pairs = insert(tt.JoinOp.create(operands=[op.lhs, op.rhs], result_types=[TensorType(element, (count, 2))]))
    order = {"order": DenseArrayBase.from_list(i32, [1, 0])}
    halves = TensorType(element, (2, count))
    turned = insert(tt.TransOp.create(operands=[pairs], result_types=[halves], properties=order))
    return insert(tt.ReshapeOp.create(operands=[turned], result_types=[op.result.type]))
