"""Loads and stores of structured form at a point: one vector if the elements are contiguous, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from ...emit.mlir import GLOBAL, LLVM_INTRINSIC, PRIVATE, WIDTHS, Reg, Text
from ...front.masks import sufficient
from ...ir import tile
from ...ir.elements import extents
from ...ops.numeric import Numeric, element_name, in_memory, in_register
from . import atomics
from .buffers import Buffer, Buffers
from .plan import is_tile, is_unit
from .space import Memo, Point, Space
from .target import Target


@dataclass(frozen=True)
class WrappedAxis:
    """A tile.wrapped axis, with the values that its uses share.

    Attributes:
        first, modulus: in the integer type in which the sum wraps around.
        remainder, limit: first rem modulus, and the modulus, as indices.
        plain: an i1; true if first is not negative, and no element wraps as an integer.
        no_wrap: an i1; true if no element wraps, neither at the modulus nor as an integer.
    """

    first: Reg
    modulus: Reg
    stride: Reg
    remainder: Reg
    limit: Reg
    plain: Reg
    no_wrap: Reg


class Evaluator(Protocol):
    """What evaluates the addresses, masks and values of accesses, and holds what they return: tiles.Tiles."""

    target: Target
    private: Buffers
    scalars: dict[SSAValue, Reg]
    buffers: dict[SSAValue, Buffer]

    def scalar(self, value: SSAValue) -> Reg: ...

    def index(self, value: SSAValue) -> Reg: ...

    def range(self, value: SSAValue) -> tuple[Reg, Reg]: ...

    def evaluate(self, value: SSAValue, point: Point, memo: Memo) -> Reg: ...

    def allocate(self, value: SSAValue, op: Operation) -> Buffer: ...

    def best_lane(self, value: SSAValue, access: tile.Access | None = None) -> int: ...

    def lanes(self, value: SSAValue, op: Operation, lane: int) -> int: ...


class GlobalMemory:
    """Writes accesses to global memory to a Text."""

    def __init__(self, text: Text, space: Space, numeric: Numeric, tiles: Evaluator) -> None:
        self._text = text
        self._space = space
        self._numeric = numeric
        self._tiles = tiles
        self._wrapped: dict[SSAValue, WrappedAxis] = {}
        self._spills: dict[tuple[str, int], str] = {}

    def prepare(self, axis: tile.WrappedOp) -> None:
        """Compute, at the axis' definition, the values that its uses share."""
        t = self._text
        bits = axis.element.width.data
        elem = f"i{bits}"
        first, modulus = (t.cast("arith.trunci", self._tiles.scalar(part), elem) for part in (axis.first, axis.modulus))
        remainder = self._numeric.divide("arith.remsi", first, modulus)
        (use, *_) = axis.result.uses
        access = use.operation
        assert isinstance(access, tile.Access)
        extent = extents(access.elements)[list(access.axes).index(axis.result)]
        last = t.binary("arith.addi", remainder, t.integer(extent, elem))
        # As an unsigned number, a negative `first` is beyond the end as well. Otherwise `last` does not overflow.
        plain = t.compare("ult", first, t.integer((1 << (bits - 1)) - extent, elem))
        no_wrap = t.binary("arith.andi", plain, t.compare("sle", last, modulus))
        stride = self._tiles.index(axis.stride)
        self._wrapped[axis.result] = WrappedAxis(
            first, modulus, stride, t.to_index(remainder), t.to_index(modulus), plain, no_wrap
        )

    def _offset_along(self, axis: SSAValue, i: Reg, point: Point, memo: Memo) -> Reg:
        """Return what one axis adds to an address at index i, in elements."""
        t = self._text
        if (stride := tile.even_stride(axis)) is not None:
            return self._space.times(i, self._tiles.index(stride))
        if (offsets := tile.axis_offsets(axis)) is not None:
            index = tuple(i if extent > 1 else t.integer(0) for extent in extents(offsets))
            # With one dimension, the offsets' index space is that of the access.
            inside = point.inside if len(point.index) == 1 else frozenset[SSAValue]()
            return t.to_index(self._tiles.evaluate(offsets, Point(index, 0, 1, inside), memo))
        axis_values = self._wrapped[axis]
        if axis in point.inside:
            return self._space.times(self._space.plus(axis_values.remainder, i), axis_values.stride)
        place, once = self._wrapped_once(axis_values, i, 1)

        def divided() -> Reg:
            wide = WIDTHS[axis_values.first.elem] > WIDTHS[t.index]
            by = t.cast("arith.extsi" if wide else "arith.trunci", i, axis_values.first.elem)
            total = t.binary("arith.addi", axis_values.first, by)
            return t.to_index(self._numeric.divide("arith.remsi", total, axis_values.modulus))

        return self._space.times(t.choose(once, lambda: place, divided), axis_values.stride)

    def _wrapped_once(self, axis_values: WrappedAxis, i: Reg, lanes: int) -> tuple[Reg, Reg]:
        """Return first + i with the modulus subtracted at most once, and whether that is the remainder in all lanes."""
        t = self._text
        total = self._space.plus(axis_values.remainder, i)
        place = t.select(
            t.compare("sge", total, axis_values.limit), t.binary("arith.subi", total, axis_values.limit), total
        )
        end = self._space.plus(place, t.integer(lanes))
        return place, t.binary("arith.andi", axis_values.plain, t.compare("sle", end, axis_values.limit))

    def tile_bound(self, op: tile.Read, lane: int, ends: Sequence[Reg]) -> tuple[list[Reg], Reg | None]:
        """Return up to which index along a lane all elements of a load exist and no axis wraps around, from 0 on.

        Args:
            op: a load for which `inside` is not None.
            ends: for each dimension other than the lane's, the end of the elements that are asked for.

        Returns:
            Conditions that must all hold; and the index, or None for the whole extent.
        """
        t, conditions = self._text, self._mask_conditions(op)
        until: list[Reg] = []
        for d, (extent, axis) in enumerate(zip(extents(op.result), op.axes, strict=True)):
            highs = []
            if tile.wraps(axis):
                axis_values = self._wrapped[axis]
                conditions.append(axis_values.plain)
                highs.append(t.binary("arith.subi", axis_values.limit, axis_values.remainder))
            if op.ranges:
                low, high = self._tiles.range(op.ranges[d])
                if not self._space.known(low, 0):
                    conditions.append(t.compare("sle", low, t.integer(0)))
                if not self._space.known(high, extent):
                    highs.append(high)
            if d == lane:
                until += highs
            else:
                conditions += [t.compare("sle", ends[d], high) for high in highs]
        return conditions, t.least(until)

    def point_bound(self, op: tile.Read, point: Point) -> tuple[Reg | None, frozenset[SSAValue]] | None:
        """Return the first index along a point's lanes at which a load lacks an element or an axis wraps around.

        Returns:
            The index, or None for the whole extent; and the values that points before it may have in `inside`. None for
            both if the load is not contiguous, or has a mask that only its elements tell.
        """
        inside = self.inside(op, point.lane)
        if inside is None:
            return None
        t, conditions = self._text, self._mask_conditions(op)
        conditions += [self._wrapped[axis].no_wrap for axis in op.axes if tile.wraps(axis)]
        end: Reg | None = None
        for d, (extent, value) in enumerate(zip(extents(op.result), op.ranges, strict=False)):
            low, high = self._tiles.range(value)
            first = t.integer(0) if d == point.lane else point.index[d]
            if not self._space.known(low, 0):
                conditions.append(t.compare("sle", low, first))
            if self._space.known(high, extent):
                continue
            if d == point.lane:
                end = high
            else:
                conditions.append(t.compare("slt", first, high))
        if conditions:
            every = t.integer(extents(op.result)[point.lane])
            end = t.select(self.all(conditions), end or every, t.integer(0))
        return end, inside

    def inside(self, op: tile.Read, lane: int) -> frozenset[SSAValue] | None:
        """Return what points may have in `inside` where all elements of a load exist and no axis wraps around.

        Returns:
            None if the load is not contiguous along the lane, or has a mask that only its elements tell.
        """
        if op.gather is not None or is_tile(op.base) or not is_unit(op.axes[lane]):
            return None
        if op.mask is not None and sufficient(op.mask) is None:
            return None
        wrapped = [axis for axis in op.axes if tile.wraps(axis)]
        masks = [op.mask] if op.mask is not None else []
        return frozenset([*op.ranges, *wrapped, *masks])

    def _mask_conditions(self, op: tile.Read) -> list[Reg]:
        """Return conditions under which a load's mask is set where its ranges are."""
        return [self._tiles.scalar(value) for value in (sufficient(op.mask) or [])] if op.mask is not None else []

    def _start(self, op: tile.Access, point: Point, memo: Memo) -> Reg:
        """Return the offset of a point's first element from the base, in elements."""
        total = self._tiles.index(op.start)
        for axis, i in zip(op.axes, point.index, strict=True):
            total = self._space.plus(total, self._offset_along(axis, i, point, memo))
        if op.gather is not None:
            gathered = self._tiles.evaluate(op.gather, replace(point, lanes=1), memo)
            total = self._space.plus(total, self._text.to_index(gathered))
        return total

    def _runs(self, op: tile.Access, point: Point) -> list[Reg] | None:
        """Return the conditions under which all lanes of a point exist and are contiguous in memory; None if never."""
        if point.lanes == 1 or op.gather is not None or not is_unit(op.axes[point.lane]):
            return None
        unmasked = sufficient(op.mask) if op.mask is not None and op.mask not in point.inside else []
        if unmasked is None:
            return None
        axis = op.axes[point.lane]
        conditions = []
        if tile.wraps(axis) and axis not in point.inside:
            conditions.append(self._wrapped_once(self._wrapped[axis], point.index[point.lane], point.lanes)[1])
        return conditions + [self._tiles.scalar(value) for value in unmasked] + self._exist(op, point)

    def _exist(self, op: tile.Access, point: Point, skip: int | None = None) -> list[Reg]:
        """Return the conditions under which all elements of a point are within the ranges, less the known ones.

        Args:
            skip: a dimension whose range is not looked at.
        """
        t = self._text
        conditions: list[Reg] = []
        for d, range_value in enumerate(op.ranges):
            if range_value in point.inside or d == skip:
                continue
            low, high = self._tiles.range(range_value)
            i = point.index[d]
            last = self._space.plus(i, t.integer(point.lanes)) if d == point.lane and point.lanes > 1 else None
            shape = extents(op.elements)
            if not self._space.known(low, 0):
                conditions.append(t.compare("sle", low, i))
            if not self._space.known(high, shape[d]):
                conditions.append(t.compare("sle", last, high) if last else t.compare("slt", i, high))
        return conditions

    def all(self, conditions: Sequence[Reg]) -> Reg:
        """Return whether all of some conditions hold; there is at least one."""
        total = conditions[0]
        for condition in conditions[1:]:
            total = self._text.binary("arith.andi", total, condition)
        return total

    def load(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        """Return the elements of a load at a point."""
        # They are converted behind all branches: where they are only moved, their bits are known, and stay as they are.
        return self._numeric.from_memory(self._bits(op, point, memo), self._types(op)[0])

    def _bits(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        """Return the elements of a load at a point, as they are in memory."""
        if point.lanes == 1:
            return self._bits_of_one(op, point, memo)
        some = self._bits_of_some if self._masks(op, point) else self._bits_of_each
        runs = self._runs(op, point)
        if runs is None:
            return some(op, point, memo)
        if not runs:
            return self._bits_of_run(op, point, memo)
        return self._text.choose(
            self.all(runs), lambda: self._bits_of_run(op, point, dict(memo)), lambda: some(op, point, dict(memo))
        )

    def _masks(self, op: tile.Access, point: Point) -> bool:
        """Return whether the device has instructions for the elements of a point that exist: all are contiguous."""
        axis = op.axes[point.lane]
        contiguous = is_unit(axis) and (not tile.wraps(axis) or axis in point.inside)
        return self._tiles.target.llvm_intrinsics and contiguous and op.gather is None and not is_tile(op.base)

    def _mask(self, op: tile.Access, point: Point, memo: Memo) -> Reg:
        """Return which elements of a point exist, an i1 for each lane."""
        t, (lane, lanes) = self._text, (point.lane, point.lanes)
        scalars = self._exist(op, point, skip=lane)
        masks = [t.broadcast(self.all(scalars), lanes)] if scalars else []
        if op.ranges and op.ranges[lane] not in point.inside:
            places = t.iota("i32", lanes)

            def place(limit: Reg) -> Reg:
                """Return an index as a number of lanes from the point's first, at most all, in each lane."""
                number = t.binary("arith.subi", limit, point.index[lane])
                for predicate, bound in (("sgt", 0), ("slt", lanes)):
                    number = t.select(t.compare(predicate, number, t.integer(bound)), number, t.integer(bound))
                return t.broadcast(t.cast("arith.trunci", number, "i32"), lanes)

            low, high = self._tiles.range(op.ranges[lane])
            if not self._space.known(low, 0):
                masks.append(t.compare("sle", place(low), places))
            masks.append(t.compare("slt", places, place(high)))
        if op.mask is not None and op.mask not in point.inside:
            masks.append(self._tiles.evaluate(op.mask, point, memo))
        return self.all(masks)

    def _bits_of_some(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        """Load the elements that exist, as one vector."""
        t, (elem, memory) = self._text, self._types(op)
        address, mask = self._address(op, point, memo), self._mask(op, point, memo)
        other = self._numeric.to_memory(self._other(op, point, memo), elem)
        arguments = [Reg(address, GLOBAL), t.integer(WIDTHS[memory] // 8, "i32"), mask, other]
        return t.call(f"{LLVM_INTRINSIC}masked.load.v{point.lanes}{memory}.p1", arguments, memory, point.lanes)

    def _store_some(self, op: tile.StoreOp, point: Point, value: Reg, memo: Memo) -> None:
        """Store the elements that exist, as one vector."""
        t, (elem, memory) = self._text, self._types(op)
        address, mask = self._address(op, point, memo), self._mask(op, point, memo)
        arguments = [
            self._numeric.to_memory(value, elem),
            Reg(address, GLOBAL),
            t.integer(WIDTHS[memory] // 8, "i32"),
            mask,
        ]
        t.call_void(f"{LLVM_INTRINSIC}masked.store.v{point.lanes}{memory}.p1", arguments)

    def _types(self, op: tile.Access) -> tuple[str, str]:
        """Return (element type, element type in memory)."""
        elem = element_name(op.elements.type, op)
        return elem, in_memory(elem)

    def _address(self, op: tile.Access, point: Point, memo: Memo) -> str:
        """Return the address of a point's first element."""
        if is_tile(op.base):
            base = self._numeric.pointer(self._tiles.evaluate(op.base, replace(point, lanes=1), memo))
        else:
            base = self._tiles.scalar(op.base)
        return self._text.address(base.name, self._start(op, point, memo), self._types(op)[1], GLOBAL)

    def _bits_of_run(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        return self._text.load(self._address(op, point, memo), self._types(op)[1], point.lanes, GLOBAL)

    def _other(self, op: tile.Read | tile.AtomicOp, point: Point, memo: Memo) -> Reg:
        elem = in_register(element_name(op.result.type, op))
        if not isinstance(op, tile.AtomicOp) and op.other is not None:
            return self._tiles.evaluate(op.other, point, memo)
        zero = self._text.integer(0, elem, point.lanes) if elem[0] == "i" else None
        return zero or self._text.float_constant(0.0, elem, point.lanes)

    def _bits_of_one(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        conditions = self._exist(op, point)
        if op.mask is not None:
            conditions.append(self._tiles.evaluate(op.mask, point, memo))
        if not conditions:
            return self._bits_of_run(op, point, memo)
        return self._text.choose(
            self.all(conditions),
            lambda: self._bits_of_run(op, point, dict(memo)),
            lambda: self._numeric.to_memory(self._other(op, point, dict(memo)), self._types(op)[0]),
        )

    def prefetch(self, op: tile.Read, start: Reg, index: tuple[Reg, ...], count: int, line: int) -> None:
        """Let the caches load what a load of contiguous elements reads from an index on, as if no axis wrapped around.

        Args:
            start: the offset of the first element, in place of that of the load.
            count: number of cache lines.
            line: bytes of a cache line.
        """
        t, point, memory = self._text, Point(index, 0, 1, frozenset(op.axes)), self._types(op)[1]
        for axis, i in zip(op.axes, index, strict=True):
            start = self._space.plus(start, self._offset_along(axis, i, point, {}))
        address = t.address(self._tiles.scalar(op.base).name, start, memory, GLOBAL)
        # For reading; to all caches; of data.
        hints = [t.integer(number, "i32") for number in (0, 3, 1)]
        for number in range(count):
            place = t.offset_address(address, number * line * 8 // WIDTHS[memory], memory, GLOBAL)
            t.call_void(f"{LLVM_INTRINSIC}prefetch.p1", [Reg(place, GLOBAL), *hints])

    def load_scalar(self, op: tile.Read) -> Reg:
        """Load one number."""
        return self._load_one(op, Point((), 0, 1), {})

    def _load_one(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        return self._numeric.from_memory(self._bits_of_one(op, point, memo), self._types(op)[0])

    def _bits_of_each(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        """Load one element after another into a small array, then read the array as a vector."""
        t, memory = self._text, self._types(op)[1]
        # Each call has its own array: computing an element may call this function again.
        spill = self._text.private(memory, point.lanes)
        with t.loop(t.integer(0), t.integer(point.lanes), 1) as lane:
            t.store(
                self._bits_of_one(op, self._single(point, lane), {}), t.address(spill, lane, memory, PRIVATE), PRIVATE
            )
        return t.load(spill, memory, point.lanes, PRIVATE)

    def _single(self, point: Point, lane: Reg) -> Point:
        """Return the point of one lane of a point."""
        index = list(point.index)
        index[point.lane] = self._space.plus(index[point.lane], lane)
        return replace(point, index=tuple(index), lanes=1)

    def execute(self, op: tile.Executed) -> None:
        """Write an access that must happen once for each element, at its position; keep what it returns, if used."""
        tiles = self._tiles
        result = op.results[0] if op.results and op.results[0].uses else None
        buffer = tiles.allocate(result, op) if result is not None else None
        self._fence("release")
        self._visit(op, buffer is not None, lambda point: self._execute_at(op, point, buffer))
        self._fence("acquire")
        if result is None or buffer is None:
            return
        if extents(result):
            tiles.buffers[result] = buffer
        else:
            tiles.scalars[result] = tiles.private.read(buffer, Point((), 0, 1))

    def _visit(self, op: tile.Executed, everywhere: bool, body: Callable[[Point], None]) -> None:
        """Write a body for each element of an access, or for those in its ranges; one work-item executes each."""
        shape = extents(op.elements)
        if not shape:
            with self._space.single_work_item():
                body(Point((), 0, 1))
            return
        lane = len(shape) - 1
        if everywhere:
            with self._space.iterate(shape, lane, 1) as point:
                body(point)
            return
        limits = [(self._text.integer(0), self._text.integer(extent)) for extent in shape]
        if op.ranges:
            limits = [self._tiles.range(value) for value in op.ranges]
        self._space.each_within(limits, shape, lane, 1, frozenset(op.ranges), body)

    def _execute_at(self, op: tile.Executed, point: Point, buffer: Buffer | None) -> None:
        conditions = self._exist(op, point)
        if op.mask is not None:
            conditions.append(self._tiles.evaluate(op.mask, point, {}))
        if buffer is None:
            with self._text.when(self.all(conditions)) if conditions else nullcontext():
                self._executed(op, point)
            return
        if not conditions:
            self._tiles.private.write(buffer, point, self._executed(op, point))
            return
        assert not isinstance(op, tile.PollOp)
        found = self._text.choose(
            self.all(conditions), lambda: self._executed(op, point), lambda: self._other(op, point, {})
        )
        self._tiles.private.write(buffer, point, found)

    def _executed(self, op: tile.Executed, point: Point) -> Reg:
        """Execute an access for one element; return the element as it was before, in its register type."""
        memo: Memo = {}
        elem, _ = self._types(op)

        def operand(value: SSAValue) -> Reg:
            return self._numeric.to_memory(self._tiles.evaluate(value, point, memo), elem)

        match op:
            case tile.VolatileLoadOp():
                found = self._load_now(self._address(op, point, memo), elem)
            case tile.PollOp():
                found, address = operand(op.expected), self._address(op, point, memo)
                atomics.wait(self._text, found, lambda: self._load_now(address, elem))
            case tile.AtomicOp():
                compare = operand(op.compare) if op.compare is not None else None
                value, address = operand(op.value), self._address(op, point, memo)
                found = self._change_now(op.kind.data, elem, address, value, compare)
        return self._numeric.from_memory(found, elem)

    def claim(self, counter: str) -> Reg:
        """Add 1 to the 64-bit counter at an address, among all programs; return its old value, an i32."""
        # Not all devices change 64 bits as one step. The lower half comes first, and never overflows.
        return self._change_now("add", "i32", counter, self._text.integer(1, "i32"), None)

    def _fence(self, order: str) -> None:
        """Keep other accesses before (release) or behind (acquire) this position."""
        self._text.fence(order)

    def _load_now(self, address: str, elem: str) -> Reg:
        """Load an element at this position in the text; return it in its type in memory."""
        return atomics.load(self._text, address, elem)

    def _change_now(self, kind: str, elem: str, address: str, value: Reg, compare: Reg | None) -> Reg:
        """Change an element as one step; return what was there before. Numbers are in their type in memory."""
        return atomics.change(self._text, self._numeric, kind, elem, address, value, compare)

    def store(self, op: tile.StoreOp) -> None:
        """Evaluate a store's value and write the elements that exist."""
        shape = extents(op.value)
        if not shape:
            with self._space.single_work_item():
                self._store_at(op, Point((), 0, 1))
            return
        lane = self._tiles.best_lane(op.value, op)
        lanes = self._tiles.lanes(op.value, op, lane)
        limits = [(self._text.integer(0), self._text.integer(extent)) for extent in shape]
        if op.ranges:
            limits = [self._tiles.range(value) for value in op.ranges]
        inside = frozenset(op.ranges)
        partly = inside - {op.ranges[lane]} if op.ranges and self._masks(op, Point((), lane, lanes, inside)) else None
        self._space.each_within(limits, shape, lane, lanes, inside, lambda point: self._store_at(op, point), partly)

    def _store_at(self, op: tile.StoreOp, point: Point) -> None:
        t = self._text
        memo: Memo = {}
        if point.lanes == 1:
            conditions = self._exist(op, point)
            if op.mask is not None:
                conditions.append(self._tiles.evaluate(op.mask, point, {}))
            with t.when(self.all(conditions)) if conditions else nullcontext():
                self._store_run(op, point, self._tiles.evaluate(op.value, point, memo), memo)
            return
        value = self._tiles.evaluate(op.value, point, memo)
        some = self._store_some if self._masks(op, point) else self._store_each
        runs = self._runs(op, point)
        if runs is not None and not runs:
            self._store_run(op, point, value, memo)
        elif runs is None:
            some(op, point, value, memo)
        else:
            with t.when(self.all(runs)):
                self._store_run(op, point, value, dict(memo))
            with t.otherwise():
                some(op, point, value, dict(memo))

    def _store_run(self, op: tile.StoreOp, point: Point, value: Reg, memo: Memo) -> None:
        bits = self._numeric.to_memory(value, self._types(op)[0])
        self._text.store(bits, self._address(op, point, memo), GLOBAL)

    def _store_each(self, op: tile.StoreOp, point: Point, value: Reg, memo: Memo) -> None:
        """Store one element after another, in the order of the lanes."""
        t = self._text
        elem, memory = self._types(op)
        if (memory, point.lanes) not in self._spills:
            self._spills[memory, point.lanes] = t.private(memory, point.lanes)
        spill = self._spills[memory, point.lanes]
        t.store(self._numeric.to_memory(value, elem), spill, PRIVATE)
        with t.loop(t.integer(0), t.integer(point.lanes), 1) as lane:
            single = self._single(point, lane)
            conditions = self._exist(op, single)
            if op.mask is not None:
                conditions.append(self._tiles.evaluate(op.mask, single, {}))
            with t.when(self.all(conditions)) if conditions else nullcontext():
                bits = t.load(t.address(spill, lane, memory, PRIVATE), memory, 1, PRIVATE)
                t.store(bits, self._address(op, single, {}), GLOBAL)
