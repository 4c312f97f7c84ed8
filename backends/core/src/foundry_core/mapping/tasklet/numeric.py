"""Arithmetic on a device with software floats: functions of f32 in basic arithmetic, and a fused multiply-add.

It also avoids needless conversions of f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from ...errors import unsupported
from ...functions.registers import call
from ...functions.table import F32_ONLY, FUNCTIONS
from ...ops.elementwise import Row
from ..base.mlir import Reg, Text
from ..base.numeric import Numeric, in_register
from . import half


class TaskletNumeric(Numeric):
    """Writes arithmetic to a Text."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        # For registers that hold a number of a narrow type as f32: the register of its bits, if known.
        self._packed: dict[tuple[Reg, str], Reg] = {}

    def from_memory(self, x: Reg, elem: str) -> Reg:
        value = super().from_memory(x, elem)
        if in_register(elem) != elem:
            self._packed[value, elem] = x
        return value

    def to_memory(self, x: Reg, elem: str) -> Reg:
        return self._packed[x, elem] if (x, elem) in self._packed else super().to_memory(x, elem)

    def rounded(self, x: Reg, elem: str) -> Reg:
        return self.from_memory(self.to_memory(x, elem), elem) if in_register(elem) != elem else x

    def _unpack_f16(self, x: Reg) -> Reg:
        return half.unpack(self.text, x)

    def _pack_f16(self, x: Reg) -> Reg:
        return half.pack(self.text, x)

    def _apply(self, row: Row, op: Operation, args: Sequence[Reg]) -> Reg:
        try:
            return super()._apply(row, op, args)
        except NotImplementedError as missing:
            raise unsupported(op, f"{missing}: a DPU has no library with that function") from missing

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """Write a function of OpenCL C with what a DPU has.

        Raises:
            NotImplementedError: names a function that a DPU does not have.
        """
        elem = args[0].elem
        if elem == "f32" and name == "fma":
            return self._fused(*args)
        if name in FUNCTIONS and (elem == "f32" or name not in F32_ONLY):
            return self.own(name, args)
        raise NotImplementedError(f"{name} of {elem}")

    def remainder(self, x: Reg, y: Reg) -> Reg:
        return self.library("fmod", [x, y])

    def own(self, name: str, args: Sequence[Reg]) -> Reg:
        """Call a function of foundry_core.functions. It is not inlined, because a DPU's program memory is small."""
        return call(self.text, name, args[0].elem, args)

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
        zero = t.floating(0.0, "f64")
        even = t.compare("eq", t.binary("arith.andi", bits, t.integer(1, "i64")), t.integer(0, "i64"))
        inexact = t.binary("arith.andi", even, t.compare("one", rest, zero))
        outwards = t.compare("eq", t.compare("ogt", rest, zero), t.compare("ogt", total, zero))
        odd = t.binary("arith.addi", bits, t.select(outwards, t.integer(1, "i64"), t.integer(-1, "i64")))
        return t.cast("arith.truncf", t.cast("arith.bitcast", t.select(inexact, odd, bits), "f64"), "f32")
