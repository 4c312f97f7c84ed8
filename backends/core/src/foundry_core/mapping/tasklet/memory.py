"""Loads and stores between MRAM and WRAM, in pieces of rows.

An expression is evaluated one piece at a time: up to `piece_bytes` of a row. One copy brings the consecutive bytes that
a load reads to WRAM before the piece is computed, and one copy writes a store's bytes afterwards. A copy moves whole
words of 8 bytes, as DMA does. So it reads more than requested, and the first wanted element has the same offset in its
buffer's first word as its address has in an MRAM word. dpu-legalize turns the copies into DMAs. Where only a part of
the first or last word of a store belongs to this program, it writes that word under a lock.

A row with a short constant stride is read as one run of bytes. Other accesses that are not consecutive use pointers to
MRAM, one word of 8 bytes at a time: a gather, a stride that is long or known only at run time, elements that wrap
around, and a store with a stride, because the elements between belong to others. A DMA takes 77 cycles to start and
half a cycle per byte, so fetching the bytes between two elements pays off only if they are fewer than about 150.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...emit.mlir import GLOBAL, PRIVATE, WIDTHS, Reg
from ...errors import source_line
from ...front.masks import sufficient
from ...front.scalars import constant_value
from ...ir import tile
from ...ir.elements import extents, finds, index_mapping, selected_operands
from ...ops.elementwise import is_elementwise
from ...ops.numeric import in_memory
from ..base.atomics import apply_atomic
from ..base.buffers import Buffer
from ..base.memory import GlobalMemory, WrappedAxis
from ..base.plan import is_tile, is_unit
from ..base.space import Memo, Point
from ..base.target import DMA_ALIGNMENT
from ..base.tiles import Tiles
from .wram import TaskletText

LOCK, UNLOCK = "__triton_mram_lock", "__triton_mram_unlock"
# Unrolling by the number of operations of an expression: for up to 1 operation, a loop over a piece takes 16 elements
# per iteration; up to 4, 8 elements; up to 16, half of the most that the kernel may take, 8 or 4. A loop costs 2
# instructions per iteration and an address costs 1; an element of a vector addition takes 4.
_UNROLLED = ((1, 16), (4, 8))
_LONGEST_UNROLLED = 16
# What finding an element takes, in operations, where it is not at the same index: in a reshape, a join, a gather.
_FINDING = 8
# The longest stride, in bytes, of a row that is read together with the bytes between its elements. Two elements of 8
# bytes take 2 * (77 + 4) cycles if fetched separately, and 77 + 4 + 64 / 2 if fetched together. For longer strides the
# WRAM that this takes matters more.
_LONGEST_STRIDE = 64


@dataclass(frozen=True)
class StagedLoad:
    """A load's elements in WRAM, for the piece at `point`.

    Attributes:
        first: address of the piece's first element; the bytes there may not have been fetched.
        stride: distance between neighbouring elements, in elements.
    """

    point: Point
    first: str
    stride: int


class Piece:
    """A part of a row: `count` elements from `point` on along its lane.

    Attributes:
        rounded: whether all tiles have room for the elements that round the count up to those of whole iterations.
        staged: loads whose elements are in WRAM.
        single: loads that have one value for all elements of the piece.
        inner: the element being computed: its index and its position in the piece.
    """

    def __init__(self, point: Point, count: Reg, rounded: bool) -> None:
        self.point = point
        self.count = count
        self.rounded = rounded
        self.staged: dict[tile.Read, list[StagedLoad]] = {}
        self.single: dict[tuple[tile.Read, tuple[Reg, ...]], Reg] = {}
        # Expressions are graphs, not trees: the loads below a value at a point are staged once.
        self.seen: set[tuple[SSAValue, Point]] = set()
        self.inner: tuple[Reg, Reg] | None = None


class StagedMemory(GlobalMemory):
    """Writes accesses to MRAM to a Text.

    Args:
        piece_bytes: bytes of a row that are in WRAM at a time, for each load and for the store.
        unrolled: the most elements per iteration of a loop over a short expression.
    """

    _text: TaskletText
    _tiles: Tiles

    def __init__(self, tiles: Tiles, piece_bytes: int, unrolled: int) -> None:
        super().__init__(tiles.text, tiles.space, tiles.numeric, tiles)
        self._piece_bytes = piece_bytes
        self._unrolled = unrolled
        self._pieces: list[Piece] = []
        # Indices of loops times strides, where the loop has them.
        self._products: dict[tuple[Reg, SSAValue], Reg] = {}

    def _wrapped_once(self, around: WrappedAxis, i: Reg, lanes: int) -> tuple[Reg, Reg]:
        # A DPU compares the ends of an axis once. It would need several instructions for each element.
        return self._space.plus(around.remainder, i), around.no_wrap

    # Pieces.

    def length(self, roots: Sequence[SSAValue], extent: int) -> int:
        """Return the elements of a piece: as many of the widest type among an expression's loads as fit."""
        loads = [op for op in self._expression(roots) if tile.reads_late(op)]
        widest = max((WIDTHS[self._types(op)[1]] // 8 for op in loads), default=4)
        return min(extent, max(1, self._piece_bytes // widest))

    def _expression(self, roots: Sequence[SSAValue]) -> set[Operation]:
        """Return the operations that are evaluated together with these values."""
        found = set[Operation]()
        pending = list(roots)
        while pending:
            value = pending.pop()
            op = value.owner
            if value in self._tiles.buffers or not isinstance(op, Operation) or op in found or not is_tile(value):
                continue
            found.add(op)
            pending += op.operands
            if tile.reads_late(op):
                pending += [offsets for axis in op.axes if (offsets := tile.axis_offsets(axis)) is not None]
        return found

    @contextmanager
    def piece(self, point: Point, count: Reg, roots: Sequence[SSAValue], rounded: bool = True) -> Iterator[Piece]:
        """Copy what some values load for a piece to WRAM; `iterate` then evaluates them element by element."""
        piece = Piece(point, count, rounded)
        self._pieces.append(piece)
        for root in roots:
            self._stage(root, point, piece)
        yield piece
        self._pieces.pop()

    def iterate(
        self, piece: Piece, roots: Sequence[SSAValue], body: Callable[[Point, Reg], None], first: int = 0
    ) -> None:
        """Run a body for each element of a piece, from `first` on, with its point and its position in the piece.

        Where it does no harm, elements after the end are computed too, to make the number a multiple of the elements
        per iteration (`turn`, which also divides `first`): all buffers have room for them.
        """

        def one(at: Point, place: Reg, _: Sequence[Reg]) -> Sequence[Reg]:
            body(at, place)
            return ()

        self.fold(piece, roots, (), one, first)

    def fold(
        self,
        piece: Piece,
        roots: Sequence[SSAValue],
        values: Sequence[Reg],
        body: Callable[[Point, Reg, Sequence[Reg]], Sequence[Reg]],
        first: int = 0,
    ) -> list[Reg]:
        """Run a body as `iterate` does, and carry registers from one element to the next; return their final values."""
        t, point = self._text, piece.point
        unroll = self.turn(piece, roots)
        count = piece.count
        if unroll > 1 and not self._space.known(count, point.lanes):
            up = self._space.plus(count, t.integer(unroll - 1))
            count = t.binary("arith.andi", up, t.integer(-unroll))

        def several(turn: Reg, running: Sequence[Reg]) -> Sequence[Reg]:
            for number in range(unroll):
                running = body(self.element_point(piece, turn, number), self._space.step(turn, number), running)
            return running

        made = t.carry(t.integer(first), count, unroll, values, several)
        piece.inner = None
        return made

    def element_point(self, piece: Piece, turn: Reg, number: int) -> Point:
        """Return the element of a piece at position `turn + number`, and make it the one being computed."""
        point = piece.point
        i = self._space.step(self._space.plus(point.index[point.lane], turn), number)
        piece.inner = (i, self._space.step(turn, number))
        index = tuple(i if d == point.lane else x for d, x in enumerate(point.index))
        return Point(index, point.lane, 1, point.inside)

    def turn(self, piece: Piece, roots: Sequence[SSAValue]) -> int:
        """Return the elements per iteration of a loop over a piece: several only if all loads are staged."""
        expression = self._expression(roots)
        if self._unrolled == 1 or not piece.rounded:
            return 1
        if any(tile.reads_late(op) and op not in piece.staged for op in expression):
            return 1
        found = sum(map(finds, expression)) * _FINDING
        operations = found + sum(is_elementwise(op) for op in expression)
        for most, elements in _UNROLLED:
            unroll = min(elements, self._unrolled)
            if operations <= most and piece.point.lanes % unroll == 0:
                return unroll
        half = self._unrolled // 2
        return half if operations <= _LONGEST_UNROLLED and piece.point.lanes % half == 0 else 1

    # Loads.

    def _stage(self, value: SSAValue, point: Point, piece: Piece) -> None:
        """Stage what a value loads at the points of a piece; mirrors Tiles.evaluate."""
        op = value.owner
        if not is_tile(value) or value in self._tiles.buffers or not isinstance(op, Operation):
            return
        if (value, point) in piece.seen:
            return
        piece.seen.add((value, point))
        match op:
            case _ if (of := index_mapping(value)) is not None:
                self._stage(of.source, self._tiles.source_point(of, point), piece)
            case _ if elements := selected_operands(op):
                for operand in op.operands:
                    if operand not in elements:
                        self._stage(operand, point, piece)
            case _ if tile.reads_late(op):
                self._stage_load(op, point, piece)
            case _ if is_elementwise(op):
                for operand in op.operands:
                    self._stage(operand, point, piece)

    def _stage_load(self, op: tile.Read, point: Point, piece: Piece) -> None:
        if point.lanes == 1:
            if (op, point.index) not in piece.single:
                piece.single[op, point.index] = self._load_one(op, point, {})
            return
        for value in (op.mask, op.other, op.gather, op.base):
            if value is not None:
                self._stage(value, point, piece)
        for d, axis in enumerate(op.axes):
            if (offsets := tile.axis_offsets(axis)) is not None:
                self._stage(offsets, self._along(offsets, d, point), piece)
        stride = self._short_stride(op, point)
        if stride:
            entries = piece.staged.setdefault(op, [])
            if all(entry.point.index != point.index for entry in entries):
                with self._text.location(source_line(op.location)):
                    entries.append(StagedLoad(point, self._fetch(op, point, piece, stride), stride))

    def _short_stride(self, op: tile.Read, point: Point) -> int:
        """Return the stride, in elements, of a row that is read as one run of bytes; 0 for any other row."""
        axis = op.axes[point.lane]
        if op.gather is not None:
            return 0
        if is_unit(axis):
            return 1
        even = tile.even_stride(axis)
        stride = None if even is None else constant_value(even)
        size = WIDTHS[self._types(op)[1]] // 8
        return stride if stride is not None and 0 < stride * size <= _LONGEST_STRIDE else 0

    def _along(self, offsets: SSAValue, dimension: int, point: Point) -> Point:
        """Return the point of an axis' offsets, which have the axis' extent in one dimension and 1 in all others."""
        zero = self._text.integer(0)
        index = tuple(point.index[dimension] if extent > 1 else zero for extent in extents(offsets))
        if dimension != point.lane or all(extent == 1 for extent in extents(offsets)):
            return Point(index, 0, 1)
        lane = next(d for d, extent in enumerate(extents(offsets)) if extent > 1)
        return Point(index, lane, point.lanes)

    def _fetch(self, op: tile.Read, point: Point, piece: Piece, stride: int) -> str:
        """Copy a piece of a row to WRAM; return the address of its first element."""
        t = self._text
        _, memory = self._types(op)
        buffer = self._stage_buffer(memory, (point.lanes - 1) * stride + 1)
        low, high = self._wanted(op, point, piece)
        axis = op.axes[point.lane]
        if not tile.wraps(axis):
            first = self._copy_in(op, point, low, high, buffer, stride)
            self._fill_others(op, point, piece, low, high, first, stride)
            return first

        def copy() -> Reg:
            return Reg(self._copy_in(op, point, low, high, buffer, stride), PRIVATE)

        def loaded() -> Reg:
            with t.loop(low, high, 1) as place:
                source = self._address(op, self._single(point, place), {})
                t.store(t.load(source, memory, 1, GLOBAL), t.address(buffer, place, memory, PRIVATE), PRIVATE)
            return Reg(buffer, PRIVATE)

        first = t.choose(self._wrapped[axis].no_wrap, copy, loaded).name
        self._fill_others(op, point, piece, low, high, first, stride)
        return first

    def _fill_others(
        self, op: tile.Read, point: Point, piece: Piece, low: Reg, high: Reg, first: str, stride: int
    ) -> None:
        """Write what a load gives for elements that do not exist to their places: mostly none, and then no test later.

        A mask is not looked at: what is between two elements that it selects was fetched.
        """
        t = self._text
        elem, memory = self._types(op)
        zero, before = t.integer(0), piece.inner
        runs = [] if self._space.known(low, 0) else [(zero, self._smaller(low, piece.count))]
        runs += [] if high == piece.count else [(self._larger(high, zero), piece.count)]
        for start, end in runs:
            with t.loop(start, end, 1) as place:
                single = self._single(point, place)
                piece.inner = (single.index[point.lane], place)
                other = self._numeric.to_memory(self._other(op, single, {}), elem)
                address = t.address(first, self._space.times(place, t.integer(stride)), memory, PRIVATE)
                t.store(other, address, PRIVATE)
        piece.inner = before

    def _stage_buffer(self, memory: str, lanes: int) -> str:
        """Allocate a buffer for a piece that may begin and end anywhere in a word of 8 bytes."""
        return self._text.private("i64", (lanes * WIDTHS[memory] // 8 + 2 * DMA_ALIGNMENT - 1) // DMA_ALIGNMENT)

    def _wanted(self, op: tile.Read, point: Point, piece: Piece) -> tuple[Reg, Reg]:
        """Return (first, end) positions of the elements of a piece that exist and are not masked; may be empty."""
        t = self._text
        low, high = t.integer(0), piece.count
        outside: list[Reg] = []
        for d, value in enumerate(op.ranges):
            if value in point.inside:
                continue
            first, last = self._tiles.range(value)
            if d != point.lane:
                outside += [t.compare("slt", point.index[d], first), t.compare("sge", point.index[d], last)]
                continue
            begin = point.index[d]
            low = self._larger(low, t.binary("arith.subi", first, begin))
            high = self._smaller(high, t.binary("arith.subi", last, begin))
        for condition in outside:
            high = t.select(condition, low, high)
        if op.mask is None:
            return low, high
        # The first unmasked element, and the position after the last one. If there is none, they are turned around, so
        # the end must not be before the start.
        high = self._larger(high, low)
        cells = [t.private(t.index, 1) for _ in range(2)]
        begin, end = high, low
        unmasked = self._unmasked(op.mask)
        if unmasked is not None:
            begin, end = t.select(unmasked, low, high), t.select(unmasked, high, low)
            high = t.select(unmasked, low, high)
        t.store(begin, cells[0], PRIVATE)
        t.store(end, cells[1], PRIVATE)
        before = piece.inner
        with t.loop(low, high, 1) as place:
            single = self._single(point, place)
            piece.inner = (single.index[point.lane], place)
            with t.when(self._tiles.evaluate(op.mask, single, {})):
                t.store(self._smaller(place, t.load(cells[0], t.index, 1, PRIVATE)), cells[0], PRIVATE)
                t.store(self._space.plus(place, t.integer(1)), cells[1], PRIVATE)
        piece.inner = before
        return t.load(cells[0], t.index, 1, PRIVATE), t.load(cells[1], t.index, 1, PRIVATE)

    def _unmasked(self, mask: SSAValue) -> Reg | None:
        """Return a condition under which a mask is set everywhere; None if no such condition is known."""
        found = sufficient(mask)
        return self.all([self._tiles.scalar(value) for value in found]) if found else None

    def _larger(self, x: Reg, y: Reg) -> Reg:
        return self._text.select(self._text.compare("sgt", x, y), x, y)

    def _smaller(self, x: Reg, y: Reg) -> Reg:
        return self._text.select(self._text.compare("slt", x, y), x, y)

    def _copy_in(self, op: tile.Read, point: Point, low: Reg, high: Reg, buffer: str, stride: int) -> str:
        """Copy the words that hold elements low to high of a piece; return the address of element 0, fetched or not.

        Element 0 has the same offset in the buffer's first word as its address has in an MRAM word. So a word of MRAM
        becomes a word of WRAM, and all elements of the piece have a place in the buffer, including those that are not
        fetched.
        """
        t = self._text
        _, memory = self._types(op)
        step, mask = t.integer(stride * WIDTHS[memory] // 8), t.integer(DMA_ALIGNMENT - 1)
        begin = self._address(op, Point(point.index, point.lane, 1), {})
        address = t.op(f"llvm.ptrtoint {begin} : {GLOBAL} to i32", "i32")
        into = t.binary("arith.andi", address, mask)
        with t.when(t.compare("sgt", high, low)):
            words = t.integer(-DMA_ALIGNMENT)
            before = self._space.plus(into, self._space.times(low, step))
            # Up to the end of the last element, less than a stride after its start.
            behind = self._space.plus(into, self._space.times(high, step))
            behind = self._space.plus(behind, t.integer((1 - stride) * WIDTHS[memory] // 8))
            first = t.binary("arith.andi", before, words)
            length = t.binary("arith.subi", t.binary("arith.andi", self._space.plus(behind, mask), words), first)
            word = self._space.plus(t.binary("arith.andi", address, words), first)
            source = t.op(f"llvm.inttoptr {word.name} : i32 to {GLOBAL}", GLOBAL)
            t.copy(t.address(buffer, first, "i8", PRIVATE), PRIVATE, source.name, GLOBAL, length, DMA_ALIGNMENT)
        return t.byte_address(buffer, into)

    def load(self, op: tile.Read, point: Point, memo: Memo) -> Reg:
        """Return an element of a load, from WRAM if a current piece has staged it."""
        t = self._text
        for piece in reversed(self._pieces):
            if (op, point.index) in piece.single:
                return piece.single[op, point.index]
            if piece.inner is None:
                continue
            for staged in piece.staged.get(op, ()):
                if self._is_inner(staged.point, point, piece):
                    elem, memory = self._types(op)
                    turn, number = self._space.parts(piece.inner[1])
                    first = t.address(staged.first, self._space.times(turn, t.integer(staged.stride)), memory, PRIVATE)
                    address = t.offset_address(first, number * staged.stride, memory, PRIVATE)
                    value = self._numeric.from_memory(t.load(address, memory, 1, PRIVATE), elem)
                    if op.mask is None:
                        return value
                    return t.select(self._tiles.evaluate(op.mask, point, memo), value, self._other(op, point, memo))
        return self._load_one(op, point, memo)

    @staticmethod
    def _is_inner(staged: Point, point: Point, piece: Piece) -> bool:
        """Return whether a point is the element being computed of a staged piece of a row."""
        assert piece.inner is not None
        return all(
            (x == piece.inner[0] if d == staged.lane else x == y)
            for d, (x, y) in enumerate(zip(point.index, staged.index, strict=True))
        )

    # Stores.

    def store(self, op: tile.StoreOp) -> None:
        """Evaluate a store's value and write the elements that exist."""
        t = self._text
        shape = extents(op.value)
        if not shape:
            self._store_one(op, Point((), 0, 1))
            return
        lane = self._tiles.best_lane(op.value, op)
        limits = [(t.integer(0), t.integer(extent)) for extent in shape]
        if op.ranges:
            limits = [self._tiles.range(value) for value in op.ranges]
        roots = [op.value, *([op.mask] if op.mask is not None else [])]
        in_rows = op.gather is None and tile.even_stride(op.axes[lane]) is not None and is_unit(op.axes[lane])
        if not in_rows:
            roots += [op.base] + ([op.gather] if op.gather is not None else [])
            roots += [offsets for axis in op.axes if (offsets := tile.axis_offsets(axis)) is not None]
        # If elements are stored one by one, none after the end is computed, because it has nowhere to go.
        for piece in self.sweep(limits, shape, lane, roots, frozenset(op.ranges), in_rows, op):
            if in_rows:
                self._store_row(op, piece, roots)
            else:
                self.iterate(piece, roots, lambda point, place: self._store_one(op, point))

    def _visit(self, op: tile.Executed, everywhere: bool, body: Callable[[Point], None]) -> None:
        shape = extents(op.elements)
        if not shape:
            body(Point((), 0, 1))
            return
        limits = [(self._text.integer(0), self._text.integer(extent)) for extent in shape]
        inside: frozenset[SSAValue] = frozenset()
        if op.ranges and not everywhere:
            limits, inside = [self._tiles.range(value) for value in op.ranges], frozenset(op.ranges)
        roots = [operand for operand in op.operands if is_tile(operand)]
        roots += [offsets for axis in op.axes if (offsets := tile.axis_offsets(axis)) is not None]
        lane = self._tiles.best_lane(op.elements)
        # Elements after the end must not be changed, so none is computed.
        for piece in self.sweep(limits, shape, lane, roots, inside, rounded=False):
            self.iterate(piece, roots, lambda point, place: body(point))

    def _fence(self, order: str) -> None:
        """Write nothing: the calls that lock and unlock MRAM keep all accesses in order."""

    def _load_now(self, address: str, elem: str) -> Reg:
        with self._locked():
            return self._text.load(address, in_memory(elem), 1, GLOBAL)

    def _change_now(self, kind: str, elem: str, address: str, value: Reg, compare: Reg | None) -> Reg:
        """Read an element, and write the changed one, under the lock of this DPU's MRAM."""
        with self._locked():
            old = self._text.load(address, in_memory(elem), 1, GLOBAL)
            self._text.store(apply_atomic(self._numeric, kind, elem, old, value, compare), address, GLOBAL)
        return old

    def sweep(
        self,
        limits: Sequence[tuple[Reg, Reg]],
        shape: tuple[int, ...],
        lane: int,
        roots: Sequence[SSAValue],
        inside: frozenset[SSAValue] = frozenset(),
        rounded: bool = True,
        access: tile.StoreOp | None = None,
    ) -> Iterator[Piece]:
        """Loop over the pieces of an index space and stage what some values load; yields once, inside the loops."""
        from_start = self._space.known(limits[lane][0], 0)
        with (
            self.pieces(limits, shape, lane, roots, inside, access) as (point, count),
            self.piece(point, count, roots, from_start and rounded) as piece,
        ):
            yield piece

    @contextmanager
    def pieces(
        self,
        limits: Sequence[tuple[Reg, Reg]],
        shape: tuple[int, ...],
        lane: int,
        roots: Sequence[SSAValue],
        inside: frozenset[SSAValue] = frozenset(),
        access: tile.StoreOp | None = None,
    ) -> Iterator[tuple[Point, Reg]]:
        """Loop over the pieces of an index space; yields the first point of a piece and its number of elements.

        Args:
            access: what is stored there, if anything.
        """
        t = self._text
        length = self.length(roots, shape[lane])
        accesses = [op for op in self._expression(roots) if tile.reads_late(op)]
        axes = [axis for op in (*accesses, *([access] if access is not None else [])) for axis in op.axes]
        # The strides that are known only at run time.
        every = [stride for axis in axes if (stride := tile.even_stride(axis)) is not None]
        strides = list(dict.fromkeys(stride for stride in every if constant_value(stride) is None))
        with ExitStack() as opened:
            at = [t.integer(0)] * len(shape)
            for d in (*(d for d in range(len(shape)) if d != lane), lane):
                low, high = limits[d]
                step = length if d == lane else 1
                if not (self._space.known(low, 0) and self._space.known(high, step)):
                    at[d] = opened.enter_context(self._loop(low, high, step, () if d == lane else strides))
            index = tuple(at)
            count = t.integer(length)
            low, high = limits[lane]
            if not (self._space.known(low, 0) and self._space.known(high, shape[lane])):
                count = self._smaller(count, t.binary("arith.subi", high, index[lane]))
            yield Point(index, lane, length, inside), count

    @contextmanager
    def _loop(self, low: Reg, high: Reg, step: int, strides: Sequence[SSAValue]) -> Iterator[Reg]:
        """Open a loop that carries the products of its index and some strides, of which each takes 29 instructions."""
        t, space = self._text, self._space
        if not strides:
            with t.loop(low, high, step) as index:
                yield index
            return
        factors = [self._tiles.index(stride) for stride in strides]
        steps = [space.times(t.integer(step), factor) for factor in factors]
        index, products = Reg(t.fresh(), t.index), [Reg(t.fresh(), t.index) for _ in strides]
        starts = [space.times(low, factor) for factor in factors]
        carried = ", ".join(f"{x.name} = {y.name}" for x, y in zip(products, starts, strict=True))
        types = ", ".join(t.index for _ in strides)
        head = f"{t.fresh()}:{len(strides)} = scf.for {index.name} = {low.name} to {high.name} "
        with t.nest(f"{head}step {t.integer(step).name} iter_args({carried}) -> ({types}) : {t.index} {{"):
            self._products.update(((index, stride), x) for stride, x in zip(strides, products, strict=True))
            yield index
            after = [space.plus(x, y) for x, y in zip(products, steps, strict=True)]
            t.line(f"scf.yield {', '.join(x.name for x in after)} : {types}")

    def _offset_along(self, axis: SSAValue, i: Reg, point: Point, memo: Memo) -> Reg:
        stride = tile.even_stride(axis)
        if stride is not None and (i, stride) in self._products:
            return self._products[i, stride]
        return super()._offset_along(axis, i, point, memo)

    @contextmanager
    def unless_copied(self, value: SSAValue, buffer: Buffer, point: Point, count: Reg) -> Iterator[None]:
        """Copy a piece of a load from MRAM to its place in a buffer, if both are whole words; else run what follows."""
        t, op = self._text, value.owner
        if value in self._tiles.buffers or not tile.reads_late(op) or not self._fills(op, buffer, point.lane):
            yield
            return
        size = WIDTHS[self._types(op)[1]] // 8
        low, high = self._wanted(op, point, Piece(point, count, True))
        source = self._address(op, Point(point.index, point.lane, 1), {})
        address = t.op(f"llvm.ptrtoint {source} : {GLOBAL} to i32", "i32")
        conditions = [t.compare("eq", t.binary("arith.andi", address, t.integer(DMA_ALIGNMENT - 1)), t.integer(0))]
        if not self._space.known(low, 0):
            conditions.append(t.compare("eq", low, t.integer(0)))
        if not self._space.known(high, point.lanes):
            conditions.append(t.compare("eq", high, t.integer(point.lanes)))
        axis = op.axes[point.lane]
        if tile.wraps(axis):
            conditions.append(self._wrapped[axis].no_wrap)
        with t.when(self.all(conditions)):
            to = self._tiles.private.address(buffer, point.index)
            t.copy(to, PRIVATE, source, GLOBAL, t.integer(point.lanes * size), DMA_ALIGNMENT)
        with t.otherwise():
            yield

    def _fills(self, op: tile.Read, buffer: Buffer, lane: int) -> bool:
        """Return whether pieces of a load can be whole words of a buffer, which has the bits that are in MRAM."""
        elem, memory = self._types(op)
        size = WIDTHS[memory] // 8
        length = self.length([op.result], extents(op.result)[lane])
        others = [buffer.stride(d) for d in range(len(buffer.extents)) if d != lane]
        return (
            self._unrolled > 1
            and op.mask is None
            and op.gather is None
            and is_unit(op.axes[lane])
            and elem != "i1"
            and buffer.stored_as == memory
            and buffer.stride(lane) == 1
            and all(count * size % DMA_ALIGNMENT == 0 for count in (length, *others))
        )

    def _store_one(self, op: tile.StoreOp, point: Point) -> None:
        t = self._text
        conditions = self._exist(op, point)
        if op.mask is not None:
            conditions.append(self._tiles.evaluate(op.mask, point, {}))
        with t.when(self.all(conditions)) if conditions else nullcontext():
            memo: Memo = {}
            elem, memory = self._types(op)
            value = self._numeric.to_memory(self._tiles.evaluate(op.value, point, memo), elem)
            address = self._address(op, point, memo)
            # A store of less than a word reads the MRAM word and writes it back.
            with self._locked() if WIDTHS[memory] < 64 else nullcontext():
                t.store(value, address, GLOBAL)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._text.call_void(LOCK)
        yield
        self._text.call_void(UNLOCK)

    def _store_row(self, op: tile.StoreOp, piece: Piece, roots: Sequence[SSAValue]) -> None:
        """Compute a piece in WRAM, at the offset in a word of 8 bytes that it has in MRAM, and copy it to MRAM."""
        t, point = self._text, piece.point
        elem, memory = self._types(op)
        buffer = self._stage_buffer(memory, point.lanes)
        target = self._address(op, Point(point.index, point.lane, 1), {})
        address = t.op(f"llvm.ptrtoint {target} : {GLOBAL} to i32", "i32")
        into = t.binary("arith.andi", address, t.integer(DMA_ALIGNMENT - 1, "i32"))
        first = t.address(buffer, into, "i8", PRIVATE)
        chosen = t.private("i8", point.lanes) if op.mask is not None else ""

        def put(array: str, kind: str, place: Reg, value: Reg) -> None:
            turn, number = self._space.parts(place)
            t.store(value, t.offset_address(t.address(array, turn, kind, PRIVATE), number, kind, PRIVATE), PRIVATE)

        def compute(at: Point, place: Reg) -> None:
            memo: Memo = {}
            put(first, memory, place, self._numeric.to_memory(self._tiles.evaluate(op.value, at, memo), elem))
            if op.mask is not None:
                put(chosen, "i8", place, t.cast("arith.extui", self._tiles.evaluate(op.mask, at, memo), "i8"))

        def copy_out(low: Reg, high: Reg, start: str = first) -> None:
            bytes = self._space.times(t.binary("arith.subi", high, low), t.integer(WIDTHS[memory] // 8))
            source, to = t.address(start, low, memory, PRIVATE), t.address(target, low, memory, GLOBAL)
            t.copy(to, GLOBAL, source, PRIVATE, bytes, WIDTHS[memory] // 8)

        def copy_piece(start: str = first) -> None:
            """Copy all of a piece; in one DMA without further tests if it is long enough and consists of words."""
            length = point.lanes * WIDTHS[memory] // 8
            if self._unrolled == 1 or length % DMA_ALIGNMENT:
                copy_out(t.integer(0), piece.count, start)
                return
            whole = t.compare("eq", into, t.integer(0))
            if not self._space.known(piece.count, point.lanes):
                whole = t.binary("arith.andi", whole, t.compare("eq", piece.count, t.integer(point.lanes)))
            with t.when(whole):
                t.copy(target, GLOBAL, start, PRIVATE, t.integer(length), DMA_ALIGNMENT)
            with t.otherwise():
                copy_out(t.integer(0), piece.count, start)

        loaded = self._only_moved(op, piece)
        if loaded is not None:
            there = t.op(f"llvm.ptrtoint {loaded} : {PRIVATE} to i32", "i32")
            offset = t.binary("arith.andi", t.binary("arith.subi", there, address), t.integer(DMA_ALIGNMENT - 1))
            with t.when(t.compare("eq", offset, t.integer(0))):
                copy_piece(loaded)
            with t.otherwise():
                self.iterate(piece, roots, compute)
                copy_out(t.integer(0), piece.count)
            return
        self.iterate(piece, roots, compute)
        if op.mask is None:
            copy_piece()
            return
        unmasked = self._unmasked(op.mask)
        if unmasked is not None:
            with t.when(unmasked):
                copy_out(t.integer(0), piece.count)
            with t.otherwise():
                self._copy_chosen(piece, chosen, copy_out)
            return
        self._copy_chosen(piece, chosen, copy_out)

    def _only_moved(self, op: tile.StoreOp, piece: Piece) -> str | None:
        """Return where WRAM has the bits of a piece that a store writes, if these are what a load has read."""
        load = op.value.owner
        if op.mask is not None or op.value in self._tiles.buffers or not tile.reads_late(load):
            return None
        if load.mask is not None or self._types(load)[0] == "i1":
            return None
        for staged in piece.staged.get(load, ()):
            if staged.point == piece.point and staged.stride == 1:
                return staged.first
        return None

    def _copy_chosen(self, piece: Piece, chosen: str, copy_out: Callable[[Reg, Reg], None]) -> None:
        """Copy out each run of elements that the mask selects; excluded elements may belong to another program."""
        t = self._text
        none = t.integer(-1)
        begin, place = Reg(t.fresh(), t.index), Reg(t.fresh(), t.index)
        end = t.binary("arith.addi", piece.count, t.integer(1))
        head = f"{t.fresh()} = scf.for {place.name} = {t.integer(0).name} to {end.name} step {t.integer(1).name}"
        with t.nest(f"{head} iter_args({begin.name} = {none.name}) -> ({t.index}) : {t.index} {{"):

            def flag() -> Reg:
                found = t.load(t.address(chosen, place, "i8", PRIVATE), "i8", 1, PRIVATE)
                return t.compare("ne", found, t.integer(0, "i8"))

            inside = t.choose(t.compare("slt", place, piece.count), flag, lambda: t.integer(0, "i1"))
            running = t.compare("sge", begin, t.integer(0))
            ends = t.binary("arith.andi", running, t.binary("arith.xori", inside, t.integer(1, "i1")))
            with t.when(ends):
                copy_out(begin, place)
            following = t.select(inside, t.select(running, begin, place), none)
            t.line(f"scf.yield {following.name} : {t.index}")
