"""Which element of an operand each element of a result is, of an operation that moves, repeats or chooses elements.

An operation declares it once, as a trait. Passes and analyses ask the functions below and never check the operation's
class, so a new operation of this kind works in all of them.

    traits_def(Pure(), ByDimension(lambda op: (1, 0)))          element (i, j) is the operand's element (j, i)
    traits_def(Pure(), ByDimension(lambda op: (0, FixedIndex(3))))      element i is the operand's element (i, 3)
    traits_def(Pure(), ByDimension(lambda op: (None, 1)))       the operation computes the first index
    traits_def(Pure(), RowMajor())                              the elements keep their row-major order
    traits_def(Pure(), ElementMap(operands=(0, 1)))             each element is one of operand 0 or of operand 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import OpTrait

_T = TypeVar("_T")


@dataclass(frozen=True)
class FixedIndex:
    """The index in a dimension of an operand is this number, for all elements of the result."""

    number: int


# The index in a dimension of an operand: the number of the result's dimension that has the same index; a number that is
# the same for all elements; None if the operation computes it. If the operand's extent is 1 and the result's is not,
# the element is repeated.
Index: TypeAlias = "int | FixedIndex | None"


@dataclass(frozen=True)
class ElementMap(OpTrait):
    """Each element of a result is an element of one of some operands; others only say of which.

    Attributes:
        operands: the numbers of the operands.
    """

    operands: tuple[int, ...] = field(default=(0,), kw_only=True)

    def index(self, op: Operation) -> tuple[Index, ...] | None:
        """Return the index in each dimension of the operand; None if nothing is known of it."""
        return None


@dataclass(frozen=True)
class Decomposition(OpTrait):
    """The simpler operations by which the front replaces an operation.

    Attributes:
        write: writes these operations, and returns a value for each result.
    """

    write: Callable[[Any, Builder], Sequence[SSAValue]]


@dataclass(frozen=True)
class ByDimension(ElementMap):
    """The index in each dimension of operand 0 is known separately.

    Attributes:
        indices: returns them for an operation.
    """

    indices: Callable[[Any], Sequence[Index]] = lambda op: range(len(extents(op.operands[0])))

    def index(self, op: Operation) -> tuple[Index, ...]:
        return tuple(self.indices(op))


@dataclass(frozen=True)
class RowMajor(ElementMap):
    """The elements of operand 0 in the same row-major order, in another shape."""

    def index(self, op: Operation) -> tuple[Index, ...] | None:
        # Dimensions stay separate only if some of extent 1 come or go.
        before, after = extents(op.operands[0]), extents(op.results[0])
        long = [d for d, extent in enumerate(after) if extent > 1]
        if [extent for extent in before if extent > 1] != [after[d] for d in long]:
            return None
        rest = iter(long)
        return tuple(next(rest) if extent > 1 else FixedIndex(0) for extent in before)


@dataclass(frozen=True)
class IndexMapping:
    """Says which elements of a source a tile or scalar moves or repeats, dimension by dimension.

    Attributes:
        source: where the elements are from.
        index: for each dimension of the source, see Index.
        shape: the extents of the result.
    """

    source: SSAValue
    index: tuple[Index, ...]
    shape: tuple[int, ...]

    def to_result(self, items: Sequence[_T], new: _T) -> list[_T]:
        """Return the source's item for each dimension of the result; `new` for a dimension that the source lacks."""
        return [items[self.index.index(d)] if d in self.index else new for d in range(len(self.shape))]

    def to_source(self, items: Sequence[_T], constant: Callable[[int], _T]) -> list[_T]:
        """Return the result's item for each dimension of the source; a constant where only one index exists."""

        def item(index: Index, extent: int) -> _T:
            if isinstance(index, FixedIndex):
                return constant(index.number)
            return items[index] if index is not None and extent > 1 else constant(0)

        return list(map(item, self.index, extents(self.source)))

    def inner(self, dimension: int) -> int | None:
        """Return the source's dimension that a dimension of the result is; None if elements are repeated along it."""
        return next((e for e, d in enumerate(self.index) if d == dimension and self.is_along(e)), None)

    def is_along(self, dimension: int) -> bool:
        """Return whether a dimension of the source has as many different elements in the result."""
        index = self.index[dimension]
        return isinstance(index, int) and extents(self.source)[dimension] == self.shape[index]

    @property
    def repeats(self) -> bool:
        """Whether an element of a source of several elements may be more than one element of the result."""
        size = math.prod(extents(self.source))
        return 1 < size < math.prod(self.shape)

    @property
    def is_permutation(self) -> bool:
        """Whether the result has the same dimensions in some order."""
        return len(self.index) == len(self.shape) and all(map(self.is_along, range(len(self.index))))

    @property
    def keeps_all(self) -> bool:
        """Whether the result has all elements of the source."""
        return all(isinstance(i, int) or n == 1 for i, n in zip(self.index, extents(self.source), strict=True))

    @property
    def keeps_order(self) -> bool:
        """Whether the result has all elements of the source, and its dimensions in the same order."""
        along = [index for index in self.index if isinstance(index, int)]
        return self.keeps_all and along == sorted(along)


