"""Arithmetic where there is no library: functions of f32 as polynomials, which mlir-opt makes, and f32's fused add."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import Operation

from ..errors import unsupported
from ..workitem.mlir import Reg
from ..workitem.numeric import LIBRARY, Numeric

# What mlir-opt expands (tools.py) and library.ll completes.
_EXPANDED: set[type[Operation]] = {
    math.ExpOp, math.Exp2Op, math.ExpM1Op, math.LogOp, math.Log2Op, math.Log1pOp, math.SqrtOp, math.RsqrtOp, math.SinOp,
    math.CosOp, math.TanOp, math.AtanOp, math.Atan2Op, math.SinhOp, math.CoshOp, math.TanhOp, math.ErfOp, math.FloorOp,
    math.CeilOp, math.TruncOp, math.RoundOp, math.RoundEvenOp, math.CopySignOp,
}  # fmt: skip


class TaskletNumeric(Numeric):
    """Writes arithmetic to a Text."""

    def _apply(self, op: Operation, args: Sequence[Reg], elem: str) -> Reg:
        if type(op) in LIBRARY:
            if type(op) not in _EXPANDED or args[0].elem != "f32":
                raise unsupported(op, f"on elements of type {elem}: a DPU has no library with that function")
            operands = ", ".join(arg.name for arg in args)
            return self.text.op(f"{op.name} {operands} : {args[0].type}", args[0].elem)
        return super()._apply(op, args, elem)

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """The two functions that Numeric asks for by OpenCL's names."""
        if name == "sqrt" and args[0].elem == "f32":
            return self.text.op(f"math.sqrt {args[0].name} : f32", "f32")
        if name == "fma" and args[0].elem == "f32":
            return self._fused(*args)
        raise NotImplementedError(f"{name} of {args[0].elem}")

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
