"""Writes operations that move or repeat elements. Each function returns the new tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from . import tt, ttg
from .arith import ConstantOp
from .elements import extents


def builder_before(op: Operation) -> Builder:
    """Return a builder that writes in front of an operation, with its location."""

    def place(made: Operation) -> None:
        made.location = op.location

    return Builder(InsertPoint.before(op), operation_insertion_handler=[place])


def splat(here: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Write a tile with a scalar in all elements."""
    return like(here, value, TensorType(value.type, shape))


def like(here: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    """Write a tile of this type with a scalar in all elements; return the scalar itself if it is no tile's type."""
    return _written(here, tt.SplatOp, value, type) if isinstance(type, TensorType) else value


def unsplat(here: Builder, value: SSAValue) -> SSAValue:
    """Write the scalar of a tile of one element."""
    return _written(here, tt.UnsplatOp, value, _element(value))


def broadcast(here: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Repeat the elements along dimensions of extent 1; return the tile itself if there are none."""
    return value if extents(value) == tuple(shape) else _shaped(here, tt.BroadcastOp, value, shape)


def expand_dims(here: Builder, value: SSAValue, axis: int) -> SSAValue:
    """Insert a dimension of extent 1."""
    shape = extents(value)
    return _shaped(here, tt.ExpandDimsOp, value, (*shape[:axis], 1, *shape[axis:]), axis=IntegerAttr(axis, i32))


def transpose(here: Builder, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Make dimension order[d] dimension d."""
    shape = [extents(value)[d] for d in order]
    return _shaped(here, tt.TransOp, value, shape, order=DenseArrayBase.from_list(i32, order))


def reshape(here: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Give the elements another shape, in the same row-major order."""
    return _shaped(here, tt.ReshapeOp, value, shape)


def in_layout(here: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    """Return a tile as one of a type with the same shape and perhaps another layout."""
    return value if value.type == type else _written(here, ttg.ConvertLayoutOp, value, type)


def numbers(here: Builder, type: TensorType[Attribute], first: int = 0) -> SSAValue:
    """Write a row of consecutive numbers, i32."""
    (count,) = type.get_shape()
    bounds = {"start": IntegerAttr(first, 32), "end": IntegerAttr(first + count, 32)}
    return here.insert(tt.MakeRangeOp.create(properties=bounds, result_types=[type])).results[0]


def recast(here: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    """Return the same bits, or the same address, as another type."""
    return _written(here, tt.BitcastOp, value, type)


def advance(here: Builder, pointers: SSAValue, offsets: SSAValue) -> SSAValue:
    """Move a pointer, or each pointer of a tile, by a number of elements."""
    return here.insert(tt.AddPtrOp(pointers, offsets)).result


def product(here: Builder, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    """Write c + a b on matrices, each product rounded as IEEE 754 says."""
    precision = {"input_precision": StringAttr("ieee")}
    return here.insert(tt.DotOp.create(operands=[a, b, c], result_types=[c.type], properties=precision)).results[0]


def positions(here: Builder, type: Attribute) -> SSAValue:
    """Return the row-major index of each element of a tile of this type, an i32; 0 for a scalar."""
    total = here.insert(ConstantOp.integer(0, type)).result
    shape = type.get_shape() if isinstance(type, TensorType) else ()
    for d in range(len(shape)):
        stride = here.insert(ConstantOp.integer(prod(shape[d + 1 :]), type)).result
        assert isinstance(type, TensorType)
        scaled = here.insert(arith.MuliOp(_along(here, type, d), stride)).result
        total = here.insert(arith.AddiOp(total, scaled)).result
    return total


def _element(value: SSAValue) -> Attribute:
    assert isinstance(value.type, TensorType)
    element: Attribute = value.type.element_type
    return element


def _shaped(
    here: Builder, kind: type[Operation], value: SSAValue, shape: Sequence[int], **properties: Attribute
) -> SSAValue:
    return _written(here, kind, value, TensorType(_element(value), shape), **properties)


def _written(
    here: Builder, kind: type[Operation], value: SSAValue, type: Attribute, **properties: Attribute
) -> SSAValue:
    return here.insert(kind.create(operands=[value], result_types=[type], properties=properties)).results[0]


def _along(here: Builder, type: TensorType, dimension: int) -> SSAValue:
    """Return the position of each element of a tile along a dimension."""
    shape, encodings = type.get_shape(), [type.encoding]
    others = [d for d in range(len(shape)) if d != dimension]
    for d in reversed(others):
        parent = encodings[-1]
        fields = DictionaryAttr({"dim": IntAttr(d), "parent": parent})
        encodings.append(parent if isinstance(parent, NoneAttr) else ttg.SliceLayout(fields))
    found = numbers(here, TensorType(i32, [shape[dimension]], encodings.pop()))
    extents = [shape[dimension]]
    for d in others:
        extents.insert(d, 1)
        kind = TensorType(i32, extents, encodings.pop())
        axis = {"axis": IntegerAttr(d, 32)}
        found = here.insert(tt.ExpandDimsOp.create(operands=[found], properties=axis, result_types=[kind])).results[0]
    if tuple(extents) != tuple(shape):
        found = here.insert(tt.BroadcastOp.create(operands=[found], result_types=[type])).results[0]
    return found
