"""What arithmetic is written through: the rows of ops/, foundry_core/functions and numeric.py know nothing else.

mlir.Text writes MLIR, mapping/simt/spirv/instructions.Code writes SPIR-V. Operations have MLIR's names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .mlir import WIDTHS, Reg


class Builder(Protocol):
    """A function body that grows operation by operation; operands of an operation have the same number of lanes.

    Attributes:
        index: the integer type of indices and offsets.
    """

    index: str

    def unary(self, name: str, x: Reg) -> Reg: ...

    def binary(self, name: str, x: Reg, y: Reg) -> Reg: ...

    def cast(self, name: str, x: Reg, elem: str) -> Reg: ...

    def compare(self, predicate: str, x: Reg, y: Reg) -> Reg: ...

    def select(self, condition: Reg, x: Reg, y: Reg) -> Reg: ...

    def leading_zeros(self, x: Reg) -> Reg:
        """Count leading zeros of an integer; 0 has as many as the type has bits."""

    def integer(self, value: int, elem: str = "", lanes: int = 1) -> Reg:
        """Return an integer constant; an index if no type is given."""

    def float_constant(self, value: float, elem: str, lanes: int = 1) -> Reg:
        """Return a float constant with exactly this value."""

    def choose(self, condition: Reg, then: Callable[[], Reg], otherwise: Callable[[], Reg]) -> Reg:
        """Write a branch with one result."""

    def repeat(self, count: Reg, values: Sequence[Reg], body: Callable[[Sequence[Reg]], Sequence[Reg]]) -> list[Reg]:
        """Write a loop that carries registers for `count` iterations; return their final values."""

    def call_own(
        self, function: str, args: Sequence[Reg], elem: str, write: Callable[[Builder, Sequence[Reg]], Reg]
    ) -> Reg:
        """Call a function that is defined in this module; `write` writes its body, once."""


def count_bits(t: Builder, x: Reg) -> Reg:
    """Count the bits that are set: add neighbouring fields, whose width doubles each time."""
    width = WIDTHS[x.elem]

    def spread(byte: int) -> Reg:
        value = int.from_bytes(bytes([byte]) * (width // 8), "big")
        return t.integer(value - (1 << width) * (value >> (width - 1)), x.elem, x.lanes)

    def and_(a: Reg, b: Reg) -> Reg:
        return t.binary("arith.andi", a, b)

    def shifted(a: Reg, by: int) -> Reg:
        return t.binary("arith.shrui", a, t.integer(by, x.elem, x.lanes))

    pairs = t.binary("arith.subi", x, and_(shifted(x, 1), spread(0x55)))
    fours = t.binary("arith.addi", and_(pairs, spread(0x33)), and_(shifted(pairs, 2), spread(0x33)))
    bytes_ = and_(t.binary("arith.addi", fours, shifted(fours, 4)), spread(0x0F))
    return shifted(t.binary("arith.muli", bytes_, spread(0x01)), width - 8)
