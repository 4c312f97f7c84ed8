"""Which bytes of each array a part of a grid can reach: what a device with memories of its own must be given.

The structured form of a kernel is walked with intervals in the place of integers, for all programs at once: program ids
are exact, so block offsets, masks at the edge and grouped orders of programs come out exact; loops, loaded indices and
conditions known at run time only make intervals wider. Wider is always right, narrower never happens: what is not
understood reaches everything.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dialects import tt
from ..front.structured import kernel
from ..parse import parse
from .accesses import Accesses
from .interval import Interval, exactly, fit
from .values import Pointer, Value, width
from .walk import Walk

# So many intervals at most: of a larger grid, neighbouring programs share one.
_MOST = 1 << 14
# Analyses that a kernel remembers: a training loop comes back with the same shapes.
_REMEMBERED = 64
_FAR = 1 << 62


@dataclass(frozen=True)
class Span:
    """Bytes low <= b < high, counted from where a pointer argument points."""

    low: int
    high: int

    @property
    def is_all(self) -> bool:
        """Whether an end is not known: anything that the argument's memory has."""
        return self.low <= -_FAR or self.high >= _FAR

    def within(self, low: int, high: int) -> Span:
        """What of this lies in low..high; an empty span where nothing does."""
        return Span(min(max(self.low, low), high), max(min(self.high, high), low))


@dataclass(frozen=True)
class Footprint:
    """What a part of a grid can do to the memory behind one parameter.

    Attributes:
        reads, writes: the bytes; None for none at all.
        solid: every byte of `writes` is written for certain.
    """

    reads: Span | None
    writes: Span | None
    solid: bool


class Footprints:
    """The analysis of one kernel.

    Args:
        structured: the text of the stage `tile` (pipeline.to_structured).

    Raises:
        LoweringError: the text is no kernel in structured form.
    """

    def __init__(self, structured: str) -> None:
        self._body = kernel(parse(structured)).body.block
        types = [argument.type for argument in self._body.args]
        self.pointers = [i for i, type in enumerate(types) if isinstance(type, tt.PointerType)]
        """Which parameters are pointers."""
        self.integers = [i for i, type in enumerate(types) if width(type) is not None]
        """Which are integers: the values of others do not matter."""
        self._known: OrderedDict[object, list[dict[int, Footprint]]] = OrderedDict()

    def of(self, values: Sequence[Any], grid: Sequence[int], bounds: Sequence[int]) -> list[dict[int, Footprint]]:
        """The footprint of each part of a grid.

        Args:
            values: of the parameters; those of integers count.
            grid: programs along x, y and z.
            bounds: part k is the programs bounds[k] <= p < bounds[k + 1], at least one, of those numbered
                x + gx * (y + gy * z).

        Returns:
            For each part, by the parameter's index, one for each pointer.
        """
        key = (tuple(values[i] for i in self.integers), tuple(grid), tuple(bounds))
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        found = self._analyse(values, grid, np.asarray(bounds, np.int64))
        self._known[key] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _analyse(
        self, values: Sequence[Any], grid: Sequence[int], bounds: npt.NDArray[np.int64]
    ) -> list[dict[int, Footprint]]:
        firsts = _pieces(bounds)
        lasts = np.append(firsts[1:], bounds[-1]) - 1
        reads, writes = Accesses(len(firsts), self.pointers), Accesses(len(firsts), self.pointers)
        arguments: list[Value] = [None] * len(self._body.args)
        for i in self.pointers:
            arguments[i] = Pointer({i: exactly(np.float64(0))})
        for i in self.integers:
            bits = width(self._body.args[i].type)
            assert bits is not None
            arguments[i] = fit(exactly(np.float64(_signed(operator.index(values[i]), bits))), bits)
        Walk(len(firsts), _ids(firsts, lasts, grid), grid, reads, writes).run(self._body, arguments)
        starts = np.searchsorted(firsts, bounds[:-1])
        return _collect(reads, writes, starts, len(firsts))


def _signed(number: int, bits: int) -> int:
    """How a kernel reads the low bits of a number: the largest unsigned ones are negative."""
    half = 1 << (bits - 1)
    return number & 1 if bits == 1 else (number + half) % (2 * half) - half


def _pieces(bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """First programs of the ranges that get an interval each; ranges do not cross bounds."""
    most = -(-int(bounds[-1] - bounds[0]) // _MOST)
    if most == 1:
        return np.arange(bounds[0], bounds[-1], dtype=np.int64)
    return np.unique(np.concatenate([bounds[:-1], np.arange(bounds[0], bounds[-1], most, dtype=np.int64)]))


def _ids(firsts: npt.NDArray[np.int64], lasts: npt.NDArray[np.int64], grid: Sequence[int]) -> list[Interval]:
    """The program ids along x, y and z in ranges of programs."""
    ids = []
    for extent in grid:
        above_first, above_last = firsts // extent, lasts // extent
        same = above_first == above_last
        low, high = np.where(same, firsts % extent, 0), np.where(same, lasts % extent, extent - 1)
        ids.append(Interval(low.astype(np.float64), high.astype(np.float64)))
        firsts, lasts = above_first, above_last
    return ids


def _collect(
    reads: Accesses, writes: Accesses, starts: npt.NDArray[np.int64], pieces: int
) -> list[dict[int, Footprint]]:
    found: list[dict[int, Footprint]] = [{} for _ in starts]
    ends = [*starts[1:], pieces]
    for parameter in reads.bounds:
        sides = []
        for lows, highs in (reads.bounds[parameter], writes.bounds[parameter]):
            least, most = np.minimum.reduceat(lows, starts), np.maximum.reduceat(highs, starts)
            sides.append([_span(*span) for span in zip(least, most, strict=True)])
        for k, (read, written) in enumerate(zip(*sides, strict=True)):
            solid = written is not None and _is_solid(writes, parameter, slice(int(starts[k]), int(ends[k])), written)
            found[k][parameter] = Footprint(read, written, solid)
    return found


def _span(low: float, high: float) -> Span | None:
    if low >= high:
        return None
    return Span(int(max(low, -_FAR)), int(min(high, _FAR)))


def _is_solid(writes: Accesses, parameter: int, programs: slice, written: Span) -> bool:
    """Whether stores that are certain cover a span without a gap."""
    noted = writes.solid[parameter]
    if not noted or written.is_all:
        return False
    lows = np.concatenate([low[programs] for low, _ in noted])
    highs = np.concatenate([high[programs] for _, high in noted])
    order = np.argsort(lows)[: np.count_nonzero(~np.isnan(lows))]  # NaN, where nothing is certain, sorts last
    if len(order) == 0:
        return False
    lows, highs = lows[order], np.maximum.accumulate(highs[order])
    return bool(lows[0] <= written.low and highs[-1] >= written.high and np.all(lows[1:] <= highs[:-1]))
