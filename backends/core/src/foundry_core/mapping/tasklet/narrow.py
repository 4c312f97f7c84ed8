"""Conversions between f32 and floats of up to 16 bits in integers: a DPU's software multiply takes 178 instructions.

The straight path handles normal numbers. Separate branches handle zeros, subnormals, infinities and NaNs.
"""

from __future__ import annotations

from ...emit.builder import Builder
from ...emit.mlir import Reg
from ...scalars import FloatLayout


def unpack(t: Builder, x: Reg, layout: FloatLayout) -> Reg:
    """Convert the bits of a float, in an i8 or i16, to f32; if the type has infinities, a NaN keeps its payload."""

    def int32(value: int) -> Reg:
        return t.integer(value, "i32")

    wide = t.cast("arith.extui", x, "i32")
    magnitude = t.binary("arith.andi", wide, int32(layout.magnitude))
    shifted = t.binary("arith.shli", magnitude, int32(23 - layout.mantissa))

    def normal() -> Reg:
        # The exponents of f32 are biased by 127.
        moved = t.binary("arith.addi", shifted, int32((127 - layout.bias) << 23))
        if layout.has_infinities:
            special = t.binary("arith.ori", shifted, int32(0x7F800000))
            moved = t.select(t.compare("uge", magnitude, int32(layout.overflow)), special, moved)
        elif layout.nan not in (layout.largest, layout.magnitude + 1):
            moved = t.select(t.compare("eq", magnitude, int32(layout.nan)), int32(0x7FC00000), moved)
        return moved

    def other() -> Reg:
        # A multiple of the smallest subnormal: its highest bit becomes f32's implicit bit, whose addition increments
        # the exponent.
        zeros = t.leading_zeros(magnitude)
        first = int32(158 - layout.bias - layout.mantissa)
        exponent = t.binary("arith.shli", t.binary("arith.subi", first, zeros), int32(23))
        mantissa = t.binary("arith.shli", magnitude, t.binary("arith.subi", zeros, int32(8)))
        zero = int32(0)
        if not layout.negative_zero:
            zero = t.select(t.compare("eq", wide, int32(layout.nan)), int32(0x7FC00000), zero)
        none = t.compare("eq", magnitude, int32(0))
        return t.select(none, zero, t.binary("arith.addi", exponent, mantissa))

    found = t.choose(t.compare("uge", magnitude, int32(1 << layout.mantissa)), normal, other)
    sign = t.binary("arith.shli", t.binary("arith.xori", wide, magnitude), int32(32 - layout.bits))
    return t.cast("arith.bitcast", t.binary("arith.ori", found, sign), "f32")


def pack_float(t: Builder, x: Reg, layout: FloatLayout, saturate: bool = False) -> Reg:
    """Round an f32 to the bits of a float with 8 or 16 bits, ties to even; see Numeric.narrow."""

    def int32(value: int) -> Reg:
        return t.integer(value, "i32")

    lost = 23 - layout.mantissa
    bias = (127 - layout.bias) << 23
    smallest = (128 - layout.bias) << 23
    # The first f32 that is rounded to more than the largest number; halfway it is rounded to even.
    beyond = bias + (layout.largest << lost) + (1 << (lost - 1)) + (layout.largest % 2 == 0)
    bits = t.cast("arith.bitcast", x, "i32")
    magnitude = t.binary("arith.andi", bits, int32(0x7FFFFFFF))
    sign = t.binary("arith.shrui", t.binary("arith.xori", bits, magnitude), int32(32 - layout.bits))
    above = t.binary("arith.shrui", magnitude, int32(lost))

    def normal() -> Reg:
        # Move the exponent; round to nearest even by the carry out of the dropped bits.
        moved = t.binary("arith.addi", magnitude, int32((1 << (lost - 1)) - 1 - bias))
        even = t.binary("arith.addi", moved, t.binary("arith.andi", above, int32(1)))
        return t.binary("arith.shrui", even, int32(lost))

    def other() -> Reg:
        nan = int32(layout.nan)
        if layout.has_infinities:
            # Keep the upper bits of the payload, and stay a NaN if they are zero.
            payload = t.binary("arith.andi", above, int32((1 << layout.mantissa) - 1))
            kept = t.binary("arith.ori", payload, int32(layout.overflow))
            nan = t.select(t.compare("eq", payload, int32(0)), nan, kept)
        overflow = int32(layout.largest if saturate else layout.overflow)
        big = t.select(t.compare("ugt", magnitude, int32(0x7F800000)), nan, overflow)
        # A multiple of the smallest subnormal. Less than half of that, including f32's subnormals, is 0 after a shift
        # by 25.
        first = int32(151 - layout.bias - layout.mantissa)
        wanted = t.binary("arith.subi", first, t.binary("arith.shrui", magnitude, int32(23)))
        distance = t.select(t.compare("ult", wanted, int32(25)), wanted, int32(25))
        mantissa = t.binary("arith.ori", t.binary("arith.andi", magnitude, int32(0x7FFFFF)), int32(0x800000))
        odd = t.binary("arith.andi", t.binary("arith.shrui", mantissa, distance), int32(1))
        half = t.binary("arith.shli", int32(1), t.binary("arith.subi", distance, int32(1)))
        carried = t.binary("arith.addi", t.binary("arith.addi", mantissa, t.binary("arith.subi", half, int32(1))), odd)
        small = t.binary("arith.shrui", carried, distance)
        return t.select(t.compare("ult", magnitude, int32(smallest)), small, big)

    within = t.compare("ult", t.binary("arith.subi", magnitude, int32(smallest)), int32(beyond - smallest))
    found = t.choose(within, normal, other)
    if not layout.negative_zero:
        sign = t.select(t.compare("eq", found, int32(0)), int32(0), sign)
    return t.cast("arith.trunci", t.binary("arith.ori", found, sign), f"i{layout.bits}")
