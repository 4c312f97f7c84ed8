"""Arithmetic on registers: how each scalar operation of Triton is computed.

A device has a subclass with what it computes differently.

Floats of 8 and 16 bits are computed in f32 and rounded after each operation, because the device need not support them
(cl_khr_fp16). The result is correctly rounded, since 24 bits are at least 2p + 2 for all of them (Figueroa, "When is
double rounding innocuous?", 1995). In registers they are f32 values that the narrow type can represent; in memory they
have the bits of their layout (scalars.py).

A conversion to a float of 8 bits saturates, as Triton's do on GPUs (`cvt.satfinite`): what is too large, or infinite,
becomes the largest finite number. Arithmetic overflows as in ml_dtypes, to infinity or to NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Operation

from ..emit.builder import Builder
from ..emit.mlir import GLOBAL, WIDTHS, Reg
from ..errors import unsupported
from ..functions.registers import call_function, inline
from ..functions.table import ONE_BY_ONE
from ..ir import tt
from ..ir.arith import SIToFPOp, UIToFPOp
from ..scalars import LAYOUTS, FloatLayout


def scalar_type(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, TensorType) else type


def element_name(type: Attribute, op: Operation) -> str:
    """Return MLIR's name of a scalar or element type: an integer of 1 to 64 bits, or a float of 8 to 64 bits.

    A pointer in a tile is its address in an i64. Scalar pointers are pointers (mlir.GLOBAL).
    """
    match scalar_type(type):
        case Attribute(name=name) if name in LAYOUTS or name in WIDTHS:
            return name
        case IntegerType() as integer if f"i{integer.width.data}" in WIDTHS:
            return f"i{integer.width.data}"
        case tt.PointerType():
            return "i64"
        case other:
            raise unsupported(op, f"on elements of type {other}")


def in_register(elem: str) -> str:
    """Return the type that a number of this type has in a register."""
    return "f32" if elem in LAYOUTS else elem


def in_memory(elem: str) -> str:
    """Return the type that a number of this type has in global memory."""
    return "i8" if elem == "i1" else f"i{LAYOUTS[elem].bits}" if elem in LAYOUTS else elem


class Numeric:
    """Writes arithmetic to a Builder."""

    def __init__(self, text: Builder) -> None:
        self.text: Builder = text
        # The bits from which a float was made, and their type: a NaN that is only moved keeps its payload.
        self._bits: dict[Reg, tuple[Reg, str]] = {}

    # Pointers.

    def address(self, pointer: Reg) -> Reg:
        """Return the address of a scalar pointer as an i64; any other register is returned unchanged."""
        if pointer.elem != GLOBAL:
            return pointer
        return self.text.cast("arith.extui", self.text.cast("llvm.ptrtoint", pointer, self.text.index), "i64")

    def pointer(self, address: Reg) -> Reg:
        """Return the scalar pointer to an address."""
        return self.text.cast("llvm.inttoptr", self.text.cast("arith.trunci", address, self.text.index), GLOBAL)

    def distance(self, x: Reg, y: Reg) -> Reg:
        """Return how many bytes pointers or addresses are behind others, an i64; exact modulo the size of an index.

        On a DPU, the pointer to a part of an array may be before the array's beginning, as a number modulo 2^32.
        """
        bytes = self.text.binary("arith.subi", self.address(x), self.address(y))
        return self.text.cast("arith.extsi", self.text.cast("arith.trunci", bytes, self.text.index), "i64")

    def advance_addresses(self, op: Operation, addresses: Reg, offsets: Reg) -> Reg:
        """Return addresses that are a number of elements further, in a tile."""
        pointer = scalar_type(op.operands[0].type)
        assert isinstance(pointer, tt.PointerType)
        size = max(1, WIDTHS[in_memory(element_name(pointer.pointee, op))] // 8)
        wide = self.text.cast("arith.extsi", offsets, "i64")
        return self.text.binary(
            "arith.addi", addresses, self.text.binary("arith.muli", wide, self._int(size, wide, "i64"))
        )

    # Conversions between memory and registers.

    def from_memory(self, x: Reg, elem: str) -> Reg:
        """Convert bits from memory to a register."""
        if elem == "i1":
            return self.text.compare("ne", x, self.text.integer(0, "i8", x.lanes))
        if elem not in LAYOUTS:
            return x
        value = self.unpack(x, LAYOUTS[elem])
        self._bits[value] = x, elem
        return value

    def bits(self, x: Reg) -> tuple[Reg, str]:
        """Return the bits from which a float of a narrow type was made, and that type; else the register and its."""
        return self._bits.get(x, (x, x.elem))

    def to_memory(self, x: Reg, elem: str) -> Reg:
        """Convert a register to its bits in memory."""
        if elem == "i1":
            return self.text.cast("arith.extui", x, "i8")
        if elem not in LAYOUTS:
            return x
        bits, known = self.bits(x)
        return bits if known == elem else self.pack(x, LAYOUTS[elem])

    def moved_type(self, regs: Sequence[Reg]) -> str:
        """Return the type in which registers are moved: the narrow one, if the bits of all of them are known.

        They are fewer bytes, and a device may change the bits of a NaN that it converts.
        """
        kinds = {self.bits(reg)[1] for reg in regs}
        return kinds.pop() if len(kinds) == 1 else regs[0].elem

    def round_float(self, x: Reg, elem: str) -> Reg:
        """Round an f32 to a narrow type; the result is still an f32."""
        return self.from_memory(self.to_memory(x, elem), elem) if elem in LAYOUTS else x

    def _int(self, value: int, like: Reg, elem: str = "i32") -> Reg:
        return self.text.integer(value, elem, like.lanes)

    def unpack(self, x: Reg, layout: FloatLayout) -> Reg:
        """Convert the bits of a float with up to 16 bits to f32. A NaN keeps its payload in a type with infinities."""
        # In 32 bits: llc 22 emits a mask of the wrong width for a shift in 16 bits.
        t, wide = self.text, self.text.cast("arith.extui", x, "i32")
        if layout.bias == 127:
            return t.cast("arith.bitcast", t.binary("arith.shli", wide, self._int(16, x)), "f32")
        magnitude = t.binary("arith.andi", wide, self._int(layout.magnitude, x))
        shifted = t.binary("arith.shli", magnitude, self._int(23 - layout.mantissa, x))
        bits = self._moved(shifted, magnitude, layout)
        if layout.has_infinities:
            special = t.binary("arith.ori", shifted, self._int(0x7F800000, x))
            bits = t.select(t.compare("uge", magnitude, self._int(layout.overflow, x)), special, bits)
        elif layout.nan != layout.largest:
            is_nan = t.compare("eq", magnitude if layout.negative_zero else wide, self._int(layout.nan, x))
            bits = t.select(is_nan, self._int(0x7FC00000, x), bits)
        sign = t.binary("arith.andi", wide, self._int(layout.magnitude + 1, x))
        sign = t.binary("arith.shli", sign, self._int(32 - layout.bits, x))
        return t.cast("arith.bitcast", t.binary("arith.ori", bits, sign), "f32")

    def _moved(self, shifted: Reg, magnitude: Reg, layout: FloatLayout) -> Reg:
        """Return the bits of an f32 from those of a number with another bias.

        Args:
            magnitude: the bits of the number without its sign, as an i32.
            shifted: the same, with the mantissa where an f32 has it.
        """
        t = self.text
        # The factor moves the exponent from one bias to the other, and turns subnormals into normal numbers.
        factor = t.float_constant(2.0 ** (127 - layout.bias), "f32", shifted.lanes)
        return t.cast("arith.bitcast", t.binary("arith.mulf", t.cast("arith.bitcast", shifted, "f32"), factor), "i32")

    def pack(self, x: Reg, layout: FloatLayout, *, saturate: bool = False) -> Reg:
        """Round an f32 to the bits of a float with 8 or 16 bits, ties to even.

        Args:
            saturate: give the largest finite number where the result would be infinite, or NaN because of overflow.
        """
        if layout.bias == 127:
            return self._pack_bf16(x)
        t, lost = self.text, 23 - layout.mantissa
        bits = t.cast("arith.bitcast", x, "i32")
        magnitude = t.binary("arith.andi", bits, self._int(0x7FFFFFFF, x))
        # Subnormal: add the power of two whose last place has the weight of the smallest subnormal. This leaves the
        # mantissa, correctly rounded, in the lowest bits of the sum. For f16 that power is 0.5.
        power = 24 - layout.bias - layout.mantissa
        place = t.float_constant(2.0**power, "f32", x.lanes)
        sum = t.binary("arith.addf", t.cast("arith.bitcast", magnitude, "f32"), place)
        small = t.binary("arith.subi", t.cast("arith.bitcast", sum, "i32"), self._int((127 + power) << 23, x))
        # Normal: move the exponent, and round to nearest even by the carry out of the dropped bits.
        odd = t.binary("arith.andi", t.binary("arith.shrui", magnitude, self._int(lost, x)), self._int(1, x))
        by = (1 << (lost - 1)) - 1 - ((127 - layout.bias) << 23)
        moved = t.binary("arith.addi", magnitude, self._int(by, x))
        normal = t.binary("arith.shrui", t.binary("arith.addi", moved, odd), self._int(lost, x))
        smallest = self._int((128 - layout.bias) << 23, x)
        found = t.select(t.compare("ult", magnitude, smallest), small, normal)
        overflow = self._int(layout.largest if saturate else layout.overflow, x)
        found = t.select(t.compare("ugt", found, self._int(layout.largest, x)), overflow, found)
        nan = self._int(layout.nan, x)
        if layout.has_infinities:
            # Keep the upper bits of the payload, and stay a NaN if they are zero.
            payload = t.binary("arith.shrui", magnitude, self._int(lost, x))
            payload = t.binary("arith.andi", payload, self._int((1 << layout.mantissa) - 1, x))
            kept = t.binary("arith.ori", payload, self._int(layout.overflow, x))
            nan = t.select(t.compare("eq", payload, self._int(0, x)), nan, kept)
        found = t.select(t.compare("ugt", magnitude, self._int(0x7F800000, x)), nan, found)
        sign = t.binary("arith.andi", bits, self._int(-0x80000000, x))
        sign = t.binary("arith.shrui", sign, self._int(32 - layout.bits, x))
        if not layout.negative_zero:
            zero = self._int(0, x)
            sign = t.select(t.compare("eq", found, zero), zero, sign)
        return t.cast("arith.trunci", t.binary("arith.ori", found, sign), f"i{layout.bits}")

    def _pack_bf16(self, x: Reg) -> Reg:
        t = self.text
        bits = t.cast("arith.bitcast", x, "i32")
        odd = t.binary("arith.andi", t.binary("arith.shrui", bits, self._int(16, x)), self._int(1, x))
        carried = t.binary("arith.addi", t.binary("arith.addi", bits, self._int(0x7FFF, x)), odd)
        # A NaN keeps the upper bits of its payload, and gets one that says that it is quiet: they may be zeros.
        nan = t.binary("arith.ori", bits, self._int(0x400000, x))
        magnitude = t.binary("arith.andi", bits, self._int(0x7FFFFFFF, x))
        found = t.select(t.compare("ugt", magnitude, self._int(0x7F800000, x)), nan, carried)
        return t.cast("arith.trunci", t.binary("arith.shrui", found, self._int(16, x)), "i16")

    def narrow(self, x: Reg, layout: FloatLayout, rounding: str = "rtne") -> Reg:
        """Convert an f32 or f64 to the bits of a float with 8 or 16 bits; to 8 bits it saturates.

        Args:
            rounding: `rtne`, or `rtz` towards zero.
        """
        t = self.text
        if x.elem == "f64":
            x = self._odd(x)
        bits = self.pack(x, layout, saturate=layout.bits == 8)
        if rounding == "rtne":
            return bits
        # Take one step back where rounding to nearest increased the magnitude.
        up = t.compare("ogt", self.absolute(self.unpack(bits, layout)), self.absolute(x))
        one, sign = (t.integer(value, bits.elem, x.lanes) for value in (1, -1 << (layout.bits - 1)))
        less = t.binary("arith.subi", bits, one)
        if not layout.negative_zero:
            less = t.select(t.compare("eq", less, sign), t.integer(0, bits.elem, x.lanes), less)
        return t.select(up, less, bits)

    def _to_f32(self, x: Reg) -> tuple[Reg, Reg]:
        """Return the bits of the f32 that an f64 is rounded to, towards zero, and whether it was inexact."""
        t = self.text
        near = t.cast("arith.truncf", x, "f32")
        back = t.cast("arith.extf", near, "f64")
        bits = t.cast("arith.bitcast", near, "i32")
        # Where rounding to nearest increased the magnitude, take one step back.
        up = t.compare("ogt", self.absolute(back), self.absolute(x))
        return t.select(up, t.binary("arith.subi", bits, self._int(1, x)), bits), t.compare("one", back, x)

    def _odd(self, x: Reg) -> Reg:
        """Round an f64 to an f32, to odd: rounding that to fewer bits rounds once (Boldo and Melquiond, 2008)."""
        t = self.text
        bits, inexact = self._to_f32(x)
        odd = t.select(inexact, t.binary("arith.ori", bits, self._int(1, x)), bits)
        return t.cast("arith.bitcast", odd, "f32")

    def _narrow_from_integer(self, name: str, x: Reg, elem: str) -> Reg:
        """Convert an integer to a narrow type with one rounding, without f64, which some devices lack.

        f32 holds 24 bits. Wider numbers are rounded to odd first, to at most 24 and at least 14 bits: that avoids
        double rounding.
        """
        t, width = self.text, WIDTHS[x.elem]
        if self.largest_magnitude(x, signed=name == SIToFPOp.name) <= 2 << LAYOUTS[elem].mantissa:
            return t.cast(name, x, "f32")
        # The magnitude (for a negative number, of its complement) from which so many of the lowest bits are dropped.
        dropped = {32: {24: 8}, 64: {24: 10, 34: 20, 44: 30, 54: 40}}.get(width, {})
        if dropped:
            signed = name == SIToFPOp.name
            sign = t.binary("arith.shrsi", x, self._int(width - 1, x, x.elem)) if signed else self._int(0, x, x.elem)
            size = t.binary("arith.xori", x, sign)
            mask = self._int(0, x, x.elem)
            for power, bits in dropped.items():
                large = t.compare("uge", size, self._int(1 << power, x, x.elem))
                mask = t.select(large, self._int((1 << bits) - 1, x, x.elem), mask)
            upper = t.binary("arith.subi", x, t.binary("arith.andi", x, mask))
            odd = t.binary("arith.ori", upper, t.binary("arith.addi", mask, self._int(1, x, x.elem)))
            x = t.select(t.compare("eq", x, upper), x, odd)
        return self.round_float(t.cast(name, x, "f32"), elem)

    def largest_magnitude(self, x: Reg, *, signed: bool) -> int:
        """Return a number that the magnitude of an integer is not above."""
        width = WIDTHS[x.elem]
        return 1 << width - 1 if signed else (1 << width) - 1

    # Small functions that are library calls in OpenCL.

    def absolute(self, x: Reg) -> Reg:
        t, bits = self.text, f"i{WIDTHS[x.elem]}"
        mask = t.integer((1 << (WIDTHS[x.elem] - 1)) - 1, bits, x.lanes)
        return t.cast("arith.bitcast", t.binary("arith.andi", t.cast("arith.bitcast", x, bits), mask), x.elem)

    def pick(self, predicate: str, x: Reg, y: Reg) -> Reg:
        """Return x if x <predicate> y else y, on integers."""
        return self.text.select(self.text.compare(predicate, x, y), x, y)

    def pick_number(self, predicate: str, x: Reg, y: Reg) -> Reg:
        """Return IEEE 754-2008 minNum or maxNum: if one operand is NaN, the other one."""
        t = self.text
        wins = t.binary("arith.ori", t.compare(predicate, x, y), t.compare("uno", y, y))
        return t.select(wins, x, y)

    def pick_or_nan(self, predicate: str, x: Reg, y: Reg) -> Reg:
        """Return IEEE 754-2019 minimum or maximum: NaN if one operand is NaN."""
        t = self.text
        wins = t.binary("arith.ori", t.compare(predicate, x, y), t.compare("uno", x, x))
        return t.select(wins, x, self.text.select(t.compare("uno", y, y), y, y))

    def integer(self, name: str, x: Reg, y: Reg) -> Reg:
        """Write an operation of arith on integers; on booleans as logic, because SPIR-V has no arithmetic of them."""
        if x.elem != "i1":
            return self.text.binary(name, x, y)
        if name in ("arith.shli", "arith.shrui"):
            return self.text.compare("ugt", x, y)
        return x if name == "arith.shrsi" else self.text.binary(_LOGIC.get(name, name), x, y)

    def divide(self, name: str, x: Reg, y: Reg) -> Reg:
        """Write an integer division that cannot trap: a lane that a mask excludes may divide by zero, as on a GPU."""
        t = self.text
        if x.elem == "i1":  # The only divisor is true.
            return x if name in ("arith.divsi", "arith.divui") else self._int(0, x, "i1")
        bad = t.compare("eq", y, t.integer(0, y.elem, y.lanes))
        if name in ("arith.divsi", "arith.remsi"):
            # INT_MIN / -1 traps as well; dividing by 1 gives the wrapped quotient and the remainder 0.
            lowest = t.compare("eq", x, t.integer(-(1 << (WIDTHS[x.elem] - 1)), x.elem, x.lanes))
            minus = t.compare("eq", y, t.integer(-1, y.elem, y.lanes))
            bad = t.binary("arith.ori", bad, t.binary("arith.andi", lowest, minus))
        return t.binary(name, x, t.select(bad, t.integer(1, y.elem, y.lanes), y))

    def upper_half(self, x: Reg, y: Reg) -> Reg:
        """Return the upper half of the unsigned product of two i32 or two i64."""
        t = self.text
        if x.elem == "i32":
            product = t.binary("arith.muli", *(t.cast("arith.extui", arg, "i64") for arg in (x, y)))
            return t.cast("arith.trunci", t.binary("arith.shrui", product, self._int(32, x, "i64")), "i32")
        # Long multiplication with 32-bit digits: no sum of two products' halves overflows.
        half, low = self._int(32, x, "i64"), self._int(0xFFFFFFFF, x, "i64")

        def lower(a: Reg) -> Reg:
            return t.binary("arith.andi", a, low)

        def upper(a: Reg) -> Reg:
            return t.binary("arith.shrui", a, half)

        def times(a: Reg, b: Reg) -> Reg:
            return t.binary("arith.muli", a, b)

        middle = t.binary("arith.addi", times(upper(x), lower(y)), upper(times(lower(x), lower(y))))
        other = t.binary("arith.addi", times(lower(x), upper(y)), lower(middle))
        top = t.binary("arith.addi", times(upper(x), upper(y)), upper(middle))
        return t.binary("arith.addi", top, upper(other))

    def leading_zeros(self, x: Reg) -> Reg:
        """Count leading zeros of an integer; 0 has as many as the type has bits."""
        return self.text.leading_zeros(x)

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """Write a function of OpenCL C whose result has the type of its first argument."""
        return self.own(name, args)

    def own(self, name: str, args: Sequence[Reg], elem: str = "") -> Reg:
        """Write a function of foundry_core.functions, which uses basic arithmetic only.

        Args:
            elem: the type of its floats, if no argument is one.
        """
        elem = elem or next(arg.elem for arg in args if arg.is_float)
        if name in ONE_BY_ONE:
            return call_function(self.text, name, elem, args)
        return inline(self.text, name, elem, args, lambda x: self.library("sqrt", [x]))

    def remainder(self, x: Reg, y: Reg) -> Reg:
        """Return the remainder of a division of floats, with the sign of x."""
        return self.library("fmod", [x, y])

    def quotient(self, x: Reg, y: Reg) -> Reg:
        """Return the quotient of two floats, rounded correctly."""
        return self.text.binary("arith.divf", x, y)

    def trigonometric(self, name: str, x: Reg) -> Reg:
        """Return sin, cos or tan."""
        return self.library(name, [x])

    # Functions that the table rows call.

    def cast(self, op: Operation, x: Reg) -> Reg:
        """Convert with an operation of arith, except between floats of which one has no register type."""
        elem = element_name(op.results[0].type, op)
        if elem in LAYOUTS and isinstance(op, SIToFPOp | UIToFPOp):
            return self._narrow_from_integer(op.name, x, elem)
        return self.text.cast(op.name, x, in_register(elem))

    def bitcast(self, op: Operation, x: Reg) -> Reg:
        """Return the same bits as another type."""
        source, elem = element_name(op.operands[0].type, op), element_name(op.results[0].type, op)
        bits = self.text.cast("arith.bitcast", self.to_memory(x, source), in_memory(elem))
        return self.from_memory(bits, elem)

    def absolute_integer(self, x: Reg) -> Reg:
        t, zero = self.text, self._int(0, x, x.elem)
        negative = t.compare("slt", x, zero)
        return t.select(negative, t.binary("arith.subi", zero, x), x)

    def clamp(self, x: Reg, low: Reg, high: Reg, *, propagate_nan: bool) -> Reg:
        """Return min(max(x, low), high); NaN becomes low unless it is propagated."""
        pick = self.pick_or_nan if propagate_nan else self.pick_number
        return pick("olt", pick("ogt", x, low), high)

    def upper_half_of(self, op: Operation, x: Reg, y: Reg) -> Reg:
        """Return the upper half of the unsigned product, with a check of the type.

        Raises:
            UnsupportedOperation: the type is neither i32 nor i64.
        """
        if x.elem not in ("i32", "i64"):
            raise unsupported(op, f"on elements of type {x.elem}")
        return self.upper_half(x, y)

    def convert_float(self, op: arith.TruncFOp | tt.FpToFpOp, x: Reg) -> Reg:
        """Convert a float to the register type of another float type.

        Raises:
            UnsupportedOperation: Triton has a new rounding.
        """
        t = self.text
        source, elem = element_name(op.operands[0].type, op), element_name(op.result.type, op)
        rounding = op.rounding.data if isinstance(op, tt.FpToFpOp) and op.rounding is not None else "rtne"
        if rounding not in ("rtne", "rtz"):
            raise unsupported(op, f"rounding {rounding}")
        if elem in LAYOUTS:
            to, of = LAYOUTS[elem], LAYOUTS.get(source)
            # Every float of 8 bits is also an f16 and a bf16.
            exact = source == elem or (of is not None and of.bits < to.bits)
            return x if exact else self.from_memory(self.narrow(x, to, rounding), elem)
        if x.elem == "f64" and elem == "f32" and rounding == "rtz":
            return t.cast("arith.bitcast", self._to_f32(x)[0], "f32")
        return t.cast("arith.truncf" if x.elem == "f64" else "arith.extf", x, elem)

    def fma(self, op: math.FmaOp, args: Sequence[Reg]) -> Reg:
        """Return a b + c, rounded once."""
        elem = element_name(op.result.type, op)
        if elem not in LAYOUTS:
            return self.library("fma", args)
        # The product of two narrow numbers is exact in f64. The sum with a third is exact except for a far tail, which
        # rounding to odd preserves.
        a, b, c = (self.text.cast("arith.extf", arg, "f64") for arg in args)
        total = self.text.binary("arith.addf", self.text.binary("arith.mulf", a, b), c)
        return self.round_float(self._odd(total), elem)


# Arithmetic of booleans, modulo 2.
_LOGIC = {"arith.addi": "arith.xori", "arith.subi": "arith.xori", "arith.muli": "arith.andi"}
