"""Reads and writes tiles a few elements at a time: registers for an expression at a point of its index space."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Operation, SSAValue

from ..dialects import tile, tt
from ..errors import unsupported
from .mlir import GLOBAL, PRIVATE, WIDTHS, Reg, Text
from .numeric import ELEMENTWISE, Numeric, element, in_memory, in_register
from .plan import Plan, is_tile
from .target import WorkItemTarget

# SPIR-V's kernel flavour has vectors of 2, 3, 4, 8 and 16 components, no longer ones.
_MOST_LANES = 16


@dataclass(frozen=True)
class Buffer:
    """A tile in private memory, in register types (f32 for f16), i1 as i8.

    Attributes:
        order: dimensions from the slowest to the fastest in memory.
    """

    name: str
    elem: str
    extents: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def stored_as(self) -> str:
        return "i8" if self.elem == "i1" else self.elem

    def stride(self, dimension: int) -> int:
        """In elements."""
        behind = self.order[self.order.index(dimension) + 1 :]
        return numbers.prod(self.extents[d] for d in behind)


@dataclass(frozen=True)
class Point:
    """A place in an index space, `lanes` elements long along dimension `lane`.

    Attributes:
        index: of the first element, one i64 a dimension.
        inside: the tile.range values that are known to hold all the elements.
    """

    index: tuple[Reg, ...]
    lane: int
    lanes: int
    inside: frozenset[SSAValue] = frozenset()


Memo: TypeAlias = dict[tuple[SSAValue, tuple[Reg, ...], int, int], Reg]


@dataclass(frozen=True)
class Around:
    """A tile.wrapped axis, prepared: `remainder` is first rem modulus; `whole` says that no element wraps."""

    first: Reg
    modulus: Reg
    stride: Reg
    remainder: Reg
    whole: Reg


def extents(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


class Tiles:
    """The registers and buffers of one kernel, and how to get at an element.

    Attributes:
        scalars: registers of scalar values; f16 and bf16 as f32.
        buffers: tiles in private memory.
    """

    def __init__(self, text: Text, plan: Plan, target: WorkItemTarget) -> None:
        self.text = text
        self.plan = plan
        self.numeric = Numeric(text)
        self.scalars: dict[SSAValue, Reg] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self._around: dict[SSAValue, Around] = {}
        self._spills: dict[tuple[str, int], str] = {}
        self.target = target

    # Buffers.

    def allocate(self, value: SSAValue, op: Operation, order: tuple[int, ...] | None = None) -> Buffer:
        """A new buffer of a tile's shape, row-major unless told otherwise."""
        shape = extents(value)
        elem = in_register(element(value.type, op))
        made = Buffer("", elem, shape, order or tuple(range(len(shape))))
        return replace(made, name=self.text.private(made.stored_as, numbers.prod(shape)))

    def offset(self, buffer: Buffer, index: Sequence[Reg]) -> Reg:
        """Elements from the start of a buffer."""
        total = self.text.integer(0)
        for dimension, i in enumerate(index):
            total = self.plus(total, self.times(i, self.text.integer(buffer.stride(dimension))))
        return total

    def read(self, buffer: Buffer, point: Point) -> Reg:
        """The elements of a buffer at a point."""
        t = self.text
        start = self.offset(buffer, point.index)
        if point.lanes == 1 or buffer.stride(point.lane) == 1:
            address = t.address(buffer.name, start, buffer.stored_as, PRIVATE)
            loaded = t.load(address, buffer.stored_as, point.lanes, PRIVATE)
        else:
            loaded = self._collect(
                point.lanes,
                buffer.stored_as,
                lambda lane: t.load(
                    t.address(
                        buffer.name,
                        self.plus(start, t.integer(lane * buffer.stride(point.lane))),
                        buffer.stored_as,
                        PRIVATE,
                    ),
                    buffer.stored_as,
                    1,
                    PRIVATE,
                ),
            )
        if buffer.elem == "i1":
            return t.compare("ne", loaded, t.integer(0, "i8", point.lanes))
        return loaded

    def write(self, buffer: Buffer, point: Point, value: Reg) -> None:
        """Set the elements of a buffer at a point."""
        t = self.text
        if buffer.elem == "i1":
            value = t.cast("arith.extui", value, "i8")
        start = self.offset(buffer, point.index)
        if point.lanes == 1 or buffer.stride(point.lane) == 1:
            t.store(value, t.address(buffer.name, start, buffer.stored_as, PRIVATE), PRIVATE)
            return
        for lane in range(point.lanes):
            place = self.plus(start, t.integer(lane * buffer.stride(point.lane)))
            t.store(t.extract(value, lane), t.address(buffer.name, place, buffer.stored_as, PRIVATE), PRIVATE)

    def _collect(self, lanes: int, elem: str, one: Callable[[int], Reg]) -> Reg:
        vector = self.text.integer(0, elem, lanes) if elem[0] == "i" else self.text.floating(0.0, elem, lanes)
        for lane in range(lanes):
            vector = self.text.insert(one(lane), vector, lane)
        return vector

    # Index arithmetic that leaves out what is known, to keep the text short.

    def _is(self, x: Reg, number: int) -> bool:
        return x == self.text.integer(number)

    def plus(self, x: Reg, y: Reg) -> Reg:
        if self._is(x, 0):
            return y
        return x if self._is(y, 0) else self.text.binary("arith.addi", x, y)

    def times(self, x: Reg, y: Reg) -> Reg:
        if self._is(x, 0) or self._is(y, 0):
            return self.text.integer(0)
        if self._is(x, 1):
            return y
        return x if self._is(y, 1) else self.text.binary("arith.muli", x, y)

    # Index spaces.

    def lanes(self, value: SSAValue, op: Operation, lane: int) -> int:
        """How many elements to take at a time along a dimension: what fills a vector register."""
        shape = extents(value)
        width = max(WIDTHS[in_register(element(value.type, op))], 8)
        return min(_MOST_LANES, self.target.vector_bytes * 8 // width, shape[lane]) if shape else 1

    def best_lane(self, value: SSAValue, access: tile.StoreOp | None = None) -> int:
        """The dimension along which most of an expression is contiguous in memory; the last one in doubt."""
        shape = extents(value)
        votes = list(self._votes(value))
        for dimension, axis in enumerate(access.axes if access else []):
            votes[dimension] += 2 * self._is_unit(axis)
        return max(range(len(shape)), key=lambda d: (shape[d] > 1, votes[d], d))

    def _votes(self, value: SSAValue) -> tuple[int, ...]:
        shape = extents(value)
        if value in self.buffers:
            return tuple(int(self.buffers[value].stride(d) == 1) for d in range(len(shape)))
        op = value.owner
        none = (0,) * len(shape)
        match op:
            case tile.LoadOp():
                return tuple(int(self._is_unit(axis)) for axis in op.axes)
            case tt.TransOp():
                inner = self._votes(op.src)
                return tuple(inner[d] for d in op.order.get_values())
            case tt.BroadcastOp():
                return self._votes(op.src)
            case tt.ExpandDimsOp():
                inner_list = list(self._votes(op.src))
                inner_list.insert(op.axis.value.data, 0)
                return tuple(inner_list)
            case Operation() if type(op) in ELEMENTWISE:
                parts = [self._votes(operand) for operand in op.operands if is_tile(operand)]
                return tuple(sum(column) for column in zip(none, *parts, strict=True))
            case _:
                return none

    @staticmethod
    def _is_unit(axis: SSAValue) -> bool:
        op = axis.owner
        if not isinstance(op, tile.AffineOp | tile.WrappedOp):
            return False
        stride = op.stride.owner
        return isinstance(stride, arith.ConstantOp) and stride.value == IntegerAttr(1, 64)

    @contextmanager
    def each(self, shape: tuple[int, ...], lane: int, lanes: int) -> Iterator[Point]:
        """Loops over a whole index space, `lanes` elements at a time along one dimension, which they divide."""
        t = self.text
        with self._nest([(t.integer(0), t.integer(extent)) for extent in shape], shape, lane, lanes) as index:
            yield Point(index, lane, lanes)

    @contextmanager
    def _nest(
        self, limits: Sequence[tuple[Reg, Reg]], shape: tuple[int, ...], lane: int, lanes: int
    ) -> Iterator[tuple[Reg, ...]]:
        """One loop a dimension, the one along the lanes innermost; none where there is one step to make."""
        t = self.text
        index: list[Reg] = [t.integer(0)] * len(shape)
        order = [d for d in range(len(shape)) if d != lane] + ([lane] if shape else [])
        with ExitStack() as loops:
            for d in order:
                low, high = limits[d]
                step = lanes if d == lane else 1
                if self._is(low, 0) and self._is(high, step):
                    continue
                index[d] = loops.enter_context(t.loop(low, high, step))
            yield tuple(index)

    def each_stored(
        self, shape: tuple[int, ...], lane: int, lanes: int, ranges: Sequence[SSAValue], body: Callable[[Point], None]
    ) -> None:
        """Run a body over the elements within ranges: vectors as far as they go, then one element at a time."""
        t = self.text
        inside = frozenset(ranges)
        limits = [(t.integer(0), t.integer(extent)) for extent in shape]
        for d, range_value in enumerate(ranges):
            limits[d] = self.range(range_value)
        if lanes == 1 or not ranges or self._is_whole(ranges[lane], shape[lane]):
            with self._nest(limits, shape, lane, lanes) as index:
                body(Point(index, lane, lanes, inside))
            return
        low, high = limits[lane]
        length = t.binary("arith.subi", high, low)
        mask = t.integer(-lanes)
        # An empty range may have high < low: its length is negative, and so is what rounding it down gives.
        full = self.plus(low, t.binary("arith.andi", length, mask))
        for ends, step in (((low, full), lanes), ((full, high), 1)):
            if step == 1:
                ends = (self.numeric.pick("sgt", full, low), high)
            limits[lane] = ends
            with self._nest(limits, shape, lane, step) as index:
                body(Point(index, lane, step, inside))

    def _is_whole(self, range_value: SSAValue, extent: int) -> bool:
        low, high = self.range(range_value)
        return self._is(low, 0) and self._is(high, extent)

    def range(self, value: SSAValue) -> tuple[Reg, Reg]:
        """(low, high) of a tile.range."""
        op = value.owner
        assert isinstance(op, tile.RangeOp)
        return self.scalar(op.low), self.scalar(op.high)

    # Values.

    def scalar(self, value: SSAValue) -> Reg:
        """The register of a scalar; constants need no definition."""
        op = value.owner
        if isinstance(op, arith.ConstantOp) and not is_tile(value):
            return self._constant(op, 1)
        return self.scalars[value]

    def _constant(self, op: arith.ConstantOp, lanes: int) -> Reg:
        elem = element(op.result.type, op)
        match op.value:
            case IntegerAttr() | FloatAttr() as number:
                known: float = number.value.data
            case DenseIntOrFPElementsAttr() as dense if dense.is_splat():
                known = dense.get_values()[0]
            case _:
                raise unsupported(op, "a constant tensor with different elements")
        if elem[0] == "i":
            return self.text.integer(int(known), elem, lanes)
        return self.text.floating(float(known), in_register(elem), lanes)

    def at(self, value: SSAValue, point: Point, memo: Memo) -> Reg:
        """The elements of a tile at a point; a scalar value is itself."""
        if not is_tile(value):
            return self.text.broadcast(self.scalar(value), point.lanes)
        key = (value, point.index, point.lane, point.lanes)
        if key not in memo:
            memo[key] = self._at(value, point, memo)
        return memo[key]

    def _at(self, value: SSAValue, point: Point, memo: Memo) -> Reg:
        if value in self.buffers:
            return self.read(self.buffers[value], point)
        t = self.text
        op = value.owner
        match op:
            case arith.ConstantOp():
                return self._constant(op, point.lanes)
            case tt.SplatOp():
                return t.broadcast(self.scalar(op.src), point.lanes)
            case tt.MakeRangeOp():
                first = self.plus(point.index[0], t.integer(op.start.value.data))
                return self._counted(t.cast("arith.trunci", first, "i32"), point.lanes)
            case tt.ExpandDimsOp():
                axis = op.axis.value.data
                index = point.index[:axis] + point.index[axis + 1 :]
                if point.lane == axis:
                    return self._splat_of(op.src, index, point, memo)
                lane = point.lane - (point.lane > axis)
                return self.at(op.src, replace(point, index=index, lane=lane), memo)
            case tt.BroadcastOp():
                shape = extents(op.src)
                zero = t.integer(0)
                index = tuple(zero if extent == 1 else i for extent, i in zip(shape, point.index, strict=True))
                if shape[point.lane] == 1:
                    return self._splat_of(op.src, index, point, memo)
                return self.at(op.src, replace(point, index=index), memo)
            case tt.TransOp():
                order = list(op.order.get_values())
                index = tuple(point.index[order.index(d)] for d in range(len(order)))
                return self.at(op.src, replace(point, index=index, lane=order[point.lane]), memo)
            case tt.ReshapeOp():
                return self._reshaped(op, point, memo)
            case tile.LoadOp():
                return self._load(op, point, memo)
            case Operation() if type(op) in ELEMENTWISE:
                return self.numeric.apply(op, [self.at(operand, point, memo) for operand in op.operands])
        owner = op if isinstance(op, Operation) else op.parent_op()
        assert owner is not None
        raise unsupported(owner)

    def _splat_of(self, value: SSAValue, index: tuple[Reg, ...], point: Point, memo: Memo) -> Reg:
        """One element, in all lanes."""
        one = self.at(value, Point(index, 0, 1, point.inside), memo)
        return self.text.broadcast(one, point.lanes)

    def _counted(self, first: Reg, lanes: int) -> Reg:
        if lanes == 1:
            return first
        return self.text.binary("arith.addi", self.text.broadcast(first, lanes), self.text.iota(first.elem, lanes))

    def _reshaped(self, op: tt.ReshapeOp, point: Point, memo: Memo) -> Reg:
        """Row-major order is kept: an element has the same linear index in both shapes."""
        t = self.text
        after, before = extents(op.result), extents(op.src)

        def one(lane: int) -> Reg:
            linear = t.integer(0)
            for d, (i, extent) in enumerate(zip(point.index, after, strict=True)):
                here = self.plus(i, t.integer(lane)) if d == point.lane else i
                linear = self.plus(self.times(linear, t.integer(extent)), here)
            index: list[Reg] = []
            for extent in reversed(before):
                index.insert(0, t.binary("arith.remui", linear, t.integer(extent)))
                linear = t.binary("arith.divui", linear, t.integer(extent))
            return self.at(op.src, Point(tuple(index), 0, 1), memo)

        if point.lanes == 1:
            return one(0)
        return self._collect(point.lanes, in_register(element(op.result.type, op)), one)

    # Global memory.

    def prepare(self, axis: tile.WrappedOp) -> None:
        """Compute, where the axis is defined, what its uses share."""
        t = self.text
        first, modulus, stride = (self.scalar(part) for part in (axis.first, axis.modulus, axis.stride))
        remainder = self.numeric.divide("arith.remsi", first, modulus)
        (use, *_) = axis.result.uses
        extent = self._extent_of(use.operation, axis.result)
        last = t.binary("arith.addi", remainder, t.integer(extent))
        whole = t.binary("arith.andi", t.compare("sge", first, t.integer(0)), t.compare("sle", last, modulus))
        self._around[axis.result] = Around(first, modulus, stride, remainder, whole)

    @staticmethod
    def _extent_of(user: Operation, axis: SSAValue) -> int:
        assert isinstance(user, tile.LoadOp | tile.StoreOp)
        value = user.result if isinstance(user, tile.LoadOp) else user.value
        return extents(value)[list(user.axes).index(axis)]

    def _offset_along(self, axis: SSAValue, i: Reg, point: Point, memo: Memo) -> Reg:
        """What one axis adds to an address at index i, in elements."""
        t = self.text
        match axis.owner:
            case tile.AffineOp() as op:
                return self.times(i, self.scalar(op.stride))
            case tile.WrappedOp():
                around = self._around[axis]
                choice = t.choose(around.whole)
                with choice.then():
                    choice.result(self.plus(around.remainder, i))
                with choice.otherwise():
                    choice.result(self.numeric.divide("arith.remsi", self.plus(around.first, i), around.modulus))
                return self.times(choice.end(), around.stride)
            case tile.IndexedOp() as op:
                index = tuple(i if extent > 1 else t.integer(0) for extent in extents(op.offsets))
                return t.cast("arith.extsi", self.at(op.offsets, Point(index, 0, 1), memo), "i64")
        raise AssertionError(axis)

    def _start(self, op: tile.LoadOp | tile.StoreOp, point: Point, memo: Memo) -> Reg:
        """The offset of a point's first element from the base, in elements."""
        total = self.scalar(op.start)
        for axis, i in zip(op.axes, point.index, strict=True):
            total = self.plus(total, self._offset_along(axis, i, point, memo))
        if op.gather is not None:
            gathered = self.at(op.gather, replace(point, lanes=1), memo)
            total = self.plus(total, self.text.cast("arith.extsi", gathered, "i64"))
        return total

    def _runs(self, op: tile.LoadOp | tile.StoreOp, point: Point) -> list[Reg] | None:
        """The conditions under which the lanes of a point lie side by side in memory and all exist; None if never."""
        if point.lanes == 1 or op.gather is not None or op.mask is not None or not self._is_unit(op.axes[point.lane]):
            return None
        axis = op.axes[point.lane]
        conditions = [self._around[axis].whole] if isinstance(axis.owner, tile.WrappedOp) else []
        return conditions + self._exist(op, point)

    def _exist(self, op: tile.LoadOp | tile.StoreOp, point: Point) -> list[Reg]:
        """The conditions under which all elements of a point are within the ranges, less those that are known."""
        t = self.text
        conditions: list[Reg] = []
        for d, range_value in enumerate(op.ranges):
            if range_value in point.inside:
                continue
            low, high = self.range(range_value)
            i = point.index[d]
            last = self.plus(i, t.integer(point.lanes)) if d == point.lane and point.lanes > 1 else None
            shape = extents(op.result if isinstance(op, tile.LoadOp) else op.value)
            if not self._is(low, 0):
                conditions.append(t.compare("sle", low, i))
            if not self._is(high, shape[d]):
                conditions.append(t.compare("sle", last, high) if last else t.compare("slt", i, high))
        return conditions

    def _all(self, conditions: Sequence[Reg]) -> Reg:
        total = conditions[0]
        for condition in conditions[1:]:
            total = self.text.binary("arith.andi", total, condition)
        return total

    def _load(self, op: tile.LoadOp, point: Point, memo: Memo) -> Reg:
        runs = self._runs(op, point)
        if point.lanes == 1:
            return self._load_one(op, point, memo)
        if runs is None:
            return self._load_each(op, point, memo)
        if not runs:
            return self._load_run(op, point, memo)
        choice = self.text.choose(self._all(runs))
        with choice.then():
            choice.result(self._load_run(op, point, dict(memo)))
        with choice.otherwise():
            choice.result(self._load_each(op, point, dict(memo)))
        return choice.end()

    def _base(self, op: tile.LoadOp | tile.StoreOp) -> tuple[str, str, str]:
        """(pointer, element type, element type in memory)"""
        value = op.result if isinstance(op, tile.LoadOp) else op.value
        elem = element(value.type, op)
        return self.scalar(op.base).name, elem, in_memory(elem)

    def _load_run(self, op: tile.LoadOp, point: Point, memo: Memo) -> Reg:
        base, elem, memory = self._base(op)
        address = self.text.address(base, self._start(op, point, memo), memory, GLOBAL)
        return self.numeric.from_memory(self.text.load(address, memory, point.lanes, GLOBAL), elem)

    def _other(self, op: tile.LoadOp, point: Point, memo: Memo) -> Reg:
        elem = in_register(element(op.result.type, op))
        if op.other is not None:
            return self.at(op.other, point, memo)
        zero = self.text.integer(0, elem, point.lanes) if elem[0] == "i" else None
        return zero or self.text.floating(0.0, elem, point.lanes)

    def _load_one(self, op: tile.LoadOp, point: Point, memo: Memo) -> Reg:
        conditions = self._exist(op, point)
        if op.mask is not None:
            conditions.append(self.at(op.mask, point, memo))
        if not conditions:
            return self._load_run(op, point, memo)
        choice = self.text.choose(self._all(conditions))
        with choice.then():
            choice.result(self._load_run(op, point, dict(memo)))
        with choice.otherwise():
            choice.result(self._other(op, point, dict(memo)))
        return choice.end()

    def at_scalar_load(self, op: tile.LoadOp) -> Reg:
        """A load of one number, where it stands."""
        return self._load_one(op, Point((), 0, 1), {})

    def _spill(self, elem: str, lanes: int) -> str:
        if (elem, lanes) not in self._spills:
            self._spills[elem, lanes] = self.text.private(elem, lanes)
        return self._spills[elem, lanes]

    def _load_each(self, op: tile.LoadOp, point: Point, memo: Memo) -> Reg:
        """One element after the other, by way of a small array."""
        t = self.text
        elem = in_register(element(op.result.type, op))
        kept = "i8" if elem == "i1" else elem
        # The elements are computed first and the array written last: computing one may use the array as well.
        spill = self.text.private(kept, point.lanes)
        with t.loop(t.integer(0), t.integer(point.lanes), 1) as lane:
            one = self._load_one(op, self._single(point, lane), {})
            place = t.address(spill, lane, kept, PRIVATE)
            t.store(t.cast("arith.extui", one, "i8") if elem == "i1" else one, place, PRIVATE)
        loaded = t.load(spill, kept, point.lanes, PRIVATE)
        return t.compare("ne", loaded, t.integer(0, "i8", point.lanes)) if elem == "i1" else loaded

    def _single(self, point: Point, lane: Reg) -> Point:
        """The element of a point at a lane."""
        index = list(point.index)
        index[point.lane] = self.plus(index[point.lane], lane)
        return replace(point, index=tuple(index), lanes=1)

    def store(self, op: tile.StoreOp) -> None:
        """Evaluate a store's value and write it, over the elements that exist."""
        shape = extents(op.value)
        if not shape:
            self._store_at(op, Point((), 0, 1))
            return
        lane = self.best_lane(op.value, op)
        lanes = self.lanes(op.value, op, lane)
        self.each_stored(shape, lane, lanes, list(op.ranges), lambda point: self._store_at(op, point))

    def _store_at(self, op: tile.StoreOp, point: Point) -> None:
        t = self.text
        memo: Memo = {}
        if point.lanes == 1:
            conditions = self._exist(op, point)
            if op.mask is not None:
                conditions.append(self.at(op.mask, point, {}))
            with t.nested(f"scf.if {self._all(conditions).name} {{") if conditions else nullcontext():
                self._store_run(op, point, self.at(op.value, point, memo), memo)
            return
        value = self.at(op.value, point, memo)
        runs = self._runs(op, point)
        if runs is not None and not runs:
            self._store_run(op, point, value, memo)
        elif runs is None:
            self._store_each(op, point, value)
        else:
            with t.nested(f"scf.if {self._all(runs).name} {{", "}"):
                self._store_run(op, point, value, dict(memo))
            with t.nested("else {"):
                self._store_each(op, point, value)

    def _store_run(self, op: tile.StoreOp, point: Point, value: Reg, memo: Memo) -> None:
        base, elem, memory = self._base(op)
        address = self.text.address(base, self._start(op, point, memo), memory, GLOBAL)
        self.text.store(self.numeric.to_memory(value, elem), address, GLOBAL)

    def _store_each(self, op: tile.StoreOp, point: Point, value: Reg) -> None:
        """One element after the other, in the order of the lanes."""
        t = self.text
        elem = in_register(element(op.value.type, op))
        kept = "i8" if elem == "i1" else elem
        spill = self._spill(kept, point.lanes)
        t.store(t.cast("arith.extui", value, "i8") if elem == "i1" else value, spill, PRIVATE)
        with t.loop(t.integer(0), t.integer(point.lanes), 1) as lane:
            single = self._single(point, lane)
            conditions = self._exist(op, single)
            if op.mask is not None:
                conditions.append(self.at(op.mask, single, {}))

            with t.nested(f"scf.if {self._all(conditions).name} {{") if conditions else nullcontext():
                one = t.load(t.address(spill, lane, kept, PRIVATE), kept, 1, PRIVATE)
                self._store_run(op, single, t.compare("ne", one, t.integer(0, "i8")) if elem == "i1" else one, {})

    # Whole tiles.

    def fill(self, buffer: Buffer, value: SSAValue, op: Operation, lane: int | None = None) -> None:
        """Evaluate a tile and write all of it to a buffer."""
        shape = extents(value)
        lane = self.best_lane(value) if lane is None else lane
        with self.each(shape, lane, self.lanes(value, op, lane)) as point:
            self.write(buffer, point, self.at(value, point, {}))
