"""String literals of MLIR, LLVM IR, C and SPIR-V: all text from outside, such as a path, is written by these. Names."""

from __future__ import annotations

import re
import string
from enum import Enum

_CODE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_LLVM_PLAIN = frozenset(range(32, 127)) - frozenset(b'"\\')
# Without ? and *: no trigraph, and no end of a comment.
_C_PLAIN = frozenset((string.ascii_letters + string.digits + " _-.,:;()[]{}<>/+=!#$%&'@^`|~").encode())


class StrEnum(str, Enum):
    """Names that are strings: enum.StrEnum, which Python 3.10 does not have."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, how: str) -> str:
        return format(str(self.value), how)


def llvm_string(text: str | bytes) -> str:
    """Return a string literal of MLIR and of LLVM IR."""
    data = text.encode() if isinstance(text, str) else text
    return '"' + "".join(chr(byte) if byte in _LLVM_PLAIN else f"\\{byte:02X}" for byte in data) + '"'


def llvm_text(inside: str, errors: str = "strict") -> str:
    """Return the text of a string literal of MLIR or LLVM IR, given what is between its quotation marks.

    Args:
        errors: what to do with bytes that are no UTF-8, as in bytes.decode().

    Raises:
        UnicodeDecodeError: the literal has such bytes.
    """
    data = _CODE.sub(lambda code: bytes.fromhex(code[1].decode()) if code[1] else code[2], inside.encode())
    return data.decode(errors=errors)


def c_string(text: str) -> str:
    """Return a string literal of C and C++, which may also be in a comment."""
    return '"' + "".join(chr(byte) if byte in _C_PLAIN else f"\\{byte:03o}" for byte in text.encode()) + '"'


def spirv_string(text: str) -> bytes:
    """Return a literal string of SPIR-V: its bytes, a zero, and zeros up to a whole word."""
    data = text.encode() + b"\0"
    return data + b"\0" * (-len(data) % 4)
