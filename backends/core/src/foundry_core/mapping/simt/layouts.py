"""Which element of a tile is in which register of which invocation.

A tile's shape consists of powers of two. The index of an element, in row-major order, is a number of log2(size) bits. A
layout gives such a number to each bit of the register's number, of the invocation's number in its subgroup (the lane)
and of the subgroup's number in the workgroup (the warp); the element's index is the exclusive or of the numbers of the
bits that are set. Triton calls this a linear layout. A bit whose number is zero does not change the element: several
registers or invocations hold it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute

from ...errors import LoweringError
from ...ir import ttg


@dataclass(frozen=True)
class Layout:
    """The layout of a tile.

    Attributes:
        shape: the tile's extents.
        registers, lanes, warps: for each bit, the index that it adds, in row-major order.
    """

    shape: tuple[int, ...]
    registers: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the number of registers that each invocation has."""
        return 1 << len(self.registers)

    def offset(self, register: int) -> int:
        """Return the element of a register in the first lane of the first warp."""
        found = 0
        for bit, basis in enumerate(self.registers):
            if register >> bit & 1:
                found ^= basis
        return found

    @functools.cached_property
    def offsets(self) -> tuple[int, ...]:
        """Return `offset` of each register."""
        return tuple(self.offset(register) for register in range(self.size))

    @functools.cached_property
    def register_of(self) -> dict[int, int]:
        """Return the first register that has each of `offsets`."""
        return {offset: register for register, offset in reversed(list(enumerate(self.offsets)))}

    @functools.cached_property
    def distinct(self) -> tuple[int, ...]:
        """Return the registers without those that repeat another one's element."""
        return tuple(sorted(self.register_of.values()))

    def position(self, index: int) -> tuple[int, ...]:
        """Return the coordinates of an element."""
        found = []
        for extent in reversed(self.shape):
            found.append(index % extent)
            index //= extent
        return tuple(reversed(found))

    def index(self, position: Sequence[int]) -> int:
        """Return the row-major index of a position."""
        index = 0
        for at, extent in zip(position, self.shape, strict=True):
            index = index * extent + at
        return index

    def map_indices(self, shape: Sequence[int], move: Callable[[int], int]) -> Layout:
        """Return the layout of a tile of another shape in which each register's element has another index.

        Args:
            move: returns the index for one of this tile. It moves each bit without regard to the others.
        """
        parts = (tuple(move(basis) for basis in part) for part in (self.registers, self.lanes, self.warps))
        return Layout(tuple(shape), *parts)

    def permute(self, dims: Sequence[int | None]) -> Layout:
        """Return the layout of the tile with its dimensions in another order; each element stays in its register.

        Args:
            dims: the numbers of the dimensions; None for a new one of extent 1. Those left out have an extent of 1.
        """
        return _permuted(self, tuple(dims))

    @property
    def invocation_bits(self) -> int:
        """Return the bits of an index in which invocations differ, of the same register."""
        return union_bits(self.lanes) | union_bits(self.warps)

    @property
    def repeats(self) -> bool:
        """Whether several invocations hold the same element."""
        return 0 in self.lanes or 0 in self.warps

    def drop_bits(self, mask: int) -> Layout:
        """Return the layout of a part of the tile: the elements whose index has the same bits where a mask has some.

        The bits of the mask are no longer in the indices. So registers, or invocations, that differ only in them have
        the same element; the caller knows which of them have an element of the part.
        """
        return self.map_indices(shape_without(self.shape, mask), lambda index: _squeezed(index, mask))


@functools.lru_cache(4096)
def _permuted(layout: Layout, dims: tuple[int | None, ...]) -> Layout:
    shape = tuple(1 if d is None else layout.shape[d] for d in dims)
    made = Layout(shape, (), (), ())

    def permute(index: int) -> int:
        position = layout.position(index)
        return made.index([0 if d is None else position[d] for d in dims])

    return layout.map_indices(shape, permute)


def scalar_layout(lanes: int, warps: int) -> Layout:
    """Return the layout of a tile of one element, which each invocation holds."""
    return Layout((1,), (), (0,) * (lanes.bit_length() - 1), (0,) * (warps.bit_length() - 1))


def union_bits(bases: Sequence[int]) -> int:
    """Return the bits that any of the bases has."""
    return functools.reduce(operator.or_, bases, 0)


def _squeezed(index: int, mask: int) -> int:
    """Return an index without the bits of a mask: those above them move down."""
    found = place = 0
    while index >> place:
        if not mask >> place & 1:
            found |= (index >> place & 1) << place - (mask & (1 << place) - 1).bit_count()
        place += 1
    return found


def shape_without(shape: Sequence[int], mask: int) -> tuple[int, ...]:
    """Return the shape of what is left of a tile if the elements of a part have the same bits where a mask has some."""
    found, stride = [], 1
    for extent in reversed(shape):
        found.append(extent >> (mask & (extent - 1) * stride).bit_count())
        stride *= extent
    return tuple(reversed(found))


def arrange_layout(like: Layout, low: int = 0) -> Layout:
    """Return the layout of a tile in which its row-major order is plain.

    The lowest bits of an index are in the registers, as many as `low`; then come lanes, warps, and registers again.

    Args:
        like: a layout of the tile.
    """
    bits = [1 << bit for bit in range((prod(like.shape) - 1).bit_length())]
    first, rest = bits[:low], bits[low:]
    lanes, rest = rest[: len(like.lanes)], rest[len(like.lanes) :]
    warps, rest = rest[: len(like.warps)], rest[len(like.warps) :]

    def filled(bases: list[int], size: int) -> tuple[int, ...]:
        return (*bases, *[0] * (size - len(bases)))

    return Layout(like.shape, (*first, *rest), filled(lanes, len(like.lanes)), filled(warps, len(like.warps)))


