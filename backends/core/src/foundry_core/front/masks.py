"""Masks as one range of indices a dimension, and what does not fit that.

`offs < n` on a tile that starts at s is the range [0, n - s); the conjunction of a row and a column condition is a
rectangle. Work inside a rectangle needs no mask at all, which is what makes masked kernels as fast as unmasked ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue

from ..dialects import tile, tt
from ..dialects.arith import CmpiOp
from .offsets import Offsets, shape, splat_constant
from .scalars import Scalar, Writer

_SWAPPED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle", "eq": "eq", "ne": "ne"}


@dataclass(frozen=True)
class Rectangle:
    """Where a mask is set: all of the ranges and all of the conditions and the rest.

    Attributes:
        ranges: (low, high) a dimension, None where unlimited; may reach beyond the tile.
        conditions: scalars of type i1 that hold for the whole tile.
        rest: a tensor of i1 of the whole shape, or None.
    """

    ranges: tuple[tuple[Scalar | None, Scalar | None], ...]
    conditions: tuple[SSAValue, ...] = ()
    rest: SSAValue | None = None


_EVERYWHERE: tuple[None, None] = (None, None)


class Masks:
    """Reads tensors of i1 as rectangles; each value once."""

    def __init__(self, offsets: Offsets, writer: Writer) -> None:
        self._writer = writer
        self._offsets = offsets
        self._known: dict[SSAValue, Rectangle] = {}
        self._ranges: dict[SSAValue, list[SSAValue]] = {}

    def of(self, mask: SSAValue) -> Rectangle:
        """The rectangle that a mask is."""
        if mask not in self._known:
            self._known[mask] = self._read(mask)
        return self._known[mask]

    def ranges(self, mask: SSAValue) -> list[SSAValue]:
        """One tile.range a dimension, clamped to the tile, conditions included; the same values each time."""
        if mask not in self._ranges:
            found, scalars = self.of(mask), self._writer.behind(mask)
            made: list[SSAValue] = []
            for d, (extent, (low, high)) in enumerate(zip(shape(mask), found.ranges, strict=True)):
                clamped = scalars.maximum(low, 0) if low is not None else 0
                top = scalars.minimum(high, extent) if high is not None else extent
                if d == 0:
                    # Where a condition fails, the tile is empty: one empty dimension says so.
                    for condition in found.conditions:
                        top = scalars.choose(condition, top, clamped)
                made.append(scalars.builder.insert(tile.RangeOp(scalars.value(clamped), scalars.value(top))).result)
            self._ranges[mask] = made
        return self._ranges[mask]

    def _read(self, mask: SSAValue) -> Rectangle:
        everywhere = (_EVERYWHERE,) * len(shape(mask))
        op = mask.owner
        known = splat_constant(mask)
        if known is not None:
            return Rectangle(everywhere) if known else Rectangle(((0, 0), *everywhere[1:]))
        found: Rectangle | None = None
        match op:
            case tt.SplatOp():
                found = Rectangle(everywhere, (op.src,))
            case arith.AndIOp():
                found = self._intersection(mask, self.of(op.lhs), self.of(op.rhs))
            case CmpiOp():
                found = self._comparison(op)
            case tt.ExpandDimsOp():
                source = self.of(op.src)
                if source.rest is None:
                    ranges = list(source.ranges)
                    ranges.insert(op.axis.value.data, _EVERYWHERE)
                    found = Rectangle(tuple(ranges), source.conditions)
            case tt.TransOp():
                source = self.of(op.src)
                if source.rest is None:
                    found = Rectangle(tuple(source.ranges[d] for d in op.order.get_values()), source.conditions)
            case tt.BroadcastOp():
                source = self.of(op.src)
                grown = [a != b for a, b in zip(shape(op.src), shape(mask), strict=True)]
                if not any(g and r != _EVERYWHERE for g, r in zip(grown, source.ranges, strict=True)):
                    rest = source.rest
                    if rest is not None:
                        builder = self._writer.behind(mask).builder
                        wide = TensorType(i1, shape(mask))
                        rest = builder.insert(tt.BroadcastOp.create(operands=[rest], result_types=[wide])).results[0]
                    found = Rectangle(source.ranges, source.conditions, rest)
        return found or Rectangle(everywhere, rest=mask)

    def _intersection(self, mask: SSAValue, a: Rectangle, b: Rectangle) -> Rectangle:
        scalars = self._writer.behind(mask)
        ranges = []
        for (low_a, high_a), (low_b, high_b) in zip(a.ranges, b.ranges, strict=True):
            low = scalars.maximum(low_a, low_b) if low_a is not None and low_b is not None else low_b
            high = scalars.minimum(high_a, high_b) if high_a is not None and high_b is not None else high_b
            ranges.append((low if low is not None else low_a, high if high is not None else high_a))
        rest = a.rest if b.rest is None else b.rest
        if a.rest is not None and b.rest is not None:
            rest = scalars.builder.insert(arith.AndIOp(a.rest, b.rest)).result
        return Rectangle(tuple(ranges), (*a.conditions, *b.conditions), rest)

    def _comparison(self, op: CmpiOp) -> Rectangle | None:
        predicate = op.predicate_name
        if predicate not in _SWAPPED:
            return None
        a, b = self._offsets.of(op.lhs), self._offsets.of(op.rhs)
        scalars = self._writer.behind(op.result)
        everywhere = (_EVERYWHERE,) * len(a.axes)
        if a.is_uniform and b.is_uniform:
            condition = scalars.compare(op.predicate.value.data, a.start, b.start)
            return Rectangle(everywhere, (condition,))
        if a.is_uniform:
            a, b, predicate = b, a, _SWAPPED[predicate]
        d = a.sole_unit_axis()
        if not b.is_uniform or d is None:
            return None
        # a.start + i  <predicate>  b.start
        border = scalars.sub(b.start, a.start)
        match predicate:
            case "slt":
                limits: tuple[Scalar | None, Scalar | None] = (None, border)
            case "sle":
                limits = (None, scalars.add(border, 1))
            case "sgt":
                limits = (scalars.add(border, 1), None)
            case "sge":
                limits = (border, None)
            case "eq":
                limits = (border, scalars.add(border, 1))
            case _:
                return None
        ranges = (*everywhere[:d], limits, *everywhere[d + 1 :])
        return Rectangle(ranges)
