"""Rewrites sums and products of narrow floats so that they are computed in f32 and rounded once, at the end.

A running value of 16 bits stops growing: in bf16, 256 + 1 is 256. Triton's own backends add in a tree of invocations.
The operands stay as they are, because a narrow float in a register is an f32; the region and its results get that type.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..ir import tile, tt
from ..scalars import LAYOUTS
from .offsets import alike


def widen_sums(body: Block) -> None:
    """Rewrite the reductions and scans under a block, in place."""
    for op in list(body.walk()):
        if isinstance(op, tt.ReduceOp | tt.ScanOp):
            _widen(op)


def _widen(op: tt.ReduceOp | tt.ScanOp) -> None:
    block, here = op.combine.block, Builder(InsertPoint.after(op))
    for number, result in enumerate(op.res):
        combined = _plain(op, number)
        if combined is None:
            continue
        for value in (block.args[number], block.args[len(op.srcs) + number], combined):
            Rewriter.replace_value_with_new_type(value, f32)
        narrow = result.type
        wide = Rewriter.replace_value_with_new_type(result, alike(narrow, f32))
        _round(wide, tile.RoundOp(wide, narrow), here)


def _round(wide: SSAValue, rounded: tile.RoundOp, here: Builder) -> None:
    """Let all others use the rounded number in place of the wide one."""
    assert isinstance(wide.owner, Operation)
    rounded.location = wide.owner.location
    wide.replace_uses_with_if(here.insert(rounded).result, lambda use: use.operation is not rounded)


def _plain(op: tt.ReduceOp | tt.ScanOp, number: int) -> SSAValue | None:
    """Return the sum or product that is all that the region computes of an operand, if that has narrow floats.

    Two elements have one sum, which is rounded once in any case.
    """
    src, block = op.srcs[number], op.combine.block
    assert isinstance(src.type, TensorType) and block.last_op is not None
    if src.type.element_type.name not in LAYOUTS or src.type.get_shape()[op.axis.value.data] <= 2:
        return None
    combined = block.last_op.operands[number]
    pair = [block.args[number], block.args[len(op.srcs) + number]]
    is_plain = isinstance(combined.owner, arith.AddfOp | arith.MulfOp) and {*combined.owner.operands} == {*pair}
    return combined if is_plain and all(value.has_one_use() for value in (combined, *pair)) else None
