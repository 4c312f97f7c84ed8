"""Structured form: loads and stores with a shape, which replace Triton's accesses through tensors of pointers.

A tile of memory is `base[start + sum of its axes]`, in elements of the pointee. Each axis says how the address moves
along one dimension:

    tile.affine %stride                      stride * i
    tile.wrapped %first, %modulus, %stride : i32
                                             stride * ((first + i) mod modulus)     (Triton's `offs % M`)
    tile.indexed %offsets                    offsets[i]                             (one number a row)

What does not separate into dimensions is an offset tensor of full rank in addition to the axes (gather and scatter).
One half-open range for each dimension, computed at run time, says which elements exist. A mask covers what the ranges
cannot express, if anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeAlias, TypeGuard

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, RecursiveMemoryEffect

from .effects import LogEffect, OrderingEffect, is_sink
from .elements import ByDimension, FixedIndex, extents
from .syntax import EndOfBlock, FollowsFrom, Word, condition_type, defined_operations


@irdl_attr_definition
class AxisType(ParametrizedAttribute, TypeAttribute):
    """How an address moves along one dimension."""

    name = "tile.axis"


@irdl_attr_definition
class RangeType(ParametrizedAttribute, TypeAttribute):
    """Which indices of one dimension exist: low <= i < high, already clamped to the tile's extent."""

    name = "tile.range"


@irdl_op_definition
class AffineOp(IRDLOperation):
    """stride * i, the stride in elements."""

    name = "tile.affine"
    stride = operand_def(i64)
    result = result_def(AxisType)
    traits = traits_def(Pure())
    assembly_format = "$stride attr-dict"

    def __init__(self, stride: SSAValue) -> None:
        super().__init__(operands=[stride], result_types=[AxisType()])


@irdl_op_definition
class WrappedOp(IRDLOperation):
    """stride * ((first + i) rem modulus), the remainder of a signed division; the sum wraps around as an `element`."""

    name = "tile.wrapped"
    first = operand_def(i64)
    modulus = operand_def(i64)
    stride = operand_def(i64)
    element = attr_def(IntegerType)
    result = result_def(AxisType)
    traits = traits_def(Pure())
    assembly_format = "$first `,` $modulus `,` $stride `:` $element attr-dict"

    def __init__(self, first: SSAValue, modulus: SSAValue, stride: SSAValue, element: IntegerType) -> None:
        super().__init__(operands=[first, modulus, stride], attributes={"element": element}, result_types=[AxisType()])


@irdl_op_definition
class IndexedOp(IRDLOperation):
    """offsets[i], from a tensor of integers that has extent 1 in all other dimensions."""

    name = "tile.indexed"
    offsets = operand_def(TensorType)
    result = result_def(AxisType)
    traits = traits_def(Pure())
    assembly_format = "$offsets attr-dict `:` type($offsets)"

    def __init__(self, offsets: SSAValue) -> None:
        super().__init__(operands=[offsets], result_types=[AxisType()])


@irdl_op_definition
class RangeOp(IRDLOperation):
    """low <= i < high."""

    name = "tile.range"
    low = operand_def(i64)
    high = operand_def(i64)
    result = result_def(RangeType)
    traits = traits_def(Pure())
    assembly_format = "$low `to` $high attr-dict"

    def __init__(self, low: SSAValue, high: SSAValue) -> None:
        super().__init__(operands=[low, high], result_types=[RangeType()])


def stride(axis: SSAValue) -> SSAValue | None:
    """Return the distance of neighbours along an axis, except where it wraps around; None for offsets from a tensor."""
    return axis.owner.stride if isinstance(axis.owner, AffineOp | WrappedOp) else None


def even_stride(axis: SSAValue) -> SSAValue | None:
    """Return the distance of neighbours along an axis if it is the same everywhere."""
    return axis.owner.stride if isinstance(axis.owner, AffineOp) else None


def wraps(axis: SSAValue) -> bool:
    """Return whether an axis may wrap around."""
    return isinstance(axis.owner, WrappedOp)


def axis_offsets(axis: SSAValue) -> SSAValue | None:
    """Return the tensor that has the offsets of an axis; None for an axis with a stride."""
    return axis.owner.offsets if isinstance(axis.owner, IndexedOp) else None


