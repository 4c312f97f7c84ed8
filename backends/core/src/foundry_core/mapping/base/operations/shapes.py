"""Ranges, and tiles that repeat or move the elements of other tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....dialects import tt
from ..buffers import collect
from ..emission import statement, tile_value
from ..mlir import Reg
from ..numeric import element, in_register
from ..space import Point, extents

if TYPE_CHECKING:
    from ..program import Program
    from ..tiles import Memo, Tiles


@tile_value(tt.SplatOp)
def _splat(tiles: Tiles, op: tt.SplatOp, point: Point, memo: Memo) -> Reg:
    return tiles.text.broadcast(tiles.scalar(op.src), point.lanes)


@statement(tt.UnsplatOp)
def _unsplat(program: Program, op: tt.UnsplatOp) -> None:
    index = (program.text.integer(0),) * len(extents(op.src))
    program.tiles.scalars[op.result] = program.tiles.at(op.src, Point(index, 0, 1), {})


@tile_value(tt.MakeRangeOp)
def _range(tiles: Tiles, op: tt.MakeRangeOp, point: Point, memo: Memo) -> Reg:
    t = tiles.text
    first = t.cast("arith.trunci", tiles.space.plus(point.index[0], t.integer(op.start.value.data)), "i32")
    if point.lanes == 1:
        return first
    return t.binary("arith.addi", t.broadcast(first, point.lanes), t.iota(first.elem, point.lanes))


@tile_value(tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp)
def _moved(tiles: Tiles, op: tt.ExpandDimsOp | tt.BroadcastOp | tt.TransOp, point: Point, memo: Memo) -> Reg:
    return tiles.text.broadcast(tiles.at(op.src, tiles.behind(op, point), memo), point.lanes)


@tile_value(tt.ReshapeOp)
def _reshaped(tiles: Tiles, op: tt.ReshapeOp, point: Point, memo: Memo) -> Reg:
    """Return elements in row-major order: an element has the same linear index in both shapes."""
    t, space = tiles.text, tiles.space
    after, before = extents(op.result), extents(op.src)

    def one(lane: int) -> Reg:
        linear = t.integer(0)
        for d, (i, extent) in enumerate(zip(point.index, after, strict=True)):
            here = space.plus(i, t.integer(lane)) if d == point.lane else i
            linear = space.plus(space.times(linear, t.integer(extent)), here)
        index: list[Reg] = []
        for extent in reversed(before):
            index.insert(0, t.binary("arith.remui", linear, t.integer(extent)))
            linear = t.binary("arith.divui", linear, t.integer(extent))
        return tiles.at(op.src, Point(tuple(index), 0, 1), memo)

    if point.lanes == 1:
        return one(0)
    return collect(t, point.lanes, in_register(element(op.result.type, op)), one)