def extents(value: SSAValue) -> tuple[int, ...]:
    """Return the extents of a tensor; () for a scalar."""
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def _map(op: object) -> ElementMap | None:
    return op.get_trait(ElementMap) if isinstance(op, Operation) else None


def selected_operands(op: Operation | Block) -> list[SSAValue]:
    """Return the operands of which an operation moves, repeats or chooses elements; none if it makes its elements."""
    found = _map(op)
    return [op.operands[number] for number in found.operands] if isinstance(op, Operation) and found else []


def source(value: SSAValue) -> SSAValue | None:
    """Return the operand of an operation that moves elements to a value; None if any other operation makes it."""
    op = value.owner
    only = isinstance(op, Operation) and len(op.operands) == len(op.results) == 1 and _map(op) is not None
    return op.operands[0] if isinstance(op, Operation) and only else None


def index_mapping(value: SSAValue) -> IndexMapping | None:
    """Return where the elements of a value are from, if that is known for each dimension; else None."""
    found = partial_index_mapping(value)
    return None if found is None or None in found.index else found


def partial_index_mapping(value: SSAValue) -> IndexMapping | None:
    """Return where the elements of a value are from, if that is known for some dimensions at least; else None."""
    of, op = source(value), value.owner
    index = _index(op) if of is not None and isinstance(op, Operation) else None
    return None if of is None or index is None else IndexMapping(of, index, extents(value))


def _index(op: Operation) -> tuple[Index, ...] | None:
    found = _map(op)
    return found.index(op) if found else None


def is_same(op: Operation | Block) -> bool:
    """Return whether element i of an operation's result is element i of its only operand."""
    found = index_mapping(op.results[0]) if isinstance(op, Operation) and len(op.results) == 1 else None
    return found is not None and found.is_permutation and found.keeps_order


def row_major_source(value: SSAValue) -> SSAValue | None:
    """Return the tile that has the elements of a value in the same row-major order; None if anything else makes it."""
    operand = source(value)
    return operand if operand is not None and isinstance(_map(value.owner), RowMajor) else None


def repeats(use: Use) -> bool:
    """Return whether an operation may read an element of an operand more than once, or other elements than it makes."""
    op = use.operation
    of = index_mapping(op.results[0]) if len(op.results) == 1 else None
    if of is not None or isinstance(_map(op), RowMajor):
        return of is not None and of.repeats
    return op.operands[use.index] in selected_operands(op)


def finds(op: Operation) -> bool:
    """Return whether an operation computes which elements of its operands it has."""
    index = _index(op)
    return _map(op) is not None and (index is None or None in index)
