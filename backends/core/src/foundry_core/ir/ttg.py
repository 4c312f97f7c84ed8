"""TritonGPU's layouts and the operations that its passes add to TTIR, in Triton's assembly syntax.

A layout is the encoding of a tensor type. It says which invocations hold which elements; mapping/simt/layouts.py reads
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntAttr, StringAttr, TensorType, i32
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from .elements import ByDimension
from .syntax import defined_operations


class _Fields(ParametrizedAttribute):
    """A layout that is written as `<{name = value, ...}>`."""

    fields: DictionaryAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        found: dict[str, Attribute] = {}
        with parser.in_angle_brackets():
            parser.parse_punctuation("{")
            while not parser.parse_optional_punctuation("}"):
                name = parser.parse_identifier()
                parser.parse_punctuation("=")
                found[name] = _value(parser)
                parser.parse_optional_punctuation(",")
        return [DictionaryAttr(found)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.fields)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a list of integers."""
        found = self.fields.data[name]
        assert isinstance(found, ArrayAttr)
        return tuple(each.data for each in found.data)

    def vectors(self, name: str) -> tuple[tuple[int, ...], ...]:
        """Return a list of lists of integers."""
        found = self.fields.data[name]
        assert isinstance(found, ArrayAttr)
        return tuple(tuple(each.data for each in row.data) for row in found.data)

    def number(self, name: str) -> int:
        found = self.fields.data[name]
        assert isinstance(found, IntAttr)
        return int(found.data)


def _value(parser: AttrParser) -> Attribute:
    """Parse an integer, a list, a layout, or a word."""
    number = parser.parse_optional_integer()
    if number is not None:
        return IntAttr(number)
    if parser.parse_optional_punctuation("["):
        items = []
        while not parser.parse_optional_punctuation("]"):
            items.append(_value(parser))
            parser.parse_optional_punctuation(",")
        return ArrayAttr(items)
    word = parser.parse_optional_identifier()
    return StringAttr(word) if word is not None else parser.parse_attribute()


@irdl_attr_definition
class BlockedLayout(_Fields):
    """Each invocation has a block of neighbouring elements, each subgroup a block of those, and so on in `order`."""

    name = "ttg.blocked"
    fields: DictionaryAttr


@irdl_attr_definition
class SliceLayout(_Fields):
    """A parent's layout without one of its dimensions."""

    name = "ttg.slice"
    fields: DictionaryAttr


@irdl_attr_definition
class DotOperandLayout(_Fields):
    """What each invocation needs of an operand, to compute the elements of the product that its parent's layout gives
    it."""

    name = "ttg.dot_op"
    fields: DictionaryAttr


@irdl_attr_definition
class LinearLayout(_Fields):
    """The positions of the powers of two of register, lane and warp; other positions are their sums without carry."""

    name = "ttg.linear"
    fields: DictionaryAttr


@irdl_attr_definition
class SharedLayout(_Fields):
    """Elements in workgroup memory. We arrange them ourselves and read only `order`: the dimensions, fastest first."""

    name = "ttg.swizzled_shared"
    fields: DictionaryAttr


@irdl_attr_definition
class SharedMemory(ParametrizedAttribute):
    """Workgroup memory."""

    name = "ttg.shared_memory"


@irdl_attr_definition
class MemoryType(ParametrizedAttribute, TypeAttribute):
    """`!ttg.memdesc<64x16xf32, #shared, #smem, mutable>`: a tile in workgroup memory."""

    name = "ttg.memdesc"
    tile: Attribute
    layout: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            layout = parser.parse_attribute()
            parser.parse_punctuation(",")
            parser.parse_attribute()
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("mutable")
        return [TensorType(element, shape), layout]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.tile)


@irdl_op_definition
class ConvertLayoutOp(IRDLOperation):
    """The same tile with its elements in other invocations."""

    name = "ttg.convert_layout"
    src = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ByDimension())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class LocalAllocOp(IRDLOperation):
    """Workgroup memory for a tile, with the tile's elements if it has an operand."""

    name = "ttg.local_alloc"
    src = opt_operand_def(TensorType)
    result = result_def(MemoryType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "($src^)? attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class LocalLoadOp(IRDLOperation):
    """The elements of a tile in workgroup memory, as a layout distributes them."""

    name = "ttg.local_load"
    src = operand_def(MemoryType)
    result = result_def(TensorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class LocalStoreOp(IRDLOperation):
    """Write the elements of a tile to workgroup memory."""

    name = "ttg.local_store"
    src = operand_def(TensorType)
    dst = operand_def(MemoryType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$src `,` $dst attr-dict `:` type($src) `->` type($dst)"


@irdl_op_definition
class LocalDeallocOp(IRDLOperation):
    """The end of a tile in workgroup memory."""

    name = "ttg.local_dealloc"
    src = operand_def(MemoryType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$src attr-dict `:` type($src)"


@irdl_op_definition
class MemoryIndexOp(IRDLOperation):
    """One of several tiles that are side by side in workgroup memory."""

    name = "ttg.memdesc_index"
    src = operand_def(MemoryType)
    index = operand_def(i32)
    result = result_def(MemoryType)
    traits = traits_def(Pure())
    assembly_format = "$src `[` $index `]` attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class MemoryTransOp(IRDLOperation):
    """The same tile in workgroup memory with its dimensions in another order."""

    name = "ttg.memdesc_trans"
    src = operand_def(MemoryType)
    order = attr_def(DenseArrayBase)
    result = result_def(MemoryType)
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


TTG = Dialect(
    "ttg",
    defined_operations(globals(), "ttg"),
    [BlockedLayout, SliceLayout, DotOperandLayout, LinearLayout, SharedLayout, SharedMemory, MemoryType],
)
