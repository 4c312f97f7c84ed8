"""What writes one invocation: its instructions, its arithmetic, its workgroup's memory, and where its elements are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...emit.mlir import Reg
from . import layouts
from .arena import Arena
from .kernel import KernelWorkgroup
from .numeric import SimtNumeric
from .shader import ShaderWorkgroup
from .target import SimtTarget
from .workgroup import Workgroup

_FLAVOURS: dict[str, Callable[[SimtTarget], Workgroup]] = {"shader": ShaderWorkgroup, "kernel": KernelWorkgroup}


class Invocation:
    """One invocation of a kernel.

    Attributes:
        group: the workgroup, and the SPIR-V written so far.
        code: the same as group.code.
        arena: workgroup memory.
    """

    def __init__(self, target: SimtTarget) -> None:
        self.target = target
        self.group = _FLAVOURS[target.flavour](target)
        self.code = self.group.code
        self.numeric = SimtNumeric(self.code, target)
        self.arena = Arena(target.workgroup_bytes)

    def combine_bases(self, bases: Sequence[int], number: Reg) -> Reg:
        """Return the exclusive or of the bases whose bits are set in a lane's or warp's number, an i32."""
        t = self.code
        total = t.integer(0, "i32")
        bit = 0
        while bit < len(bases):
            # A run of bits that move together by doubling distances is shifted as a whole. Distances of several bits
            # would overlap, and their exclusive or is no product.
            run, single = 1, bases[bit] & bases[bit] - 1 == 0
            while single and bit + run < len(bases) and bases[bit + run] == bases[bit + run - 1] * 2:
                run += 1
            if bases[bit]:
                part = number
                if bit:
                    part = t.binary("arith.shrui", part, t.integer(bit, "i32"))
                if bit + run < len(bases):
                    part = t.binary("arith.andi", part, t.integer((1 << run) - 1, "i32"))
                part = t.binary("arith.muli", part, t.integer(bases[bit], "i32"))
                total = self.exclusive_or(total, part, bases[:bit], bases[bit : bit + run])
            bit += run
        return total

    def exclusive_or(self, x: Reg, y: Reg, xs: Sequence[int], ys: Sequence[int]) -> Reg:
        """Return the exclusive or of two numbers, as a sum if they have no bit in common."""
        common = layouts.union_bits(xs) & layouts.union_bits(ys)
        return self.code.binary("arith.xori" if common else "arith.addi", x, y)

    def first_index(self, layout: layouts.Layout) -> Reg:
        """Return the row-major index of this invocation's element in register 0, an i32."""
        lanes = self.combine_bases(layout.lanes, self.group.lane())
        warps = self.combine_bases(layout.warps, self.group.warp())
        return self.exclusive_or(lanes, warps, layout.lanes, layout.warps)

    def indices(self, layout: layouts.Layout, registers: Sequence[int] | None = None) -> list[Reg]:
        """Return the row-major index of the elements of some registers, an i32. Default: of all."""
        t, first = self.code, self.first_index(layout)
        shared = layouts.union_bits(layout.registers) & layout.invocation_bits
        name = "arith.xori" if shared else "arith.addi"
        offsets = layout.offsets if registers is None else [layout.offsets[number] for number in registers]
        return [t.binary(name, first, t.integer(offset, "i32")) for offset in offsets]
