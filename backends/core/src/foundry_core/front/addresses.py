"""Addresses as polynomials: where an access is, as far as a kernel's text says it.

    x + (tl.program_id(0) * 64 + tl.arange(0, 64)) * stride, of floats     x + 256 * id * stride + 4 * stride * axis 0

The variables of a polynomial (`Atom`) are numbers of the kernel of which nothing else is known, the position along each
axis of a tile, and the number of a loop's iteration. Sums do not wrap around here. Where Triton's do, with offsets of
32 bits or more, docs/limits.md says that an address is that of the number that does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ..analysis.flow import counted_loop, incoming_values
from ..errors import unsupported
from ..ir import tile, tt
from ..ir.arith import CmpiOp, ConstantOp, ExtSIOp, ExtUIOp
from ..ir.elements import IndexMapping, extents, index_mapping
from ..ir.facts import first_number, keeps_bits, pointer_sum

# Longer ones are not multiplied out.
_MOST_TERMS = 64
# The predicates of arith.cmpi for numbers with a sign, and which operand is the smaller one.
_LESS, _GREATER = 2, 4
_SIGNED_ORDERS = {_LESS: (0, 1), 3: (0, 1), _GREATER: (1, 0), 5: (1, 0)}


@dataclass(frozen=True)
class Axis:
    """The position along a dimension of a tile. Two accesses that are compared have different ones, by `of`."""

    number: int
    of: int = 0


@dataclass(frozen=True)
class Turn:
    """How many iterations of a loop came before this one; if `later`, those of another run of the loop."""

    loop: Operation
    later: bool = False


@dataclass(frozen=True)
class Distance:
    """How many iterations of a loop a later access comes after an earlier one: at least one."""

    loop: Operation


@dataclass(frozen=True)
class Element:
    """A number of a kernel, or an element of a tile of numbers; if `later`, from another iteration of a loop around it.

    Attributes:
        index: the position in each dimension of the tile; () for a scalar.
    """

    value: SSAValue
    index: tuple[Axis | int, ...] = ()
    later: bool = False


Atom = Axis | Turn | Distance | Element


class Polynomial:
    """A sum of products of atoms.

    Attributes:
        terms: the factor of each product, whose atoms have powers; no factor is zero.
    """

    def __init__(self, terms: Mapping[frozenset[tuple[Atom, int]], int]) -> None:
        self.terms = {term: factor for term, factor in terms.items() if factor}

    @classmethod
    def constant(cls, number: int) -> Polynomial:
        return cls({frozenset(): number})

    @classmethod
    def atom(cls, atom: Atom) -> Polynomial:
        return cls({frozenset([(atom, 1)]): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = Counter(self.terms)
        for term, factor in other.terms.items():
            terms[term] += factor
        return Polynomial(terms)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + Polynomial.constant(-1) * other

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms = Counter[frozenset[tuple[Atom, int]]]()
        for one, factor in self.terms.items():
            for two, more in other.terms.items():
                powers = Counter(dict(one))
                for atom, power in two:
                    powers[atom] += power
                terms[frozenset(powers.items())] += factor * more
        return Polynomial(terms)

    @property
    def atoms(self) -> set[Atom]:
        return {atom for term in self.terms for atom, _ in term}

    def replace(self, value: Callable[[Atom], Polynomial]) -> Polynomial:
        """Return the polynomial with a polynomial in place of each atom."""
        total = Polynomial({})
        for term, factor in self.terms.items():
            product = Polynomial.constant(factor)
            for atom, power in term:
                for _ in range(power):
                    product = product * value(atom)
            total = total + product
        return total

    def bounds(self, of_atom: Callable[[Atom], tuple[float, float]]) -> tuple[float, float]:
        """Return the least and the largest number that it can be, given those of its atoms."""
        low = high = 0.0
        for term, factor in self.terms.items():
            ends = [float(factor)] * 2
            for atom, power in term:
                for _ in range(power):
                    products = [_times(x, y) for x in ends for y in of_atom(atom)]
                    ends = [min(products), max(products)]
            low, high = low + min(ends), high + max(ends)
        return low, high


def _times(x: float, y: float) -> float:
    """Multiply ends of intervals: zero times infinity is zero."""
    return x * y if x and y else 0.0


class Addresses:
    """The addresses of pointers in bytes, and integers; those of a tile by the atoms Axis(0), Axis(1) and so on.

    A pointer that is an argument of the kernel is an atom.
    """

    def __init__(self) -> None:
        self._known: dict[SSAValue, Polynomial] = {}

    def of(self, value: SSAValue) -> Polynomial:
        """Return the polynomial of an integer or a pointer, or of each element of a tile of them."""
        if value not in self._known:
            self._known[value] = self._carried(value) or self._computed(value) or _unknown(value)
        return self._known[value]

    def of_access(self, op: Operation) -> Polynomial:
        """Return the polynomial of each element that an access reaches, in TTIR, TTGIR or structured form."""
        if not isinstance(op, tile.Access):
            return self.of(op.operands[0])
        place = self.of(op.start) if op.gather is None else self.of(op.start) + self.of(op.gather)
        for d, axis in enumerate(op.axes):
            if (stride := tile.even_stride(axis)) is not None:
                place += self.of(stride) * Polynomial.atom(Axis(d))
            else:
                place += Polynomial.atom(Element(axis, (Axis(d),)))
        return self.of(op.base) + Polynomial.constant(pointee_bytes(op.base)) * place

    def conditions(self, op: Operation) -> list[Polynomial]:
        """Return polynomials that are at least 0 for each element that an access reaches."""
        found = []
        for d, range in enumerate(op.ranges if isinstance(op, tile.Access) else ()):
            low, high = tile.limits(range)
            at = Polynomial.atom(Axis(d))
            found += [at - self.of(low), self.of(high) - at - Polynomial.constant(1)]
        mask: SSAValue | None = getattr(op, "mask", None)
        return found if mask is None else [*found, *self._where_set(mask)]

    def _where_set(self, mask: SSAValue) -> list[Polynomial]:
        """Return polynomials that are at least 0 where a mask is set."""
        mapping = index_mapping(mask)
        if mapping is not None:
            return [each.replace(_moved(mapping)) for each in self._where_set(mapping.source)]
        match mask.owner:
            case arith.AndIOp(lhs=lhs, rhs=rhs):
                return [*self._where_set(lhs), *self._where_set(rhs)]
            case CmpiOp() as op if op.predicate.value.data in _SIGNED_ORDERS:
                less, more = (self.of(op.operands[number]) for number in _SIGNED_ORDERS[op.predicate.value.data])
                strict = op.predicate.value.data in (_LESS, _GREATER)
                return [more - less - Polynomial.constant(int(strict))]
        return []

    def _computed(self, value: SSAValue) -> Polynomial | None:
        mapping = index_mapping(value)
        if mapping is not None:
            return self.of(mapping.source).replace(_moved(mapping))
        op = value.owner
        match op:
            case ConstantOp() if len(op.integers) == 1:
                return Polynomial.constant(op.integers[0])
            case _ if (first := first_number(op)) is not None:
                return Polynomial.atom(Axis(0)) + Polynomial.constant(first)
            case _ if moved := pointer_sum(op):
                return self.of(moved[0]) + Polynomial.constant(pointee_bytes(moved[0])) * self.of(moved[1])
            case Operation() if keeps_bits(op) and _bits(value) is None:
                return self.of(op.operands[0])
            case ExtSIOp() | ExtUIOp() if (_bits(op.operands[0]) or 0) >= 32:
                return self.of(op.operands[0])
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() if (_bits(value) or 0) >= 32:
                x, y = map(self.of, op.operands)
                if isinstance(op, arith.MuliOp):
                    return x * y if len(x.terms) * len(y.terms) <= _MOST_TERMS else None
                return x + y if isinstance(op, arith.AddiOp) else x - y
        return None

    def _carried(self, value: SSAValue) -> Polynomial | None:
        """Return what a loop carries, if each iteration adds the same number to it."""
        loop = counted_loop(value.owner.parent_op()) if isinstance(value.owner, Block) else None
        if loop is None:
            return None
        turn = Polynomial.atom(Turn(loop.op))
        if value is loop.counter:
            return self.of(loop.first) + self.of(loop.step) * turn
        passed = incoming_values(value)
        assert passed is not None
        initial, following = passed
        # What is found while the value itself is an atom holds only meanwhile.
        before = dict(self._known)
        self._known[value] = start = _unknown(value)
        step = self.of(following) - start
        self._known = before
        if any(isinstance(atom, Turn | Element) and is_inside(atom, loop.op) for atom in step.atoms):
            return None
        return self.of(initial) + step * turn


def is_inside(atom: Turn | Element, loop: Operation) -> bool:
    """Return whether an atom may be another number in another iteration of a loop."""
    inner: Operation | None = atom.loop if isinstance(atom, Turn) else atom.value.owner.parent_op()
    while inner is not None and inner is not loop:
        inner = inner.parent_op()
    return inner is loop


def _unknown(value: SSAValue) -> Polynomial:
    return Polynomial.atom(Element(value, tuple(map(Axis, range(len(extents(value)))))))


def _moved(mapping: IndexMapping) -> Callable[[Atom], Polynomial]:
    """Return a function that maps atoms of the source tile to atoms of the tile that rearranges it."""
    axes: list[Axis | int] = [Axis(d) for d in range(len(mapping.shape))]
    index = mapping.to_source(axes, lambda number: number)

    def moved(atom: Atom) -> Polynomial:
        match atom:
            case Axis():
                found = index[atom.number]
                return Polynomial.constant(found) if isinstance(found, int) else Polynomial.atom(found)
            case Element():
                positions = tuple(index[each.number] if isinstance(each, Axis) else each for each in atom.index)
                return Polynomial.atom(Element(atom.value, positions, atom.later))
        return Polynomial.atom(atom)

    return moved


def _bits(value: SSAValue) -> int | None:
    """Return the width of an integer, or of a tile's integers; None for anything else."""
    type = value.type.element_type if isinstance(value.type, TensorType) else value.type
    return type.width.data if isinstance(type, IntegerType) else None


def pointee_bytes(pointer: SSAValue) -> int:
    """Return the bytes of the elements that a pointer points to."""
    type = pointer.type.element_type if isinstance(pointer.type, TensorType) else pointer.type
    assert isinstance(type, tt.PointerType)
    pointee = type.pointee
    if isinstance(pointee, tt.PointerType):
        return 8
    if not isinstance(pointee, FixedBitwidthType):
        owner = pointer.owner
        raise unsupported(owner if isinstance(owner, Operation) else owner.parent_op(), f"an access to {pointee}")  # type: ignore[arg-type]
    return max(8, pointee.bitwidth) // 8
