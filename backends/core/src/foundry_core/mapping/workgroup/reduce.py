"""tt.reduce of a row by all work-items: each reduces a part of the row, then each combines all the parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...emit.mlir import LOCAL, Reg
from ...ir import tt
from ..base.buffers import Buffer
from ..base.numeric import element_name, in_register
from ..base.operations.reduce import Reduction, array_type
from ..base.space import Point

if TYPE_CHECKING:
    from .program import WorkGroup


class WorkGroupReduction(Reduction):
    """A reduction whose single result all work-items compute together, each from some of the elements."""

    def __init__(self, program: WorkGroup, op: tt.ReduceOp) -> None:
        super().__init__(program, op)
        self._space = program.tiles.group
        self._work_items = program.tiles.target.work_items

    def _fold(self, count: int, step: int, point: Point) -> list[Reg]:
        turns = count // step
        most = min(turns, self._work_items)
        if len(self._shape) > 1 or most == 1 or self._space.is_alone:
            return super()._fold(count, step, point)
        t, private, me = self._tiles.text, self._tiles.private, self._space.work_item
        lanes = 1 if self._folds_lanes(point) else point.lanes
        if self._combination.is_commutative:
            # Neighbouring work-items read neighbouring vectors.
            parts, first, stride, end = most, self._space.times(me, t.integer(step)), most * step, t.integer(count)
        else:
            # Each work-item combines consecutive elements, so that the parts are in their order.
            length = -(-turns // most) * step
            parts, first, stride = -(-count // length), self._space.times(me, t.integer(length)), step
            end = self._smaller(self._space.plus(first, t.integer(length)), t.integer(count))
        found = [
            Buffer(t.local(array_type(elem), parts * lanes), in_register(elem), (parts, lanes), (0, 1), LOCAL)
            for elem in (element_name(src.type, self._op) for src in self._op.srcs)
        ]
        # The work-items that have a part; all of them if there are at least as many steps as work-items.
        has_one = t.compare("slt", me, t.integer(parts))
        with self._space.barriers(), t.nest(f"scf.if {has_one.name} {{"):
            values = self._folded(first, self._space.plus(first, t.integer(stride)), end, stride, point)
            self._write(found, Point((me, t.integer(0)), 1, lanes), values)
        zero = t.integer(0)

        def part(index: Reg) -> list[Reg]:
            return [private.read(buffer, Point((index, zero), 1, lanes)) for buffer in found]

        return self._combined(part(zero), t.integer(1), t.integer(parts), 1, part)

    def _smaller(self, x: Reg, y: Reg) -> Reg:
        t = self._tiles.text
        return t.select(t.compare("slt", x, y), x, y)
