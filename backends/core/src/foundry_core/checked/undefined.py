"""Where the elements of a load that its mask leaves undefined go: along a dimension into a reduction, or to memory."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ..analysis.flow import yield_targets
from ..front.offsets import shape
from ..ir import tt, ttg
from ..ir.arith import CmpiOp, ConstantOp, ExtSIOp, SelectOp
from ..ir.elements import index_mapping, row_major_source
from ..ir.facts import combined_axis, first_number, is_product, pointer_sum
from ..ops.elementwise import is_elementwise

# The comparisons slt, sle, ult and ule, and sgt, sge, ugt and uge.
_LESS, _GREATER = (2, 3, 6, 7), (4, 5, 8, 9)
_SAME = (ttg.LocalAllocOp, ttg.LocalLoadOp)
# For each dimension of a tile, the load's dimension that it comes from; None if elements repeat along it.
_Dimensions = tuple[int | None, ...]


def undefined_uses(loaded: SSAValue) -> Iterator[tuple[Operation, int | None, bool]]:
    """Find the operations that use elements of a load together, or store them.

    A tile is followed through elementwise operations, those that move elements, `for` loops and branches. A selection
    or any other operation ends the search, because it may leave out the undefined elements: the list is not complete.

    Yields:
        each operation, with the dimension of the load along which it combines elements; None for a store of the tile;
        and whether a loop or a branch is on the way.
    """
    if not isinstance(loaded.type, TensorType):
        return
    first: _Dimensions = tuple(range(len(shape(loaded))))
    pending, seen = [(loaded, first, False)], {(loaded, first)}
    while pending:
        value, dimensions, carried = pending.pop()
        for use in list(value.uses):
            user = use.operation
            after, passed = dimensions, yield_targets(user, use.index)
            if user.results and row_major_source(user.results[0]) and len(shape(user.results[0])) == 1:
                # A reduction without an axis: along each dimension.
                pending += [(user.results[0], (d,), carried) for d in dimensions if d is not None]
                continue
            if combined := combined_axis(user):
                axis = combined.number
                if dimensions[axis] is not None:
                    yield user, dimensions[axis], carried
                if not combined.is_kept:
                    after = (*dimensions[:axis], *dimensions[axis + 1 :])
            elif is_product(user) and use.index < 2:
                axis = len(dimensions) - 1 - use.index
                if dimensions[axis] is not None:
                    yield user, dimensions[axis], carried
                continue
            elif isinstance(user, tt.StoreOp) and use.index == 1:
                if dimensions == first:
                    yield user, None, carried
                continue
            elif user.results and (to := index_mapping(user.results[0])) is not None:
                after = tuple(to.to_result(dimensions, None))
            elif not passed and not _passes(user):
                continue
            for result in passed or user.results:
                if isinstance(result.type, TensorType | ttg.MemoryType) and (result, after) not in seen:
                    seen.add((result, after))
                    pending.append((result, after, carried or bool(passed)))


def _passes(op: Operation) -> bool:
    """Return whether element i of the result is made of element i of each operand, whatever the others are."""
    if isinstance(op, SelectOp) or pointer_sum(op):
        return False
    return isinstance(op, _SAME) or is_product(op) or is_elementwise(op)


def varying_dimensions(value: SSAValue) -> frozenset[int]:
    """Return the dimensions along which the elements of a tile may differ."""
    op = value.owner
    extents = shape(value)
    if (of := index_mapping(value)) is not None:
        inner = varying_dimensions(of.source)
        return frozenset(d for e, d in enumerate(of.index) if e in inner and isinstance(d, int))
    match op:
        case ConstantOp() if op.splat is not None:
            return frozenset()
        case Operation() if is_elementwise(op):
            tiles = [operand for operand in op.operands if isinstance(operand.type, TensorType)]
            return frozenset[int]().union(*map(varying_dimensions, tiles))
    return frozenset(d for d, extent in enumerate(extents) if extent > 1)


def ends_once(mask: SSAValue, axis: int) -> bool:
    """Return whether a mask is known to be set for the first elements along a dimension, and for no others."""
    op, along = mask.owner, _below(mask, axis)
    if along is not None:
        return ends_once(*along)
    if not isinstance(op, CmpiOp) or op.predicate.value.data not in (*_LESS, *_GREATER):
        return False
    grows, limit = op.operands if op.predicate.value.data in _LESS else reversed(op.operands)
    return _grows(grows, axis) and axis not in varying_dimensions(limit)


def _grows(value: SSAValue, axis: int) -> bool:
    """Return whether no integer along a dimension is known to be less than the one before it."""
    op, along = value.owner, _below(value, axis)
    if along is not None:
        return _grows(*along)
    match op:
        case _ if first_number(op) is not None:
            return True
        case ExtSIOp():
            return _grows(op.input, axis)
        case arith.AddiOp():
            return all(_grows(part, axis) for part in op.operands)
    return axis not in varying_dimensions(value)


def _below(value: SSAValue, axis: int) -> tuple[SSAValue, int] | None:
    """Return the tile that a tile repeats or moves, and a dimension in it; None if another operation makes the tile."""
    of = index_mapping(value)
    if of is None or axis not in of.index:
        return None
    inner = of.index.index(axis)
    return (of.source, inner) if shape(of.source)[inner] > 1 else None
