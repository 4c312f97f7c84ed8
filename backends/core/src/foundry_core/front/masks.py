"""Reads masks as one range of indices per dimension, and a rest that does not fit ranges.

`offs < n` on a tile that starts at s is the range [0, n - s); the conjunction of a row and a column condition is a
rectangle. Work inside a rectangle needs no mask, which makes masked kernels as fast as unmasked ones.

If offs can pass the largest integer within a tile and wrap around to the smallest one, the range is the whole tile, and
the comparison stays as a mask. That mask is `whole | (offs < n)`: if the scalar `whole` is set, the tile does not reach
that far, and code that computes with the mask may omit it (`sufficient`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from ..ir import tile
from ..ir.arith import CmpiOp
from ..ir.build import like
from ..ir.elements import IndexMapping, index_mapping, source
from .offsets import Offsets, offset_bits, shape, splat_constant
from .scalars import Scalar, Scalars, Writer, is_small

_SLE = 3
_SWAPPED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle", "eq": "eq", "ne": "ne"}


@dataclass(frozen=True)
class Rectangle:
    """The elements at which a mask is set: those for which all ranges, all conditions and the rest hold.

    Attributes:
        ranges: (low, high) for each dimension, None if unlimited; may reach beyond the tile.
        conditions: scalars of type i1 that hold for the whole tile.
        rest: a tensor of i1 of the whole shape, or None.
    """

    ranges: tuple[tuple[Scalar | None, Scalar | None], ...]
    conditions: tuple[SSAValue, ...] = ()
    rest: SSAValue | None = None


_EVERYWHERE: tuple[None, None] = (None, None)


class Masks:
    """Reads tensors of i1 as rectangles; analyses each value once."""

    def __init__(self, offsets: Offsets, writer: Writer) -> None:
        self._writer = writer
        self._offsets = offsets
        self._known: dict[SSAValue, Rectangle] = {}
        self._ranges: dict[SSAValue, list[SSAValue]] = {}

    def rectangle(self, mask: SSAValue) -> Rectangle:
        """Return the rectangle that a mask covers."""
        if mask not in self._known:
            self._known[mask] = self._read(mask)
        return self._known[mask]

    def ranges(self, mask: SSAValue) -> list[SSAValue]:
        """Return one tile.range per dimension, clamped to the tile, with the conditions; the same values each time."""
        if mask not in self._ranges:
            found, scalars = self.rectangle(mask), self._writer.scalars_after(mask)
            made: list[SSAValue] = []
            for d, (extent, (low, high)) in enumerate(zip(shape(mask), found.ranges, strict=True)):
                # Clamp both ends at both sides: a device's index may be too narrow for an end that is far away.
                clamped, top = (
                    default if end is None else scalars.minimum(scalars.maximum(end, 0), extent)
                    for end, default in ((low, 0), (high, extent))
                )
                if d == 0:
                    # If a condition fails, the tile is empty: one empty dimension is enough.
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
            case arith.AndIOp():
                found = self._intersection(mask, self.rectangle(op.lhs), self.rectangle(op.rhs))
            case CmpiOp():
                found = self._comparison(op)
            case _ if (of := index_mapping(mask)) is not None:
                found = self._moved(mask, of)
        return found or Rectangle(everywhere, rest=mask)

    def _moved(self, mask: SSAValue, mapping: IndexMapping) -> Rectangle | None:
        """Return the rectangle of a mask that moves or repeats the elements of another mask, or a condition."""
        if mapping.source.type == i1:
            return Rectangle((_EVERYWHERE,) * len(mapping.shape), (mapping.source,))
        found = self.rectangle(mapping.source)
        if any(ends != _EVERYWHERE and not mapping.is_along(d) for d, ends in enumerate(found.ranges)):
            return None
        rest, op = found.rest, mask.owner
        if rest is not None and isinstance(op, Operation):
            rest = self._writer.scalars_after(mask).builder.insert(op.clone({mapping.source: rest})).results[0]
        return Rectangle(tuple(mapping.to_result(found.ranges, _EVERYWHERE)), found.conditions, rest)

    def _intersection(self, mask: SSAValue, a: Rectangle, b: Rectangle) -> Rectangle:
        scalars = self._writer.scalars_after(mask)
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
        if predicate not in _SWAPPED or offset_bits(op.lhs) == 1:
            return None
        moving, a, b = op.lhs, self._offsets.exact(op.lhs), self._offsets.exact(op.rhs)
        if a is None or b is None:
            return None
        scalars = self._writer.scalars_after(op.result)
        everywhere = (_EVERYWHERE,) * len(a.axes)
        if a.is_uniform and b.is_uniform:
            condition = scalars.compare(op.predicate.value.data, a.start, b.start)
            return Rectangle(everywhere, (condition,))
        if a.is_uniform:
            moving, a, b, predicate = op.rhs, b, a, _SWAPPED[predicate]
        d = a.sole_unit_axis()
        if not b.is_uniform or d is None:
            return None
        # a.start + i  <predicate>  b.start
        border = self._distance(a.start, b.start, shape(moving)[d], scalars)
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
        rest, end = None, self._offsets.ends(moving)
        if end is not None:
            whole = scalars.compare(_SLE, a.start, end - 1)
            low, high = limits
            limits = (
                low if low is None else scalars.choose(whole, low, 0),
                high if high is None else scalars.choose(whole, high, shape(moving)[d]),
            )
            wide = like(scalars.builder, whole, op.result.type)
            rest = scalars.builder.insert(arith.OrIOp(wide, op.result)).result
        return Rectangle((*everywhere[:d], limits, *everywhere[d + 1 :]), rest=rest)

    @staticmethod
    def _distance(start: Scalar, end: Scalar, extent: int, scalars: Scalars) -> Scalar:
        """Return end - start, or a negative number; at most the extent where the difference may overflow 64 bits."""
        distance = scalars.sub(end, start)
        if is_small(start) and is_small(end):
            return distance
        return scalars.choose(scalars.compare(_SLE, start, end), scalars.minimum_unsigned(distance, extent), -1)


def sufficient(mask: SSAValue) -> list[SSAValue] | None:
    """Return scalars of type i1 that together imply that the mask is set everywhere; None if there are none."""
    match mask.owner:
        case arith.OrIOp() as op if (condition := source(op.lhs)) is not None and condition.type == i1:
            return [condition]
        case arith.AndIOp() as op:
            one, other = sufficient(op.lhs), sufficient(op.rhs)
            return None if one is None or other is None else [*one, *other]
    moving = index_mapping(mask)
    return None if moving is None else sufficient(moving.source)
