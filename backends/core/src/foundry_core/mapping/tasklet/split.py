"""Splits a program into slices, so that several tasklets work on it at the same time.

A slice computes a part of one dimension of the program's tiles: some rows of a product, some elements of a sum of
vectors. It is the same program on smaller tiles. Its offset enters where a tile knows its place: in tt.make_range, and
in the start, the wrapped axes and the ranges of an access.

A dimension can be split if no operation combines its elements, and if every store has it once. Dimensions of different
tiles are the same one if an operation takes element i of both for element i of its result (`_Dimensions`).

Slices of a program run in any order. So a kernel is not split if it loads through an argument that it also stores
through, if two of its stores may meet at one element from different slices, or if it has any other effect than stores.
Different arguments must not overlap: the launcher does not split a
launch whose arguments share memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, TensorType, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.flow import incoming_values, joined_values, loop_blocks, yields
from ...front.order import Meetings, Pending
from ...front.scalars import Scalar, Scalars, constant_value
from ...front.structured import kernel
from ...ir import tile, tt
from ...ir.arith import AssumeOp, ConstantOp, ExtSIOp
from ...ir.build import builder_before, like, numbers
from ...ir.effects import is_pure
from ...ir.elements import extents, index_mapping, partial_index_mapping
from ...ir.facts import combined_axis, first_number, is_product
from ...ops.elementwise import is_elementwise
from ..base.plan import argument, is_tile, is_unit

_Place: TypeAlias = tuple[SSAValue, int]
# The fewest elements of a slice if they are contiguous in memory: a DMA takes as long to start as for 154 bytes.
_SHORTEST_ROW = 64


class _Dimensions:
    """Which dimensions of a function's tiles are the same one, and which of them cannot be split."""

    def __init__(self, function: tt.FuncOp) -> None:
        self._parents: dict[_Place, _Place] = {}
        self._bound: set[_Place] = set()
        self._values: dict[SSAValue, None] = {}
        for op in function.walk():
            for value in (*op.operands, *op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
                if is_tile(value):
                    self._values[value] = None
            self._enter(op)

    def root(self, value: SSAValue, d: int) -> _Place:
        """Return the place that stands for all places of a dimension."""
        place = (value, d)
        while (parent := self._parents.get(place, place)) != place:
            place = parent
        return place

    def members(self, root: _Place) -> dict[SSAValue, int]:
        """Return the tiles that have a dimension, and where; empty if a tile has it twice."""
        found: dict[SSAValue, int] = {}
        for value in self._values:
            for d in range(len(extents(value))):
                if self.root(value, d) == root:
                    if value in found:
                        return {}
                    found[value] = d
        return found

    def is_bound(self, root: _Place) -> bool:
        return any(self.root(*place) == root for place in self._bound)

    def _same(self, one: SSAValue, d: int, other: SSAValue, e: int) -> None:
        a, b = self.root(one, d), self.root(other, e)
        if a != b:
            self._parents[a] = b

    def _alike(self, values: Iterable[SSAValue]) -> None:
        tiles = [value for value in values if is_tile(value)]
        for other in tiles[1:]:
            for d in range(len(extents(other))):
                self._same(tiles[0], d, other, d)

    def _bind(self, values: Iterable[SSAValue]) -> None:
        self._bound |= {(value, d) for value in values if is_tile(value) for d in range(len(extents(value)))}

    def _enter(self, op: Operation) -> None:
        match op:
            case _ if first_number(op) is not None:
                pass
            case ConstantOp():
                if op.splat is None:
                    self._bind(op.results)
            case _ if len(op.results) == 1 and (of := partial_index_mapping(op.results[0])) is not None:
                for e, d in enumerate(of.index):
                    if isinstance(d, int) and of.is_along(e):
                        self._same(of.source, e, op.results[0], d)
                    elif not isinstance(d, int):
                        self._bound.add((of.source, e))
                if None in of.index:
                    self._bound |= {(op.results[0], d) for d in range(len(of.shape)) if d not in of.index}
            case _ if (combined := combined_axis(op)) and not combined.is_kept:
                self._alike(op.operands)
                self._bound.add((op.operands[0], combined.number))
                for result in op.results:
                    for d in range(len(extents(result))):
                        self._same(op.operands[0], d + (d >= combined.number), result, d)
            case _ if is_product(op):
                a, b, c = op.operands
                (result,) = op.results
                self._alike((c, result))
                last = len(extents(result)) - 1
                for d in range(last):
                    self._same(a, d, result, d)
                for d in (*range(last - 1), last):
                    self._same(b, d, result, d)
                self._bound |= {(a, last), (b, last - 1)}
            case tile.Access():
                other = op.other if isinstance(op, tile.Read) else None
                self._alike(value for value in (op.elements, op.gather, op.mask, other) if value is not None)
                for d, moving in enumerate(op.axes):
                    if isinstance(moving.owner, tile.IndexedOp) and extents(moving.owner.offsets)[d] > 1:
                        self._same(op.elements, d, moving.owner.offsets, d)
            case tile.IndexedOp():
                pass
            case _ if joined := joined_values(op):
                for value in joined:
                    self._alike((value, *(incoming_values(value) or ())))
            case _ if op in yields(op.parent_op()):
                pass
            case _ if is_elementwise(op):
                self._alike((*op.operands, *op.results))
            case _:
                self._bind((*op.operands, *op.results))


class SplitKernel:
    """A copy of a kernel that can be split.

    Attributes:
        most_parts: the number of slices into which it can be split, a power of 2; 1 if it cannot be split.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module.clone()
        function = kernel(self._module)
        self.most_parts = 1
        self._members: dict[SSAValue, int] = {}
        if not _is_separable(function):
            return
        _separate(function)
        dimensions = _Dimensions(function)
        accesses = [op for op in function.walk() if isinstance(op, tile.Access)]
        stores = [op for op in accesses if isinstance(op, tile.StoreOp)]
        for root in _common(dimensions, stores):
            members = dimensions.members(root)
            if not members or dimensions.is_bound(root) or _may_meet(function, stores, members):
                continue
            extent = extents(root[0])[root[1]]
            moved = [(math.prod(extents(op.elements)), op) for op in accesses if op.elements in members]
            largest = [op for size, op in moved if size == max(size for size, _ in moved)]
            in_rows = any(is_unit(op.axes[members[op.elements]]) for op in largest)
            most = extent // _SHORTEST_ROW if in_rows else extent
            most &= -most
            if most > self.most_parts:
                self.most_parts, self._members = most, members

    def split(self, parts: int) -> ModuleOp:
        """Return the program of one slice of `parts`, which divides `most_parts`. Can be called once."""
        function = kernel(self._module)
        first = function.body.block.first_op
        assert first is not None
        whole = next(extents(value)[d] for value, d in self._members.items())
        size = whole // parts
        number = tile.SliceOp()
        width = ConstantOp.integer(size, i32)
        offset = arith.MuliOp(number.result, width.result)
        wide = ExtSIOp(offset.result, i64)
        Rewriter.insert_op([number, width, offset, wide], InsertPoint.before(first))
        accesses = _Accesses(wide.result, whole, size)
        for op in list(function.walk()):
            if isinstance(op, tile.Access) and op.elements in self._members:
                moved = accesses.slice_access(op, self._members[op.elements])
                for before, after in zip(op.results, moved.results, strict=True):
                    self._members[after] = self._members.pop(before)
                Rewriter.replace_op(op, moved)
        for op in list(function.walk()):
            if isinstance(op, tile.WrappedOp | tile.AffineOp | tile.RangeOp) and not op.result.uses.get_length():
                Rewriter.erase_op(op)
        for value, d in self._members.items():
            shape = list(extents(value))
            shape[d] = size
            assert isinstance(value.type, TensorType)
            made = Rewriter.replace_value_with_new_type(value, TensorType(value.type.element_type, shape))
            if isinstance(made.owner, Operation) and (start := first_number(made.owner)) is not None:
                _shift(made.owner, start, offset.result)
        return self._module


class _Accesses:
    """Moves accesses to a slice. What several accesses of a block have in common, they have in common afterwards."""

    def __init__(self, offset: SSAValue, extent: int, size: int) -> None:
        self._offset = offset
        self._extent = extent
        self._size = size
        self._made: dict[object, SSAValue] = {}

    def slice_access(self, op: tile.Access, d: int) -> tile.Access:
        """Return an access that reaches the slice's part of dimension d."""
        write = Scalars(Builder(InsertPoint.before(op)))
        axes, ranges, start = list(op.axes), list(op.ranges), op.start
        axis = axes[d].owner
        match axis:
            case tile.AffineOp():
                stride = axis.stride
                start = self._once(op, (op.start, stride), lambda: self._sum(write, op.start, stride))
            case tile.WrappedOp():
                first = self._sum(write, axis.first, write.value(1))
                wrapped = tile.WrappedOp(first, axis.modulus, axis.stride, axis.element)
                axes[d] = self._once(op, (axes[d],), lambda: write.builder.insert(wrapped).result)
        if ranges:
            limits = ranges[d].owner
            assert isinstance(limits, tile.RangeOp)
            ranges[d] = self._once(op, (ranges[d],), lambda: self._clamped(write, limits))
        made: tile.Access
        place = op.place._replace(start=start, axes=axes, ranges=ranges)
        if isinstance(op, tile.Read):
            made = type(op)(place, op.other, op.result.type)
        else:
            made = tile.StoreOp(place, op.elements)
        made.location = op.location
        return made

    def _once(self, op: Operation, values: tuple[SSAValue, ...], make: Callable[[], SSAValue]) -> SSAValue:
        """Return what `make` makes of some values, the same for all accesses of a block."""
        key = (op.parent_block(), *(value if (known := constant_value(value)) is None else known for value in values))
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _sum(self, write: Scalars, start: SSAValue, stride: SSAValue) -> SSAValue:
        known = constant_value(stride)
        offset = write.mul(self._offset, stride if known is None else known)
        return write.value(write.add(start if (number := constant_value(start)) is None else number, offset))

    def _clamped(self, write: Scalars, limits: tile.RangeOp) -> SSAValue:
        ends: list[Scalar] = []
        for end, rest in ((limits.low, 0), (limits.high, self._extent)):
            # An end that is the tile's is each slice's.
            if constant_value(end) == rest:
                ends.append(self._size if rest else 0)
            else:
                ends.append(write.minimum(write.maximum(write.sub(end, self._offset), 0), self._size))
        low, high = map(write.value, ends)
        return write.builder.insert(tile.RangeOp(low, high)).result


def _shift(op: Operation, start: int, offset: SSAValue) -> None:
    """Let consecutive numbers, as many as a slice has, begin at the slice's offset."""
    here, type = Builder(InsertPoint.after(op)), op.results[0].type
    assert isinstance(type, TensorType)
    first = numbers(builder_before(op), type, start)
    total = here.insert(arith.AddiOp(first, like(here, offset, type)))
    Rewriter.replace_op(op, [], [total.result])


def _is_separable(function: tt.FuncOp) -> bool:
    """Return whether the effects of a kernel allow that parts of a program run in any order."""
    stored, loaded = set[SSAValue | None](), set[SSAValue | None]()
    for op in function.walk():
        match op:
            case tile.StoreOp():
                stored.add(argument(op.base))
            case _ if tile.reads_late(op):
                loaded.add(argument(op.base))
            case tile.KeepOp() | AssumeOp():
                pass
            case _ if not op.regions and not is_pure(op):
                return False
    return None not in stored and not stored & loaded


def _may_meet(function: tt.FuncOp, stores: Sequence[tile.StoreOp], dimensions: Mapping[SSAValue, int]) -> bool:
    """Return whether two stores of a program may reach one element in different slices.

    Args:
        dimensions: the dimension along which a tile is split.
    """
    meetings = Meetings(function, lambda op: dimensions[op.elements] if isinstance(op, tile.StoreOp) else None)
    for first, second in itertools.product(stores, stores):
        around = [op for op in function.walk() if loop_blocks(op)]
        both = [loop for loop in around if loop.is_ancestor(first) and loop.is_ancestor(second)]
        apart = [frozenset[Operation]()] * (first is not second) + [frozenset[Operation]([loop]) for loop in both]
        if any(meetings.may_meet(Pending(first, loops), second) for loops in apart):
            return True
    return False


def _separate(function: tt.FuncOp) -> None:
    """Give each use of an operation that only places elements its own copy.

    `tl.arange(0, 16)` for rows and for columns is one operation.
    """
    for op in reversed(list(function.walk())):
        if len(op.results) != 1 or not is_tile(op.results[0]):
            continue
        if isinstance(op, ConstantOp) or first_number(op) is not None or index_mapping(op.results[0]) is not None:
            for use in list(op.results[0].uses)[1:]:
                copy = op.clone()
                Rewriter.insert_op(copy, InsertPoint.before(op))
                use.operation.operands[use.index] = copy.results[0]


def _common(dimensions: _Dimensions, stores: Sequence[tile.StoreOp]) -> list[_Place]:
    """Return the dimensions that all stores have, in the order of the first one's."""
    each = [[dimensions.root(op.value, d) for d, extent in enumerate(extents(op.value)) if extent > 1] for op in stores]
    return [root for root in dict.fromkeys(each[0]) if all(root in roots for roots in each[1:])] if each else []
