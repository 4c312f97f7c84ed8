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
from xdsl.ir import Operation, OpResult, SSAValue

from ...analysis.axes import Axes, Fact, Hope
from ...analysis.integers import integer_bits
from ...ir import tt
from ...ir.arith import ConstantOp, SelectOp
from ...ir.effects import writes
from ...ir.elements import extents
from ...ops.elementwise import is_elementwise
from .layouts import Layout

# For each register, the one that it is a constant away from, and the constant.
Derived = tuple[tuple[int, int], ...]
# Operations after which a register that was a sum is no longer one, whatever is known of it.
_BENT = (
    *(arith.RemSIOp, arith.RemUIOp, arith.DivSIOp, arith.DivUIOp, arith.ShRSIOp, arith.ShRUIOp, arith.AndIOp),
    *(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp, SelectOp),
)
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
        if isinstance(op, _BENT) or any(hint in op.attributes for hint in _HINTS):
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
        start: operations that make the scalars that are hoped for.
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
        self.start: list[Operation] = []
        most = max((_most_derived(each) for each in self._bent.values()), default=1)
        if most == 1:
            return
        self.certain = Axes(function).values
        start = _start(function)
        hopes = _all_hopes(function, start, min(most, _MOST_HOPED))
        best = self._with(hopes)
        if self._runs(best) == self._runs(self.certain):
            return
        wanted = self._runs(best), self._widths(best)

        def are_enough(hopes: Sequence[Hope]) -> bool:
            facts = self._with(hopes)
            return (self._runs(facts), self._widths(facts)) == wanted

        self.hopes = _fewest(hopes, are_enough)
        self.hoped = self._with(self.hopes)
        if any(isinstance(hope.value, OpResult) for hope in self.hopes):
            self.start = start

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


def _start(function: tt.FuncOp) -> list[Operation]:
    """Return operations at the start of a kernel on scalars that follow from arguments and the place in the grid.

    Behind an operation that may end the program, or that has regions, others might not be executed.
    """
    found: list[Operation] = []
    known: set[SSAValue] = set(function.body.block.args)
    for op in function.body.block.ops:
        if op.regions or writes(op):
            break
        plain = is_elementwise(op) or isinstance(op, ConstantOp | tt.GetProgramIdOp | tt.GetNumProgramsOp)
        if plain and known.issuperset(op.operands) and integer_bits(op.results[0].type) and not _is_tile(op.results[0]):
            found.append(op)
            known.update(op.results)
    return found


def _all_hopes(function: tt.FuncOp, start: Sequence[Operation], multiple: int) -> list[Hope]:
    """Return all hopes. The first ones are preferred."""
    made = [op.results[0] for op in start if not isinstance(op, ConstantOp)]
    # Of scalars that only make others, nothing is asked.
    numbers = [value for value in made if any(use.operation not in start for use in value.uses)]
    arguments = list(function.body.block.args)
    wide = [value for value in (*numbers, *arguments) if (integer_bits(value.type) or 0) >= 32]
    naturals = [Hope("natural", value) for value in wide]
    return [*naturals, *(Hope("multiple", value, multiple) for value in wide if value in arguments)]


def _fewest(
    hopes: Sequence[Hope], are_enough: Callable[[Sequence[Hope]], bool], others: tuple[Hope, ...] = ()
) -> list[Hope]:
    """Return as few of some hopes as are enough together with others, of which halves are tried first."""
    if are_enough(others):
        return []
    if len(hopes) == 1:
        return list(hopes)
    first, second = hopes[: len(hopes) // 2], hopes[len(hopes) // 2 :]
    found = _fewest(second, are_enough, (*others, *first))
    return [*_fewest(first, are_enough, (*others, *found)), *found]
