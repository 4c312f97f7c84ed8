"""tt.reduce and tt.scan along one dimension, with any combining region.

If the region of a reduction may combine elements in any order (ir/combining.py), vectors are combined first, then pairs
of lanes of the last vector. With any other region, elements are combined in their order: the lanes of each vector
first, each with its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from ....emit.mlir import Reg
from ....ir import tt
from ....ir.arith import ConstantOp
from ....ir.combining import reduction_order
from ....ir.elements import extents
from ....ir.facts import combined_axis
from ....ops.elementwise import apply_row, is_elementwise
from ....ops.numeric import element_name, in_register
from ..buffers import Buffer
from ..emission import statement
from ..mapping import Mapping
from ..space import Memo, Point


class Combination:
    """A region whose block takes two sets of scalars and returns one; of a map, the second set is empty.

    Attributes:
        is_elementwise: whether the region can be written on vectors. One with control flow takes scalars only.
    """

    def __init__(self, program: Mapping, block: Block) -> None:
        self._program = program
        self._block = block
        last = block.last_op
        assert last is not None
        self._last = last
        self.is_elementwise = all(is_elementwise(op) or isinstance(op, ConstantOp) or op is last for op in block.ops)

    def lanes(self, wanted: int) -> int:
        """Return how many lanes the operands may have."""
        return wanted if self.is_elementwise else 1

    def fold_lanes(self, values: Sequence[Reg]) -> list[Reg]:
        """Combine all lanes of registers, each with its neighbour, so that the order of the elements is kept."""
        t, values = self._program.text, list(values)
        while (lanes := values[0].lanes) > 1:
            even, odd = ([t.shuffle(x, range(first, lanes, 2)) for x in values] for first in (0, 1))
            values = self.write(even, odd)
        return values

    def write(self, a: Sequence[Reg], b: Sequence[Reg]) -> list[Reg]:
        """Write the region on registers of as many lanes each; return its results."""
        tiles = self._program.tiles
        if not self.is_elementwise:
            tiles.scalars.update(zip(self._block.args, [*a, *b], strict=True))
            self._program.write_operations(op for op in self._block.ops if op is not self._last)
            return [tiles.scalar(value) for value in self._last.operands]
        lanes = a[0].lanes
        known: dict[SSAValue, Reg] = dict(zip(self._block.args, [*a, *b], strict=True))

        def register(value: SSAValue) -> Reg:
            return known[value] if value in known else tiles.text.broadcast(tiles.scalar(value), lanes)

        for op in self._block.ops:
            if is_elementwise(op):
                known[op.results[0]] = apply_row(tiles.numeric, op, [register(operand) for operand in op.operands])
        return [register(value) for value in self._last.operands]


# Vectors that are combined with each other before the sum of all is needed: a power of two.
_AT_ONCE = 4


class Reduction:
    """One tt.reduce of a kernel."""

    def __init__(self, program: Mapping, op: Operation) -> None:
        self._tiles = program.tiles
        self._op = op
        self._combination = Combination(program, op.regions[0].block)
        order = reduction_order(op)
        self._in_any_order = order.is_free and order.place is None
        along = combined_axis(op)
        assert along is not None
        self._axis = along.number
        self._shape = extents(op.operands[0])

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
            with self._tiles.space.iterate(outer, len(outer) - 1, 1) as point:
                self._write(outputs, point, self._along_lanes(point.index))
            return
        rest = self._shape[: self._axis] + self._shape[self._axis + 1 :]
        lane = len(rest) - 1
        lanes = self._combination.lanes(min(self._tiles.lanes(result, self._op, lane) for result in self._op.results))
        with self._tiles.space.iterate(rest, lane, lanes) as point:
            # One vector of results at a time.
            index = (*point.index[: self._axis], self._tiles.text.integer(0), *point.index[self._axis :])
            self._write(outputs, point, self._fold(self._shape[self._axis], 1, Point(index, rank - 1, point.lanes)))

    def _write(self, outputs: Sequence[Buffer], point: Point, values: Sequence[Reg]) -> None:
        for output, value in zip(outputs, values, strict=True):
            self._tiles.private.write(output, point, value)

    def _read(self, point: Point) -> list[Reg]:
        memo: Memo = {}
        values = [self._tiles.evaluate(src, point, memo) for src in self._op.operands]
        return self._combination.fold_lanes(values) if self._folds_lanes(point) else values

    def _folds_lanes(self, point: Point) -> bool:
        """Return whether the elements read at a point are combined at once, to keep their order."""
        return point.lane == self._axis and not self._in_any_order

    def _fold(self, count: int, step: int, point: Point) -> list[Reg]:
        """Combine `count` elements along the axis, `step` apart, into registers of the point's lanes."""
        if count == step:
            return self._read(point)
        t = self._tiles.text
        along_lanes = point.lane == self._axis and point.lanes > 1
        if along_lanes and self._in_any_order and count >= 2 * _AT_ONCE * step:
            existing = self._tiles.point_bound(self._op.operands, point)
            if existing is not None:
                return self._fold_several(count, step, point, *existing)
        return self._folded(t.integer(0), t.integer(step), t.integer(count), step, point)

    def _fold_several(
        self, count: int, step: int, point: Point, until: Reg | None, inside: frozenset[SSAValue]
    ) -> list[Reg]:
        """Combine several vectors at a time where all elements of all loads exist, then one vector at a time.

        So only one addition in several waits for the one before, and there is no test before a load.

        Args:
            until, inside: see Tiles.point_bound.
        """
        t, tiles = self._tiles.text, self._tiles

        def at(i: Reg, inside: frozenset[SSAValue] = frozenset()) -> list[Reg]:
            index = list(point.index)
            index[self._axis] = i
            return self._read(Point(tuple(index), point.lane, point.lanes, inside))

        def several(i: Reg) -> list[Reg]:
            parts = [at(tiles.space.step(i, number * step), inside) for number in range(_AT_ONCE)]
            while len(parts) > 1:
                parts = [self._combination.write(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
            return parts[0]

        zero, one, group, end = (t.integer(number) for number in (0, step, _AT_ONCE * step, count))
        cells, cell = self._cells(point.lanes)
        if until is None:
            start, whole = group, end
            self._write(cells, cell, several(zero))
        else:
            # A row that is a multiple of `several` long then has no single vectors behind it.
            is_long = t.compare("sle", group, until)
            with t.when(is_long):
                self._write(cells, cell, several(zero))
            with t.otherwise():
                self._write(cells, cell, at(zero))
            start = t.select(is_long, group, one)
            whole = t.select(is_long, t.binary("arith.andi", until, t.integer(-_AT_ONCE * step)), one)
        self._accumulate(cells, cell, start, whole, _AT_ONCE * step, several)
        self._accumulate(cells, cell, whole, end, step, at)
        return [tiles.private.read(c, cell) for c in cells]

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
        cells, cell = self._cells(first[0].lanes)
        self._write(cells, cell, first)
        self._accumulate(cells, cell, next, end, step, at)
        return [self._tiles.private.read(c, cell) for c in cells]

    def _accumulate(
        self, cells: Sequence[Buffer], cell: Point, start: Reg, end: Reg, step: int, at: Callable[[Reg], list[Reg]]
    ) -> None:
        """Combine running values with those that `at` returns for the indices from `start` to `end`."""
        with self._tiles.text.loop(start, end, step) as i:
            sums = [self._tiles.private.read(c, cell) for c in cells]
            self._write(cells, cell, self._combination.write(sums, at(i)))

    def _cells(self, lanes: int) -> tuple[list[Buffer], Point]:
        """Allocate buffers for running values of some lanes; return them and the point at which the values are.

        They are in private memory, not in carried registers: the kernel determines their number and types, and the
        device's compiler keeps them in registers anyway.
        """
        t = self._tiles.text
        kinds = [element_name(src.type, self._op) for src in self._op.operands]
        cells = [Buffer(t.private(array_type(elem), lanes), in_register(elem), (lanes,), (0,)) for elem in kinds]
        return cells, Point((t.integer(0),), 0, lanes)

    def _along_lanes(self, outer: tuple[Reg, ...]) -> list[Reg]:
        """Combine all elements along the last dimension, at one index of the others."""
        t = self._tiles.text
        count = self._shape[-1]
        lane = len(self._shape) - 1
        lanes = self._combination.lanes(min(self._tiles.lanes(src, self._op, lane) for src in self._op.operands))
        point = Point((*outer, t.integer(0)), lane, lanes)
        values = self._fold(count, lanes, point)
        parts = [[t.extract(value, lane) for value in values] for lane in range(values[0].lanes)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self._combination.write(parts[i], parts[i + half]) for i in range(half)]
        return parts[0]


def array_type(elem: str) -> str:
    """Return the type that an element has in an array."""
    return "i8" if elem == "i1" else in_register(elem)


@statement(tt.ReduceOp)
def write_reduction(program: Mapping, op: tt.ReduceOp) -> None:
    Reduction(program, op).write()


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
