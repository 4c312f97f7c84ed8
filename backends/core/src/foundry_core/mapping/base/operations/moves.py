"""Ranges, and tiles whose elements are looked up, mapped or counted; Tiles writes elements at known places.

tt.histogram counts the elements that a bin exists for, as unsigned numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from ....emit.mlir import WIDTHS, Reg
from ....errors import unsupported
from ....ir import tt
from ....ir.elements import extents
from ....ops.numeric import element_name, in_register
from ..buffers import collect
from ..emission import statement, tile_value
from ..mapping import Mapping
from ..space import Memo, Point
from ..tiles import Tiles
from .reductions import Combination


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


@statement(tt.MapElementwiseOp)
def _map(program: Mapping, op: tt.MapElementwiseOp) -> None:
    """Apply the function to vectors of elements, or to `pack` neighbours in row-major order at a time."""
    tiles = program.tiles
    if any(isinstance(src.type, TensorType) and isinstance(src.type.element_type, tt.PointerType) for src in op.srcs):
        raise unsupported(op, "on tensors of pointers")
    results = [tiles.allocate(result, op) for result in op.results]
    function = Combination(program, op.function.block)
    # Work-items take different branches in the function. Triton refuses one that writes, so it needs no barriers.
    with _points(program, op, function) as points:
        made = function.write([tiles.evaluate(src, point, {}) for src in op.srcs for point in points], [])
        for place, value in enumerate(made):
            tiles.private.write(results[place // len(points)], points[place % len(points)], value)
    tiles.buffers.update(zip(op.results, results, strict=True))


@contextmanager
def _points(program: Mapping, op: tt.MapElementwiseOp, function: Combination) -> Iterator[list[Point]]:
    """Open a loop over the elements; yield the points that the function takes at a time."""
    tiles, space, t = program.tiles, program.tiles.space, program.text
    shape, pack = extents(op.srcs[0]), op.pack.value.data
    count, last = math.prod(shape), len(shape) - 1
    if count % pack:
        raise unsupported(op, f"of {pack} elements at a time of a tensor with {count}")
    if pack == 1:
        lanes = function.lanes(min(tiles.lanes(value, op, last) for value in (*op.srcs, *op.results)))
        with space.iterate(shape, last, lanes) as point:
            yield [point]
        return
    with space.iterate((count // pack,), 0, 1) as group:
        first = space.times(group.index[0], t.integer(pack))
        places = [space.plus(first, t.integer(number)) for number in range(pack)]
        yield [Point(space.unfold(place, shape), last, 1) for place in places]


@statement(tt.HistogramOp)
def _histogram(program: Mapping, op: tt.HistogramOp) -> None:
    tiles, t, private = program.tiles, program.text, program.tiles.private
    source = program.buffer_of(op.src, op)
    mask = program.buffer_of(op.mask, op) if op.mask is not None else None
    counts = tiles.allocate(op.result, op)
    (bins,) = extents(op.result)
    lanes = tiles.lanes(op.result, op, 0)
    with tiles.space.iterate((bins,), 0, lanes) as point:
        private.write(counts, point, t.integer(0, counts.elem, lanes))
    with tiles.space.single_work_item(), tiles.space.iterate(extents(op.src), 0, 1) as point:
        value = private.read(source, point)
        if WIDTHS[value.elem] < WIDTHS[t.index]:
            value = t.cast("arith.extui", value, t.index)
        counted = t.compare("ult", value, t.integer(bins, value.elem))
        if mask is not None:
            counted = t.binary("arith.andi", counted, private.read(mask, point))
        with t.when(counted):
            place = Point((t.cast("arith.trunci", value, t.index),), 0, 1)
            private.write(counts, place, t.binary("arith.addi", private.read(counts, place), t.integer(1, counts.elem)))
    tiles.buffers[op.result] = counts
