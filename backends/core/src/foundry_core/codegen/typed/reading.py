"""Parses the llvm dialect's generic form to an xDSL module; numbers keep every bit.

xDSL's own parser does most of the work. Operations are unregistered, so that xDSL's definitions need not agree with
LLVM 22's. Only numbers are read here (literals.py), because xDSL reads floats as Python's, where a NaN loses bits.
"""

from __future__ import annotations

import math
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    Builtin,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from ...errors import LoweringError
from ...ir import literals

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


class _Parser(Parser):
    """xDSL's parser, except that a float becomes the integer with the same bits."""

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


def read_module(text: str) -> ModuleOp:
    """Parse a text in MLIR's generic form to a module.

    A float becomes an integer attribute with its bits; the type of the constant says how to read them.

    Raises:
        LoweringError: the text is not well-formed, or has a type that LLVM 12 cannot express.
    """
    try:
        return _Parser(generic_context(), text).parse_module()
    except ParseError as error:
        raise LoweringError(f"cannot read this as the generic form of the llvm dialect: {error}") from error
