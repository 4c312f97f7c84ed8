"""Reads integer tensors as sums over their dimensions: start + axis_0(i_0) + axis_1(i_1) + ... + rest(i_0, i_1, ...).

Pointer arithmetic nearly always has this form: `pid * BLOCK + arange(0, BLOCK)`, rows times a stride plus columns, one
of them modulo a size, a row number loaded from memory.

Sums are computed in i64. Triton's narrower sum wraps around, so only its lowest bits agree with ours. For an address
the wider sum is as good. Operations that are not linear (a remainder, a comparison, an extension) use `exact` numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ..ir.arith import ConstantOp, ExtSIOp
from ..ir.elements import IndexMapping, index_mapping
from ..ir.facts import first_number
from .scalars import Scalar, Scalars, Writer, is_small, zeros


@dataclass(frozen=True)
class AffineAxis:
    """stride * i"""

    stride: Scalar


@dataclass(frozen=True)
class ModuloAxis:
    """stride * ((first + i) rem modulus), the sum taken in `width` bits"""

    first: Scalar
    modulus: Scalar
    stride: Scalar
    width: int


@dataclass(frozen=True)
class GatherAxis:
    """scale * offsets[i]; `offsets` has extent 1 in every other dimension."""

    offsets: SSAValue
    scale: Scalar


Axis: TypeAlias = AffineAxis | ModuloAxis | GatherAxis
STILL = AffineAxis(0)


@dataclass(frozen=True)
class Sum:
    """An integer tensor as a sum.

    Attributes:
        rest: a tensor of the whole shape, or None.
        bits: how many of the lowest bits of the sum are correct. With all 64, the sum is the exact number, even if the
            integer is narrower.
    """

    start: Scalar
    axes: tuple[Axis, ...]
    rest: SSAValue | None = None
    bits: int = 64

    @property
    def is_uniform(self) -> bool:
        """Whether all elements have the same value."""
        return self.rest is None and all(axis == STILL for axis in self.axes)

    def sole_unit_axis(self) -> int | None:
        """Return the dimension along which the sum grows by 1 per index, if it changes along no other; else None."""
        moving = [d for d, axis in enumerate(self.axes) if axis != STILL]
        if self.rest is None and len(moving) == 1 and self.axes[moving[0]] == AffineAxis(1):
            return moving[0]
        return None


def shape(value: SSAValue) -> tuple[int, ...]:
    """Return the extents of a tensor; () for a scalar."""
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def alike(type: Attribute, element: Attribute) -> Attribute:
    """Return the type of a scalar or tile with other elements: shape and layout stay."""
    return TensorType(element, type.get_shape(), type.encoding) if isinstance(type, TensorType) else element


def widen(offsets: SSAValue, scalars: Scalars) -> SSAValue:
    """Sign extend a tensor of integers to i64."""
    assert isinstance(offsets.type, TensorType)
    if offsets.type.element_type == i64:
        return offsets
    return scalars.builder.insert(ExtSIOp(offsets, TensorType(i64, shape(offsets)))).result


def splat_constant(value: SSAValue) -> int | None:
    """Return the number that all elements of an integer constant have; None if they differ or it is no constant."""
    op = value.owner
    return op.integers[0] if isinstance(op, ConstantOp) and len(op.integers) == 1 else None


def offset_bits(value: SSAValue) -> int:
    """Return the bits of an integer, or of a tensor's element."""
    element = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return element.width.data if isinstance(element, IntegerType) else 64


def _is_narrow(value: SSAValue) -> bool:
    """Return whether integers have 8 or 16 bits; sums of such integers are expected to wrap around."""
    return offset_bits(value) < 32


