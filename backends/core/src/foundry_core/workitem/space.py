"""Index spaces: points in them, loops over them, and the arithmetic of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from .mlir import Reg, Text


@dataclass(frozen=True)
class Point:
    """A place in an index space, `lanes` elements long along dimension `lane`.

    Attributes:
        index: of the first element, one a dimension.
        inside: the tile.range values that are known to hold all the elements. They belong to this index space: a point
            in another one, as behind a transpose, knows nothing.
    """

    index: tuple[Reg, ...]
    lane: int
    lanes: int
    inside: frozenset[SSAValue] = frozenset()


def extents(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


class Space:
    """Writes loops and index arithmetic to a Text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._steps: dict[Reg, tuple[Reg, int]] = {}

    def step(self, x: Reg, number: int) -> Reg:
        """x + number; where addresses are split, `parts` remembers that it is a sum."""
        if number == 0:
            return x
        total = self.plus(x, self.text.integer(number))
        if self.text.split_addresses:
            self._steps[total] = (x, number)
        return total

    def parts(self, x: Reg) -> tuple[Reg, int]:
        """An index as a register and the constant that was added to it by `step`."""
        return self._steps.get(x, (x, 0))

    def known(self, x: Reg, number: int) -> bool:
        """Whether an index is this constant; arithmetic with constants is left out, to keep the text short."""
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

    @contextmanager
    def each(self, shape: tuple[int, ...], lane: int, lanes: int) -> Iterator[Point]:
        """Loops over a whole index space, `lanes` elements at a time along one dimension, which they divide."""
        t = self.text
        with self.nest([(t.integer(0), t.integer(extent)) for extent in shape], shape, lane, lanes) as index:
            yield Point(index, lane, lanes)

    @contextmanager
    def nest(
        self, limits: Sequence[tuple[Reg, Reg]], shape: tuple[int, ...], lane: int, lanes: int
    ) -> Iterator[tuple[Reg, ...]]:
        """One loop a dimension, the one along the lanes innermost; none where there is one step to make."""
        t = self.text
        index: list[Reg] = [t.integer(0)] * len(shape)
        order = [d for d in range(len(shape)) if d != lane] + ([lane] if shape else [])
        with ExitStack() as loops:
            for d in order:
                low, high = limits[d]
                step = lanes if d == lane else 1
                if self.known(low, 0) and self.known(high, step):
                    continue
                index[d] = loops.enter_context(t.loop(low, high, step))
            yield tuple(index)

    def each_within(
        self,
        limits: Sequence[tuple[Reg, Reg]],
        shape: tuple[int, ...],
        lane: int,
        lanes: int,
        inside: frozenset[SSAValue],
        body: Callable[[Point], None],
    ) -> None:
        """Run a body for the indices within (low, high) limits: vectors as far as they go, then one element at a time.

        Args:
            inside: the tile.range values that the limits are, for the points.
        """
        t = self.text
        low, high = limits[lane]
        if lanes == 1 or (self.known(low, 0) and self.known(high, shape[lane])):
            with self.nest(limits, shape, lane, lanes) as index:
                body(Point(index, lane, lanes, inside))
            return
        length = t.binary("arith.subi", high, low)
        # An empty range may have high < low: its length is negative, and so is what rounding it down gives.
        full = self.plus(low, t.binary("arith.andi", length, t.integer(-lanes)))
        rest = t.select(t.compare("sgt", full, low), full, low)
        for ends, step in (((low, full), lanes), ((rest, high), 1)):
            here = [*limits[:lane], ends, *limits[lane + 1 :]]
            with self.nest(here, shape, lane, step) as index:
                body(Point(index, lane, step, inside))