def limits(range: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return the first index of a range, and the one behind its last."""
    assert isinstance(range.owner, RangeOp)
    return range.owner.low, range.owner.high


@irdl_op_definition
class PartOp(IRDLOperation):
    """The elements of a tensor at one index of its last dimension; the result has no such dimension."""

    name = "tile.part"
    src = operand_def(TensorType)
    number = attr_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    traits = traits_def(
        Pure(), ByDimension(lambda op: [*range(len(extents(op.result))), FixedIndex(op.number.value.data)])
    )
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def __init__(self, src: SSAValue, number: int) -> None:
        assert isinstance(src.type, TensorType)
        result = TensorType(src.type.element_type, src.type.get_shape()[:-1])
        super().__init__(operands=[src], attributes={"number": IntegerAttr(number, 64)}, result_types=[result])


@irdl_op_definition
class RoundOp(IRDLOperation):
    """Numbers of f32 rounded to a narrower type as arithmetic rounds them: too large ones overflow."""

    name = "tile.round"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `to` type($result)"

    def __init__(self, src: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[src], result_types=[result])


@irdl_op_definition
class KeepOp(IRDLOperation):
    """An effect that keeps the loop around it from being deleted, even if nobody uses the loop's results."""

    name = "tile.keep"
    traits = traits_def(OrderingEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class SliceOp(IRDLOperation):
    """The number of the slice of a program that runs, from 0 (mapping/tasklet/split.py)."""

    name = "tile.slice"
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


@irdl_op_definition
class RecordOp(IRDLOperation):
    """Write a record of each element of a tile, or of a scalar, to the launch's log (foundry_core/log.py), in order.

    Attributes:
        value: what is recorded; a record without a value has 0.
        site: the number of the place in the kernel, see log.Site.
    """

    name = "tile.record"
    site = prop_def(IntegerAttr[IntegerType])
    value = opt_operand_def()
    traits = traits_def(LogEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$site (`of` $value^ `:` type($value))? attr-dict"

    def __init__(self, site: int, value: SSAValue | None) -> None:
        super().__init__(operands=[value], properties={"site": IntegerAttr(site, 32)})


@irdl_op_definition
class CheckOp(IRDLOperation):
    """Write a record of each element for which a condition is false, as a failure, to the launch's log, in order.

    With values, only the first of these elements has a record, with its value.

    Attributes:
        site: the number of the place in the kernel, see log.Site.
        ends: set if the program ends with a failure (front/assertions.py).
        value: an i64 for each element of the condition, if there is anything to say about an element.
        result: whether the condition is true for all elements.
    """

    name = "tile.check"
    site = prop_def(IntegerAttr[IntegerType])
    condition = operand_def()
    value = opt_operand_def()
    ends = opt_prop_def(UnitAttr)
    result = result_def(i1)
    traits = traits_def(LogEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$site `of` $condition (`with` $value^ `as` type($value))? attr-dict `:` type($condition)"

    def __init__(self, site: int, condition: SSAValue, ends: bool, value: SSAValue | None = None) -> None:
        properties: dict[str, Attribute] = {"site": IntegerAttr(site, 32)}
        if ends:
            properties["ends"] = UnitAttr()
        super().__init__(operands=[condition, value], properties=properties, result_types=[i1])


@irdl_op_definition
class DistanceOp(IRDLOperation):
    """How many bytes a pointer, or each pointer of a tile, is behind another one: an i64, which may be negative."""

    name = "tile.distance"
    pointer = operand_def()
    base = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$pointer `from` $base attr-dict `:` type($pointer) `,` type($base) `->` type($result)"

    def __init__(self, pointer: SSAValue, base: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[pointer, base], result_types=[result])


@irdl_op_definition
class PairsOp(IRDLOperation):
    """Steps that each replace all pairs of elements of one or several tiles by the results of a region.

    In a step, the elements of a pair are p and p + (1 << bit) in row-major order, where bit `bit` of p is 0. The
    region's block takes element p of each tile, then the other element of each tile, and a condition: bit `flip` of p,
    or false if `flip` is -1. It returns the new elements in the same order. The shape of a result may be another one
    than that of its source.
    """

    name = "tile.pairs"
    srcs = var_operand_def(TensorType)
    bits = prop_def(DenseArrayBase)
    flips = prop_def(DenseArrayBase)
    function = region_def("single_block")
    res = var_result_def(TensorType)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        srcs: Sequence[SSAValue],
        bits: Sequence[int],
        flips: Sequence[int],
        function: Region,
        results: Sequence[Attribute],
    ) -> None:
        numbers = {"bits": DenseArrayBase.from_list(i64, bits), "flips": DenseArrayBase.from_list(i64, flips)}
        super().__init__(operands=[srcs], properties=numbers, regions=[function], result_types=[results])

    @property
    def steps(self) -> list[tuple[int, int]]:
        """The steps' bits and flips."""
        return list(zip(map(int, self.bits.get_values()), map(int, self.flips.get_values()), strict=True))


@irdl_op_definition
class PairsReturnOp(EndOfBlock):
    """The new elements of a pair."""

    name = "tile.pairs_return"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])


class Place(NamedTuple):
    """Where an access reaches; see the top of this module."""

    base: SSAValue
    start: SSAValue
    axes: Sequence[SSAValue]
    gather: SSAValue | None = None
    ranges: Sequence[SSAValue] = ()
    mask: SSAValue | None = None


# A place in assembly.
_PLACE = (
    "$base `[` $start (`,` $axes^)? `]` (`+` $gather^ `:` type($gather))? "
    "(`in` ` ` `[` $ranges^ `]`)? (`where` $mask^)?"
)


class Access(IRDLOperation, ABC):
    """An operation that reads or writes a tile of memory, or both; its effects say which."""

    _TILE: ClassVar = VarConstraint("_TILE", AnyAttr())
    base = operand_def()
    start = operand_def(i64)
    axes = var_operand_def(AxisType())
    gather = opt_operand_def()
    ranges = var_operand_def(RangeType())
    mask = opt_operand_def(FollowsFrom("_TILE", condition_type))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def place(self) -> Place:
        return Place(self.base, self.start, self.axes, self.gather, self.ranges, self.mask)

    @property
    @abstractmethod
    def elements(self) -> SSAValue:
        """The tile that is read or written. Its element type and its shape are those of the memory that is accessed."""


class Read(Access, ABC):
    """Read a tile. Elements outside the ranges or the mask are `other`, or undefined if there is no `other`."""

    other = opt_operand_def(Access._TILE)
    result = result_def(Access._TILE)
    assembly_format = f"{_PLACE} (`else` $other^)? attr-dict `:` type($base) `->` type($result)"

    def __init__(self, place: Place, other: SSAValue | None, result: Attribute) -> None:
        super().__init__(operands=[other, *place], result_types=[result])

    @property
    def elements(self) -> SSAValue:
        return self.result


@irdl_op_definition
class LoadOp(Read):
    """A load that may be evaluated later than its position, and more than once, if no operation writes in between."""

    name = "tile.load"
    traits = traits_def(MemoryReadEffect())


def reads_late(op: object) -> TypeGuard[Read]:
    """Return whether an operation only reads a tile, so that it may be evaluated where the elements are used."""
    return isinstance(op, Read) and not is_sink(op)


@irdl_op_definition
class VolatileLoadOp(Read):
    """A load that is executed once, at its position: another program may write at any time."""

    name = "tile.volatile_load"
    traits = traits_def(MemoryReadEffect(), OrderingEffect())


@irdl_op_definition
class StoreOp(Access):
    """Write a tile. Elements outside the ranges or the mask keep their values in memory."""

    name = "tile.store"
    value = operand_def(Access._TILE)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = f"$value `to` {_PLACE} attr-dict `:` type($value) `to` type($base)"

    def __init__(self, place: Place, value: SSAValue) -> None:
        super().__init__(operands=[value, *place])

    @property
    def elements(self) -> SSAValue:
        return self.value


def only_writes(op: object) -> TypeGuard[StoreOp]:
    """Return whether an operation writes a tile, and does nothing else."""
    return isinstance(op, StoreOp)


@irdl_op_definition
class AtomicOp(Access):
    """Change each element of a tile of memory, each as one step, and return what was there before.

    `kind` is Triton's: add, fadd, max, min, umax, umin, and, or, xor; exch stores the value; cas stores it where the
    bits of `compare` are in memory. Elements outside the ranges or the mask are not changed, and undefined in the
    result. Several elements may have the same address; each counts.
    """

    name = "tile.atomic"
    value = operand_def(Access._TILE)
    compare = opt_operand_def(Access._TILE)
    kind = prop_def(StringAttr)
    result = result_def(Access._TILE)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (Word,)
    assembly_format = (
        f"custom<Word>($kind) $value (`for` $compare^)? `at` {_PLACE} attr-dict `:` type($value) `at` type($base)"
    )

    def __init__(self, kind: str, place: Place, value: SSAValue, compare: SSAValue | None = None) -> None:
        super().__init__(
            operands=[value, compare, *place], properties={"kind": StringAttr(kind)}, result_types=[value.type]
        )

    @property
    def elements(self) -> SSAValue:
        return self.value


@irdl_op_definition
class PollOp(Access):
    """Wait, for one element after the other, until memory has the expected integer."""

    name = "tile.poll"
    expected = operand_def(Access._TILE)
    traits = traits_def(MemoryReadEffect(), OrderingEffect())
    assembly_format = f"$expected `at` {_PLACE} attr-dict `:` type($expected) `at` type($base)"

    def __init__(self, place: Place, expected: SSAValue) -> None:
        super().__init__(operands=[expected, *place])

    @property
    def elements(self) -> SSAValue:
        return self.expected


# Accesses that happen once for each element, at their position.
Executed: TypeAlias = AtomicOp | VolatileLoadOp | PollOp

Tile = Dialect("tile", defined_operations(globals(), "tile"), [AxisType, RangeType])
