"""Arithmetic where floats are software: functions of f32 as polynomials, which mlir-opt makes, f32's fused add, and
what spares conversions of f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log as math_log

from xdsl.dialects import math
from xdsl.ir import Operation

from ...errors import unsupported
from ...ops.elementwise import ROWS, OnDpu, Row
from ..base.mlir import Reg, Text
from ..base.numeric import Numeric, element, in_register
from . import half

# Of functions that rows are written with, by OpenCL's names, those that mlir-opt expands (tools.py) and library.ll
# completes.
_EXPANDED = {row.opencl: row.operation.name for row in ROWS if row.on_dpu is OnDpu.EXPANDED}


class TaskletNumeric(Numeric):
    """Writes arithmetic to a Text."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        # The bits of numbers of a narrow type that are known to be in a register, as f32, too.
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
        match row.on_dpu:
            case OnDpu.SAME:
                try:
                    return super()._apply(row, op, args)
                except NotImplementedError as missing:
                    raise unsupported(op, f"{missing}: a DPU has no library with that function") from missing
            case OnDpu.POWER_OF_TWO if args[0].elem == "f32":
                return self._power_of_two(args[0])
            case OnDpu.EXPANDED if args[0].elem == "f32":
                return self._expanded(op.name, args)
        elem = element(op.results[0].type, op)
        raise unsupported(op, f"on elements of type {elem}: a DPU has no library with that function")

    def _expanded(self, operation: str, args: Sequence[Reg]) -> Reg:
        t, x = self.text, args[0]
        found = t.op(f"{operation} {', '.join(arg.name for arg in args)} : f32", "f32")
        if operation != math.CeilOp.name:
            return found
        # MLIR's expansion goes by way of an integer: -0 has none, nor have NaN and infinities.
        sign = t.binary("arith.andi", t.cast("arith.bitcast", x, "i32"), t.integer(-(1 << 31), "i32"))
        signed = t.binary("arith.ori", t.cast("arith.bitcast", found, "i32"), sign)
        found = t.cast("arith.bitcast", signed, "f32")
        return t.select(t.compare("olt", self.absolute(x), t.floating(2.0**23, "f32")), found, x)

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """What there is of the functions that Numeric asks for by OpenCL's names.

        Raises:
            NotImplementedError: names one that there is not.
        """
        if name in _EXPANDED and args[0].elem == "f32":
            return self._expanded(_EXPANDED[name], args)
        if name == "fma" and args[0].elem == "f32":
            return self._fused(*args)
        raise NotImplementedError(f"{name} of {args[0].elem}")

    def _power_of_two(self, x: Reg) -> Reg:
        """2^x as 2^k e^((x - k) ln 2), k the nearest integer: MLIR's e^(x ln 2) errs by x times as much."""
        t = self.text
        # 2^129 is infinite in f32, 2^-151 is 0; in between, all is exact but e^... and the last multiplication.
        low, high = t.floating(-151.0, "f32"), t.floating(129.0, "f32")
        within = t.select(t.compare("olt", x, low), low, t.select(t.compare("ogt", x, high), high, x))
        k = t.op(f"math.floor {t.binary('arith.addf', within, t.floating(0.5, 'f32')).name} : f32", "f32")
        rest = t.binary("arith.mulf", t.binary("arith.subf", within, k), t.floating(math_log(2.0), "f32"))
        power = t.op(f"math.exp {rest.name} : f32", "f32")
        whole = t.cast("arith.fptosi", k, "i32")
        # Twice half of it: no exponent of f32 reaches from -151 to 129.
        half = t.binary("arith.shrsi", whole, t.integer(1, "i32"))
        for part in (half, t.binary("arith.subi", whole, half)):
            exponent = t.binary("arith.shli", t.binary("arith.addi", part, t.integer(127, "i32")), t.integer(23, "i32"))
            power = t.binary("arith.mulf", power, t.cast("arith.bitcast", exponent, "f32"))
        return t.select(t.compare("uno", x, x), x, power)

    def _fused(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """a * b + c rounded once: the product fits f64; the sum is rounded to odd first (Boldo and Melquiond, 2008)."""
        t = self.text
        x, y, z = (t.cast("arith.extf", arg, "f64") for arg in (a, b, c))
        product = t.binary("arith.mulf", x, y)
        total = t.binary("arith.addf", product, z)
        # Knuth's two-sum: what the rounding of the sum left out, exactly.
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
