"""tt.map_elementwise: a loop over the elements, in row-major order, around the function's operations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects.builtin import TensorType

from ....errors import unsupported
from ....ir import tt
from ....ir.elements import extents
from ..emission import statement
from ..mapping import Mapping
from ..space import Point
from .combine import Combination


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
