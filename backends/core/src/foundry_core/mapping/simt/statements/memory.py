"""Loads and stores of global memory, as wide as addresses, alignment and masks allow.

An access of which there must be one for each element, such as a volatile load or an atomic operation, is done by one
invocation, which tells the others, so that all go on with the same number. A compiler, which sees that an invocation
stores nothing, may read once what a loop waits for.

Accesses that may meet at one element have a barrier between (front/order.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ....emit.mlir import WIDTHS, Reg
from ....errors import unsupported
from ....ir import tt
from ....ir.arith import ConstantOp, SelectOp
from ....ops.numeric import element_name, in_memory, in_register, scalar_type
from ..layouts import Layout, scalar_layout
from ..program import SimtProgram, invocation_statement
from ..tiles import runs, through_memory

# The most bytes of one access.
_WIDEST = 16
# Changes the elements of some registers, which have neighbouring addresses; the first one's is given.
_Change: TypeAlias = Callable[[Sequence[int], Reg], Sequence[Reg]]


@invocation_statement(tt.AddPtrOp)
def _add(program: SimtProgram, op: tt.AddPtrOp) -> None:
    t = program.code
    size = t.integer(max(1, WIDTHS[in_memory(pointee(op, op.ptr))] // 8), "i64")
    program.values[op.result] = [
        t.binary("arith.addi", address, t.binary("arith.muli", t.cast("arith.extsi", offset, "i64"), size))
        for address, offset in zip(program.values[op.ptr], program.values[op.offset], strict=True)
    ]


@invocation_statement(tt.IntToPtrOp, tt.PtrToIntOp)
def _address(program: SimtProgram, op: tt.IntToPtrOp | tt.PtrToIntOp) -> None:
    """An address is a number."""
    program.values[op.result] = program.values[op.src]


@invocation_statement(tt.BitcastOp)
def _bitcast(program: SimtProgram, op: tt.BitcastOp) -> None:
    if isinstance(scalar_type(op.result.type), tt.PointerType):
        program.values[op.result] = program.values[op.src]
    else:
        program.elementwise(op)


@invocation_statement(SelectOp)
def _select(program: SimtProgram, op: SelectOp) -> None:
    if not isinstance(scalar_type(op.result.type), tt.PointerType):
        program.elementwise(op)
        return
    rows = zip(*program.operands(op), strict=True)
    program.values[op.result] = [program.code.select(*row) for row in rows]


@invocation_statement(tt.LoadOp)
def _load(program: SimtProgram, op: tt.LoadOp) -> None:
    if op.is_volatile:
        _load_once(program, op)
        return
    t = program.code
    elem = pointee(op, op.ptr)
    stored, held = in_memory(elem), in_register(elem)
    size = WIDTHS[stored] // 8
    addresses = program.values[op.ptr]
    masks = program.values[op.mask] if op.mask is not None else [None] * len(addresses)
    zero = t.float_constant(0.0, held) if held[0] == "f" else t.integer(0, held)
    others = program.values[op.other] if op.other is not None else [zero] * len(addresses)
    is_zero = op.other is not None and isinstance(op.other.owner, ConstantOp) and op.other.owner.splat == 0
    found: dict[int, Reg] = {}
    # Registers that hold the same element, as they do where a layout repeats, are read once.
    seen: dict[tuple[object, ...], int] = {}
    distinct = []
    for number, key in enumerate(zip(addresses, masks, others, strict=True)):
        if key in seen:
            continue
        seen[key] = number
        distinct.append(number)
    for run in runs(t, [addresses[k] for k in distinct], [masks[k] for k in distinct], size, _WIDEST // size):
        run = [distinct[k] for k in run]

        address, mask = addresses[run[0]], masks[run[0]]
        alignment = max(min(t.multiple(address), size * len(run)), size)
        if mask is not None:
            # A branch around each load would keep them from being in flight together.
            assert program.spare is not None
            address = t.select(mask, address, program.spare)
        otherwise = None
        # The spare bytes are zeros. To select a zero would be to wait for what was loaded.
        if mask is not None and op.other is not None and not is_zero:
            otherwise = mask, [program.numeric.to_memory(others[k], elem) for k in run]
        regs = program.group.load(address, stored, len(run), alignment, otherwise=otherwise)
        found.update(zip(run, (program.numeric.from_memory(reg, elem) for reg in regs), strict=True))
    program.values[op.result] = [found[seen[key]] for key in zip(addresses, masks, others, strict=True)]


@invocation_statement(tt.AtomicLoadOp)
def _atomic_load(program: SimtProgram, op: tt.AtomicLoadOp) -> None:
    _load_once(program, op)


def _load_once(program: SimtProgram, op: tt.LoadOp | tt.AtomicLoadOp) -> None:
    """Load each element in one invocation."""
    once = OwnerAccess(program, op, op.ptr, op.mask)
    size = WIDTHS[once.kind] // 8

    def read(numbers: Sequence[int], address: Reg) -> list[Reg]:
        found = program.group.load(address, once.kind, 1, size, volatile=True)
        program.group.fence()
        return found

    regs = once.write_and_share(read)
    if isinstance(op, tt.LoadOp) and op.mask is not None and op.other is not None:
        masks, others = program.values[op.mask], program.values[op.other]
        regs = [program.code.select(*row) for row in zip(masks, regs, others, strict=True)]
    program.values[op.result] = regs


@invocation_statement(tt.AtomicPollOp)
def _poll(program: SimtProgram, op: tt.AtomicPollOp) -> None:
    """Wait for each element in one invocation, and for that one in the others."""
    if op.timeout is not None:
        raise unsupported(op, "a time-out: kernels cannot read a clock")
    t = program.code
    once, expected = OwnerAccess(program, op, op.ptr, None), program.values[op.expected]

    def wait(numbers: Sequence[int], address: Reg) -> list[Reg]:
        wanted = program.numeric.to_memory(expected[numbers[0]], once.elem)

        def differs(regs: Sequence[Reg]) -> tuple[Reg, Sequence[Reg]]:
            (found,) = program.group.load(address, once.kind, 1, WIDTHS[once.kind] // 8, volatile=True)
            return t.compare("ne", found, wanted), regs

        t.loop([], differs, lambda regs: regs)
        program.group.fence()
        return [wanted]

    once.write(wait)
    program.group.barrier(of_all=True)
    program.values[op.result] = [t.integer(1, "i1")] * program.size(op.result)


@invocation_statement(tt.AtomicStoreOp)
def _atomic_store(program: SimtProgram, op: tt.AtomicStoreOp) -> None:
    """Store each element in one invocation, after all that the program stored before."""
    once, values = OwnerAccess(program, op, op.ptr, op.mask), program.values[op.value]

    def write(numbers: Sequence[int], address: Reg) -> list[Reg]:
        value = program.numeric.to_memory(values[numbers[0]], once.elem)
        program.group.fence()
        program.group.store(address, [value], WIDTHS[once.kind] // 8, volatile=True)
        return [value]

    once.write(write)


@invocation_statement(tt.StoreOp)
def _store(program: SimtProgram, op: tt.StoreOp) -> None:
    t = program.code
    elem = pointee(op, op.ptr)
    size = WIDTHS[in_memory(elem)] // 8
    addresses, values = program.values[op.ptr], program.values[op.value]
    masks = program.values[op.mask] if op.mask is not None else [None] * len(addresses)
    is_tile = isinstance(op.ptr.type, TensorType)
    once = owner_predicate(program, program.layout(op.ptr)) if is_tile else first_invocation(program)
    kept = list({(address, mask): k for k, (address, mask) in enumerate(zip(addresses, masks, strict=True))}.values())
    # One branch for all stores of a mask.
    groups: dict[Reg | None, list[list[int]]] = {}
    for places in runs(t, [addresses[k] for k in kept], [masks[k] for k in kept], size, _WIDEST // size):
        run = [kept[place] for place in places]
        groups.setdefault(masks[run[0]], []).append(run)
    for mask, group in groups.items():

        def write(group: list[list[int]] = group) -> None:
            for run in group:
                regs = [program.numeric.to_memory(values[k], elem) for k in run]
                alignment = min(t.multiple(addresses[run[0]]), size * len(run))
                program.group.store(addresses[run[0]], regs, max(alignment, size))

        t.do_when(t.all_of(mask, once), write)


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
        masks = [None] * len(self._addresses) if mask is None else program.values[mask]
        # tl.atomic_add without a mask has one that is always set.
        always = program.code.integer(1, "i1")
        self._masks = [None if each == always else each for each in masks]

    def write(self, change: _Change, together: Sequence[int] = (1,), order: str = "relaxed") -> list[Reg]:
        """Write `change` for each element, with one branch for all those of one mask.

        Returns the old elements as registers. Only the owners have them.

        Args:
            change: gets the numbers of registers and the address of the first, and returns what was there.
            together: how many neighbours, which begin at a multiple of their size, are changed at once; others alone.
            order: Triton's word for it: whether accesses before come before all elements, and those after, after.
        """
        layout, t = self._layout, self._program.code
        zero, found = t.integer(0, self.kind), dict[int, Reg]()
        kept = layout.distinct
        addresses, masks = [self._addresses[number] for number in kept], [self._masks[number] for number in kept]
        groups: dict[Reg | None, list[list[int]]] = {}
        for run in runs(t, addresses, masks, WIDTHS[self.kind] // 8, max(together)):
            numbers = [kept[place] for place in run]
            parts = [numbers] if len(numbers) in together else [[number] for number in numbers]
            groups.setdefault(self._masks[numbers[0]], []).extend(parts)
        # Those that change nothing need no order: with one branch, the fences are in it.
        before, after = order in ("release", "acq_rel"), order in ("acquire", "acq_rel")
        fence, is_alone = self._program.group.fence, len(groups) == 1
        if before and not is_alone:
            fence()
        for mask, parts in groups.items():

            def path(parts: list[list[int]] = parts) -> list[Reg]:
                if before and is_alone:
                    fence()
                old = [reg for numbers in parts for reg in change(numbers, self._addresses[numbers[0]])]
                if after and is_alone:
                    fence()
                return old

            every = [number for numbers in parts for number in numbers]
            zeros, condition = [zero] * len(every), t.all_of(mask, self._owner)
            regs = path() if condition is None else t.branch(condition, path, zeros.copy)
            found.update(zip(every, regs, strict=True))
        if after and not is_alone:
            fence()
        return [found[layout.register_of[offset]] for offset in layout.offsets]

    def write_and_share(self, change: _Change, together: Sequence[int] = (1,), order: str = "relaxed") -> list[Reg]:
        """Do the same; if the operation's result is used, tell all invocations what it returned."""
        regs: Sequence[Reg] = self.write(change, together, order)
        if self._owner is not None and any(list(result.uses) for result in self._op.results):
            regs = through_memory(self._program, self._op, regs, self._layout, self._layout, owner=self._owner)
        return [self._program.numeric.from_memory(reg, self.elem) for reg in regs]
