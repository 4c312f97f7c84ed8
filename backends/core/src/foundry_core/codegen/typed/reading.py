"""Parses the llvm dialect's generic form to an xDSL module; numbers keep every bit.

xDSL's own parser reads what surrounds operations. Operations are unregistered, so that xDSL's definitions need not
agree with LLVM 22's. Numbers are read here (literals.py), because xDSL reads floats as Python's, where a NaN loses
bits. An operation without regions is one line, of which few differ in more than the names of values: such a line is
split here, and its types, properties and place are parsed once for all equal texts. That takes a tenth of the time.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    Builtin,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    ModuleOp,
)
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.parser.core import UnresolvedOperand
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span

from ...errors import LoweringError
from ...ir import literals
from ...ir.parse import TextParser

_TYPES = Dialect(
    "llvm",
    [],
    [
        llvm.LLVMArrayType,
        llvm.LLVMFunctionType,
        llvm.LLVMPointerType,
        llvm.LLVMStructType,
        llvm.LLVMVoidType,
    ],
)


# An operation without regions and without text in its properties: results, name, operands, successors, properties,
# types, place.
_LINE = re.compile(
    r"(?:%(\w+)(?::\d+)? = )?"
    r'"(llvm\.[\w.]+)"\(([%\w#, ]*)\)'
    r"(?:\[([\^\w, ]*)\])?"
    r'(?: <(\{[^"\n]*\})>)?'
    r' : (\([^"\n]*?)(?: loc\(([^\n]*)\))?\n'
)
_USE = re.compile(r"(?P<value>%\w+)(?:#(?P<index>\d+))?")
_TARGET = re.compile(r"\^\w+")


class _Parser(TextParser):
    """xDSL's parser, except that a float becomes the integer with the same bits, and that equal texts are read once."""

    def parse_operation(self) -> Operation:
        text = self.lexer.input
        line = _LINE.match(text.content, self.pos)
        if line is None:
            return super().parse_operation()
        results, name, _, _, fields, types, place = line.groups()
        try:
            kind, properties = _attribute(types), _attribute(fields or "{}")
            location = _location(place) if place else None
        except ParseError:
            # It has an alias, which only this parser knows; or it is wrong, and the error names the place.
            return super().parse_operation()
        assert isinstance(kind, FunctionType) and isinstance(properties, DictionaryAttr)
        operands = [
            UnresolvedOperand(Span(*use.span("value"), text), int(use["index"] or 0))
            for use in _USE.finditer(text.content, *line.span(3))
        ]
        targets = _TARGET.finditer(text.content, *line.span(4)) if line[4] else ()
        made = self._get_op_by_name(name).create(
            operands=self.resolve_operands(operands, kind.inputs.data, line.start(6)),
            result_types=kind.outputs.data,
            properties=dict(properties.data),
            successors=[self._get_block_from_name(Span(*target.span(), text)) for target in targets],
            location=location,
        )
        if results:
            self._register_ssa_definition(results, made.results, Span(*line.span(1), text))
        self._resume_from(line.end())
        return made

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        start = self.pos
        found = super().parse_optional_builtin_int_or_float_attr()
        if not isinstance(found, FloatAttr):
            return found
        literal = self.lexer.input.content[start : self.pos].partition(":")[0].strip()
        return IntegerAttr(literals.to_bits(literal, found.type), IntegerType(literals.width(found.type)))

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        bits, of = literals.parse_dense(self, type)
        items = bits * math.prod(of.get_shape()) if len(bits) == 1 else bits
        size = -(-literals.width(of.element_type) // 8)
        data = b"".join(item.to_bytes(size, "little") for item in items)
        return DenseIntOrFPElementsAttr(cast(Any, of), BytesAttr(data))


def generic_context() -> Context:
    """Build an xDSL context for generic forms: builtin's attributes, llvm's types, unregistered operations."""
    made = Context(allow_unregistered=True)
    made.load_dialect(Builtin)
    made.load_dialect(_TYPES)
    return made


@functools.lru_cache(1 << 12)
def _attribute(text: str) -> Attribute:
    """Parse what stands without aliases: a type, or the properties of an operation."""
    return _Parser(generic_context(), text).parse_attribute()


@functools.lru_cache(1 << 12)
def _location(text: str) -> LocationAttr | None:
    return _Parser(generic_context(), f"loc({text})").parse_optional_location()


def read_module(text: str) -> ModuleOp:
    """Parse a text in MLIR's generic form to a module.

    A float becomes an integer attribute with its bits; the type of the constant says how to read them.

    Raises:
        LoweringError: the text is not well-formed, or has a type that LLVM 12 cannot express.
    """
    try:
        return _Parser(generic_context(), text).parse_module()
    except (ParseError, UnicodeDecodeError) as error:
        raise LoweringError(f"cannot read this as the generic form of the llvm dialect: {error}") from error
