"""Reads of a SPIR-V module what calls of library functions it makes.

Numbers are those of the SPIR-V specification: section "Instructions" for opcodes, "Decoration" and "Linkage Type".
"""

from __future__ import annotations

import struct

_HEADER_WORDS = 5
_EXT_INST, _TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _FUNCTION_CALL, _DECORATE = 12, 21, 22, 23, 57, 71
# Instructions that are functions of a library on a CPU, and at which of their operands the arguments begin. Those
# beside calls: OpDot, sums and products with carry, tests of numbers (OpAny to OpSignBitSet), OpBitReverse, OpBitCount.
_ARGUMENTS = {_EXT_INST: 4, _FUNCTION_CALL: 3} | dict.fromkeys((*range(148, 153), *range(154, 161), 204, 205), 2)
_LINKAGE_ATTRIBUTES, _IMPORT = 41, 1


def widest_call(module: bytes) -> int:
    """The width in bytes of the widest vector that goes into or comes out of a library function; 0 without vectors.

    A function that is named like one of LLVM's intrinsics is not in a library: the device's LLVM makes instructions of
    it. One that the module itself defines is not either.
    """
    words = struct.unpack(f"<{len(module) // 4}I", module)
    scalars: dict[int, int] = {}
    vectors: dict[int, int] = {}
    types: dict[int, int] = {}
    imported: set[int] = set()
    widest = 0
    at = _HEADER_WORDS
    while at < len(words):
        opcode, length = words[at] & 0xFFFF, words[at] >> 16
        operands = words[at + 1 : at + length]
        if opcode in (_TYPE_INT, _TYPE_FLOAT):
            scalars[operands[0]] = operands[1] // 8
        elif opcode == _TYPE_VECTOR:
            # A vector of Booleans has no width of its own; none is passed.
            vectors[operands[0]] = scalars.get(operands[1], 0) * operands[2]
        elif opcode == _DECORATE and operands[1] == _LINKAGE_ATTRIBUTES and operands[-1] == _IMPORT:
            name = module[4 * (at + 3) : 4 * (at + length - 1)].rstrip(b"\0")
            if not name.startswith(b"llvm."):
                imported.add(operands[0])
        elif length > 2 and operands[0] in vectors:
            # The type of the result, then the result; where an operand comes first, it is a value and no type.
            types[operands[1]] = operands[0]
        first = _ARGUMENTS.get(opcode)
        if first is not None and (opcode != _FUNCTION_CALL or operands[2] in imported):
            passed = [operands[0], *(types.get(value, 0) for value in operands[first:])]
            widest = max(widest, *(vectors.get(type, 0) for type in passed))
        at += length
    return widest
