"""The `arith` dialect, whose operations also accept tensors where xDSL 0.74 accepts scalars only; and `llvm` of TTIR.

In xDSL, the result of cmpi and cmpf and the condition of select are i1, never a tensor of i1, and most casts verify
scalars only. Triton uses all of them on whole tiles. We define our own constants because ours keep every bit
(literals.py). Everything else is xDSL's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, Arith
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, IntegerType, TensorType, i1
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import AnyAttr as Any_
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure

from . import literals
from .effects import OrderingEffect
from .facts import SameBits
from .syntax import BinaryOperation, FollowsFrom, Hints, Unkept, condition_type, defined_operations


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A number or a tensor of numbers, stored as bits.

    Attributes:
        bits: the bits of each element in row-major order; one entry if all elements are equal.
    """

    name = "arith.constant"
    bits = prop_def(ArrayAttr[IntAttr])
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, bits: Sequence[int], type: Attribute) -> None:
        super().__init__(result_types=[type], properties={"bits": ArrayAttr([IntAttr(item) for item in bits])})

    @classmethod
    def integer(cls, value: int, type: Attribute) -> ConstantOp:
        """Build an integer constant, or a tensor constant with this integer in all elements."""
        return cls([value & (1 << literals.width(_element(type))) - 1], type)

    @property
    def element(self) -> Attribute:
        """The type of the number or of the tensor's elements."""
        return _element(self.result.type)

    @property
    def splat(self) -> int | None:
        """The bits that all elements have; None if they differ or if there is no element."""
        return self.bits.data[0].data if len(self.bits) == 1 else None

    @property
    def integers(self) -> list[int]:
        """The elements as signed integers, one if all are equal; empty for floats."""
        element = self.element
        if not isinstance(element, IntegerType | IndexType):
            return []
        return [literals.to_integer(item.data, element) for item in self.bits]

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_keyword("dense"):
            bits, type = literals.parse_dense(parser)
            op = cls(bits, type)
        else:
            literal = literals.parse_number(parser)
            # MLIR writes a boolean without its type.
            scalar = parser.parse_type() if parser.parse_optional_punctuation(":") else i1
            op = cls([literals.to_bits(literal, scalar)], scalar)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        type, bits = self.result.type, [item.data for item in self.bits]
        text = literals.dense_text(bits, type) if isinstance(type, TensorType) else literals.to_text(bits[0], type)
        printer.print_string(f" {text}")
        if type != i1:
            printer.print_string(" : ")
            printer.print_attribute(type)


def _element(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, TensorType) else type


@irdl_custom_directive
class Predicate(CustomDirective):
    """The name of a comparison, whose number the operation keeps."""

    number: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        assert issubclass(state.op_type, _Comparison)
        self.number.set(state, IntegerAttr(state.op_type.NAMES.index(parser.parse_identifier()), 64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        assert isinstance(op, _Comparison)
        state.print_whitespace(printer)
        printer.print_string(op.predicate_name)


class _Comparison(IRDLOperation):
    NAMES: ClassVar[list[str]]

    _T: ClassVar = VarConstraint("_T", Any_())
    predicate = prop_def(IntegerAttr[IntegerType])
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(FollowsFrom("_T", condition_type))
    traits = traits_def(Pure())
    custom_directives = (Predicate, Hints, Unkept)
    assembly_format = (
        "custom<Predicate>($predicate) `,` $lhs `,` $rhs custom<Hints>() custom<Unkept>() attr-dict `:` type($lhs)"
    )

    def __init__(self, predicate: int, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(
            operands=[lhs, rhs],
            result_types=[condition_type(lhs.type)],
            properties={"predicate": IntegerAttr(predicate, 64)},
        )

    @property
    def predicate_name(self) -> str:
        return self.NAMES[self.predicate.value.data]


@irdl_op_definition
class CmpiOp(_Comparison):
    """Integer comparison, elementwise on tensors."""

    name = "arith.cmpi"
    NAMES: ClassVar[list[str]] = list(CMPI_COMPARISON_OPERATIONS)


@irdl_op_definition
class CmpfOp(_Comparison):
    """Floating-point comparison, elementwise on tensors."""

    name = "arith.cmpf"
    NAMES: ClassVar[list[str]] = list(CMPF_COMPARISON_OPERATIONS)


@irdl_custom_directive
class ChoiceTypes(CustomDirective):
    """The type of two values, after that of the condition if it is not a single i1."""

    condition: TypeDirective
    value: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        self.condition.set(state, types[:-1] or [i1])
        self.value.set(state, types[-1:])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        conditions = [type for type in self.condition.get(op) if type != i1]
        printer.print_list([*conditions, *self.value.get(op)], printer.print_attribute)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Choice between two values: by one i1, or elementwise by a tensor of i1."""

    name = "arith.select"
    _T: ClassVar = VarConstraint("_T", Any_())
    cond = operand_def()
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    custom_directives = (ChoiceTypes, Unkept)
    assembly_format = (
        "$cond `,` $lhs `,` $rhs custom<Unkept>() attr-dict `:` custom<ChoiceTypes>(type($cond), type($result))"
    )

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])


class _Cast(IRDLOperation):
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, input: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[input], result_types=[result])


@irdl_op_definition
class ExtSIOp(_Cast):
    """Sign extension."""

    name = "arith.extsi"


@irdl_op_definition
class ExtUIOp(_Cast):
    """Zero extension."""

    name = "arith.extui"


@irdl_op_definition
class TruncIOp(_Cast):
    """Truncation to the low bits."""

    name = "arith.trunci"


@irdl_op_definition
class SIToFPOp(_Cast):
    """Signed integer to floating point."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_Cast):
    """Unsigned integer to floating point."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_Cast):
    """Floating point to signed integer, towards zero."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_Cast):
    """Floating point to unsigned integer, towards zero."""

    name = "arith.fptoui"


@irdl_op_definition
class BitcastOp(_Cast):
    """The same bits as another type of the same width."""

    name = "arith.bitcast"
    traits = traits_def(Pure(), SameBits())


@irdl_op_definition
class RemFOp(BinaryOperation):
    """Remainder of a floating-point division, with the sign of the dividend."""

    name = "arith.remf"


_OURS = defined_operations(globals(), "arith")
ArithOnTensors = Dialect(
    "arith",
    [op for op in Arith.operations if op.name not in {ours.name for ours in _OURS}] + _OURS,
    list(Arith.attributes),
)


@irdl_op_definition
class AssumeOp(IRDLOperation):
    """A condition that the author promises (tl.assume)."""

    name = "llvm.intr.assume"
    condition = operand_def(IntegerType(1))
    traits = traits_def(OrderingEffect())
    assembly_format = "$condition attr-dict `:` type($condition)"


LLVM = Dialect("llvm", [AssumeOp])
