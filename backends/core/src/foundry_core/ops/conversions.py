"""Conversions of numbers that Triton's IR keeps in integers: they are calls of external functions with these names.

`fp8e4b15` is an i8 in Triton's IR (backend/compiler.py makes the calls); operands of tl.dot_scaled have `e2m1`, in the
lower 4 bits of an i8, and scales `e8m0` (front/scaled.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ..emit.mlir import Reg
from ..scalars import E2M1, E4B15
from .numeric import Numeric


def _scale(n: Numeric, x: Reg) -> Reg:
    """Convert the exponent of a power of two: 2^(x - 127); 255 is NaN (OCP Microscaling Formats, version 1.0)."""
    t = n.text

    def integer(value: int) -> Reg:
        return t.integer(value, "i32", x.lanes)

    wide = t.cast("arith.extui", x, "i32")
    # 2^-127 is a subnormal f32.
    found = t.select(t.compare("eq", wide, integer(0)), integer(1 << 22), t.binary("arith.shli", wide, integer(23)))
    nan = integer(0x7FC00000)
    return t.cast("arith.bitcast", t.select(t.compare("eq", wide, integer(0xFF)), nan, found), "f32")


# A function's argument is a register; floats of 8 and 16 bits are in f32.
FUNCTIONS: dict[str, Callable[[Numeric, Reg], Reg]] = {
    "__foundry_e2m1_to_fp32": lambda n, x: n.unpack(x, E2M1),
    "__foundry_e8m0_to_fp32": _scale,
    "__foundry_fp8e4b15_to_fp32": lambda n, x: n.unpack(x, E4B15),
    "__foundry_to_fp8e4b15_rtne": lambda n, x: n.narrow(x, E4B15),
    "__foundry_to_fp8e4b15_rtz": lambda n, x: n.narrow(x, E4B15, "rtz"),
}
