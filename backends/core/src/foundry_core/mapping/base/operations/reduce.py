"""tt.reduce along one dimension, with any combining region.

If the region is one operation that commutes, vectors are combined first, then pairs of lanes of the last vector. With
any other region, elements are combined in their order: the lanes of each vector first, each with its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType

from ....dialects import tt
from ..buffers import Buffer
from ..emission import statement
from ..mlir import Reg
from ..numeric import element, in_register
from ..space import Point, extents
from .combine import Combination

if TYPE_CHECKING:
    from ..program import Program
    from ..tiles import Memo


class Reduction:
    """One tt.reduce of a kernel."""

    def __init__(self, program: Program, op: tt.ReduceOp) -> None:
        self._tiles = program.tiles
        self._op = op
        self._combination = Combination(program, op.combine.block)
        self._axis = op.axis.value.data
        self._shape = extents(op.srcs[0])

    def write(self) -> None:
        """Emit the reduction: results of rank 0 become scalars, others get buffers."""
        if len(self._shape) == 1:
            values = self._along_lanes(())
            for result, value in zip(self._op.results, values, strict=True):
                self._tiles.scalars[result] = value
            return
        outputs = []
        for result in self._op.results:
            assert isinstance(result.type, TensorType)
            outputs.append(self._tiles.allocate(result, self._op))
            self._tiles.buffers[result] = outputs[-1]
        rank = len(self._shape)
        if self._axis == rank - 1:
            outer = self._shape[:-1]
            with self._tiles.space.each(outer, len(outer) - 1, 1) as point:
                self._write(outputs, point, self._along_lanes(point.index))
            return
        rest = self._shape[: self._axis] + self._shape[self._axis + 1 :]
        lane = len(rest) - 1
        lanes = self._combination.lanes(min(self._tiles.lanes(result, self._op, lane) for result in self._op.results))
        with self._tiles.space.each(rest, lane, lanes) as point:
            self._write(outputs, point, self._across_lanes(point))

    def _write(self, outputs: Sequence[Buffer], point: Point, values: Sequence[Reg]) -> None:
        for output, value in zip(outputs, values, strict=True):
            self._tiles.private.write(output, point, value)

    def _read(self, point: Point) -> list[Reg]:
        memo: Memo = {}
        values = [self._tiles.at(src, point, memo) for src in self._op.srcs]
        return self._combination.fold_lanes(values) if self._folds_lanes(point) else values

    def _folds_lanes(self, point: Point) -> bool:
        """Return whether the elements read at a point are combined at once, to keep their order."""
        return point.lane == self._axis and not self._combination.is_commutative

    def _fold(self, count: int, step: int, point: Point) -> list[Reg]:
        """Combine `count` elements along the axis, `step` apart, into registers of the point's lanes."""
        if count == step:
            return self._read(point)
        t = self._tiles.text
        return self._folded(t.integer(0), t.integer(step), t.integer(count), step, point)

    def _folded(self, start: Reg, next: Reg, end: Reg, step: int, point: Point) -> list[Reg]:
        """Combine the elements at `start`, at `next` and every `step` after that, before `end`."""

        def at(i: Reg) -> list[Reg]:
            index = list(point.index)
            index[self._axis] = i
            return self._read(Point(tuple(index), point.lane, point.lanes))

        return self._combined(at(start), next, end, step, at)

    def _combined(
        self, first: Sequence[Reg], next: Reg, end: Reg, step: int, at: Callable[[Reg], list[Reg]]
    ) -> list[Reg]:
        """Combine registers with those that `at` returns for the indices from `next` to `end`."""
        t, tiles = self._tiles.text, self._tiles
        cells, cell = self._cells(first)
        with t.loop(next, end, step) as i:
            self._write(cells, cell, self._combination.write([tiles.private.read(c, cell) for c in cells], at(i)))
        return [tiles.private.read(c, cell) for c in cells]

    def _cells(self, values: Sequence[Reg]) -> tuple[list[Buffer], Point]:
        """Allocate buffers for running values; return them and the point at which the values are.

        They are in private memory, not in carried registers: the kernel determines their number and types, and the
        device's compiler keeps them in registers anyway.
        """
        t = self._tiles.text
        kinds = [(element(src.type, self._op), value.lanes) for src, value in zip(self._op.srcs, values, strict=True)]
        cells = [Buffer(t.private(kept(elem), lanes), in_register(elem), (lanes,), (0,)) for elem, lanes in kinds]
        cell = Point((t.integer(0),), 0, values[0].lanes)
        self._write(cells, cell, values)
        return cells, cell

    def _along_lanes(self, outer: tuple[Reg, ...]) -> list[Reg]:
        """Combine all elements along the last dimension, at one index of the others."""
        t = self._tiles.text
        count = self._shape[-1]
        lane = len(self._shape) - 1
        lanes = self._combination.lanes(min(self._tiles.lanes(src, self._op, lane) for src in self._op.srcs))
        point = Point((*outer, t.integer(0)), lane, lanes)
        values = self._fold(count, lanes, point)
        parts = [[t.extract(value, lane) for value in values] for lane in range(values[0].lanes)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self._combination.write(parts[i], parts[i + half]) for i in range(half)]
        return parts[0]

    def _across_lanes(self, rest: Point) -> list[Reg]:
        """Combine all elements along a dimension that is not the last, one vector of results at a time."""
        zero = self._tiles.text.integer(0)
        index = (*rest.index[: self._axis], zero, *rest.index[self._axis :])
        point = Point(index, len(self._shape) - 1, rest.lanes)
        return self._fold(self._shape[self._axis], 1, point)


def kept(elem: str) -> str:
    """Return the type that an element has in an array."""
    return "i8" if elem == "i1" else in_register(elem)


@statement(tt.ReduceOp)
def _reduce(program: Program, op: tt.ReduceOp) -> None:
    Reduction(program, op).write()
