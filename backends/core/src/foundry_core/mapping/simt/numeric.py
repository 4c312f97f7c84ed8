"""Arithmetic of one invocation: what foundry_core/mapping/base/numeric.py writes, with the device's conversions of f16."""

from __future__ import annotations

from collections.abc import Sequence

from ...functions.registers import inline
from ..base.mlir import Reg
from ..base.numeric import Numeric
from .code import Code

# Instructions of GLSL.std.450 that are exact.
_EXACT = {"floor": 8, "ceil": 9, "trunc": 3, "rint": 2}
_SQRT, _FMA = 31, 50


class SimtNumeric(Numeric):
    """Writes arithmetic to a Code."""

    text: Code  # type: ignore[assignment]

    def __init__(self, code: Code) -> None:
        super().__init__(code)  # type: ignore[arg-type]

    def from_memory(self, x: Reg, elem: str) -> Reg:
        return self.text.cast("arith.extf", x, "f32") if elem == "f16" else super().from_memory(x, elem)

    def to_memory(self, x: Reg, elem: str) -> Reg:
        return self.text.cast("arith.truncf", x, "f16") if elem == "f16" else super().to_memory(x, elem)

    def rounded(self, x: Reg, elem: str) -> Reg:
        if elem == "f16":
            return self.text.cast("arith.extf", self.text.cast("arith.truncf", x, "f16"), "f32")
        return super().rounded(x, elem)

    def library(self, name: str, args: Sequence[Reg]) -> Reg:
        """Write a function: an instruction where the device's is exact, else one of foundry_core.functions."""
        if name == "fma":
            return self.text.extended(_FMA, *args)
        if name in _EXACT:
            return self.text.extended(_EXACT[name], *args)
        if name == "sqrt":
            return self.text.extended(_SQRT, *args)
        elem = next(arg.elem for arg in args if arg.is_float)
        return inline(self.text, name, elem, args, lambda x: self.text.extended(_SQRT, x))  # type: ignore[arg-type]

    def turned(self, name: str, x: Reg) -> Reg:
        return self.library(name, [x])
