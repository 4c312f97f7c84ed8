"""Reads and prints the numbers of MLIR's text without losing a bit.

xDSL 0.74 loses some bits: it reads `dense<0x7FC00000>` as an integer even if the elements are floats, prints a splat of
NaN as a list, keeps a bf16 as the decimal that MLIR prints, and keeps a NaN without its payload. So we store constants
as the bits of their elements, and read and print them here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    Float64Type,
    IndexType,
    IntegerType,
    PackableType,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser

from ..errors import LoweringError
from ..scalars import LAYOUTS


def width(type: Attribute) -> int:
    """Return the number of bits of a type.

    Raises:
        LoweringError: the type is not a number type.
    """
    match type:
        case IntegerType():
            return int(type.width.data)
        case IndexType():
            return 64
    if isinstance(type, AnyFloat):
        return int(type.bitwidth)
    raise LoweringError(f"a constant of type {type}")


def to_bits(literal: str, type: Attribute) -> int:
    """Convert a number from MLIR's text to its bits.

    Args:
        literal: `true`, `false`, a decimal, or the bits in hexadecimal digits.
        type: an integer, index or float type.

    Raises:
        LoweringError: the literal is not a number of that type.
    """
    wrong = LoweringError(f"{literal} is no number of type {type}")
    bits = width(type)
    if isinstance(type, AnyFloat):
        if "0x" in literal:
            value = int(literal, 16)
            if not 0 <= value < 1 << bits:
                raise wrong
            return value
        if "." not in literal:
            raise wrong
        try:
            packed = cast(PackableType[float], type).pack([_rounded(literal, type)])
        except OverflowError:
            raise wrong from None
        return int.from_bytes(packed, "little")
    if literal in ("true", "false"):
        return int(literal == "true")
    try:
        value = int(literal, 0)
    except ValueError:
        raise wrong from None
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise wrong
    return value & (1 << bits) - 1


def _rounded(decimal: str, type: Attribute) -> float:
    """Convert a decimal to an f64 that rounds to a narrower type as the decimal itself does.

    The f64 is rounded to odd, which avoids double rounding (Boldo and Melquiond, 2008).
    """
    near, exact = float(decimal), Fraction(decimal)
    if isinstance(type, Float64Type) or math.isinf(near) or near == exact:
        return near
    odd = near.hex().partition("p")[0][-1] in "13579bdf"
    return near if odd else math.nextafter(near, math.inf if exact > near else -math.inf)


def to_integer(bits: int, type: Attribute) -> int:
    """Return the signed integer that has these bits; an i1 is 0 or 1."""
    of = width(type)
    return bits - (1 << of) if of > 1 and bits >> (of - 1) else bits


def to_float(bits: int, type: Attribute) -> float:
    """Return the number that has these bits. Python's NaN has no payload."""
    size = -(-width(type) // 8)
    return float(cast(PackableType[float], type).unpack(bits.to_bytes(size, "little"), 1)[0])


def to_f32_bits(bits: int, type: Attribute) -> int:
    """Return the bits of the f32 equal to a narrower float; a NaN keeps sign and payload, as in a load."""
    mantissa = LAYOUTS[type.name].mantissa
    payload = bits & (1 << mantissa) - 1
    if payload and math.isnan(to_float(bits, type)):
        return bits >> (width(type) - 1) << 31 | 0x7F800000 | payload << (23 - mantissa)
    return int.from_bytes(struct.pack("<f", to_float(bits, type)), "little")


def to_text(bits: int, type: Attribute) -> str:
    """Write a number as MLIR does; `to_bits` of the result returns the same bits."""
    if not isinstance(type, AnyFloat):
        if width(type) == 1:
            return "true" if bits else "false"
        return str(to_integer(bits, type))
    number = to_float(bits, type)
    if math.isfinite(number):
        mantissa, _, exponent = repr(number).partition("e")
        exact = mantissa + ("" if "." in mantissa else ".0") + (f"e{exponent}" if exponent else "")
        for text in (f"{number:.6e}", exact):
            if to_bits(text, type) == bits:
                return text
    return f"0x{bits:0{-(-width(type) // 4)}X}"


def parse_number(parser: Parser) -> str:
    """Parse a number and return its text, for `to_bits`."""
    if (boolean := parser.parse_optional_boolean()) is not None:
        return "true" if boolean else "false"
    start = parser.pos
    parser.parse_number()
    return parser.lexer.input.content[start : parser.pos].strip()


def parse_dense(parser: Parser, type: Attribute | None = None) -> tuple[tuple[int, ...], TensorType | VectorType]:
    """Parse `<...> : type` after the word `dense`; without `: type` if the type is given.

    Returns:
        The bits of each element in row-major order (one entry if all are equal), and the type.
    """
    literals: list[str] = []

    def listed() -> bool:
        """Parse a literal or a list of literals; return whether it was a list."""
        if parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, listed) is not None:
            return True
        literals.append(parse_number(parser))
        return False

    parser.parse_punctuation("<")
    data, is_list = parser.parse_optional_str_literal(), True
    if data is None and parser.parse_optional_punctuation(">") is None:
        is_list = listed()
        parser.parse_punctuation(">")
    elif data is not None:
        parser.parse_punctuation(">")
    if type is None:
        parser.parse_punctuation(":")
        type = parser.parse_type()
    if not isinstance(type, TensorType | VectorType):
        raise LoweringError(f"a constant with elements of type {type}")
    count = math.prod(type.get_shape())
    element: Attribute = type.element_type
    found = [to_bits(literal, element) for literal in literals] if data is None else _unpacked(data, element, count)
    if not is_list and count:
        found *= count
    if len(found) != count:
        raise LoweringError(f"a constant of type {type} with {len(found)} elements")
    return tuple(found[:1] if len(set(found)) == 1 else found), type


def _unpacked(data: str, element: Attribute, count: int) -> list[int]:
    """Decode the elements of `dense<"0x...">`: bytes, least significant first; i1 also as one bit each."""
    raw, size = bytes.fromhex(data.removeprefix("0x")), -(-width(element) // 8)
    if width(element) == 1 and len(raw) == -(-count // 8) != count:
        return [raw[i // 8] >> i % 8 & 1 for i in range(count)]
    found = [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]
    return found * count if len(found) == 1 else found


def dense_text(bits: Sequence[int], type: TensorType | VectorType) -> str:
    """Write `dense<...>` for elements as `parse_dense` returns them, without the type."""
    element: Attribute = type.element_type
    items = [to_text(item, element) for item in bits]
    if len(items) <= 1:
        return f"dense<{''.join(items)}>"

    def nested(items: list[str], extents: Sequence[int]) -> str:
        if len(extents) == 1:
            return f"[{', '.join(items)}]"
        step = len(items) // extents[0]
        return f"[{', '.join(nested(items[at : at + step], extents[1:]) for at in range(0, len(items), step))}]"

    return f"dense<{nested(items, type.get_shape())}>"
