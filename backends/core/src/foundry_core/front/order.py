"""Which accesses of a program must wait for earlier ones, where several invocations execute the program.

A program is written as a sequence. Its invocations keep this order only each for itself. Two accesses, of which one
writes, that may meet at one element from different invocations need a barrier between. `BarrierPlan` finds where.

Accesses through different arguments of the kernel never count as meeting: a barrier between what is loaded from one
array and stored to another would be in nearly every loop. docs/limits.md says what that means for arrays that overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import gcd, inf
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from ..analysis.flow import branch, counted_loop, loop_blocks
from ..ir import tile, tt
from ..ir.effects import reads, writes
from ..ir.elements import extents
from .addresses import Addresses, Atom, Axis, Distance, Element, Polynomial, Turn, is_inside, pointee_bytes
from .writes import Sources

# An atomic operation of one of these kinds may change places with another one of the same kind.
_COMMUTING = ("add", "fadd", "and", "or", "xor", "max", "min", "umax", "umin")

Bounds = Callable[[Atom], tuple[float, float]]


class Pending(NamedTuple):
    """An access that invocations may still be executing.

    Attributes:
        op: the access.
        loops: those around it of which other invocations may be in a later iteration.
    """

    op: Operation
    loops: frozenset[Operation] = frozenset()


class Meetings:
    """Tells whether two accesses of one program may meet at one element from different invocations.

    Args:
        function: a kernel of TTGIR, of TTIR without block pointers, or in structured form.
        invocations: returns for an access what is equal for two if the same invocation has the same element of both
            tiles, and None if several invocations access each element.
    """

    def __init__(self, function: tt.FuncOp, invocations: Callable[[Operation], Hashable]) -> None:
        self._invocations = invocations
        self._addresses = Addresses()
        sources = Sources(function)
        self.accesses = {
            op: sources.origins([pointer])
            for op in function.body.walk()
            if (pointer := accessed_pointer(op)) is not None and (reads(op) or writes(op))
        }

    def may_meet(self, earlier: Pending, op: Operation) -> bool:
        """Return whether an access may reach an element that an earlier one reached in another invocation."""
        first = earlier.op
        if not (writes(first) or writes(op)) or _commute(first, op):
            return False
        (some, some_unknown), (others, other_unknown) = self.accesses[first], self.accesses[op]
        if not (some_unknown or other_unknown or set(some) & set(others)):
            return False
        before = self._addresses.of_access(first)
        after = self._addresses.of_access(op).replace(lambda atom: _later(atom, earlier.loops))
        sizes = _bytes(first), _bytes(op)
        shapes = _shape(first), _shape(op)
        invocations = self._invocations(first)
        if (
            before == after
            and sizes[0] == sizes[1]
            and invocations is not None
            and invocations == self._invocations(op)
            and _is_injective(before, shapes[0])
        ):
            return False
        after = after.replace(_other_axis)

        def bounds(atom: Atom) -> tuple[float, float]:
            match atom:
                case Axis():
                    return 0, shapes[atom.of][atom.number] - 1
                case Distance():
                    return 1, inf
                case Turn():
                    return 0, inf
                case Element():
                    return _least(atom), inf

        facts = self._addresses.conditions(first)
        for fact in self._addresses.conditions(op):
            facts.append(fact.replace(lambda atom: _later(atom, earlier.loops)).replace(_other_axis))
        return not (
            _is_interleaved(after - before, sizes, bounds)
            or _is_at_least(after - before, sizes[0], facts, bounds)
            or _is_at_least(before - after, sizes[1], facts, bounds)
        )


class BarrierPlan:
    """Where a program needs barriers between accesses of global memory.

    Attributes:
        before: the operations that a barrier must come before, and for each the pairs of accesses that need it.

    Args:
        function: see Meetings.
        meetings: of the same function.
    """

    def __init__(self, function: tt.FuncOp, meetings: Meetings) -> None:
        self._meetings = meetings
        self.before: dict[Operation, list[tuple[Pending, Operation]]] = {}
        if any(writes(op) for op in meetings.accesses):
            self._block(function.body.block, set())

    def _block(self, block: Block, pending: set[Pending]) -> set[Pending]:
        """Walk a block; return what is pending behind it."""
        for op in block.ops:
            pending = self._operation(op, pending)
        return pending

    def _operation(self, op: Operation, pending: set[Pending]) -> set[Pending]:
        if op in self._meetings.accesses and op not in self.before:
            # What other programs wait for tells them that everything before it is there.
            ends = isinstance(op, tt.AtomicStoreOp)
            met = [(each, op) for each in pending if ends or self._meetings.may_meet(each, op)]
            if met:
                self.before[op] = met
        if self._waits(op):
            pending = set()
        if blocks := loop_blocks(op):
            return self._loop(op, blocks, pending)
        if choice := branch(op):
            ways = [self._block(block, pending) for block in choice.ways]
            return set().union(*ways, pending if len(ways) < 2 else ())
        return pending | {Pending(op)} if op in self._meetings.accesses else pending

    def _waits(self, op: Operation) -> bool:
        """Return whether nothing is pending when an operation begins."""
        return op in self.before or is_barrier(op)

    def _loop(self, loop: Operation, blocks: Sequence[Block], before: set[Pending]) -> set[Pending]:
        """Walk a loop. It waits once for what came before it, if no barrier that its iterations need does that."""
        self._iterations(loop, blocks, set())
        own = dict(self.before)
        pending = self._iterations(loop, blocks, before)
        more = [pair for op, pairs in self.before.items() if op not in own for pair in pairs]
        if more:
            self.before = own | {loop: more}
            pending = self._iterations(loop, blocks, set())
        return pending

    def _iterations(self, loop: Operation, blocks: Sequence[Block], before: set[Pending]) -> set[Pending]:
        entry = before
        while True:
            # A `while` ends behind its first block, and a `for` behind its only one or before it.
            ends = pending = self._block(blocks[0], entry)
            for block in blocks[1:]:
                pending = self._block(block, pending)
            again = {
                Pending(op, loops | {loop}) if loop.is_ancestor(op) else Pending(op, loops) for op, loops in pending
            }
            if again <= entry:
                ends = ends if len(blocks) > 1 else ends | entry
                return {Pending(op, loops - {loop}) for op, loops in ends}
            entry = entry | again


class UnorderedPairs(BarrierPlan):
    """Which accesses may meet, and have no barrier of the kernel's own between: `before` has all pairs."""

    def _operation(self, op: Operation, pending: set[Pending]) -> set[Pending]:
        # In a loop, further accesses are pending the next time.
        known = self.before.pop(op, [])
        pending = super()._operation(op, pending)
        if known:
            self.before[op] = list(dict.fromkeys([*known, *self.before.get(op, [])]))
        return pending

    def _waits(self, op: Operation) -> bool:
        return is_barrier(op)

    def _loop(self, loop: Operation, blocks: Sequence[Block], before: set[Pending]) -> set[Pending]:
        return self._iterations(loop, blocks, before)


