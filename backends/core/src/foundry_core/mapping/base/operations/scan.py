"""tt.scan along one dimension, with any combining region, in the buffers of its results.

The operands are first written to the buffers of the results. Then each element but the first is combined with the
result before it, in the order of the axis. So a region that is not associative gives what a loop in Python gives, and
floats are rounded in this order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....emit.mlir import Reg
from ....ir import tt
from ....ir.elements import extents
from ..buffers import Buffer
from ..emission import statement
from ..mapping import Mapping
from ..space import Point
from .combine import Combination


@statement(tt.ScanOp)
def _scan(program: Mapping, op: tt.ScanOp) -> None:
    tiles, axis, shape = program.tiles, op.axis.value.data, extents(op.srcs[0])
    buffers = [program.writable_buffer(src, op) for src in op.srcs]
    combination = Combination(program, op.combine.block)
    lane = len(shape) - 1
    lanes = 1
    if axis != lane:
        lanes = combination.lanes(min(tiles.lanes(result, op, lane) for result in op.results))
    rest = (*shape[:axis], *shape[axis + 1 :])
    with tiles.space.iterate(rest, len(rest) - 1, lanes) as point:
        _along(program, op, buffers, combination, Point(point.index, lane, lanes))
    tiles.buffers.update(zip(op.results, buffers, strict=True))


def _along(program: Mapping, op: tt.ScanOp, buffers: Sequence[Buffer], combination: Combination, rest: Point) -> None:
    """Scan buffers in place; `rest` has the index of all dimensions but the axis."""
    t, private, axis = program.text, program.tiles.private, op.axis.value.data
    count = extents(op.srcs[0])[axis]
    last = t.integer(count - 1)

    def at(i: Reg) -> Point:
        place = t.binary("arith.subi", last, i) if op.reverse.value.data else i
        return Point((*rest.index[:axis], place, *rest.index[axis:]), rest.lane, rest.lanes)

    with t.loop(t.integer(1), t.integer(count), 1) as i:
        here, before = at(i), at(t.binary("arith.subi", i, t.integer(1)))
        values = combination.write([private.read(b, before) for b in buffers], [private.read(b, here) for b in buffers])
        for buffer, value in zip(buffers, values, strict=True):
            private.write(buffer, here, value)
