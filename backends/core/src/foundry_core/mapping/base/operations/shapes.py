"""Ranges, and tiles whose elements are at computed places of other tiles; Tiles writes those of known places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.ir import Operation

from ....emit.mlir import WIDTHS, Reg
from ....ir import tt
from ....ir.elements import extents
from ....ops.numeric import element_name, in_register
from ..buffers import collect
from ..emission import statement, tile_value
from ..mapping import Mapping
from ..space import Memo, Point
from ..tiles import Tiles


@statement(tt.UnsplatOp)
def _unsplat(program: Mapping, op: tt.UnsplatOp) -> None:
    index = (program.text.integer(0),) * len(extents(op.src))
    value = program.tiles.evaluate(op.src, Point(index, 0, 1), {})
    is_pointer = isinstance(op.result.type, tt.PointerType)
    program.tiles.scalars[op.result] = program.tiles.numeric.pointer(value) if is_pointer else value


@tile_value(tt.MakeRangeOp)
def _range(tiles: Tiles, op: tt.MakeRangeOp, point: Point, memo: Memo) -> Reg:
    t = tiles.text
    first = t.cast("arith.trunci", tiles.space.plus(point.index[0], t.integer(op.start.value.data)), "i32")
    if point.lanes == 1:
        return first
    return t.binary("arith.addi", t.broadcast(first, point.lanes), t.iota(first.elem, point.lanes))


@tile_value(tt.ReshapeOp)
def _reshaped(tiles: Tiles, op: tt.ReshapeOp, point: Point, memo: Memo) -> Reg:
    """Return elements in row-major order: an element has the same linear index in both shapes."""
    t, space = tiles.text, tiles.space
    after, before = extents(op.result), extents(op.src)
    buffer = tiles.buffers.get(op.src)
    if buffer is not None and buffer.order == tuple(range(len(before))):
        return tiles.read_buffer(op.src, replace(buffer, extents=after, order=tuple(range(len(after)))), point)

    def one(index: tuple[Reg, ...]) -> Reg:
        linear = t.integer(0)
        for i, extent in zip(index, after, strict=True):
            linear = space.plus(space.times(linear, t.integer(extent)), i)
        return tiles.evaluate(op.src, Point(space.unfold(linear, before), 0, 1), memo)

    return _each_lane(tiles, op, point, one)


@tile_value(tt.JoinOp)
def _joined(tiles: Tiles, op: tt.JoinOp, point: Point, memo: Memo) -> Reg:
    """Return elements of both operands, chosen by the index of the last dimension."""
    t, space = tiles.text, tiles.space
    rank, number = len(point.index), point.index[-1]
    if point.lane == rank - 1:
        pair = [tiles.evaluate(side, Point(point.index[:-1], 0, 1), memo) for side in op.operands]
        if point.lanes == 2:
            return collect(t, 2, pair[0].elem, lambda lane: pair[lane])
    else:
        pair = [tiles.evaluate(side, Point(point.index[:-1], point.lane, point.lanes), memo) for side in op.operands]
    for known in range(2):
        if space.known(number, known):
            return pair[known]
    return t.select(t.broadcast(t.compare("eq", number, t.integer(0)), point.lanes), *pair)


@tile_value(tt.GatherOp)
def _gathered(tiles: Tiles, op: tt.GatherOp, point: Point, memo: Memo) -> Reg:
    """Return elements at indices. An index outside the tile, which Triton leaves undefined, wraps around in the tile.

    The extent is a power of two, so the lowest bits are the remainder. As on a GPU, narrow indices are unsigned.
    """
    t = tiles.text
    axis = op.axis.value.data
    last = t.integer(extents(op.src)[axis] - 1)

    def one(index: tuple[Reg, ...]) -> Reg:
        place = tiles.evaluate(op.indices, Point(index, 0, 1), memo)
        wide = t.to_index(place) if WIDTHS[place.elem] >= WIDTHS[t.index] else t.cast("arith.extui", place, t.index)
        place = t.binary("arith.andi", wide, last)
        return tiles.evaluate(op.src, Point((*index[:axis], place, *index[axis + 1 :]), 0, 1), memo)

    return _each_lane(tiles, op, point, one)


def _each_lane(tiles: Tiles, op: Operation, point: Point, one: Callable[[tuple[Reg, ...]], Reg]) -> Reg:
    """Return the elements of a point; `one` computes each from its index."""
    t, space = tiles.text, tiles.space
    if point.lanes == 1:
        return one(point.index)

    def lane_element(lane: int) -> Reg:
        here = space.plus(point.index[point.lane], t.integer(lane))
        return one((*point.index[: point.lane], here, *point.index[point.lane + 1 :]))

    return collect(t, point.lanes, in_register(element_name(op.results[0].type, op)), lane_element)
