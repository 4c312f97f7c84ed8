"""Assembly syntax that the dialects share: operands, the types after the colon, and the type of a mask."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, operand_def, result_def, traits_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parse `%a, %b, ...`; a trailing comma before anything else is consumed too."""
    names = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(","):
        name = parser.parse_optional_unresolved_operand()
        if name is None:
            break
        names.append(name)
    return names


def print_operands(printer: Printer, op: IRDLOperation) -> None:
    """Print ` %a, %b, ...`."""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)


def parse_conversion(parser: Parser) -> tuple[Attribute, Attribute]:
    """Parse `: A -> B`."""
    parser.parse_punctuation(":")
    first = parser.parse_type()
    parser.parse_punctuation("->")
    return first, parser.parse_type()


def print_types(printer: Printer, *parts: Attribute | str) -> None:
    """Print ` : `, then types and the text given between them."""
    printer.print_string(" : ")
    for part in parts:
        if isinstance(part, str):
            printer.print_string(part)
        else:
            printer.print_attribute(part)


def condition_type(value: Attribute) -> Attribute:
    """Return the type of a mask or comparison result for a value: i1, or a tensor of i1 with the value's shape."""
    return TensorType(i1, value.get_shape(), value.encoding) if isinstance(value, TensorType) else i1


class BinaryOperation(IRDLOperation):
    """An operation on two numbers, or elementwise on two tensors, whose result has the operands' type."""

    _T: ClassVar = VarConstraint("_T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"
