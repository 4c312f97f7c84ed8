"""What the dialects' assembly formats share: types that follow from others, words, and what is read and not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import StringAttr, TensorType, i1
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AnyAttr,
    AttrConstraint,
    IRDLOperation,
    VarConstraint,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.constraints import InferenceContext
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure


def condition_type(value: Attribute) -> Attribute:
    """Return the type of a mask or comparison result for a value: i1, or a tensor of i1 with the value's shape."""
    return TensorType(i1, value.get_shape(), value.encoding) if isinstance(value, TensorType) else i1


@dataclass(frozen=True)
class FollowsFrom(AttrConstraint[Attribute]):
    """A type that the text leaves out, because it follows from another one.

    Attributes:
        variable: the name of the VarConstraint of the other type.
        derive: returns the type.
    """

    variable: str
    derive: Callable[[Attribute], Attribute]

    def verify(self, attr: Attribute, constraint_context: object) -> None:
        """Accept any type: operations are also built without text."""

    def can_infer(self, var_constraint_names: AbstractSet[str]) -> bool:
        return self.variable in var_constraint_names

    def infer(self, context: InferenceContext) -> Attribute:
        known = context.get_variable(self.variable)
        assert known is not None
        return self.derive(known)

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, Any]) -> FollowsFrom:
        return self


@irdl_custom_directive
class Word(CustomDirective):
    """A string attribute, written without quotation marks."""

    attribute: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.attribute.set(state, StringAttr(parser.parse_identifier()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        word = self.attribute.get(op)
        assert isinstance(word, StringAttr)
        state.print_whitespace(printer)
        printer.print_string(word.data)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.attribute.is_present(op)

    def is_anchorable(self) -> bool:
        return self.attribute.is_anchorable()


@irdl_custom_directive
class Hints(CustomDirective):
    """Words that only give a compiler more freedom, and hints to a cache: read, and not kept.

    Our devices manage their caches themselves, and row-major order satisfies a reshape that allows any order.
    """

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword("fastmath"):
            FastMathFlagsAttr.parse_parameter(parser)
        for word in ("allow_reorder", "efficient_layout"):
            parser.parse_optional_keyword(word)
        while any(parser.parse_optional_keyword(word) for word in ("cacheModifier", "evictionPolicy")):
            parser.parse_punctuation("=")
            parser.parse_identifier()

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print nothing."""


@irdl_custom_directive
class Unkept(CustomDirective):
    """Attributes that are read, and not kept."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parser.parse_optional_attr_dict()

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print nothing."""


def defined_operations(module: Mapping[str, object], dialect: str) -> list[type[Operation]]:
    """Return the operations of a dialect that a module defines.

    Args:
        module: what `globals` returns there.
    """
    kinds = [kind for kind in module.values() if isinstance(kind, type) and issubclass(kind, IRDLOperation)]
    return [kind for kind in kinds if getattr(kind, "name", "").startswith(f"{dialect}.")]


class BinaryOperation(IRDLOperation):
    """An operation on two numbers, or elementwise on two tensors, whose result has the operands' type."""

    _T: ClassVar = VarConstraint("_T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"


class EndOfBlock(IRDLOperation):
    """The end of a block, which passes values on."""

    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"
