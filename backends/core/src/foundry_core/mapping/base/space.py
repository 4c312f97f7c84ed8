"""Index spaces: points in them, loops over them, and the arithmetic of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue

from ...emit.mlir import Reg, Text

# The values already evaluated within one loop body, by value and point.
Memo: TypeAlias = dict[tuple[SSAValue, tuple[Reg, ...], int, int], Reg]


@dataclass(frozen=True)
class Point:
    """A position in an index space, `lanes` elements long along dimension `lane`.

    Attributes:
        index: the index of the first element in each dimension.
        inside: the tile.range values that are known to contain all the elements. They belong to this index space, or to
            that of a tile with fewer elements that is broadcast to it. The operand of a transpose has none, because a
            mask of a square may be used in both spaces.
    """

    index: tuple[Reg, ...]
    lane: int
    lanes: int
    inside: frozenset[SSAValue] = frozenset()


class Space:
    """Writes loops and index arithmetic to a Text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._steps: dict[Reg, tuple[Reg, int]] = {}

    def step(self, x: Reg, number: int) -> Reg:
        """Return x + number; if addresses are split, record the sum for `parts`."""
        if number == 0:
            return x
        total = self.plus(x, self.text.integer(number))
        if self.text.split_addresses:
            self._steps[total] = (x, number)
        return total

    def parts(self, x: Reg) -> tuple[Reg, int]:
        """Return an index as a register and the constant that `step` added to it."""
        return self._steps.get(x, (x, 0))

    def known(self, x: Reg, number: int) -> bool:
        """Return whether an index is this constant. Arithmetic with constants is omitted, to keep the text short."""
        return x == self.text.integer(number)

    def plus(self, x: Reg, y: Reg) -> Reg:
        if self.known(x, 0):
            return y
        return x if self.known(y, 0) else self.text.binary("arith.addi", x, y)

    def times(self, x: Reg, y: Reg) -> Reg:
        if self.known(x, 0) or self.known(y, 0):
            return self.text.integer(0)
        if self.known(x, 1):
            return y
        return x if self.known(y, 1) else self.text.binary("arith.muli", x, y)

    def unfold(self, linear: Reg, shape: Sequence[int]) -> tuple[Reg, ...]:
        """Return the index of the element that has a place in row-major order."""
        index: list[Reg] = []
        for extent in reversed(shape):
            index.insert(0, self.text.binary("arith.remui", linear, self.text.integer(extent)))
            linear = self.text.binary("arith.divui", linear, self.text.integer(extent))
        return tuple(index)

    @contextmanager
    def barriers(self) -> Iterator[None]:
        """Surround writes to memory that all of a program's work-items see; here a program is one work-item."""
        yield

    @contextmanager
    def single_work_item(self) -> Iterator[None]:
        """Surround code that one work-item of a program executes for all of them."""
        yield

    @contextmanager
    def iterate(self, shape: tuple[int, ...], lane: int, lanes: int) -> Iterator[Point]:
        """Loop over a whole index space, `lanes` elements at a time along one dimension; `lanes` divides its extent."""
        t = self.text
        limits = [(t.integer(0), t.integer(extent)) for extent in shape]
        with self.barriers(), self.nest(limits, shape, lane, lanes) as index:
            yield Point(index, lane, lanes)

    @contextmanager
    def nest(
        self, limits: Sequence[tuple[Reg, Reg]], shape: tuple[int, ...], lane: int, lanes: int
    ) -> Iterator[tuple[Reg, ...]]:
        """Open one loop per dimension, the one along the lanes innermost; no loop for a dimension of one step."""
        order = [d for d in range(len(shape)) if d != lane] + ([lane] if shape else [])
        with self.loops(limits, [lanes if d == lane else 1 for d in range(len(shape))], order) as index:
            yield index

    @contextmanager
    def loops(
        self, limits: Sequence[tuple[Reg, Reg]], steps: Sequence[int], order: Sequence[int]
    ) -> Iterator[tuple[Reg, ...]]:
        """Open nested loops over (low, high) limits, outermost first in the given order; no loop for a single step."""
        index: list[Reg] = [self.text.integer(0)] * len(limits)
        needed = [d for d in order if not (self.known(limits[d][0], 0) and self.known(limits[d][1], steps[d]))]
        with ExitStack() as opened:
            if not needed:
                opened.enter_context(self.first_work_item())
            for d in needed:
                loop = self.shared_loop if d == needed[0] else self.text.loop
                index[d] = opened.enter_context(loop(*limits[d], steps[d]))
            yield tuple(index)

    def shared_loop(self, low: Reg, high: Reg, step: int) -> AbstractContextManager[Reg]:
        """Open the outermost loop of a nest, whose iterations the work-items of a program share."""
        return self.text.loop(low, high, step)

    def first_work_item(self) -> AbstractContextManager[None]:
        """Open a nest without loops; one work-item executes it."""
        return nullcontext()

    def each_within(
        self,
        limits: Sequence[tuple[Reg, Reg]],
        shape: tuple[int, ...],
        lane: int,
        lanes: int,
        inside: frozenset[SSAValue],
        body: Callable[[Point], None],
        partly: frozenset[SSAValue] | None = None,
    ) -> None:
        """Run a body for the indices within (low, high) limits: whole vectors first, then what is left.

        Args:
            inside: the tile.range values that the limits come from; passed to the points.
            partly: those of a vector that is partly within the limits, if the body takes one; else it gets single
                elements.
        """
        with self.barriers():
            self._each_within(limits, shape, lane, lanes, inside, body, partly)

    def _each_within(
        self,
        limits: Sequence[tuple[Reg, Reg]],
        shape: tuple[int, ...],
        lane: int,
        lanes: int,
        inside: frozenset[SSAValue],
        body: Callable[[Point], None],
        partly: frozenset[SSAValue] | None,
    ) -> None:
        t = self.text
        low, high = limits[lane]
        if lanes == 1 or (self.known(low, 0) and self.known(high, shape[lane])):
            with self.nest(limits, shape, lane, lanes) as index:
                body(Point(index, lane, lanes, inside))
            return
        length = t.binary("arith.subi", high, low)
        # An empty range may have high < low: its length is then negative, also after rounding down.
        full = self.plus(low, t.binary("arith.andi", length, t.integer(-lanes)))
        rest = t.select(t.compare("sgt", full, low), full, low)
        # Vectors that do not start at a multiple of their length may end behind the tile.
        left = (1, inside) if partly is None or not self.known(low, 0) else (lanes, partly)
        for ends, (step, known) in (((low, full), (lanes, inside)), ((rest, high), left)):
            here = [*limits[:lane], ends, *limits[lane + 1 :]]
            with self.nest(here, shape, lane, step) as index:
                body(Point(index, lane, step, known))
