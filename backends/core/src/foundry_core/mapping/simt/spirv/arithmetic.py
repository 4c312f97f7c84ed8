"""Arithmetic of one invocation: what ops/numeric.py writes, with the conversions and functions of a GPU.

Vulkan promises less of arithmetic than IEEE 754: quotients and roots may be off by some units in the last place, the
remainder of negative integers is undefined, a fused multiply and add may be rounded twice, and subnormals of f32 may be
zeros. What Triton defines exactly is written here from what Vulkan does promise. Subnormals are the exception: on a
device that flushes them, they are zeros in arithmetic (see docs).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math

from ....emit.mlir import Reg
from ....errors import unsupported
from ....ops.numeric import Numeric
from ....scalars import LAYOUTS, FloatLayout
from ..target import SimtTarget
from .instructions import Code

# Extended instructions that are exact on every device.
_EXACT = ("floor", "ceil", "trunc", "rint")


class SimtNumeric(Numeric):
    """Writes arithmetic to a Code."""

    def __init__(self, code: Code, target: SimtTarget) -> None:
        super().__init__(code)
        self._code = code
        self._fuses = target.fuses
        self._exponentiates = target.accurate_exp2
        self._halves = target.converts_f16
        # A conversion to f16 is Triton's: ties to even, which OpenCL promises; and subnormal results.
        self._rounds_halves = target.converts_f16 and (target.flavour == "kernel" or 16 in target.rounds_to_nearest)
        self._keeps_halves = 16 in target.preserves_denormals

    def unpack(self, x: Reg, layout: FloatLayout) -> Reg:
        if layout is not LAYOUTS["f16"] or not self._halves:
            return super().unpack(x, layout)
        return self.text.cast("arith.extf", self.text.cast("arith.bitcast", x, "f16"), "f32")

    def to_memory(self, x: Reg, elem: str) -> Reg:
        if elem != "f16" or not self._halves or self.bits(x)[1] == elem:
            return super().to_memory(x, elem)
        return self.text.cast("arith.bitcast", self.text.cast("arith.truncf", x, "f16"), "i16")

    def distance(self, x: Reg, y: Reg) -> Reg:
        return self.text.binary("arith.subi", x, y)

    def round_float(self, x: Reg, elem: str) -> Reg:
        if elem != "f16" or not self._halves:
            return super().round_float(x, elem)
        if not self._rounds_halves:
            return self.from_memory(super().narrow(x, LAYOUTS[elem]), elem)
        half = self.text.cast("arith.truncf", x, "f16")
        found = self.text.cast("arith.extf", half, "f32")
        self._bits[found] = self.text.cast("arith.bitcast", half, "i16"), elem
        return found

    def largest_magnitude(self, x: Reg, *, signed: bool) -> int:
        found, known = super().largest_magnitude(x, signed=signed), self._code.bounds(x)
        return max(-known[0], known[1]) if known and (signed or known[0] >= 0) else found

    def narrow(self, x: Reg, layout: FloatLayout, rounding: str = "rtne") -> Reg:
        exact = self._rounds_halves and self._keeps_halves and rounding == "rtne"
        if exact and layout is LAYOUTS["f16"] and x.elem == "f32":
            return self.text.cast("arith.bitcast", self.text.cast("arith.truncf", x, "f16"), "i16")
        return super().narrow(x, layout, rounding)

    def _pack_bf16(self, x: Reg) -> Reg:
        """Round an f32 by a function: a tile of a product has hundreds of elements."""
        return self._code.call_own("bf16", [x], "i16", lambda text, args: Numeric(text)._pack_bf16(args[0]))

    def _moved(self, shifted: Reg, magnitude: Reg, layout: FloatLayout) -> Reg:
        """Return the bits of an f32, without a subnormal f32 on the way, which the device may take for zero."""
        t = self.text
        least = t.float_constant(2.0 ** (1 - layout.bias - layout.mantissa), "f32")
        small = t.binary("arith.mulf", t.cast("arith.uitofp", magnitude, "f32"), least)
        normal = t.binary("arith.addi", shifted, self._int((127 - layout.bias) << 23, shifted))
        subnormal = t.compare("ult", magnitude, self._int(1 << layout.mantissa, magnitude))
        return t.select(subnormal, t.cast("arith.bitcast", small, "i32"), normal)

    def _to_f32(self, x: Reg) -> tuple[Reg, Reg]:
        """Return the bits of the f32 that an f64 is rounded to, towards zero, and whether it was inexact.

        This uses integers only: lavapipe takes an f64 that is converted to f32 and back for the f64 itself.
        """
        t = self.text

        def constant(value: int) -> Reg:
            return t.integer(value, "i64")

        def select(condition: Reg, yes: Reg, no: Reg) -> Reg:
            return t.select(condition, yes, no)

        zero = constant(0)
        bits = t.cast("arith.bitcast", x, "i64")
        magnitude = t.binary("arith.andi", bits, constant((1 << 63) - 1))
        # A number that is normal in f32 loses 29 bits. A smaller one loses one more for each step of its exponent.
        normal = t.compare("uge", magnitude, constant(897 << 52))
        moved = t.binary("arith.subi", t.binary("arith.shrui", magnitude, constant(29)), constant(896 << 23))
        whole = t.binary("arith.andi", magnitude, constant((1 << 52) - 1))
        whole = t.binary("arith.ori", whole, constant(1 << 52))
        shift = t.binary("arith.subi", constant(926), t.binary("arith.shrui", magnitude, constant(52)))
        shift = select(t.compare("slt", shift, constant(63)), shift, constant(63))
        shift = select(normal, constant(29), shift)
        small = t.binary("arith.shrui", whole, shift)
        lost = t.compare("ne", t.binary("arith.shli", small, shift), whole)
        lost = t.binary("arith.andi", lost, t.compare("ne", magnitude, zero))
        found = select(normal, moved, small)
        # Beyond f32 there is its largest number; infinities and NaNs stay what they are.
        large = t.compare("uge", magnitude, constant(1151 << 52))
        special = t.compare("uge", magnitude, constant(2047 << 52))
        found = select(large, constant(0x7F7FFFFF), found)
        found = select(special, constant(0x7F800000), found)
        found = select(t.compare("ugt", magnitude, constant(2047 << 52)), constant(0x7FC00000), found)
        inexact = t.binary("arith.ori", lost, large)
        inexact = t.binary("arith.andi", inexact, t.binary("arith.xori", special, t.integer(1, "i1")))
        sign = t.binary("arith.shli", t.binary("arith.shrui", bits, constant(63)), constant(31))
        return t.cast("arith.trunci", t.binary("arith.ori", found, sign), "i32"), inexact

    def fma(self, op: math.FmaOp, args: Sequence[Reg]) -> Reg:
        if args[0].elem == "f64" and 64 not in self._fuses:
            raise unsupported(op, "on f64: this device rounds the product before it adds")
        return super().fma(op, args)

    def divide(self, name: str, x: Reg, y: Reg) -> Reg:
        """Write an integer division; Vulkan defines the remainder of natural numbers only."""
        if name != "arith.remsi":
            return super().divide(name, x, y)
        t = self.text
        return t.binary("arith.subi", x, t.binary("arith.muli", super().divide("arith.divsi", x, y), y))

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """Write a function: an instruction where the device's is exact, else one of foundry_core.functions."""
        if name in _EXACT:
            return self._code.extended_instruction(name, *args)
        match name:
            case "fma":
                return self.multiply_add(*args)
            case "sqrt":
                return self.root(args[0])
        if name in ("exp", "exp2") and args[0].elem == "f32" and self._exponentiates:
            return self._exponential(name, args[0])
        return self.own(name, args)

    def _exponential(self, name: str, x: Reg) -> Reg:
        """Return 2^x or e^x by the device's instruction."""
        t = self._code
        if name == "exp2":
            return t.extended_instruction("exp2", x)
        # What the product loses enters as a factor close to 1: e^x = 2^p e^(x - p ln 2), where p is near x log2(e).
        product = t.binary("arith.mulf", x, t.float_constant(1.4426950216293335, "f32"))
        lost = t.extended_instruction("fma", product, t.float_constant(-0.693147182464599609375, "f32"), x)
        lost = t.extended_instruction("fma", product, t.float_constant(1.904654323148236e-09, "f32"), lost)
        power = t.extended_instruction("exp2", product)
        # Beyond these bounds the power is 0 or infinity already, and times what was lost it may be NaN.
        near = t.compare("olt", t.extended_instruction("fabs", x), t.float_constant(200.0, "f32"))
        finite = t.compare("olt", power, t.float_constant(float("inf"), "f32"))
        return t.select(t.binary("arith.andi", near, finite), t.extended_instruction("fma", power, lost, power), power)

    def pick_number(self, predicate: str, x: Reg, y: Reg) -> Reg:
        # In f32 the device's instruction may take a subnormal number for zero, as its comparison does.
        if x.elem == "f32":
            return self._code.extended_instruction({"ogt": "fmax", "olt": "fmin"}[predicate], x, y)
        return super().pick_number(predicate, x, y)

    def root(self, x: Reg) -> Reg:
        """Return a square root, correctly rounded: that of an f32 is never so close to the middle of two as f64
        errs."""
        t = self.text
        if x.elem == "f64":
            return self._code.extended_instruction("sqrt", x)
        return t.cast("arith.truncf", self._code.extended_instruction("sqrt", t.cast("arith.extf", x, "f64")), x.elem)

    def quotient(self, x: Reg, y: Reg) -> Reg:
        """Return a quotient, correctly rounded, for the same reason."""
        t = self.text
        if x.elem == "f64":
            return super().quotient(x, y)
        wide = t.binary("arith.divf", t.cast("arith.extf", x, "f64"), t.cast("arith.extf", y, "f64"))
        return t.cast("arith.truncf", wide, x.elem)

    def multiply_add(self, x: Reg, y: Reg, z: Reg) -> Reg:
        """Return x y + z, rounded once."""
        t = self.text
        if x.elem == "f64" or 32 in self._fuses:
            return self._code.extended_instruction("fma", x, y, z)
        # The product of two f32 is exact in f64. Rounding the sum to odd (Boldo and Melquiond, 2008) keeps what the
        # rounding to f32 must know.
        a, b, c = (t.cast("arith.extf", reg, "f64") for reg in (x, y, z))
        product = t.binary("arith.mulf", a, b)
        total = t.binary("arith.addf", product, c)
        other = t.binary("arith.subf", total, product)
        first = t.binary("arith.subf", product, t.binary("arith.subf", total, other))
        rest = t.binary("arith.addf", first, t.binary("arith.subf", c, other))
        bits = t.cast("arith.bitcast", total, "i64")
        zero, one = t.float_constant(0.0, "f64"), t.integer(1, "i64")
        even = t.compare("eq", t.binary("arith.andi", bits, one), t.integer(0, "i64"))
        away = t.compare("eq", t.compare("ogt", rest, zero), t.compare("ogt", total, zero))
        odd = t.select(away, t.binary("arith.addi", bits, one), t.binary("arith.subi", bits, one))
        inexact = t.binary("arith.andi", t.compare("one", rest, zero), even)
        return t.cast("arith.truncf", t.cast("arith.bitcast", t.select(inexact, odd, bits), "f64"), x.elem)
