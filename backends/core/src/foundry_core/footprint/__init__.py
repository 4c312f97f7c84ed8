"""Computes which bytes of each array a part of a grid can reach, for devices that need copies in their own memory.

Input: a kernel in structured form, its arguments. Output: the memory that a launch reaches, as Python or C, and its
work in bytes and operations.

The analysis walks a kernel's structured form with intervals in place of integers, for all programs at once. Program ids
are exact, so block offsets, masks at the edge and grouped orders of programs are exact too. Loops, loaded indices and
conditions known at run time only make intervals wider. An interval may be too wide, but never too narrow: an access
that the analysis does not understand reaches everything.
"""

from __future__ import annotations

import math
import operator
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.integers import integer_bits, wrap_integer
from ..analysis.interval import Interval, exactly, fit
from ..front.structured import kernel
from ..ir import tt
from ..ir.parse import read_structured
from .accesses import ByteRanges
from .values import Pointer, Value
from .walk import Walk
from .work import Count, Work, covered_bytes

# The maximum number of intervals: in a larger grid, neighbouring programs share one.
_MOST = 1 << 14
# The number of analyses remembered per kernel: a training loop repeats the same shapes.
_REMEMBERED = 64
_FAR = 1 << 62


@dataclass(frozen=True)
class Span:
    """Bytes low <= b < high, relative to the address of a pointer argument."""

    low: int
    high: int

    @property
    def is_all(self) -> bool:
        """Whether an end is unknown: the span may cover all of the argument's memory."""
        return self.low <= -_FAR or self.high >= _FAR

    def clip(self, low: int, high: int) -> Span:
        """Return the part of this span within low..high; an empty span if there is none."""
        return Span(min(max(self.low, low), high), max(min(self.high, high), low))


@dataclass(frozen=True)
class Footprint:
    """The accesses of a part of a grid to the memory of one parameter.

    Attributes:
        reads, writes: the bytes; None if there are no such accesses.
        solid: whether every byte of `writes` is certainly written.
    """

    reads: Span | None
    writes: Span | None
    solid: bool


