"""tt.reduce of a row by all work-items: each reduces a part of the row, then each combines all the parts."""

from __future__ import annotations

from ...dialects import tt
from ..base.buffers import Buffer
from ..base.mlir import LOCAL, Reg
from ..base.numeric import element, in_register
from ..base.operations.reduce import Reduction, kept
from ..base.space import Point
from ..base.tiles import Tiles
from .space import WorkGroupSpace


class WorkGroupReduction(Reduction):
    """A reduction whose single result all work-items compute together, each from some of the elements."""

    def __init__(self, tiles: Tiles, op: tt.ReduceOp, space: WorkGroupSpace, work_items: int) -> None:
        super().__init__(tiles, op)
        self._space = space
        self._work_items = work_items

    def _fold(self, count: int, step: int, point: Point) -> list[Reg]:
        turns = count // step
        parts = min(turns, self._work_items)
        if len(self._shape) > 1 or parts == 1 or self._space.is_alone:
            return super()._fold(count, step, point)
        t, private, me = self._tiles.text, self._tiles.private, self._space.work_item
        kinds = [(element(src.type, self._op), point.lanes) for src in self._op.srcs]
        found = [
            Buffer(t.local(kept(elem), parts * lanes), in_register(elem), (parts, lanes), (0, 1), LOCAL)
            for elem, lanes in kinds
        ]
        # The work-items that have a part; all of them if there are at least as many steps as work-items.
        has_one = t.compare("slt", me, t.integer(parts))
        with self._space.together(), t.nested(f"scf.if {has_one.name} {{"):
            mine = self._space.times(me, t.integer(step))
            values = self._folded(mine, self._space.plus(mine, t.integer(parts * step)), count, parts * step, point)
            self._write(found, Point((me, t.integer(0)), 1, point.lanes), values)
        zero = t.integer(0)

        def part(index: Reg) -> list[Reg]:
            return [private.read(buffer, Point((index, zero), 1, point.lanes)) for buffer in found]

        return self._combined(part(zero), t.integer(1), parts, 1, part)
