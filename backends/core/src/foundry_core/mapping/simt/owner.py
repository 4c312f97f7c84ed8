"""What one invocation does for all that hold the same element: it alone accesses memory, and tells the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...emit.mlir import Reg
from ...ir import tt
from ...ops.numeric import element_name, in_memory, scalar_type
from .layouts import Layout, scalar_layout
from .program import SimtProgram
from .rows import through_memory


def pointee(op: Operation, pointer: SSAValue) -> str:
    """Return the type of the elements that a pointer, or a tile of pointers, points to."""
    type = scalar_type(pointer.type)
    assert isinstance(type, tt.PointerType)
    return element_name(type.pointee, op)


def first_invocation(program: SimtProgram) -> Reg:
    """Return whether this is the first invocation of the program."""
    found = owner_predicate(program, _scalar_layout(program))
    assert found is not None
    return found


def _scalar_layout(program: SimtProgram) -> Layout:
    return scalar_layout(program.target.warp_size, program.target.warps)


def owner_predicate(program: SimtProgram, layout: Layout) -> Reg | None:
    """Return whether this invocation is the first of those that hold its elements; None if each is the only one."""
    t = program.code
    first = []
    for bases, number in ((layout.lanes, program.group.lane()), (layout.warps, program.group.warp())):
        repeated = sum(1 << bit for bit, basis in enumerate(bases) if basis == 0)
        if repeated:
            bits = t.binary("arith.andi", number, t.integer(repeated, "i32"))
            first.append(t.compare("eq", bits, t.integer(0, "i32")))
    return t.all_of(*first)


class OwnerAccess:
    """An access of all elements that a tile of pointers, or one pointer, points to, each by one invocation.

    Attributes:
        elem, kind: the type of an element, and its type in memory.
    """

    def __init__(self, program: SimtProgram, op: Operation, pointer: SSAValue, mask: SSAValue | None) -> None:
        self._program, self._op = program, op
        self.elem = pointee(op, pointer)
        self.kind = in_memory(self.elem)
        self._addresses = program.values[pointer]
        is_tile = isinstance(pointer.type, TensorType)
        self._layout = program.layout(pointer) if is_tile else _scalar_layout(program)
        self._owner = owner_predicate(program, self._layout)
        self._masks: Sequence[Reg | None] = [None] * len(self._addresses) if mask is None else program.values[mask]

    def write(self, change: Callable[[int, Reg], Reg]) -> list[Reg]:
        """Write `change` for each element: it gets the register's number and the address, and returns what was there.

        Returns the old elements as registers. Only the owners have them.
        """
        layout, t = self._layout, self._program.code
        zero, found = t.integer(0, self.kind), dict[int, Reg]()
        for number, address in enumerate(self._addresses):
            if layout.register_of[layout.offsets[number]] != number:
                continue

            def path(number: int = number, address: Reg = address) -> list[Reg]:
                return [change(number, address)]

            condition = t.all_of(self._masks[number], self._owner)
            (found[number],) = path() if condition is None else t.branch(condition, path, lambda: [zero])
        return [found[layout.register_of[offset]] for offset in layout.offsets]

    def write_and_share(self, change: Callable[[int, Reg], Reg]) -> list[Reg]:
        """Write `change` for each element; if the operation's result is used, tell all invocations what it returned."""
        regs: Sequence[Reg] = self.write(change)
        if self._owner is not None and any(list(result.uses) for result in self._op.results):
            regs = through_memory(self._program, self._op, regs, self._layout, self._layout, owner=self._owner)
        return [self._program.numeric.from_memory(reg, self.elem) for reg in regs]
