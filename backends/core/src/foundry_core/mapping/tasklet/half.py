"""Conversions between the bits of f16 and f32 in integer arithmetic: a DPU's software multiply takes 178 instructions.

The straight path handles normal numbers. Separate branches handle zeros, subnormals, infinities and NaNs.
"""

from __future__ import annotations

from ..base.mlir import Reg, Text

# The exponents of f16 are biased by 15, those of f32 by 127.
_BIAS = 112 << 23


def unpack(t: Text, half: Reg) -> Reg:
    """Convert the bits of an f16, in an i16, to f32; a NaN keeps its payload."""

    def int32(value: int) -> Reg:
        return t.integer(value, "i32")

    wide = t.cast("arith.extui", half, "i32")
    magnitude = t.binary("arith.andi", wide, int32(0x7FFF))
    shifted = t.binary("arith.shli", magnitude, int32(13))
    choice = t.choose(t.compare("uge", magnitude, int32(0x400)))
    with choice.then():
        infinite = t.compare("uge", magnitude, int32(0x7C00))
        choice.result(t.binary("arith.addi", shifted, t.select(infinite, int32(2 * _BIAS), int32(_BIAS))))
    with choice.otherwise():
        # magnitude * 2^-24: its highest bit becomes f32's implicit bit, whose addition increments the exponent.
        zeros = t.op(f'"llvm.intr.ctlz"({magnitude.name}) <{{is_zero_poison = false}}> : (i32) -> i32', "i32")
        exponent = t.binary("arith.shli", t.binary("arith.subi", int32(133), zeros), int32(23))
        mantissa = t.binary("arith.shli", magnitude, t.binary("arith.subi", zeros, int32(8)))
        none = t.compare("eq", magnitude, int32(0))
        choice.result(t.select(none, int32(0), t.binary("arith.addi", exponent, mantissa)))
    found = choice.end()
    sign = t.binary("arith.shli", t.binary("arith.xori", wide, magnitude), int32(16))
    return t.cast("arith.bitcast", t.binary("arith.ori", found, sign), "f32")


def pack(t: Text, x: Reg) -> Reg:
    """Round an f32 to the bits of an f16, in an i16, ties to even; a NaN keeps the upper bits of its payload."""

    def int32(value: int) -> Reg:
        return t.integer(value, "i32")

    bits = t.cast("arith.bitcast", x, "i32")
    magnitude = t.binary("arith.andi", bits, int32(0x7FFFFFFF))
    sign = t.binary("arith.andi", t.binary("arith.shrui", bits, int32(16)), int32(0x8000))
    above = t.binary("arith.shrui", magnitude, int32(13))
    beyond = t.binary("arith.subi", magnitude, int32(0x38800000))
    choice = t.choose(t.compare("ult", beyond, int32(0x47800000 - 0x38800000)))
    with choice.then():
        # Move the exponent; round to nearest even by the carry out of the 13 dropped bits.
        moved = t.binary("arith.addi", magnitude, int32(0xFFF - _BIAS))
        even = t.binary("arith.addi", moved, t.binary("arith.andi", above, int32(1)))
        choice.result(t.binary("arith.shrui", even, int32(13)))
    with choice.otherwise():
        # NaN: set a payload bit if the bits that are kept are zero.
        payload = t.binary("arith.andi", above, int32(0x3FF))
        kept = t.binary("arith.ori", payload, int32(0x7C00))
        nan = t.select(t.compare("eq", payload, int32(0)), int32(0x7E00), kept)
        big = t.select(t.compare("ugt", magnitude, int32(0x7F800000)), nan, int32(0x7C00))
        # Subnormal: a multiple of 2^-24. Less than half of that, including f32's subnormals, is 0 after a shift by 25.
        wanted = t.binary("arith.subi", int32(126), t.binary("arith.shrui", magnitude, int32(23)))
        distance = t.select(t.compare("ult", wanted, int32(25)), wanted, int32(25))
        mantissa = t.binary("arith.ori", t.binary("arith.andi", magnitude, int32(0x7FFFFF)), int32(0x800000))
        odd = t.binary("arith.andi", t.binary("arith.shrui", mantissa, distance), int32(1))
        half = t.binary("arith.shli", int32(1), t.binary("arith.subi", distance, int32(1)))
        carried = t.binary("arith.addi", t.binary("arith.addi", mantissa, t.binary("arith.subi", half, int32(1))), odd)
        small = t.binary("arith.shrui", carried, distance)
        choice.result(t.select(t.compare("ult", magnitude, int32(0x38800000)), small, big))
    return t.cast("arith.trunci", t.binary("arith.ori", choice.end(), sign), "i16")
