"""Reads the instructions of a SPIR-V module, finds its calls of library functions, and has the smallest module."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..spirv_numbers import numbers

_HEADER_WORDS = 5
_EXT_INST, _TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _FUNCTION_CALL, _DECORATE = numbers(
    "Op", "ExtInst TypeInt TypeFloat TypeVector FunctionCall Decorate"
)
# Instructions that a CPU implements as library functions.
_LIBRARY = numbers(
    "Op",
    "Dot IAddCarry ISubBorrow UMulExtended SMulExtended Any All IsNan IsInf IsFinite IsNormal SignBitSet "
    "BitReverse BitCount",
)
# They and calls, and the index of the operand at which their arguments begin.
_ARGUMENTS = {_EXT_INST: 4, _FUNCTION_CALL: 3} | dict.fromkeys(_LIBRARY, 2)
(_LINKAGE_ATTRIBUTES,) = numbers("Decoration", "LinkageAttributes")
(_IMPORT,) = numbers("LinkageType", "Import")

# A module of one kernel that does nothing: its header, the capabilities Kernel, Linkage and Addresses, 64-bit OpenCL,
# the entry point "k", void, a function type; then the function with its label and its return.
EMPTY = struct.pack(
    "<32I",
    *(0x07230203, 0x00010200, 0, 5, 0),
    *(2 << 16 | 17, 6, 2 << 16 | 17, 5, 2 << 16 | 17, 4, 3 << 16 | 14, 2, 2),
    *(4 << 16 | 15, 6, 3, int.from_bytes(b"k", "little")),
    *(2 << 16 | 19, 1, 3 << 16 | 33, 2, 1),
    *(5 << 16 | 54, 1, 3, 0, 2, 2 << 16 | 248, 4, 1 << 16 | 253, 1 << 16 | 56),
)


def words_of(module: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(module) // 4}I", module)


def instructions(words: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (first word, opcode, word after the last) of each instruction."""
    at = _HEADER_WORDS
    while at < len(words):
        end = at + (words[at] >> 16)
        # An instruction without words would be read for ever.
        if not at < end <= len(words):
            raise IndexError(f"no instruction ends at word {end}")
        yield at, words[at] & 0xFFFF, end
        at = end


@contextmanager
def reading() -> Iterator[None]:
    """Raise ValueError where a module is damaged: it comes from a file of Triton's cache."""
    try:
        yield
    except (struct.error, IndexError) as error:
        raise ValueError(f"the SPIR-V module is damaged: {error}") from error


@reading()
def widest_call(module: bytes) -> int:
    """Return the width in bytes of the widest vector that a library function takes or returns; 0 without vectors.

    A function with the name of an LLVM intrinsic is not a library function, because the device's LLVM turns it into
    instructions. A function that the module itself defines is not one either.

    Raises:
        ValueError: the module is damaged.
    """
    words = words_of(module)
    scalars: dict[int, int] = {}
    vectors: dict[int, int] = {}
    types: dict[int, int] = {}
    imported: set[int] = set()
    widest = 0
    for at, opcode, end in instructions(words):
        operands = words[at + 1 : end]
        if opcode in (_TYPE_INT, _TYPE_FLOAT):
            scalars[operands[0]] = operands[1] // 8
        elif opcode == _TYPE_VECTOR:
            # A vector of Booleans has no width; none is passed.
            vectors[operands[0]] = scalars.get(operands[1], 0) * operands[2]
        elif opcode == _DECORATE and operands[1] == _LINKAGE_ATTRIBUTES and operands[-1] == _IMPORT:
            name = module[4 * (at + 3) : 4 * (end - 1)].rstrip(b"\0")
            if not name.startswith(b"llvm."):
                imported.add(operands[0])
        elif len(operands) > 1 and operands[0] in vectors:
            # The type of the result, then the result. If the first operand is a value, it is not the number of a type.
            types[operands[1]] = operands[0]
        first = _ARGUMENTS.get(opcode)
        if first is not None and (opcode != _FUNCTION_CALL or operands[2] in imported):
            passed = [operands[0], *(types.get(value, 0) for value in operands[first:])]
            widest = max(widest, *(vectors.get(type, 0) for type in passed))
    return widest
