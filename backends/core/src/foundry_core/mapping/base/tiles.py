"""Evaluation of tile expressions: their elements at a point of their index space, in registers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from ...emit.mlir import PRIVATE, WIDTHS, Reg, Text
from ...errors import source_line, unsupported
from ...front.scalars import constant_value as known
from ...ir import tile
from ...ir.arith import ConstantOp
from ...ir.elements import IndexMapping, extents, index_mapping
from ...ir.literals import to_f32_bits
from ...ops.elementwise import apply_row, is_costly, is_elementwise
from ...ops.numeric import Numeric, element_name, in_memory, in_register
from .buffers import Buffer, Buffers
from .emission import TILES, TileValue
from .memory import GlobalMemory
from .plan import BufferPlan, is_tile, is_unit
from .space import Memo, Point, Space
from .target import Target
from .vectors import VectorNumeric

# SPIR-V's kernel flavour has vectors of 2, 3, 4, 8 and 16 components only.
_MOST_LANES = 16
# Vectors that an iteration of a loop copies: more than one, because a device's compiler makes a call of memcpy of a
# loop that copies a row one by one. With 8 instead of 2, layer norm f32 takes 1.3 to 1.6 times as long with AVX-512,
# and products take the same time.
_MOST_COPIES = 2
# Vectors of any other expression in an iteration.
_AT_ONCE = 4
# Elementwise operations of an expression that is written twice: with a test of each vector, and without.
_MOST_TWICE = 4


@dataclass(frozen=True)
class Run:
    """A load that is contiguous along a lane, in an expression.

    Attributes:
        ends: for each dimension, the end of the elements that the expression needs.
        inside: what points may have in `inside` where all elements of the load exist and no axis wraps around.
    """

    load: tile.Read
    lane: int
    ends: Sequence[Reg]
    inside: frozenset[SSAValue]


class Tiles:
    """The registers and buffers of one kernel, and access to elements.

    Attributes:
        scalars: registers of scalar values; f16 and bf16 as f32.
        buffers: tiles in private memory.
        buffer_space: the type of pointers to tiles.
        dot_steps: the number of elements of K in one iteration of tl.dot's innermost loop.
        product_order: the dimensions of c along which tl.dot goes from one register tile to the next, slowest first.
        panels: whether tl.dot may keep its second operand in panels, and omit what is not needed of its operands.
    """

    # A mapping that evaluates an operation differently has its own table.
    values: ClassVar[Mapping[type, TileValue]] = TILES
    dot_steps = 1
    product_order = (1, 0)
    panels = True
    buffer_space = PRIVATE

    def __init__(self, text: Text, plan: BufferPlan, target: Target) -> None:
        self.text = text
        self.plan = plan
        self.target = target
        self.numeric: Numeric = VectorNumeric(text, target.call_bytes, target.converts_f16)
        self.space = self._space(text)
        self.private = Buffers(text, self.space)
        self.memory = GlobalMemory(text, self.space, self.numeric, self)
        self.scalars: dict[SSAValue, Reg] = {}
        self.buffers: dict[SSAValue, Buffer] = {}

    def _space(self, text: Text) -> Space:
        """Return the writer of loops."""
        return Space(text)

    def allocate(
        self,
        value: SSAValue,
        op: Operation,
        order: tuple[int, ...] | None = None,
        shape: tuple[int, ...] | None = None,
        panel: int = 0,
        *,
        as_bits: bool = False,
    ) -> Buffer:
        """Allocate a buffer for a tile's elements, row-major by default, with the tile's shape if no other is given.

        Args:
            as_bits: keep numbers of narrow types in the bits that they have in memory, and not as f32.
        """
        elem = element_name(value.type, op)
        return self.private.allocate(
            in_memory(elem) if as_bits else in_register(elem),
            extents(value) if shape is None else shape,
            order,
            self.buffer_space,
            panel,
        )

    def fill(
        self,
        buffer: Buffer,
        value: SSAValue,
        op: Operation,
        lane: int | None = None,
        ends: Sequence[Reg] | None = None,
    ) -> None:
        """Evaluate a tile and write it to a buffer.

        Args:
            ends: for each dimension, the index from which on nothing needs to be written; by default, all is written.
        """
        shape, t = extents(value), self.text
        extent = [t.integer(size) for size in shape]
        ends = extent if ends is None else ends
        lane = self.best_lane(value) if lane is None else lane
        lanes = self.lanes(value, op, lane)

        elem = element_name(value.type, op)

        def read(point: Point) -> Reg:
            found = self.evaluate(value, point, {})
            return found if buffer.elem == in_register(elem) else self.numeric.to_memory(found, elem)

        def write(point: Point) -> None:
            self.private.write(buffer, point, read(point))

        turns = lanes > 1 and buffer.stride(lane) != 1 and self._turns(buffer, lane, lanes)
        if turns:
            ends = [*extent[:lane], ends[lane], *extent[lane + 1 :]]
        runs = self.runs(value, lane, ends) if value not in self.buffers and lanes > 1 else None
        zero = t.integer(0)

        def copy(first: Reg, end: Reg, step: int, body: Callable[[tuple[Reg, ...]], None]) -> None:
            limits = [(first, end) if d == lane else (zero, ends[d]) for d in range(len(shape))]
            with self.space.nest(limits, shape, lane, step) as index:
                body(index)

        def tested(index: tuple[Reg, ...]) -> None:
            write(Point(index, lane, lanes))

        if runs is None:
            with self.space.barriers():
                copy(zero, ends[lane] if shape else zero, lanes, tested)
            return
        conditions, until = self._tile_bound(runs)
        inside = frozenset().union(*(run.inside for run in runs))
        run = buffer.panel if lane and buffer.panel else shape[lane]
        moves = tile.reads_late(value.owner) and in_register(elem) == elem
        count = min(_MOST_COPIES if moves else _AT_ONCE, run // lanes) if buffer.stride(lane) == 1 else 1

        def transpose(end: Reg) -> None:
            """Transpose squares in registers: the buffer is contiguous along the load's other dimension."""
            other = 1 - lane
            limits = [(zero, end if d == lane else extent[d]) for d in range(2)]
            with self.space.loops(limits, (lanes, lanes), (lane, other)) as index:

                def square(d: int, number: int) -> tuple[Reg, ...]:
                    return tuple(self.space.step(i, number) if at == d else i for at, i in enumerate(index))

                rows = [read(Point(square(other, n), lane, lanes, inside)) for n in range(lanes)]
                for n, column in enumerate(t.transpose(rows)):
                    self.private.write(buffer, Point(square(lane, n), other, lanes), column)

        def several(index: tuple[Reg, ...]) -> None:
            for number in range(count):
                i = self.space.step(index[lane], number * lanes)
                write(Point((*index[:lane], i, *index[lane + 1 :]), lane, lanes, inside))

        end = extent[lane]
        if until is not None:
            end = t.select(t.compare("slt", until, end), until, end)
            end = t.binary("arith.andi", end, t.integer(-lanes * count))
        if conditions:
            end = t.select(self.memory.all(conditions), end, zero)
        with self.space.barriers():
            if turns:
                transpose(end)
            else:
                copy(zero, end, lanes * count, several)
            if end != extent[lane]:
                rest = t.select(t.compare("slt", end, zero), zero, end)
                with t.when(t.compare("slt", rest, ends[lane])):
                    copy(rest, ends[lane], lanes, tested)

    def fill_at_once(
        self, buffer: Buffer, value: SSAValue, op: Operation, lane: int, *, is_whole: bool = False
    ) -> None:
        """Evaluate a small tile and write it to a buffer, all vectors one after the other and not in a loop.

        Args:
            is_whole: whether all elements of its loads are known to exist (`in_bounds`).
        """
        lanes = self.lanes(value, op, lane)

        def write(inside: frozenset[SSAValue]) -> None:
            memo: Memo = {}
            for point in self.points(extents(value), lane, lanes, inside):
                self.private.write(buffer, point, self.evaluate(value, point, memo))

        runs = self.runs(value, lane)
        inside = frozenset().union(*(run.inside for run in runs or []))
        condition = None if is_whole or runs is None else self.in_bounds(value, lane, runs)
        if condition is None:
            write(inside)
            return
        with self.text.when(condition):
            write(inside)
        with self.text.otherwise():
            write(frozenset())

    def points(
        self, shape: Sequence[int], lane: int, lanes: int, inside: frozenset[SSAValue] = frozenset()
    ) -> Iterator[Point]:
        """Return all points of a tile, as constants."""
        steps = [range(0, size, lanes if d == lane else 1) for d, size in enumerate(shape)]
        for index in itertools.product(*steps):
            yield Point(tuple(self.text.integer(i) for i in index), lane, lanes, inside)

    def in_bounds(self, value: SSAValue, lane: int, runs: Sequence[Run]) -> Reg | None:
        """Return whether all elements of an expression's loads exist and no axis wraps around; None if they always do.

        Args:
            runs: what `runs` returned for the whole expression.
        """
        conditions, until = self._tile_bound(runs)
        if until is not None:
            conditions.append(self.text.compare("sle", self.text.integer(extents(value)[lane]), until))
        return self.memory.all(conditions) if conditions else None

    def _tile_bound(self, runs: Sequence[Run]) -> tuple[list[Reg], Reg | None]:
        """Return what GlobalMemory.tile_bound returns, for some loads."""
        conditions, until = list[Reg](), list[Reg]()
        for run in runs:
            known = self.memory.tile_bound(run.load, run.lane, run.ends)
            conditions += known[0]
            until += [] if known[1] is None else [known[1]]
        return conditions, self.text.least(until)

    def runs(self, value: SSAValue, lane: int, ends: Sequence[Reg] | None = None) -> list[Run] | None:
        """Return the loads of an expression that are contiguous along its lane.

        It looks at all loads whose points `source_point` gives what a point has in `inside`.

        Args:
            ends: for each dimension, the end of the elements that are asked for; by default, all are.

        Returns:
            None if one of these loads is not contiguous, or has a mask that only its elements tell, or if two texts of
            the expression are long.
        """
        found = list[Run]()
        shape = extents(value)
        pending: list[tuple[SSAValue, int, Sequence[Reg]]] = [
            (value, lane, [self.text.integer(size) for size in shape] if ends is None else ends)
        ]
        seen, count = set[tuple[SSAValue, int, tuple[Reg, ...]]](), 0
        while pending:
            current, lane, ends = pending.pop()
            op = current.owner
            if (current, lane, tuple(ends)) in seen or current in self.buffers:
                continue
            seen.add((current, lane, tuple(ends)))
            match op:
                case _ if tile.reads_late(op):
                    inside = self.memory.inside(op, lane)
                    if inside is None:
                        return None
                    found.append(Run(op, lane, ends, inside))
                case _ if (of := index_mapping(current)) is not None:
                    inner = of.inner(lane)
                    if of.keeps_order and inner is not None:
                        pending.append((of.source, inner, of.to_source(ends, lambda index: self.text.integer(1))))
                case Operation() if is_elementwise(op):
                    count += 1
                    if is_costly(op) or count > _MOST_TWICE:
                        return None
                    pending += [(operand, lane, ends) for operand in op.operands if is_tile(operand)]
        return found

    @staticmethod
    def _turns(buffer: Buffer, lane: int, lanes: int) -> bool:
        """Return whether a buffer divides into squares of vectors, and is contiguous along the other dimension."""
        if len(buffer.extents) != 2 or buffer.elem == "i1" or buffer.stride(1 - lane) != 1:
            return False
        return (buffer.panel or buffer.extents[1 - lane]) % lanes == 0

    def fill_slice(self, buffer: Buffer, value: SSAValue, op: Operation, first: Reg) -> None:
        """Evaluate the part of a tile at an index of its first dimension, and write it to a buffer of one rank less."""
        shape = extents(value)
        lane = self.best_lane(value) or len(shape) - 1
        with self.space.iterate(shape[1:], lane - 1, self.lanes(value, op, lane)) as point:
            outer = Point((first, *point.index), lane, point.lanes)
            self.private.write(buffer, point, self.evaluate(value, outer, {}))

    def point_bound(self, values: Sequence[SSAValue], point: Point) -> tuple[Reg | None, frozenset[SSAValue]] | None:
        """Return up to which index along a point's lanes the loads of expressions need no test, from 0 on.

        Returns:
            The index, or None for the whole extent; and the values that points before it may have in `inside`. None for
            both if a load is not contiguous, or has a mask that only its elements tell.
        """
        t = self.text
        until: Reg | None = None
        inside: frozenset[SSAValue] = frozenset()
        pending, seen = list(values), set[SSAValue]()
        while pending:
            current = pending.pop()
            op = current.owner
            if current in seen or current in self.buffers or not isinstance(op, Operation):
                continue
            seen.add(current)
            if is_elementwise(op):
                pending += [operand for operand in op.operands if is_tile(operand)]
            elif tile.reads_late(op):
                found = self.memory.point_bound(op, point)
                if found is None:
                    return None
                end, more = found
                inside |= more
                if until is not None and end is not None:
                    end = t.select(t.compare("slt", end, until), end, until)
                until = end or until
        return until, inside

    def lanes(self, value: SSAValue, op: Operation, lane: int) -> int:
        """Return how many elements to process at a time along a dimension: a full vector, or what suits memory."""
        shape = extents(value)
        width = max(WIDTHS[in_register(element_name(value.type, op))], 8)
        vector_bytes = self.target.vector_bytes
        if tile.only_writes(op) and self.plan.streams(value):
            vector_bytes = min(vector_bytes, self.target.streaming_bytes)
        # A device without vectors may have registers that are narrower than an element.
        return min(_MOST_LANES, max(1, vector_bytes * 8 // width), shape[lane]) if shape else 1

    def best_lane(self, value: SSAValue, access: tile.Access | None = None) -> int:
        """Return the dimension along which most of an expression is contiguous in memory; the last one in a tie."""
        shape = extents(value)
        votes = list(self._votes(value, {}))
        for dimension, axis in enumerate(access.axes if access else []):
            votes[dimension] += 2 * self.weight(shape) * is_unit(axis)
        return max(range(len(shape)), key=lambda d: (shape[d] > 1, votes[d], d))

    def weight(self, shape: tuple[int, ...]) -> int:
        """Return what a tile counts where the tiles of an expression are contiguous along different dimensions."""
        return math.prod(shape)

    def _votes(self, value: SSAValue, counted: dict[SSAValue, tuple[int, ...]]) -> tuple[int, ...]:
        """Add up, for each dimension, the weights of the tiles read by an expression that are contiguous along it.

        A row that is broadcast has the weight of the elements that it has, not of those that it becomes.
        """
        if value not in counted:
            counted[value] = self._count(value, counted)
        return counted[value]

    def _count(self, value: SSAValue, counted: dict[SSAValue, tuple[int, ...]]) -> tuple[int, ...]:
        shape = extents(value)
        size = self.weight(shape)
        if value in self.buffers:
            return tuple(size * (self.buffers[value].stride(d) == 1) for d in range(len(shape)))
        op = value.owner
        none = (0,) * len(shape)
        match op:
            case _ if tile.reads_late(op):
                return tuple(size * is_unit(axis) for axis in op.axes)
            case _ if (of := index_mapping(value)) is not None:
                return tuple(of.to_result(self._votes(of.source, counted), 0))
            case Operation() if is_elementwise(op):
                parts = [self._votes(operand, counted) for operand in op.operands if is_tile(operand)]
                return tuple(sum(column) for column in zip(none, *parts, strict=True))
            case _:
                return none

    def scalar(self, value: SSAValue) -> Reg:
        """Return the register of a scalar; constants need no definition."""
        op = value.owner
        if isinstance(op, ConstantOp) and not is_tile(value):
            return self.constant(op, 1)
        return self.scalars[value]

    def index(self, value: SSAValue) -> Reg:
        """Return the register of a scalar, as an index."""
        if (number := known(value)) is not None:
            return self.text.integer(number)
        return self.text.to_index(self.scalar(value))

    def constant(self, op: ConstantOp, lanes: int) -> Reg:
        """Return a constant in all of `lanes` lanes."""
        elem, bits = element_name(op.result.type, op), op.splat
        if bits is None:
            raise unsupported(op, "a constant tensor with different elements")
        if elem[0] == "i":
            return self.text.integer(op.integers[0], elem, lanes)
        if in_register(elem) != elem:
            bits = to_f32_bits(bits, op.element)
        return self.text.bits(bits, in_register(elem), lanes)

    def evaluate(self, value: SSAValue, point: Point, memo: Memo) -> Reg:
        """Return the elements of a tile at a point; a scalar is broadcast. A pointer is its address."""
        if not is_tile(value):
            return self.text.broadcast(self.numeric.address(self.scalar(value)), point.lanes)
        key = (value, point.index, point.lane, point.lanes)
        if key not in memo:
            with self.text.location(source_line(value.owner.location) if isinstance(value.owner, Operation) else None):
                memo[key] = self._at(value, point, memo)
        return memo[key]

    def _at(self, value: SSAValue, point: Point, memo: Memo) -> Reg:
        op = value.owner
        if value in self.buffers:
            return self.read_buffer(value, self.buffers[value], point)
        if (of := index_mapping(value)) is not None:
            return self.text.broadcast(self.evaluate(of.source, self.source_point(of, point), memo), point.lanes)
        if type(op) in self.values:
            return self.values[type(op)](self, op, point, memo)
        if isinstance(op, Operation) and is_elementwise(op):
            return apply_row(self.numeric, op, [self.evaluate(operand, point, memo) for operand in op.operands])
        owner = op if isinstance(op, Operation) else op.parent_op()
        assert owner is not None
        raise unsupported(owner)

    def read_buffer(self, value: SSAValue, buffer: Buffer, point: Point) -> Reg:
        """Return the elements at a point of a tile's buffer, or of a view of it, whether it has bits or numbers."""
        found, op = self.private.read(buffer, point), value.owner
        if value in self.plan.across and isinstance(op, Operation):
            return self.numeric.from_memory(found, element_name(value.type, op))
        return found

    def source_point(self, mapping: IndexMapping, point: Point) -> Point:
        """Return the point of the source that has a point's elements: as many, or one that all lanes share."""
        index, lane = tuple(mapping.to_source(point.index, self.text.integer)), mapping.inner(point.lane)
        if lane is None:
            return Point(index, 0, 1)
        return Point(index, lane, point.lanes, point.inside if mapping.keeps_order else frozenset())

    def register_tile(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the most rows, and the columns, of the tile that tl.dot keeps in registers, in vectors.

        A step along K needs registers for the tile, for a row of b, and for an element of a. Among the tiles that fit,
        this is the one with the least loads for a multiply-add: 6 x 2 with 16 registers, 6 x 4 with 32. Both have more
        sums than two multiply-adds per cycle with a latency of 4 cycles need.

        Args:
            rows, columns: of the whole product, in vectors; the columns of the result divide them.
        """

        def height(width: int) -> int:
            return max(1, min(rows, (self.target.vector_registers - width - 1) // width))

        def loads(width: int) -> float:
            return 1 / width + 1 / height(width)

        best = min((width for width in (1, 2, 4) if columns % width == 0), key=loads)
        return height(best), best

    def range(self, value: SSAValue) -> tuple[Reg, Reg]:
        """Return (low, high) of a tile.range."""
        low, high = tile.limits(value)
        return self.index(low), self.index(high)
