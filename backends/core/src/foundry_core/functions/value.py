"""The numbers with which functions compute."""

from __future__ import annotations

from dataclasses import dataclass

from ..emit.builder import Builder
from ..emit.mlir import WIDTHS, Reg


@dataclass(frozen=True)
class Value:
    """A register with Python's operators. A Python number as the other operand becomes a constant of its type."""

    text: Builder
    reg: Reg

    def like(self, other: Value | float) -> Value:
        """Return a number as a constant of this type; a Value is returned unchanged."""
        if isinstance(other, Value):
            return other
        reg = self.reg
        if reg.is_float:
            return Value(self.text, self.text.float_constant(float(other), reg.elem, reg.lanes))
        return Value(self.text, integer(self.text, int(other), reg.elem, reg.lanes))

    def binary(self, float_name: str, integer_name: str, other: Value | float, *, swapped: bool = False) -> Value:
        x, y = (self.like(other), self) if swapped else (self, self.like(other))
        name = float_name if self.reg.is_float else integer_name
        return Value(self.text, self.text.binary(f"arith.{name}", x.reg, y.reg))

    def __add__(self, other: Value | float) -> Value:
        return self.binary("addf", "addi", other)

    __radd__ = __add__

    def __sub__(self, other: Value | float) -> Value:
        return self.binary("subf", "subi", other)

    def __rsub__(self, other: float) -> Value:
        return self.binary("subf", "subi", other, swapped=True)

    def __mul__(self, other: Value | float) -> Value:
        return self.binary("mulf", "muli", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Value | float) -> Value:
        return self.binary("divf", "", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.binary("divf", "", other, swapped=True)

    def __and__(self, other: Value | int) -> Value:
        return self.binary("", "andi", other)

    def __or__(self, other: Value | int) -> Value:
        return self.binary("", "ori", other)

    def __xor__(self, other: Value | int) -> Value:
        return self.binary("", "xori", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self.binary("", "shli", other)

    def __rshift__(self, other: Value | int) -> Value:
        return self.binary("", "shrsi", other)

    def compare(self, float_predicate: str, integer_predicate: str, other: Value | float) -> Value:
        predicate = float_predicate if self.reg.is_float else integer_predicate
        return Value(self.text, self.text.compare(predicate, self.reg, self.like(other).reg))

    def __lt__(self, other: Value | float) -> Value:
        return self.compare("olt", "slt", other)

    def __le__(self, other: Value | float) -> Value:
        return self.compare("ole", "sle", other)

    def __gt__(self, other: Value | float) -> Value:
        return self.compare("ogt", "sgt", other)

    def __ge__(self, other: Value | float) -> Value:
        return self.compare("oge", "sge", other)


def integer(text: Builder, value: int, elem: str, lanes: int) -> Reg:
    """Return an integer constant with the lowest bits of a number."""
    if elem == "i1":
        return text.integer(value, elem, lanes)
    half = 1 << (WIDTHS[elem] - 1)
    return text.integer((value + half) % (2 * half) - half, elem, lanes)
