"""Tiles in a program's own memory, and access to their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...emit.mlir import PRIVATE, Reg, Text
from .space import Point, Space


@dataclass(frozen=True)
class Buffer:
    """A tile in the program's own memory. Elements have their register type (f32 for f16); i1 is stored as i8.

    Attributes:
        order: dimensions from the slowest to the fastest in memory.
        panel: columns of a panel, or 0. A tile (M, N) with panels is row-major in each panel, and the panels follow
            each other: what a product reads at a time is then contiguous, and maps to all sets of a cache.
        space: the type of pointers to the tile: private memory, or memory that the work-items of a program share.
    """

    name: str
    elem: str
    extents: tuple[int, ...]
    order: tuple[int, ...]
    space: str = PRIVATE
    panel: int = 0

    @property
    def stored_as(self) -> str:
        return "i8" if self.elem == "i1" else self.elem

    def stride(self, dimension: int) -> int:
        """Return the distance in elements between neighbours along a dimension, within a panel."""
        if self.panel:
            return self.panel if dimension == 0 else 1
        behind = self.order[self.order.index(dimension) + 1 :]
        return math.prod(self.extents[d] for d in behind)


class Buffers:
    """Writes allocations, reads and writes of buffers to a Text."""

    def __init__(self, text: Text, space: Space) -> None:
        self.text = text
        self._space = space

    def allocate(
        self,
        elem: str,
        extents: tuple[int, ...],
        order: tuple[int, ...] | None = None,
        space: str = PRIVATE,
        panel: int = 0,
    ) -> Buffer:
        """Allocate a buffer, row-major by default; `elem` is a register type."""
        stored = "i8" if elem == "i1" else elem
        make = self.text.private if space == PRIVATE else self.text.local
        name = make(stored, math.prod(extents))
        return Buffer(name, elem, extents, order or tuple(range(len(extents))), space, panel)

    def panel(self, buffer: Buffer, column: Reg) -> Buffer:
        """Return the panel of a buffer whose first column is given, as a row-major buffer."""
        start = self._space.times(column, self.text.integer(buffer.extents[0]))
        name = self.text.address(buffer.name, start, buffer.stored_as, buffer.space)
        return replace(buffer, name=name, extents=(buffer.extents[0], buffer.panel), panel=0)

    def slice(self, buffer: Buffer, first: Reg) -> Buffer:
        """Return the part of a buffer at an index of its first dimension, which must be the slowest in memory."""
        assert buffer.order[0] == 0
        start = self._space.times(first, self.text.integer(buffer.stride(0)))
        name = self.text.address(buffer.name, start, buffer.stored_as, buffer.space)
        return replace(buffer, name=name, extents=buffer.extents[1:], order=tuple(d - 1 for d in buffer.order[1:]))

    def offset(self, buffer: Buffer, index: Sequence[Reg]) -> Reg:
        """Return the offset of an element from the start of a buffer, in elements."""
        total = self.text.integer(0)
        if buffer.panel:
            t, (row, column), width = self.text, index, self.text.integer(buffer.panel)
            number = t.binary("arith.divui", column, width)
            total = self._space.times(number, t.integer(buffer.extents[0] * buffer.panel))
            index = row, t.binary("arith.remui", column, width)
        for dimension, i in enumerate(index):
            total = self._space.plus(total, self._space.times(i, self.text.integer(buffer.stride(dimension))))
        return total

    def address(self, buffer: Buffer, index: Sequence[Reg]) -> str:
        """Return the address of an element; a constant added to an index becomes a constant part of the address."""
        parts = [self._space.parts(i) for i in index]
        start = self.offset(buffer, [i for i, _ in parts])
        further = sum(number * buffer.stride(d) for d, (_, number) in enumerate(parts))
        first = self.text.address(buffer.name, start, buffer.stored_as, buffer.space)
        return self.text.offset_address(first, further, buffer.stored_as, buffer.space)

    def read(self, buffer: Buffer, point: Point) -> Reg:
        """Return the elements of a buffer at a point."""
        t = self.text
        if point.lanes == 1 or buffer.stride(point.lane) == 1:
            loaded = t.load(self.address(buffer, point.index), buffer.stored_as, point.lanes, buffer.space)
        else:
            start = self.offset(buffer, point.index)
            loaded = collect(
                t,
                point.lanes,
                buffer.stored_as,
                lambda lane: t.load(
                    t.address(
                        buffer.name,
                        self._space.plus(start, t.integer(lane * buffer.stride(point.lane))),
                        buffer.stored_as,
                        buffer.space,
                    ),
                    buffer.stored_as,
                    1,
                    buffer.space,
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
        if point.lanes == 1 or buffer.stride(point.lane) == 1:
            t.store(value, self.address(buffer, point.index), buffer.space)
            return
        start = self.offset(buffer, point.index)
        for lane in range(point.lanes):
            place = self._space.plus(start, t.integer(lane * buffer.stride(point.lane)))
            t.store(t.extract(value, lane), t.address(buffer.name, place, buffer.stored_as, buffer.space), buffer.space)


def collect(text: Text, lanes: int, elem: str, one: Callable[[int], Reg]) -> Reg:
    """Build a vector from its elements; `one` returns the element of a lane."""
    vector = text.integer(0, elem, lanes) if elem[0] == "i" else text.float_constant(0.0, elem, lanes)
    for lane in range(lanes):
        vector = text.insert(one(lane), vector, lane)
    return vector