class Footprints:
    """The analysis of one kernel.

    Args:
        structured: the text of the stage `tile` (pipeline.to_structured).

    Raises:
        LoweringError: the text is not a kernel in structured form.
    """

    def __init__(self, structured: str) -> None:
        self._body = kernel(read_structured(structured)).body.block
        types = [argument.type for argument in self._body.args]
        self.pointers = [i for i, type in enumerate(types) if isinstance(type, tt.PointerType)]
        """The indices of the pointer parameters."""
        self.integers = [i for i, type in enumerate(types) if integer_bits(type) is not None]
        """The indices of the integer parameters; the values of other parameters do not matter."""
        self._known: OrderedDict[object, list[dict[int, Footprint]]] = OrderedDict()

    def compute(self, values: Sequence[Any], grid: Sequence[int], bounds: Sequence[int]) -> list[dict[int, Footprint]]:
        """Compute the footprint of each part of a grid.

        Args:
            values: the parameters' values; only integers are used.
            grid: programs along x, y and z.
            bounds: part k has the programs bounds[k] <= p < bounds[k + 1], at least one;
                program p is x + gx * (y + gy * z).

        Returns:
            For each part, one footprint for each pointer, by the parameter's index.
        """
        key = (tuple(values[i] for i in self.integers), tuple(grid), tuple(bounds))
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        limits = np.asarray(bounds, np.int64)
        firsts, ids, reads, writes = self._ranges(limits, grid)
        Walk(len(firsts), ids, grid, reads, writes).interpret(self._body, self._arguments(values))
        found = _collect(reads, writes, np.searchsorted(firsts, limits[:-1]), len(firsts))
        self._known[key] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def work(self, values: Sequence[Any], grid: Sequence[int], sizes: Mapping[int, int]) -> Work:
        """Count what a launch computes and reaches.

        Args:
            values, grid: see `compute`.
            sizes: the bytes of each pointer's array, by the parameter's index: what it is taken to reach if that is not
                known.
        """
        bounds = np.asarray([0, math.prod(grid)], np.int64)
        firsts, ids, reads, writes = self._ranges(bounds, grid)
        count = Count(np.diff([*firsts, bounds[-1]]).tolist(), ids, grid, reads, writes)
        count.interpret(self._body, self._arguments(values))
        for accesses in (reads, writes):
            for parameter, ends in accesses.bounds.items():
                reached, known = covered_bytes(*ends)
                count.work.bytes += min(int(reached), sizes[parameter]) if known else sizes[parameter]
        return count.work

    def _ranges(
        self, bounds: npt.NDArray[np.int64], grid: Sequence[int]
    ) -> tuple[npt.NDArray[np.int64], list[Interval], ByteRanges, ByteRanges]:
        """Return the first programs of the ranges that have one interval each, their ids, and nothing reached yet."""
        most = -(-int(bounds[-1] - bounds[0]) // _MOST)
        firsts = np.arange(bounds[0], bounds[-1], most, dtype=np.int64)
        if most > 1:
            # A range of several programs does not cross bounds.
            firsts = np.unique(np.concatenate([bounds[:-1], firsts]))
        ids = _ids(firsts, np.append(firsts[1:], bounds[-1]) - 1, grid)
        return firsts, ids, ByteRanges(len(firsts), self.pointers), ByteRanges(len(firsts), self.pointers)

    def _arguments(self, values: Sequence[Any]) -> list[Value]:
        arguments: list[Value] = [None] * len(self._body.args)
        for i in self.pointers:
            arguments[i] = Pointer({i: exactly(np.float64(0))})
        for i in self.integers:
            bits = integer_bits(self._body.args[i].type)
            assert bits is not None
            arguments[i] = fit(exactly(np.float64(wrap_integer(operator.index(values[i]), bits))), bits)
        return arguments


def _ids(firsts: npt.NDArray[np.int64], lasts: npt.NDArray[np.int64], grid: Sequence[int]) -> list[Interval]:
    """Return the program ids along x, y and z for ranges of programs."""
    ids = []
    for extent in grid:
        above_first, above_last = firsts // extent, lasts // extent
        same = above_first == above_last
        low, high = np.where(same, firsts % extent, 0), np.where(same, lasts % extent, extent - 1)
        ids.append(Interval(low.astype(np.float64), high.astype(np.float64)))
        firsts, lasts = above_first, above_last
    return ids


def _collect(
    reads: ByteRanges, writes: ByteRanges, starts: npt.NDArray[np.int64], pieces: int
) -> list[dict[int, Footprint]]:
    found: list[dict[int, Footprint]] = [{} for _ in starts]
    ends = [*starts[1:], pieces]
    for parameter in reads.bounds:
        sides = []
        for lows, highs in (reads.bounds[parameter], writes.bounds[parameter]):
            least, most = np.minimum.reduceat(lows, starts), np.maximum.reduceat(highs, starts)
            sides.append(
                [
                    Span(int(max(low, -_FAR)), int(min(high, _FAR))) if low < high else None
                    for low, high in zip(least, most, strict=True)
                ]
            )
        for k, (read, written) in enumerate(zip(*sides, strict=True)):
            solid = written is not None and _is_solid(writes, parameter, slice(int(starts[k]), int(ends[k])), written)
            found[k][parameter] = Footprint(read, written, solid)
    return found


def _is_solid(writes: ByteRanges, parameter: int, programs: slice, span: Span) -> bool:
    """Return whether certain stores cover a span without a gap."""
    noted = writes.solid[parameter]
    if not noted or span.is_all:
        return False
    lows = np.concatenate([low[programs] for low, _ in noted])
    highs = np.concatenate([high[programs] for _, high in noted])
    order = np.argsort(lows)[: np.count_nonzero(~np.isnan(lows))]  # NaN (not certain) sorts last
    if len(order) == 0:
        return False
    lows, highs = lows[order], np.maximum.accumulate(highs[order])
    return bool(lows[0] <= span.low and highs[-1] >= span.high and np.all(lows[1:] <= highs[:-1]))
