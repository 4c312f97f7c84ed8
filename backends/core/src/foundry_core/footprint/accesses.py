"""Collects, for each program and parameter, the bytes that loads and stores of tiles can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..analysis.interval import Bound, Interval, Truth, add, exactly, fit, mul, rem
from .values import Axis, Pointer, Range

_INFINITY = float("inf")
_Bounds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Box:
    """The elements, relative to a base, that an access can reach.

    Attributes:
        offset: the elements' offsets, in elements.
        count: an upper bound of the number of elements; 0 means that there is no access.
        solid: whether the access, if made, certainly reaches each element from the lowest to the highest.
    """

    offset: Interval
    count: Bound
    solid: Truth


def box(start: Interval, axes: Sequence[Axis], ranges: Sequence[Range], shape: Sequence[int], loose: bool) -> Box:
    """Return the elements start + axis_0(i_0) + axis_1(i_1) + ...; `loose` if a mask or a gather changes that."""
    offset = start
    count: Bound = np.float64(1)
    solid: Truth = start.known & (not loose)
    indices = []
    for d, extent in enumerate(shape):
        low: Bound = np.float64(0)
        high: Bound = np.float64(extent - 1)
        if ranges:
            low = np.maximum(ranges[d].low.low, 0)
            high = np.minimum(ranges[d].high.high, extent) - 1
            solid = solid & ranges[d].low.known & ranges[d].high.known
        indices.append(Interval(low, high))
        count = count * np.maximum(high - low + 1, 0)
    inner: Bound = np.float64(1)
    for axis, index in zip(reversed(axes), reversed(indices), strict=True):
        if axis.offsets is not None:
            offset, solid = add(offset, axis.offsets), False
        elif axis.first is not None and axis.modulus is not None and axis.stride is not None:
            total = fit(add(axis.first, index), axis.bits)
            offset, solid = add(offset, mul(rem(total, axis.modulus), axis.stride)), False
        else:
            assert axis.stride is not None
            offset = add(offset, mul(index, axis.stride))
            length = index.high - index.low + 1
            solid = solid & (np.equal(length, 1) | (axis.stride.known & np.equal(axis.stride.low, inner)))
            inner = inner * length
    return Box(offset, count, solid)


class ByteRanges:
    """For each program and parameter, the lowest byte reached and one past the highest; inf to -inf if none."""

    def __init__(self, programs: int, parameters: Sequence[int]) -> None:
        self._programs = programs
        self.bounds: dict[int, tuple[_Bounds, _Bounds]] = {
            parameter: (np.full(programs, _INFINITY), np.full(programs, -_INFINITY)) for parameter in parameters
        }
        self.solid: dict[int, list[tuple[_Bounds, _Bounds]]] = {parameter: [] for parameter in parameters}

    def add(self, pointer: Pointer, box: Box, item_bytes: int, active: Truth, certain: Truth) -> None:
        """Record an access by the programs that are `active`; those that are `certain` surely make it."""
        size = exactly(np.float64(item_bytes))
        by = fit(mul(box.offset, size), 64)
        active = active & np.greater(box.count, 0)
        everything = Interval(-_INFINITY, _INFINITY)
        targets = pointer.offsets if pointer.offsets is not None else dict.fromkeys(self.bounds, everything)
        for parameter, offset in targets.items():
            place = fit(add(offset, by), 64)
            low = np.where(active, place.low, _INFINITY)
            high = np.where(active, place.high + item_bytes, -_INFINITY)
            lows, highs = self.bounds[parameter]
            np.minimum(lows, low, out=lows)
            np.maximum(highs, high, out=highs)
            solid = active & certain & box.solid & offset.known & np.isfinite(place.low)
            if len(targets) == 1 and np.any(solid):
                self.solid[parameter].append(
                    tuple(np.broadcast_to(np.where(solid, x, np.nan), self._programs) for x in (low, high))  # type: ignore[arg-type]
                )
