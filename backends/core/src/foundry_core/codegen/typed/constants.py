"""Translates MLIR's constant attributes to LLVM's constants; floats keep every bit."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.dialects.llvm import LLVMArrayType, LLVMStructType
from xdsl.ir import Attribute

from ...errors import LoweringError
from ...ir.literals import width
from ...strings import llvm_string
from . import types

_LETTERS: dict[type[Attribute], str] = {Float16Type: "H", BFloat16Type: "R"}


def constant_text(value: Attribute, type: Attribute) -> str:
    """Return the text of a constant of a type, without the type.

    Raises:
        LoweringError: the attribute is not a constant of LLVM.
    """
    match value:
        case IntegerAttr() if isinstance(type, IntegerType):
            return _integer(value.value.data, type.width.data)
        case IntegerAttr() if types.is_float(type):
            return _float(value.value.data & (1 << width(type)) - 1, type)
        case StringAttr() | BytesAttr():
            return f"c{llvm_string(value.data)}"
        case DenseIntOrFPElementsAttr():
            return _dense(value, type)
        case ArrayAttr():
            parts = [types.member_type(type, index) for index in range(len(value))]
            inside = ", ".join(
                f"{types.type_text(part)} {constant_text(item, part)}" for part, item in zip(parts, value, strict=True)
            )
            return f"{{ {inside} }}" if isinstance(type, LLVMStructType) else f"[{inside}]"
    raise LoweringError(f"the constant {value} of type {type}")


def zero(type: Attribute) -> str:
    if types.is_pointer(type):
        return "null"
    if isinstance(type, IntegerType):
        return _integer(0, type.width.data)
    return _float(0, type) if types.is_float(type) else "zeroinitializer"


def _integer(value: int, width: int) -> str:
    value &= (1 << width) - 1
    if width == 1:
        return "true" if value else "false"
    return str(value - (1 << width) if value >> (width - 1) else value)


def _float(bits: int, kind: Attribute) -> str:
    """Write a float as the equal double, as LLVM does; a NaN as bits, because LLVM reads a NaN as a quiet one."""
    if letter := _LETTERS.get(type(kind)):
        return f"0x{letter}{bits:04X}"
    if isinstance(kind, Float32Type):
        number = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
        if math.isnan(number):
            return f"bitcast (i32 {_integer(bits, 32)} to float)"
        bits = int.from_bytes(struct.pack("<d", number), "little")
    return f"0x{bits:016X}"


def _dense(value: DenseIntOrFPElementsAttr, type: Attribute) -> str:
    """Write an array or vector with the dimensions of its type; the attribute has the elements in row-major order."""
    scalar, count = type, 1
    while not isinstance(scalar, IntegerType) and not types.is_float(scalar):
        count *= scalar.size.data if isinstance(scalar, LLVMArrayType) else _length(scalar)
        scalar = types.member_type(scalar)
    data, size = value.data.data, -(-width(scalar) // 8)
    items = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
    items *= count if len(items) == 1 else 1
    if len(items) != count:
        raise LoweringError(f"{len(items)} elements for {type}")
    if not any(items):
        return "zeroinitializer"
    return _nested(iter(items), type)


def _nested(items: Iterator[int], type: Attribute) -> str:
    if isinstance(type, IntegerType):
        return _integer(next(items), type.width.data)
    if types.is_float(type):
        return _float(next(items), type)
    array = isinstance(type, LLVMArrayType)
    part = types.member_type(type)
    length = type.size.data if isinstance(type, LLVMArrayType) else _length(type)
    inside = ", ".join(f"{types.type_text(part)} {_nested(items, part)}" for _ in range(length))
    return f"[{inside}]" if array else f"<{inside}>"


def _length(type: Attribute) -> int:
    shape = getattr(type, "get_shape", None)
    if shape is None:
        raise LoweringError(f"elements of {type}")
    return int(shape()[0])
