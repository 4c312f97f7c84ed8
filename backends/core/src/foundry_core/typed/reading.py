"""The llvm dialect's generic form to an xDSL module, every number bit for bit.

xDSL's own parser does most of it: operations are read unregistered, so that none of its definitions has to agree with
LLVM 22's. Only floats are put into another form first, because it reads them as Python's, where a NaN loses its bits.
"""

from __future__ import annotations

import re
import struct

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from ..errors import LoweringError

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

WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}

# A string is matched so that nothing in it is taken for a number.
_STRING = r'"(?:[^"\\]|\\.)*"'
_SCALAR = re.compile(rf"{_STRING}|\b(0x[0-9A-Fa-f]+) : (f16|bf16|f32|f64)\b")
_DENSE = re.compile(rf'{_STRING}|dense<([^"<>]*0x[^"<>]*)> : ((?:tensor|vector)<(?:\d+x)*(f16|bf16|f32|f64)>)')
_NUMBER = re.compile(r"[-+.\w]+")


def context() -> Context:
    """An xDSL context for generic forms: builtin's attributes and llvm's types by name, all operations unregistered."""
    made = Context(allow_unregistered=True)
    made.load_dialect(Builtin)
    made.load_dialect(_TYPES)
    return made


def read(text: str) -> ModuleOp:
    """The module of a text in MLIR's generic form.

    A float written as its bits (`0x7F800001 : f32`) becomes an integer attribute of that width; the type of the
    constant that has it says what the bits are.

    Raises:
        LoweringError: the text is not well-formed, or has a type that LLVM 12 has nothing like.
    """
    try:
        return Parser(context(), _bits_kept(text)).parse_module()
    except ParseError as error:
        raise LoweringError(f"cannot read this as the generic form of the llvm dialect: {error}") from error


def _bits_kept(text: str) -> str:
    def scalar(hit: re.Match[str]) -> str:
        return f"{hit[1]} : i{WIDTHS[hit[2]]}" if hit[1] else hit[0]

    def dense(hit: re.Match[str]) -> str:
        if not hit[1]:
            return hit[0]
        return f'dense<"0x{b"".join(_packed(number, hit[3]) for number in _NUMBER.findall(hit[1])).hex()}"> : {hit[2]}'

    return _SCALAR.sub(scalar, _DENSE.sub(dense, text))


def _packed(number: str, kind: str) -> bytes:
    """An element's bytes, least significant first; decimals are those that MLIR prints, which read back exactly."""
    if number.startswith("0x"):
        return int(number, 16).to_bytes(WIDTHS[kind] // 8, "little")
    if kind == "bf16":
        return struct.pack("<f", float(number))[2:]
    return struct.pack(_FORMATS[kind], float(number))
