"""Arithmetic on a device with software floats: functions of f32 in basic arithmetic, and a fused multiply-add.

Floats of 8 bits and f16 are converted in integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...emit.builder import Builder
from ...emit.mlir import Reg, Text
from ...functions.registers import call_function
from ...ops.numeric import Numeric
from ...scalars import FloatLayout
from . import narrow


class TaskletNumeric(Numeric):
    """Writes arithmetic of scalars.

    Args:
        inlines: whether products by constants and upper halves of products are written in place. The compiler makes up
            to 16 instructions of the one and 64 of the other; a call is 4.
    """

    text: Text

    def __init__(self, text: Text, inlines: bool = True) -> None:
        super().__init__(text)
        self._inlines = inlines

    def integer(self, name: str, x: Reg, y: Reg) -> Reg:
        if self._inlines or name != "arith.muli" or x.elem not in ("i32", "i64"):
            return super().integer(name, x, y)
        factors = [number for reg in (x, y) if (number := self.text.constant_number(reg)) is not None]
        # A shift, or a shift and an addition, is shorter than a call.
        if len(factors) != 1 or _signed_digits(factors[0]) <= 2:
            return super().integer(name, x, y)
        return self.text.call_own(
            f"__foundry_product_{x.elem}", [x, y], x.elem, lambda text, args: text.binary(name, *args)
        )

    def upper_half(self, x: Reg, y: Reg) -> Reg:
        if self._inlines:
            return super().upper_half(x, y)
        return self.text.call_own(
            f"__foundry_upper_half_{x.elem}",
            [x, y],
            x.elem,
            lambda text, args: Numeric(text).upper_half(*args),
        )

    def unpack(self, x: Reg, layout: FloatLayout) -> Reg:
        if layout.bits == 8:
            return self._shared("unpack", x, "f32", layout, lambda text, reg: narrow.unpack(text, reg, layout))
        return super().unpack(x, layout) if layout.bias == 127 else narrow.unpack(self.text, x, layout)

    def pack(self, x: Reg, layout: FloatLayout, *, saturate: bool = False) -> Reg:
        if layout.bits == 8:
            name = "saturate" if saturate else "pack"
            return self._shared(name, x, "i8", layout, lambda text, reg: narrow.pack_float(text, reg, layout, saturate))
        return super().pack(x, layout) if layout.bias == 127 else narrow.pack_float(self.text, x, layout)

    def _shared(self, name: str, x: Reg, elem: str, layout: FloatLayout, write: Callable[[Builder, Reg], Reg]) -> Reg:
        """Call a conversion that is in the program once, because a DPU's program memory is small."""
        function = f"__foundry_{name}_{layout.bits}_{layout.mantissa}_{layout.bias}"
        return self.text.call_own(function, [x], elem, lambda text, args: write(text, args[0]))

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """Write a function of OpenCL C with what a DPU has."""
        if args[0].elem == "f32" and name == "fma":
            return self._fused(*args)
        return self.own(name, args)

    def own(self, name: str, args: Sequence[Reg], elem: str = "") -> Reg:
        """Call a function of foundry_core.functions. It is not inlined, because a DPU's program memory is small."""
        return call_function(self.text, name, elem or next(arg.elem for arg in args if arg.is_float), args)

    def _fused(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """Return a * b + c rounded once: the product is exact in f64; the sum is rounded to odd first.

        For the rounding to odd, see Boldo and Melquiond, 2008.
        """
        t = self.text
        x, y, z = (t.cast("arith.extf", arg, "f64") for arg in (a, b, c))
        product = t.binary("arith.mulf", x, y)
        total = t.binary("arith.addf", product, z)
        # Knuth's two-sum: the exact rounding error of the sum.
        back = t.binary("arith.subf", total, product)
        rest = t.binary(
            "arith.addf",
            t.binary("arith.subf", product, t.binary("arith.subf", total, back)),
            t.binary("arith.subf", z, back),
        )
        bits = t.cast("arith.bitcast", total, "i64")
        zero = t.float_constant(0.0, "f64")
        even = t.compare("eq", t.binary("arith.andi", bits, t.integer(1, "i64")), t.integer(0, "i64"))
        inexact = t.binary("arith.andi", even, t.compare("one", rest, zero))
        outwards = t.compare("eq", t.compare("ogt", rest, zero), t.compare("ogt", total, zero))
        odd = t.binary("arith.addi", bits, t.select(outwards, t.integer(1, "i64"), t.integer(-1, "i64")))
        return t.cast("arith.truncf", t.cast("arith.bitcast", t.select(inexact, odd, bits), "f64"), "f32")


def _signed_digits(number: int) -> int:
    """Return the fewest powers of 2 of which sums and differences make the number."""
    return (number ^ 3 * number).bit_count()
