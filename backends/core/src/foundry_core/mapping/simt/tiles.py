"""Tiles in workgroup memory: how one is arranged there, read and written, and passes in parts if it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.ir import Operation

from ...emit.mlir import WIDTHS, Reg
from ...ops.numeric import in_memory
from .invocation import Invocation
from .layouts import Layout, shape_without
from .spirv.instructions import Code
from .spirv.shared_memory import EVERYTHING, Span

# An access: the numbers of the registers, and the index of a vector of as many elements.
Vector = tuple[list[int], Reg]
# The most bytes of one access.
_WIDEST = 16
# Rows of workgroup memory are this much longer than a tile's, so that a column is in different banks.
_PADDING_BYTES = 16
# A tile has at most 64 parts: each is written out, with two barriers.
_MOST_CUTS = 6


def runs(code: Code, addresses: Sequence[Reg], others: Sequence[object], size: int, widest: int) -> Iterator[list[int]]:
    """Divide registers into accesses: registers of neighbouring elements, as many as their alignment allows.

    Args:
        addresses: an address, or an index, for each register.
        others: what the registers of one access must have in common.
        size: the distance of neighbours.
        widest: the most registers of one access.
    """
    parts = []
    for place in addresses:
        known = code.value(place)
        parts.append(code.parts(place) if known is None else (code.integer(0, place.elem), known))
    order = sorted(range(len(addresses)), key=lambda k: (parts[k][0].name, parts[k][1]))
    at = 0
    while at < len(order):
        base, step = parts[order[at]]
        run = 1
        while run < widest:
            more = order[at + run : at + 2 * run]
            fits = len(more) == run and code.multiple(addresses[order[at]]) % (2 * run * size) == 0
            expected = [(base, step + (run + k) * size) for k in range(run)]
            if not fits or [parts[k] for k in more] != expected or any(others[k] != others[order[at]] for k in more):
                break
            run *= 2
        yield order[at : at + run]
        at += run


class Rows:
    """A tile in workgroup memory, in row-major order, with longer rows than it has.

    Attributes:
        size: bytes of an element.
        length, bytes: what the tile takes, in elements and in bytes.

    Args:
        shortest: rows of fewer bytes are not longer than the tile's.
    """

    def __init__(self, shape: Sequence[int], elem: str, shortest: int = 0) -> None:
        self._elem = elem
        self._kind = in_memory(elem)
        self.size = WIDTHS[self._kind] // 8
        total = prod(shape)
        self._row = shape[-1] if shape else 1
        padded = len(shape) > 1 and total > self._row > 1 and self._row * self.size >= shortest
        self._padding = _PADDING_BYTES // self.size if padded else 0
        self.length = total + total // max(1, self._row) * self._padding
        self.bytes = self.length * self.size

    @property
    def stride(self) -> int:
        """Return the distance of rows, in elements."""
        return self._row + self._padding

    def start(self, invocation: Invocation, first: int) -> Reg:
        """Return where a tile begins that has its first byte there, in elements."""
        return invocation.code.integer(first // self.size, "i32")

    def span(self, invocation: Invocation, start: Reg) -> Span:
        """Return the bytes of a tile that begins there."""
        first = invocation.code.value(start)
        return EVERYTHING if first is None else (first * self.size, first * self.size + self.bytes)

    def place(self, invocation: Invocation, index: Reg) -> Reg:
        """Return where an element of a layout is in the tile's memory, from its index in the tile."""
        t = invocation.code
        # The constant part of an index is made of other bits than the rest, so each part has a whole number of rows.
        base, step = t.parts(index)
        place = self._anywhere(invocation, base)
        return t.binary("arith.addi", place, t.integer(step + step // self._row * self._padding, "i32"))

    def _anywhere(self, invocation: Invocation, index: Reg) -> Reg:
        """Return where an element is, from an index that may be any number."""
        t = invocation.code
        if not self._padding:
            return index
        above = t.binary("arith.shrui", index, t.integer(self._row.bit_length() - 1, "i32"))
        return t.binary("arith.addi", index, t.binary("arith.muli", above, t.integer(self._padding, "i32")))

    def offsets(
        self, invocation: Invocation, layout: Layout, start: Reg, registers: Sequence[int] | None = None
    ) -> list[Reg]:
        """Return where the elements of a layout's registers are, in an array that begins with workgroup memory.

        Args:
            registers: their numbers. Default: all.
        """
        t, indices = invocation.code, invocation.indices(layout, registers)
        return [t.binary("arith.addi", self.place(invocation, index), start) for index in indices]

    def vectors(self, invocation: Invocation, offsets: Sequence[Reg], multiple: int = 0) -> list[Vector]:
        """Divide registers into accesses.

        Args:
            multiple: in elements; all places may be moved by multiples of it.
        """
        t = invocation.code
        # One register for each place: where a layout repeats, several hold the same element.
        distinct = list({place.name: number for number, place in reversed(list(enumerate(offsets)))}.values())
        widest = min(_WIDEST // self.size, multiple & -multiple or _WIDEST)
        found = []
        for run in runs(t, [offsets[k] for k in distinct], [None] * len(distinct), 1, widest):
            numbers = [distinct[k] for k in run]
            # Both parts of the place are multiples of the vector's width. The index of a vector is a sum too, so that
            # its constant part becomes one of the instruction that reads or writes.
            base, step = t.parts(offsets[numbers[0]])
            if len(numbers) > 1:
                width = t.integer(len(numbers).bit_length() - 1, "i32")
                base, step = t.binary("arith.shrui", base, width), step // len(numbers)
            found.append((numbers, t.binary("arith.addi", base, t.integer(step, "i32"))))
        return found

    def write(
        self,
        invocation: Invocation,
        layout: Layout,
        start: Reg,
        regs: Sequence[Reg],
        registers: Sequence[int] | None = None,
    ) -> None:
        """Write a tile, after a barrier if other invocations may still read what was there.

        Args:
            start: where it begins in workgroup memory, in elements.
            registers: the numbers of the registers that are given. Default: all.
        """
        span = self.span(invocation, start)
        invocation.group.order(span, writes=True)
        self._write(invocation, self.offsets(invocation, layout, start, registers), regs, span)

    def write_at(self, invocation: Invocation, indices: Sequence[Reg], start: Reg, regs: Sequence[Reg]) -> None:
        """Write the elements at some indices of the tile; the caller writes the barriers."""
        self._write(invocation, self._at(invocation, indices, start), regs, self.span(invocation, start))

    def _at(self, invocation: Invocation, indices: Sequence[Reg], start: Reg) -> list[Reg]:
        return [invocation.code.binary("arith.addi", self._anywhere(invocation, at), start) for at in indices]

    def _write(self, invocation: Invocation, offsets: Sequence[Reg], regs: Sequence[Reg], span: Span) -> None:
        for numbers, index in self.vectors(invocation, offsets):
            # Each vector is converted before it is written, so that not all are there at once.
            bits = [invocation.numeric.to_memory(regs[k], self._elem) for k in numbers]
            invocation.group.write_shared(index, bits, span)

    def read(
        self, invocation: Invocation, layout: Layout, start: Reg, registers: Sequence[int] | None = None
    ) -> list[Reg]:
        """Read some registers of a tile, or all, after a barrier if it may have been written just now."""
        return self.read_offsets(invocation, self.offsets(invocation, layout, start, registers), start)

    def read_at(self, invocation: Invocation, indices: Sequence[Reg], start: Reg) -> list[Reg]:
        """Read the elements at some indices of the tile, in row-major order."""
        return self.read_offsets(invocation, self._at(invocation, indices, start), start)

    def read_offsets(self, invocation: Invocation, offsets: Sequence[Reg], start: Reg) -> list[Reg]:
        """Read what is at places in the tile's memory."""
        invocation.group.order(self.span(invocation, start), writes=False)
        found: dict[str, Reg] = {}
        for number, reg in self.read_vectors(invocation, self.vectors(invocation, offsets), start):
            found[offsets[number].name] = reg
        return [found[place.name] for place in offsets]

    def read_vectors(self, invocation: Invocation, vectors: Sequence[Vector], start: Reg) -> Iterator[tuple[int, Reg]]:
        """Read registers of the tile; the caller writes barriers. Yields the number of each place, and its register."""
        span = self.span(invocation, start)
        for numbers, index in vectors:
            regs = invocation.group.read_shared(index, self._kind, len(numbers), span)
            for number, reg in zip(numbers, regs, strict=True):
                yield number, invocation.numeric.from_memory(reg, self._elem)


def part_registers(
    invocation: Invocation, layout: Layout, part: int, mask: int
) -> Iterator[tuple[list[int], Reg | None]]:
    """Yield registers that are in a part of a tile, and under which condition an invocation's are; None if all are.

    Args:
        part: what the indices of its elements are in the bits of the mask.
    """
    t = invocation.code
    lanes, warps = (tuple(basis & mask for basis in bases) for bases in (layout.lanes, layout.warps))
    moves = {0}
    for basis in (*lanes, *warps):
        moves |= {moved ^ basis for moved in moves}
    found: dict[int, list[int]] = {}
    for number, offset in enumerate(layout.offsets):
        found.setdefault(offset & mask ^ part, []).append(number)
    for moved in sorted(moves & found.keys()):
        own = invocation.first_index(Layout(layout.shape, (), lanes, warps))
        here = t.compare("eq", own, t.integer(moved, "i32")) if len(moves) > 1 else None
        yield found[moved], here


class Division:
    """The parts in which a tile passes through workgroup memory, one after another; all of it at once, if it fits.

    The indices of a part's elements are the same in some bits, which are not in the indices inside the part.

    Attributes:
        rows: how a part is arranged.
        cut: the bits of an index that tell parts apart.

    Args:
        limit: the bytes that a part may have. If the smallest parts have more, the arena refuses them.
        moving: of what writes and of what reads, the bits of a register's index in which invocations differ.
        bits: those that may tell parts apart. Default: all.
        dropped: more bits that are not in the indices inside a part.
        shortest: see Rows, of a tile that is divided: longer rows would take most of the memory.
    """

    def __init__(
        self,
        shape: Sequence[int],
        elem: str,
        limit: int,
        moving: Sequence[int],
        *,
        bits: Sequence[int] | None = None,
        dropped: int = 0,
        shortest: int = 4 * _PADDING_BYTES,
    ) -> None:
        self._bits = [1 << place for place in range((prod(shape) - 1).bit_length())]
        # If invocations do not differ in a bit, it is known which registers are in a part. Else a register is written,
        # or read, for each part that it may be in; to read costs more. Without the higher bits, rows stay long.
        left = [bit for bit in (self._bits if bits is None else bits) if not bit & dropped]
        left.sort(key=lambda bit: ([bool(side & bit) for side in reversed(moving)], -bit))
        self.cut, self._dropped = 0, dropped
        self.rows = Rows(shape_without(shape, dropped), elem)
        while self.rows.bytes > limit and left and self.cut.bit_count() < _MOST_CUTS:
            self.cut |= left.pop(0)
            self.rows = Rows(shape_without(shape, self.cut | dropped), elem, shortest)

    @property
    def parts(self) -> Iterator[int]:
        """Yield what the indices of each part's elements are in the bits that tell parts apart, in ascending order."""
        part = 0
        while True:
            yield part
            part = part - self.cut & self.cut
            if not part:
                return

    def has(self, invocation: Invocation, part: int, index: Reg, mask: int = -1) -> Reg | None:
        """Return whether the element with an index is in a part, as far as the bits of a mask tell; None if it is."""
        t, bits = invocation.code, self.cut & mask
        own = t.binary("arith.andi", index, t.integer(bits, "i32"))
        return t.compare("eq", own, t.integer(part & bits, "i32")) if bits else None

    def part_index(self, invocation: Invocation, index: Reg) -> Reg:
        """Return the index of an element inside its part."""
        t, gone = invocation.code, self.cut | self._dropped
        if not gone:
            return index
        # Kept bits, by how far they move down.
        runs: dict[int, int] = {}
        for bit in self._bits:
            if not bit & gone:
                by = (gone & bit - 1).bit_count()
                runs[by] = runs.get(by, 0) | bit >> by
        found = t.integer(0, "i32")
        for by, run in runs.items():
            moved = t.binary("arith.shrui", index, t.integer(by, "i32"))
            found = t.binary("arith.addi", found, t.binary("arith.andi", moved, t.integer(run, "i32")))
        return found

    def write(
        self,
        invocation: Invocation,
        layout: Layout,
        part: int,
        start: Reg,
        regs: Sequence[Reg],
        *,
        mask: int | None = None,
        owner: Reg | None = None,
    ) -> None:
        """Write a part of a tile, after a barrier if other invocations may still read what was there.

        Args:
            start: where the part begins in workgroup memory, in elements.
            mask: see `part_registers`. Default: the bits that tell parts apart.
            owner: whether this invocation writes; others have the same elements. Default: all write.
        """
        t = invocation.code
        invocation.group.order(self.rows.span(invocation, start), writes=True)
        inner = layout.drop_bits(self.cut | self._dropped)
        for numbers, condition in part_registers(invocation, layout, part, self.cut if mask is None else mask):

            def write(numbers: list[int] = numbers) -> None:
                self.rows.write(invocation, inner, start, [regs[number] for number in numbers], numbers)

            t.do_when(t.all_of(condition, owner), write)

    def read(self, invocation: Invocation, layout: Layout, part: int, start: Reg, found: dict[int, Reg]) -> None:
        """Read a part of a tile into registers of a layout, after a barrier if it may have been written just now.

        Args:
            found: the registers by their numbers. What an invocation has none of is read, too, and another part
                replaces it.
        """
        inner = layout.drop_bits(self.cut | self._dropped)
        for numbers, condition in part_registers(invocation, layout, part, self.cut):
            for number, reg in zip(numbers, self.rows.read(invocation, inner, start, numbers), strict=True):
                merge(invocation, number, reg, condition, found)


def merge(invocation: Invocation, number: int, reg: Reg, condition: Reg | None, found: dict[int, Reg]) -> None:
    """Put a register among those that were found, by its number; over another one under a condition only."""
    if condition is not None and number in found:
        reg = invocation.code.select(condition, reg, found[number])
    found[number] = reg


def through_memory(
    invocation: Invocation,
    op: Operation,
    regs: Sequence[Reg],
    source: Layout,
    target: Layout,
    *,
    bits: Mapping[int, bool] | None = None,
    owner: Reg | None = None,
) -> list[Reg]:
    """Return the registers of a tile in another layout, through workgroup memory.

    Args:
        bits: each register gets an element whose index has these bits instead of its own.
        owner: whether this invocation writes; others have the same indices. What it did to global memory before is
            visible to all of them after it. Default: all write.
    """
    bits = bits or {}
    replaced, ones = sum(bits), sum(bit for bit, is_set in bits.items() if is_set)
    moving = (source.invocation_bits, target.invocation_bits & ~replaced)
    elem = invocation.numeric.moved_type(regs)
    division = Division(source.shape, elem, invocation.arena.free, moving, dropped=replaced)
    found: dict[int, Reg] = {}
    # Less waits for what others read, unless it would take much more memory.
    small = division.rows.bytes <= invocation.target.workgroup_bytes // 16
    for part in division.parts:
        avoided = invocation.code.accesses.spans if small else ()
        with invocation.arena.borrow(op, division.rows.bytes, avoided) as first:
            start = division.rows.start(invocation, first)
            division.write(invocation, source, part | ones, start, regs, mask=division.cut | replaced, owner=owner)
            if owner is not None:
                invocation.group.order(division.rows.span(invocation, start), writes=False, pins=True)
            division.read(invocation, target, part, start, found)
    return [found[number] for number in range(target.size)]


def is_permutation(source: Layout, target: Layout) -> bool:
    """Return whether each invocation has the registers of a layout in another one, in some order."""
    return (source.lanes, source.warps) == (target.lanes, target.warps) and set(target.offsets) <= set(source.offsets)


def convert_layout(
    invocation: Invocation, op: Operation, regs: Sequence[Reg], source: Layout, target: Layout
) -> Sequence[Reg]:
    """Return the registers of a tile in another layout; the element of an index stays the same."""
    if is_permutation(source, target):
        return [regs[source.register_of[offset]] for offset in target.offsets]
    return through_memory(invocation, op, regs, source, target)