def is_barrier(op: Operation) -> bool:
    """Return whether an operation is a barrier of the kernel's own: backend/compiler.py adds those in conditions."""
    tests = loop_blocks(op.parent_op())[:-1]
    return isinstance(op, tile.KeepOp) and op.parent_block() not in tests


def accessed_pointer(op: Operation) -> SSAValue | None:
    """Return the pointer, or the tile of pointers, through which an operation accesses memory; None if it does not."""
    if isinstance(op, tile.Access):
        return op.base
    type = op.operands[0].type if op.operands and not op.regions else None
    return op.operands[0] if isinstance(getattr(type, "element_type", type), tt.PointerType) else None


def _bytes(access: Operation) -> int:
    pointer = accessed_pointer(access)
    assert pointer is not None
    return pointee_bytes(pointer)


def _shape(access: Operation) -> tuple[int, ...]:
    return extents(access.elements if isinstance(access, tile.Access) else access.operands[0])


def _commute(first: Operation, second: Operation) -> bool:
    """Return whether two accesses have the same effect in both orders, and no results that anybody uses."""
    return (
        isinstance(first, tt.AtomicRMWOp)
        and isinstance(second, tt.AtomicRMWOp)
        and first.kind == second.kind
        and first.kind.data in _COMMUTING
        and not (list(first.result.uses) or list(second.result.uses))
    )


def _later(atom: Atom, loops: frozenset[Operation]) -> Polynomial:
    """Return an atom of an access as it is in a later iteration of some loops."""
    match atom:
        case Turn() if atom.loop in loops:
            return Polynomial.atom(atom) + Polynomial.atom(Distance(atom.loop))
        case Turn() if any(is_inside(atom, loop) for loop in loops):
            return Polynomial.atom(Turn(atom.loop, later=True))
        case Element() if any(is_inside(atom, loop) for loop in loops):
            return Polynomial.atom(Element(atom.value, atom.index, later=True))
    return Polynomial.atom(atom)


def _other_axis(atom: Atom) -> Polynomial:
    """Return an atom of the second of two tiles."""
    match atom:
        case Axis():
            return Polynomial.atom(Axis(atom.number, 1))
        case Element():
            index = tuple(Axis(each.number, 1) if isinstance(each, Axis) else each for each in atom.index)
            return Polynomial.atom(Element(atom.value, index, atom.later))
    return Polynomial.atom(atom)


def _is_injective(address: Polynomial, shape: tuple[int, ...]) -> bool:
    """Return whether no two elements of a tile are at one address, if no stride is so small that rows overlap."""
    if any(isinstance(atom, Element) and atom.index for atom in address.atoms):
        return False
    return {Axis(d) for d, extent in enumerate(shape) if extent > 1} <= address.atoms


def _is_interleaved(difference: Polynomial, sizes: tuple[int, int], bounds: Bounds) -> bool:
    """Return whether two accesses keep apart because each is in its own part of a stride.

    Args:
        difference: the address of the later access minus that of the earlier one.
        sizes: the bytes of their elements.
    """
    terms = sorted((item for item in difference.terms.items() if item[0]), key=lambda item: -abs(item[1]))
    for count in range(1, len(terms) + 1):
        stride = gcd(*(factor for _, factor in terms[:count]))
        low, high = (difference - Polynomial(dict(terms[:count]))).bounds(bounds)
        if -inf < low and high - low + low % stride <= stride - sizes[1] and low % stride >= sizes[0]:
            return True
    return False


def _is_at_least(difference: Polynomial, size: int, facts: Sequence[Polynomial], bounds: Bounds) -> bool:
    """Return whether a difference is not less than a size, because of bounds or of a fact: what is not negative."""
    if difference.bounds(bounds)[0] >= size:
        return True
    for fact in facts:
        for term, factor in fact.terms.items():
            times, rest = divmod(difference.terms.get(term, 0), factor)
            if term and times > 0 and not rest:
                less = difference - Polynomial.constant(times) * fact
                if less.bounds(bounds)[0] >= size:
                    return True
    return False


def _least(atom: Element) -> float:
    """Return the least number that a scalar can be."""
    if isinstance(atom.value.owner, tt.GetProgramIdOp):
        return 0
    loops = [counted_loop(use.operation) for use in atom.value.uses]
    is_step = any(loop is not None and loop.step is atom.value for loop in loops)
    return 1 if is_step or isinstance(atom.value.owner, tt.GetNumProgramsOp) else -inf
