"""Integer tensors as sums over their dimensions: start + axis_0(i_0) + axis_1(i_1) + ... + rest(i_0, i_1, ...).

Pointer arithmetic is of this form almost always: `pid * BLOCK + arange(0, BLOCK)`, rows times a stride plus columns,
one of them modulo a size, a row number loaded from memory. Sums are taken in i64: like Triton, this assumes that 32-bit
offsets do not overflow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, TensorType, i64
from xdsl.ir import Operation, SSAValue

from ..dialects import tt
from ..dialects.arith import ConstantOp, ExtSIOp
from .scalars import Scalar, Scalars, Writer


@dataclass(frozen=True)
class Strided:
    """stride * i"""

    stride: Scalar


@dataclass(frozen=True)
class Wrapped:
    """stride * ((first + i) rem modulus)"""

    first: Scalar
    modulus: Scalar
    stride: Scalar


@dataclass(frozen=True)
class Indexed:
    """scale * offsets[i]; `offsets` has extent 1 in every other dimension."""

    offsets: SSAValue
    scale: Scalar


Axis: TypeAlias = Strided | Wrapped | Indexed
STILL = Strided(0)


@dataclass(frozen=True)
class Sum:
    """What an integer tensor adds up to; `rest` is a tensor of the whole shape, or None."""

    start: Scalar
    axes: tuple[Axis, ...]
    rest: SSAValue | None = None

    @property
    def is_uniform(self) -> bool:
        """One number everywhere."""
        return self.rest is None and all(axis == STILL for axis in self.axes)

    def sole_unit_axis(self) -> int | None:
        """The only dimension along which this changes, if it does so by 1 a step."""
        moving = [d for d, axis in enumerate(self.axes) if axis != STILL]
        if self.rest is None and len(moving) == 1 and self.axes[moving[0]] == Strided(1):
            return moving[0]
        return None


def shape(value: SSAValue) -> tuple[int, ...]:
    """Extents; () for a scalar."""
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def splat_constant(value: SSAValue) -> int | None:
    """The number that an integer constant has everywhere."""
    op = value.owner
    return op.integers[0] if isinstance(op, ConstantOp) and len(op.integers) == 1 else None


def _is_narrow(value: SSAValue) -> bool:
    """Whether integers are of 8 or 16 bits, whose sums wrap around in earnest."""
    element = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return isinstance(element, IntegerType) and element.width.data < 32


class Offsets:
    """Reads integer tensors as sums; each value once."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._known: dict[SSAValue, Sum] = {}

    def of(self, value: SSAValue) -> Sum:
        """The sum that an integer tensor, or an integer scalar, is."""
        if value not in self._known:
            self._known[value] = self._normal(self._read(value), value)
        return self._known[value]

    def _normal(self, found: Sum, value: SSAValue) -> Sum:
        """A dimension of extent 1 has the index 0 only: what its axis is there belongs to the start."""
        start, axes = found.start, list(found.axes)
        for d, extent in enumerate(shape(value)):
            match axes[d]:
                case Strided() if extent == 1:
                    axes[d] = STILL
                case Wrapped(first, modulus, stride) if extent == 1:
                    scalars = self._writer.behind(value)
                    start = scalars.add(start, scalars.mul(stride, scalars.rem(first, modulus)))
                    axes[d] = STILL
        return replace(found, start=start, axes=tuple(axes))

    def _opaque(self, value: SSAValue) -> Sum:
        """A tensor of which nothing is known but, perhaps, that it changes along one dimension only."""
        extents = shape(value)
        long = [d for d, extent in enumerate(extents) if extent > 1]
        if len(long) == 1:
            axes: list[Axis] = [STILL] * len(extents)
            axes[long[0]] = Indexed(value, 1)
            return Sum(0, tuple(axes))
        return Sum(0, (STILL,) * len(extents), rest=value)

    def _read(self, value: SSAValue) -> Sum:
        rank = len(shape(value))
        if rank == 0:
            return Sum(self._writer.behind(value).widen(value), ())
        still = (STILL,) * rank
        known = splat_constant(value)
        if known is not None:
            return Sum(known, still)
        op = value.owner
        match op:
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.RemSIOp() if _is_narrow(value):
                return self._opaque(value)
            case tt.SplatOp():
                return Sum(self.of(op.src).start, still)
            case tt.MakeRangeOp():
                return Sum(op.start.value.data, (Strided(1),))
            case ExtSIOp():
                return self.of(op.input)
            case tt.ExpandDimsOp() | tt.BroadcastOp() | tt.TransOp() | tt.ReshapeOp():
                return self.moved(op, self.of(op.src)) or self._opaque(value)
            case arith.AddiOp():
                return self.added(self.of(op.lhs), self.of(op.rhs), value, op.rhs)
            case arith.SubiOp():
                return self._subtracted(op) or self._opaque(value)
            case arith.MuliOp():
                return self._multiplied(op) or self._opaque(value)
            case arith.RemSIOp():
                return self._remainder(op) or self._opaque(value)
            case _:
                return self._opaque(value)

    def moved(self, op: Operation, source: Sum) -> Sum | None:
        """The sum of a tensor behind an operation that only moves dimensions; None if it mixes them.

        Serves pointers too: `source` is then the sum of their offsets.
        """
        axes = list(source.axes)
        before, after = shape(op.operands[0]), shape(op.results[0])
        match op:
            case tt.ExpandDimsOp():
                axes.insert(op.axis.value.data, STILL)
            case tt.TransOp():
                axes = [axes[d] for d in op.order.get_values()]
            case tt.BroadcastOp():
                pass  # a dimension of extent 1 is still, and stays so
            case _:
                # A reshape keeps its dimensions apart only where it adds or drops those of extent 1.
                if [e for e in before if e > 1] != [e for e in after if e > 1]:
                    return None
                long = iter(axis for axis, extent in zip(axes, before, strict=True) if extent > 1)
                axes = [next(long) if extent > 1 else STILL for extent in after]
        rest = source.rest
        if rest is not None:
            assert isinstance(rest.type, TensorType)
            copy = op.clone({op.operands[0]: rest})
            copy.results[0]._type = TensorType(rest.type.element_type, after)
            rest = self._writer.behind(op.results[0]).builder.insert(copy).results[0]
        return Sum(source.start, tuple(axes), rest)

    def added(self, a: Sum, b: Sum, behind: SSAValue, b_value: SSAValue) -> Sum:
        """a + b, where b_value is the tensor that b describes; written behind a value."""
        scalars = self._writer.behind(behind)
        axes: list[Axis] = []
        for one, other in zip(a.axes, b.axes, strict=True):
            if one == STILL or other == STILL:
                axes.append(other if one == STILL else one)
            elif isinstance(one, Strided) and isinstance(other, Strided):
                axes.append(Strided(scalars.add(one.stride, other.stride)))
            else:
                # Two unlike axes along one dimension: one of the two tensors has to be read element by element.
                return Sum(a.start, a.axes, self._plus(a.rest, b_value, scalars))
        rest = self._plus(a.rest, b.rest, scalars) if b.rest is not None else a.rest
        return Sum(scalars.add(a.start, b.start), tuple(axes), rest)

    @staticmethod
    def _plus(a: SSAValue | None, b: SSAValue, scalars: Scalars) -> SSAValue:
        def wide(value: SSAValue) -> SSAValue:
            assert isinstance(value.type, TensorType)
            if value.type.element_type == i64:
                return value
            return scalars.builder.insert(ExtSIOp(value, TensorType(i64, shape(value)))).result

        if a is None:
            return b
        return scalars.builder.insert(arith.AddiOp(wide(a), wide(b))).result

    def _subtracted(self, op: arith.SubiOp) -> Sum | None:
        a, b = self.of(op.lhs), self.of(op.rhs)
        scalars = self._writer.behind(op.result)
        axes: list[Axis] = []
        for one, other in zip(a.axes, b.axes, strict=True):
            if other == STILL:
                axes.append(one)
            elif isinstance(one, Strided) and isinstance(other, Strided):
                axes.append(Strided(scalars.sub(one.stride, other.stride)))
            else:
                return None
        if b.rest is not None:
            return None
        return Sum(scalars.sub(a.start, b.start), tuple(axes), a.rest)

    def _multiplied(self, op: arith.MuliOp) -> Sum | None:
        a, b = self.of(op.lhs), self.of(op.rhs)
        if a.is_uniform:
            a, b = b, a
        if not b.is_uniform or a.rest is not None:
            return None
        scalars, factor = self._writer.behind(op.result), b.start

        def scaled(axis: Axis) -> Axis:
            match axis:
                case Strided(stride):
                    return Strided(scalars.mul(stride, factor))
                case Wrapped(first, modulus, stride):
                    return Wrapped(first, modulus, scalars.mul(stride, factor))
                case Indexed(offsets, scale):
                    return Indexed(offsets, scalars.mul(scale, factor))

        return Sum(scalars.mul(a.start, factor), tuple(scaled(axis) for axis in a.axes))

    def _remainder(self, op: arith.RemSIOp) -> Sum | None:
        a, b = self.of(op.lhs), self.of(op.rhs)
        if not b.is_uniform:
            return None
        if a.is_uniform:
            return Sum(self._writer.behind(op.result).rem(a.start, b.start), a.axes)
        d = a.sole_unit_axis()
        if d is None:
            return None
        axes = list(a.axes)
        axes[d] = Wrapped(a.start, b.start, 1)
        return Sum(0, tuple(axes))