def _bits(size: int) -> int:
    if size & (size - 1):
        raise LoweringError(f"a tile has {size} elements along a dimension, which is not a power of two")
    return size.bit_length() - 1


class _Bases:
    """Positions as Triton counts them, before they are made row-major indices: (dimension, distance)."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.reached = [1] * len(self.shape)

    def take(self, sizes: Sequence[int], order: Sequence[int], without: int = -1) -> list[tuple[int, int]]:
        """Continue each dimension by `sizes` elements, the fastest first; beyond the tile, positions repeat.

        Along the dimension `without`, they repeat at once.
        """
        found = []
        for dim in order:
            for _ in range(_bits(sizes[dim])):
                inside = dim != without and self.reached[dim] < self.shape[dim]
                found.append((dim, self.reached[dim] if inside else 0))
                self.reached[dim] *= 1 if dim == without else 2
        return found

    def rest(self, order: Sequence[int]) -> list[tuple[int, int]]:
        """Return the positions of what is left of the tile."""
        found = []
        for dim in order:
            while self.reached[dim] < self.shape[dim]:
                found.append((dim, self.reached[dim]))
                self.reached[dim] *= 2
        return found


Parts = tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[tuple[int, ...]]]


def _vectors(bases: Sequence[tuple[int, int]], rank: int) -> list[tuple[int, ...]]:
    return [tuple(distance if dim == each else 0 for each in range(rank)) for dim, distance in bases]


def _blocked(layout: ttg.BlockedLayout, shape: tuple[int, ...]) -> Parts:
    order = layout.numbers("order")
    bases = _Bases(shape)
    registers, lanes, warps = (
        bases.take(layout.numbers(name), order) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    )
    registers += bases.rest(order)
    rank = len(shape)
    return _vectors(registers, rank), _vectors(lanes, rank), _vectors(warps, rank)


def _dot_operand(layout: ttg.DotOperandLayout, shape: tuple[int, ...]) -> Parts:
    """Return the layout of an operand for multiplication without matrix units: all of K is in each invocation.

    Along the product's other dimension, invocations hold the same elements.
    """
    parent = layout.fields.data["parent"]
    if not isinstance(parent, ttg.BlockedLayout):
        raise LoweringError(f"an operand of tl.dot has the layout {parent.name}")
    order, rank = parent.numbers("order"), len(shape)
    k = rank - (1 if layout.number("opIdx") == 0 else 2)
    bases = _Bases(shape)
    registers, lanes, warps = (
        bases.take(parent.numbers(name), order, without=k)
        for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    )
    registers = [base for base in registers if base[1]] + bases.rest(order)
    return _vectors(registers, rank), _vectors(lanes, rank), _vectors(warps, rank)


def _slice(layout: ttg.SliceLayout, shape: tuple[int, ...]) -> Parts:
    dim, parent = layout.number("dim"), layout.fields.data["parent"]
    registers, lanes, warps = _parts(parent, (*shape[:dim], 1, *shape[dim:]))

    def without(vectors: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(*vector[:dim], *vector[dim + 1 :]) for vector in vectors]

    return [vector for vector in without(registers) if any(vector)], without(lanes), without(warps)


def _linear(layout: ttg.LinearLayout, shape: tuple[int, ...]) -> Parts:
    registers, lanes, warps = (list(layout.vectors(name)) for name in ("register", "lane", "warp"))
    reached = [1] * len(shape)
    for vector in (*registers, *lanes, *warps):
        for dim, distance in enumerate(vector):
            reached[dim] = max(reached[dim], 1 << distance.bit_length())
    more = _Bases(shape)
    more.reached = reached
    fit = [
        [tuple(v if v < e else 0 for v, e in zip(vector, shape, strict=True)) for vector in part]
        for part in (registers, lanes, warps)
    ]
    return fit[0] + _vectors(more.rest(range(len(shape) - 1, -1, -1)), len(shape)), fit[1], fit[2]


def _parts(layout: Attribute, shape: tuple[int, ...]) -> Parts:
    match layout:
        case ttg.BlockedLayout():
            return _blocked(layout, shape)
        case ttg.SliceLayout():
            return _slice(layout, shape)
        case ttg.DotOperandLayout():
            return _dot_operand(layout, shape)
        case ttg.LinearLayout():
            return _linear(layout, shape)
    raise LoweringError(f"a tile has the layout {layout.name}, which this mapping does not know")


@functools.lru_cache(4096)
def layout(encoding: Attribute, shape: tuple[int, ...]) -> Layout:
    """Return the layout that the encoding of a tensor type means for a tile.

    Raises:
        LoweringError: the encoding is not one of TritonGPU's for tiles in registers, or an extent is no power of two.
    """
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    for extent in shape:
        _bits(extent)

    def flat(vectors: list[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(sum(v * s for v, s in zip(vector, strides, strict=True)) for vector in vectors)

    registers, lanes, warps = _parts(encoding, shape)
    return Layout(shape, flat(registers), flat(lanes), flat(warps))
