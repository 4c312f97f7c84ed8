"""Runs of neighbours in an invocation's registers: which of them are one register plus a constant.

analysis/axes.py says which neighbours of a tile are consecutive or equal. Here is which registers that makes one, and
which hopes of a launch are worth a second copy of the kernel.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...analysis.axes import Axes, Fact, Hope
from ...analysis.integers import integer_bits
from ...ir import tt
from ...ir.arith import ConstantOp, SelectOp
from ...ir.elements import extents
from ...ops.elementwise import is_elementwise
from .layouts import Layout

# For each register, the one that it is a constant away from, and the constant.
Derived = tuple[tuple[int, int], ...]
# Operations after which a register that was a sum is no longer one, whatever is known of it.
_BENT = (arith.RemSIOp, arith.RemUIOp, arith.DivSIOp, arith.DivUIOp, arith.ShRSIOp, arith.ShRUIOp, arith.AndIOp)
_BENT_TOO = (arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp, SelectOp)
# What a program is told.
_GIVEN = (ConstantOp, tt.GetProgramIdOp, tt.GetNumProgramsOp)
_HINTS = ("tt.contiguity", "tt.constancy", "tt.divisibility")
# Nobody hopes for more: what is a multiple of 16, Triton says itself.
_MOST_HOPED = 8


@functools.lru_cache(4096)
def derived(layout: Layout, consecutive: tuple[int, ...], equal: tuple[int, ...]) -> Derived:
    """Return which registers follow from others, in a tile with such runs along its dimensions."""
    masks = []
    for d, (run, same) in enumerate(zip(consecutive, equal, strict=True)):
        stride = prod(layout.shape[d + 1 :])
        # Bits of an index in which only registers differ: there it is a sum.
        mask = (max(run, same) - 1) * stride & ~layout.invocation_bits
        masks.append((mask, stride if run > same else 0))
    found = []
    for number, offset in enumerate(layout.offsets):
        kept = offset & ~sum(mask for mask, _ in masks)
        more = sum((offset & mask) // stride for mask, stride in masks if stride)
        found.append((layout.register_of[kept], more) if kept in layout.register_of else (number, 0))
    return tuple(found)


def divisor_of_first(layout: Layout, fact: Fact) -> int:
    """Return what divides each register from which others are derived."""
    varying = layout.invocation_bits
    for first, _ in derived(layout, fact.consecutive, fact.equal):
        varying |= layout.offsets[first]
    found = 1
    for d, extent in enumerate(layout.shape):
        index = varying // prod(layout.shape[d + 1 :]) % extent
        found = max(found, fact.divisor_at(d, index & -index or extent))
    return found


def _bent(function: tt.FuncOp) -> list[SSAValue]:
    """Return the tiles of integers whose runs the writer of sums cannot see."""
    found: list[SSAValue] = []
    for op in function.body.walk():
        if isinstance(op, _BENT + _BENT_TOO) or any(hint in op.attributes for hint in _HINTS):
            found += [value for value in op.results if _is_tile(value)]
    return found


def _is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and integer_bits(value.type) not in (None, 1)


class Runs:
    """What is known of the values of a kernel, and of what a launch may turn out to be.

    Attributes:
        certain: what is known in any case; nothing if writing sums is enough.
        hopes: what must hold for `hoped`; none if that says no more.
        hoped: what is known then.
    """

    def __init__(self, function: tt.FuncOp, layout: Callable[[SSAValue], Layout]) -> None:
        self._function = function
        self._bent = {value: layout(value) for value in _bent(function)}
        self._accesses = [
            op
            for op in function.body.walk()
            if isinstance(op, tt.LoadOp | tt.StoreOp) and isinstance(op.ptr.type, TensorType)
        ]
        self._layout = layout
        self.certain: dict[SSAValue, Fact] = {}
        self.hoped: dict[SSAValue, Fact] = {}
        self.hopes: list[Hope] = []
        most = max((_most_derived(each) for each in self._bent.values()), default=1)
        if most == 1:
            return
        self.certain = Axes(function).values
        hopes = _all_hopes(function, min(most, _MOST_HOPED))
        best = self._with(hopes)
        if self._runs(best) == self._runs(self.certain):
            return
        for hope in list(hopes):
            fewer = [other for other in hopes if other != hope]
            facts = self._with(fewer)
            if self._runs(facts) == self._runs(best) and self._widths(facts) == self._widths(best):
                hopes = fewer
        self.hopes, self.hoped = hopes, self._with(hopes)

    def _with(self, hopes: Sequence[Hope]) -> dict[SSAValue, Fact]:
        return Axes(self._function, hopes).values

    def _runs(self, facts: Mapping[SSAValue, Fact]) -> list[Derived]:
        return [derived(layout, facts[value].consecutive, facts[value].equal) for value, layout in self._bent.items()]

    def _widths(self, facts: Mapping[SSAValue, Fact]) -> list[Derived]:
        """Return which registers each access has in one instruction, as far as is known from here."""
        found = []
        for op in self._accesses:
            layout, ones = self._layout(op.ptr), [1] * len(extents(op.ptr))
            pointer, mask = facts[op.ptr], None if op.mask is None else facts[op.mask]
            runs = [min(pointer.aligned(d), mask.equal[d] if mask else pointer.aligned(d)) for d in range(len(ones))]
            found.append(derived(layout, tuple(runs), tuple(ones)))
        return found


def _most_derived(layout: Layout) -> int:
    """Return how many registers of a tile may be one run along a dimension."""
    ones, found = [1] * len(layout.shape), 1
    for d, extent in enumerate(layout.shape):
        runs = derived(layout, (*ones[:d], extent, *ones[d + 1 :]), tuple(ones))
        found = max(found, max(Counter(first for first, _ in runs).values()))
    return found


def _all_hopes(function: tt.FuncOp, multiple: int) -> list[Hope]:
    hopes = []
    for argument in function.body.block.args:
        if (integer_bits(argument.type) or 0) >= 32:
            hopes += [Hope("multiple", argument, multiple), Hope("natural", argument)]
    axes = {
        op.axis.value.data for op in function.body.walk() if isinstance(op, tt.GetProgramIdOp | tt.GetNumProgramsOp)
    }
    hopes += [Hope("programs", axis) for axis in sorted(axes)]
    # Where a block begins is often a quotient by a number of which nobody says that it is positive.
    known = Axes(function, hopes).values
    starts = (op.src for op in function.body.block.ops if isinstance(op, tt.SplatOp))
    return hopes + [
        Hope("natural", start)
        for start in dict.fromkeys(starts)
        if (integer_bits(start.type) or 0) >= 32 and known[start].range.low < 0 and early(start) is not None
    ]


def early(value: SSAValue) -> list[Operation] | None:
    """Return what computes a scalar from a kernel's arguments and the program's ids; None if it takes more."""
    found: list[Operation] = []
    needed, op = {value}, value.owner
    if isinstance(op, Block):
        return [] if isinstance(op.parent_op(), tt.FuncOp) else None
    at: Operation | None = op
    while at is not None:
        if any(result in needed for result in at.results):
            if not (is_elementwise(at) or isinstance(at, _GIVEN)):
                return None
            found.append(at)
            needed.update(at.operands)
        at = at.prev_op
    return found[::-1]