class Offsets:
    """Reads integer tensors as sums; analyses each value once."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._known: dict[SSAValue, Sum] = {}

    def sum_of(self, value: SSAValue) -> Sum:
        """Return an integer tensor, or an integer scalar, as a sum."""
        if value not in self._known:
            self._known[value] = self._normal(self._read(value), value)
        return self._known[value]

    def exact(self, value: SSAValue) -> Sum | None:
        """Return an integer tensor that is uniform, or that grows by 1 per index along one dimension, as a sum.

        The step from the largest integer wraps around to the smallest one (`ends`). Returns None for any other tensor,
        and where an overflow before an extension makes the upper bits unknown.
        """
        found = self.sum_of(value)
        if found.bits < offset_bits(value) or not (found.is_uniform or found.sole_unit_axis() is not None):
            return None
        if found.bits == 64:
            return found
        return replace(found, start=self._writer.scalars_after(value).wrap(found.start, offset_bits(value)))

    def ends(self, value: SSAValue) -> int | None:
        """Return the start from which an `exact` tensor exceeds the largest integer; None if it certainly does not."""
        found = self.exact(value)
        d = found.sole_unit_axis() if found else None
        if found is None or d is None or (found.bits == 64 and (offset_bits(value) < 64 or is_small(found.start))):
            return None
        extent = shape(value)[d]
        end = (1 << (offset_bits(value) - 1)) - extent + 1
        if found.start < end if isinstance(found.start, int) else 1 << zeros(found.start) >= extent:
            # Extents are powers of two: a tensor that starts at a multiple of its extent never crosses the end.
            return None
        return end

    def _extended(self, op: ExtSIOp) -> Sum:
        found = self.exact(op.input)
        if found is not None and self.ends(op.input) is None:
            return replace(found, bits=64)
        found = self.sum_of(op.input)
        return found if found.bits == 64 else replace(found, bits=min(found.bits, offset_bits(op.input)))

    def _normal(self, found: Sum, value: SSAValue) -> Sum:
        """Add the axes of extent 1 to the start: their only index is 0."""
        start, axes = found.start, list(found.axes)
        for d, extent in enumerate(shape(value)):
            match axes[d]:
                case AffineAxis() if extent == 1:
                    axes[d] = STILL
                case ModuloAxis(first, modulus, stride, _) if extent == 1:
                    scalars = self._writer.scalars_after(value)
                    start = scalars.add(start, scalars.mul(stride, scalars.rem(first, modulus)))
                    axes[d] = STILL
        return replace(found, start=start, axes=tuple(axes))

    def _opaque(self, value: SSAValue) -> Sum:
        """Return the sum of a tensor of which at most one thing is known: it changes along one dimension only."""
        extents = shape(value)
        long = [d for d, extent in enumerate(extents) if extent > 1]
        if len(long) == 1:
            axes: list[Axis] = [STILL] * len(extents)
            axes[long[0]] = GatherAxis(value, 1)
            return Sum(0, tuple(axes))
        return Sum(0, (STILL,) * len(extents), rest=value)

    def _read(self, value: SSAValue) -> Sum:
        rank = len(shape(value))
        if rank == 0:
            return Sum(self._writer.scalars_after(value).widen(value), ())
        still = (STILL,) * rank
        known = splat_constant(value)
        if known is not None:
            return Sum(known, still)
        op = value.owner
        match op:
            case arith.RemSIOp() if not _is_narrow(value):
                return self._remainder(op) or self._opaque(value)
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() if not _is_narrow(value):
                a, b = self.sum_of(op.lhs), self.sum_of(op.rhs)
                match op:
                    case arith.AddiOp():
                        found: Sum | None = self.add(a, b, op.result, op.rhs)
                    case arith.SubiOp():
                        found = self._subtracted(op)
                    case arith.MuliOp():
                        found = self._multiplied(op)
                return replace(found, bits=min(offset_bits(value), a.bits, b.bits)) if found else self._opaque(value)
            case _ if (first := first_number(op)) is not None:
                return Sum(first, (AffineAxis(1),))
            case ExtSIOp():
                return self._extended(op)
            case _ if (of := index_mapping(value)) is not None:
                return self.mapped_sum(value, of, self.sum_of(of.source)) or self._opaque(value)
            case _:
                return self._opaque(value)

    def mapped_sum(self, value: SSAValue, mapping: IndexMapping, source: Sum) -> Sum | None:
        """Return the sum of a tensor that moves or repeats the elements of another one, which has the sum `source`.

        Also works for pointers: `source` is then the sum of their offsets.

        Returns:
            None if the tensor has only some of the elements along a dimension.
        """
        if not mapping.keeps_all:
            return None
        rest, op = source.rest, value.owner
        if rest is not None:
            assert isinstance(rest.type, TensorType) and isinstance(op, Operation)
            copy = op.clone({mapping.source: rest})
            copy.results[0]._type = TensorType(rest.type.element_type, mapping.shape)
            rest = self._writer.scalars_after(value).builder.insert(copy).results[0]
        # A dimension of extent 1 is constant, and stays so.
        return Sum(source.start, tuple(mapping.to_result(source.axes, STILL)), rest, source.bits)

    def add(self, a: Sum, b: Sum, anchor: SSAValue, b_value: SSAValue) -> Sum:
        """Return a + b, where b_value is the tensor that b describes. Operations are inserted after `anchor`."""
        scalars = self._writer.scalars_after(anchor)
        axes: list[Axis] = []
        for one, other in zip(a.axes, b.axes, strict=True):
            if one == STILL or other == STILL:
                axes.append(other if one == STILL else one)
            elif isinstance(one, AffineAxis) and isinstance(other, AffineAxis):
                axes.append(AffineAxis(scalars.add(one.stride, other.stride)))
            else:
                # Different axes along one dimension: one of the two tensors must be read element by element.
                return Sum(a.start, a.axes, self._plus(a.rest, b_value, scalars))
        rest = self._plus(a.rest, b.rest, scalars) if b.rest is not None else a.rest
        return Sum(scalars.add(a.start, b.start), tuple(axes), rest)

    @staticmethod
    def _plus(a: SSAValue | None, b: SSAValue, scalars: Scalars) -> SSAValue:
        if a is None:
            return b
        return scalars.builder.insert(arith.AddiOp(widen(a, scalars), widen(b, scalars))).result

    def _subtracted(self, op: arith.SubiOp) -> Sum | None:
        a, b = self.sum_of(op.lhs), self.sum_of(op.rhs)
        scalars = self._writer.scalars_after(op.result)
        axes: list[Axis] = []
        for one, other in zip(a.axes, b.axes, strict=True):
            if other == STILL:
                axes.append(one)
            elif isinstance(one, AffineAxis) and isinstance(other, AffineAxis):
                axes.append(AffineAxis(scalars.sub(one.stride, other.stride)))
            else:
                return None
        if b.rest is not None:
            return None
        return Sum(scalars.sub(a.start, b.start), tuple(axes), a.rest)

    def _multiplied(self, op: arith.MuliOp) -> Sum | None:
        a, b = self.sum_of(op.lhs), self.sum_of(op.rhs)
        if a.is_uniform:
            a, b = b, a
        if not b.is_uniform or a.rest is not None:
            return None
        scalars, factor = self._writer.scalars_after(op.result), b.start

        def scaled(axis: Axis) -> Axis:
            match axis:
                case AffineAxis(stride):
                    return AffineAxis(scalars.mul(stride, factor))
                case ModuloAxis():
                    return replace(axis, stride=scalars.mul(axis.stride, factor))
                case GatherAxis(offsets, scale):
                    return GatherAxis(offsets, scalars.mul(scale, factor))

        return Sum(scalars.mul(a.start, factor), tuple(scaled(axis) for axis in a.axes))

    def _remainder(self, op: arith.RemSIOp) -> Sum | None:
        a, b = self.exact(op.lhs), self.exact(op.rhs)
        if a is None or b is None or not b.is_uniform:
            return None
        if a.is_uniform:
            return Sum(self._writer.scalars_after(op.result).rem(a.start, b.start), a.axes)
        d = a.sole_unit_axis()
        assert d is not None
        axes = list(a.axes)
        axes[d] = ModuloAxis(a.start, b.start, 1, offset_bits(op.result))
        return Sum(0, tuple(axes))
