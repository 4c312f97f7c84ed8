"""What one invocation does for all that hold the same element: it alone accesses memory, and tells the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...emit.mlir import Reg
from ...ir import tt
from ..base.numeric import element_name, in_memory, scalar_type
from .layouts import Layout
from .program import SimtProgram
from .rows import through_memory


def pointee(op: Operation, pointer: SSAValue) -> str:
    """Return the type of the elements that a pointer, or a tile of pointers, points to."""
    type = scalar_type(pointer.type)
    assert isinstance(type, tt.PointerType)
    return element_name(type.pointee, op)


def first_invocation(program: SimtProgram) -> Reg:
    """Return whether this is the first invocation of the program."""
    target = program.target
    lanes, warps = ((0,) * (size.bit_length() - 1) for size in (target.warp_size, target.warps))
    found = owner_predicate(program, Layout((), (), lanes, warps))
    assert found is not None
    return found


def owner_predicate(program: SimtProgram, layout: Layout) -> Reg | None:
    """Return whether this invocation is the first of those that hold its elements; None if each is the only one."""
    t = program.code
    found = None
    for bases, number in ((layout.lanes, program.group.lane()), (layout.warps, program.group.warp())):
        repeated = sum(1 << bit for bit, basis in enumerate(bases) if basis == 0)
        if repeated:
            bits = t.binary("arith.andi", number, t.integer(repeated, "i32"))
            mine = t.compare("eq", bits, t.integer(0, "i32"))
            found = mine if found is None else t.binary("arith.andi", found, mine)
    return found


class OwnerAccess:
    """An access of all elements that a tile of pointers, or one pointer, points to, each by one invocation.

    Attributes:
        elem, kind: the type of an element, and its type in memory.
        layout: of the tile of pointers; None for one pointer.
    """

    def __init__(self, program: SimtProgram, op: Operation, pointer: SSAValue, mask: SSAValue | None) -> None:
        self.program, self.op = program, op
        self.elem = pointee(op, pointer)
        self.kind = in_memory(self.elem)
        self.addresses = program.values[pointer]
        self.layout = program.layout(pointer) if isinstance(pointer.type, TensorType) else None
        self.masks: Sequence[Reg | None] = program.values[mask] if mask is not None else [None] * len(self.addresses)

    def write(self, change: Callable[[int, Reg], Reg]) -> list[Reg]:
        """Write `change` for each element: it gets the register's number and the address, and returns what was there.

        Returns the old elements as registers.
        """
        program, t = self.program, self.program.code
        layout = self.layout or Layout((1,), (), *self._repeated())
        owner = owner_predicate(program, layout)
        zero = t.integer(0, self.kind)
        found: dict[int, Reg] = {}
        for number, address in enumerate(self.addresses):
            if layout.register_of[layout.offsets[number]] != number:
                continue
            conditions = [each for each in (self.masks[number], owner) if each is not None]
            if not conditions:
                found[number] = change(number, address)
                continue
            condition = conditions[0] if len(conditions) == 1 else t.binary("arith.andi", *conditions)

            def path(number: int = number, address: Reg = address) -> list[Reg]:
                return [change(number, address)]

            (found[number],) = t.branch(condition, path, lambda: [zero])
        regs: Sequence[Reg] = [found[layout.register_of[offset]] for offset in layout.offsets]
        if owner is not None and any(list(result.uses) for result in self.op.results):
            # The others are told.
            regs = through_memory(program, self.op, regs, layout, layout, owner=owner)
        return [program.numeric.from_memory(reg, self.elem) for reg in regs]

    def _repeated(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        target = self.program.target
        return (0,) * (target.warp_size.bit_length() - 1), (0,) * (target.warps.bit_length() - 1)
