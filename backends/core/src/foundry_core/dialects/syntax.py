"""What the dialects share of their text: operands, the types behind the colon, and the type that a mask has."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, operand_def, result_def, traits_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b, ...`; a comma that something else follows is taken too."""
    names = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(","):
        name = parser.parse_optional_unresolved_operand()
        if name is None:
            break
        names.append(name)
    return names


def print_operands(printer: Printer, op: IRDLOperation) -> None:
    """` %a, %b, ...`"""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)


def parse_conversion(parser: Parser) -> tuple[Attribute, Attribute]:
    """`: A -> B`."""
    parser.parse_punctuation(":")
    first = parser.parse_type()
    parser.parse_punctuation("->")
    return first, parser.parse_type()


def print_types(printer: Printer, *parts: Attribute | str) -> None:
    """` : ` and types, with the text that is given between them."""
    printer.print_string(" : ")
    for part in parts:
        if isinstance(part, str):
            printer.print_string(part)
        else:
            printer.print_attribute(part)


def condition_type(value: Attribute) -> Attribute:
    """Return the type of a mask over a value, or of a comparison of it: i1, or a tensor of i1 in its shape."""
    return TensorType(i1, value.get_shape()) if isinstance(value, TensorType) else i1


class BinaryOperation(IRDLOperation):
    """An operation on two numbers, or on each two elements of tensors, that has their type."""

    _T: ClassVar = VarConstraint("_T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"
