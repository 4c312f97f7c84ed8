"""Loads and stores of global memory, as wide as addresses, alignment and masks allow."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...dialects import tt
from ...dialects.arith import SelectOp
from ..base.mlir import WIDTHS, Reg
from ..base.numeric import element, in_memory, in_register, scalar_type
from .layouts import Layout
from .program import Program, invocation_statement
from .runs import runs

# The most bytes of one access.
_WIDEST = 16


def _pointee(op: Operation, pointer: SSAValue) -> str:
    type = scalar_type(pointer.type)
    assert isinstance(type, tt.PointerType)
    return element(type.pointee, op)


@invocation_statement(tt.AddPtrOp)
def _add(program: Program, op: tt.AddPtrOp) -> None:
    t = program.code
    size = t.integer(max(1, WIDTHS[in_memory(_pointee(op, op.ptr))] // 8), "i64")
    program.values[op.result] = [
        t.binary("arith.addi", address, t.binary("arith.muli", t.cast("arith.extsi", offset, "i64"), size))
        for address, offset in zip(program.values[op.ptr], program.values[op.offset], strict=True)
    ]


@invocation_statement(tt.IntToPtrOp, tt.PtrToIntOp)
def _address(program: Program, op: tt.IntToPtrOp | tt.PtrToIntOp) -> None:
    """An address is a number."""
    program.values[op.result] = program.values[op.src]


@invocation_statement(tt.BitcastOp)
def _bitcast(program: Program, op: tt.BitcastOp) -> None:
    if isinstance(scalar_type(op.result.type), tt.PointerType):
        program.values[op.result] = program.values[op.src]
    else:
        program.elementwise(op)


@invocation_statement(SelectOp)
def _select(program: Program, op: SelectOp) -> None:
    if not isinstance(scalar_type(op.result.type), tt.PointerType):
        program.elementwise(op)
        return
    rows = zip(*program.operands(op), strict=True)
    program.values[op.result] = [program.code.select(*row) for row in rows]


@invocation_statement(tt.LoadOp)
def _load(program: Program, op: tt.LoadOp) -> None:
    t = program.code
    elem = _pointee(op, op.ptr)
    stored, held = in_memory(elem), in_register(elem)
    size = WIDTHS[stored] // 8
    addresses = program.values[op.ptr]
    masks = program.values[op.mask] if op.mask is not None else [None] * len(addresses)
    zero = t.floating(0.0, held) if held[0] == "f" else t.integer(0, held)
    others = program.values[op.other] if op.other is not None else [zero] * len(addresses)
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
        regs = [
            program.numeric.from_memory(reg, elem) for reg in program.group.load(address, stored, len(run), alignment)
        ]
        if mask is not None and op.other is not None:
            regs = [t.select(mask, reg, others[k]) for k, reg in zip(run, regs, strict=True)]
        found.update(zip(run, regs, strict=True))
    program.values[op.result] = [found[seen[key]] for key in zip(addresses, masks, others, strict=True)]


@invocation_statement(tt.StoreOp)
def _store(program: Program, op: tt.StoreOp) -> None:
    t = program.code
    elem = _pointee(op, op.ptr)
    size = WIDTHS[in_memory(elem)] // 8
    addresses, values = program.values[op.ptr], program.values[op.value]
    masks = program.values[op.mask] if op.mask is not None else [None] * len(addresses)
    once = _written_once(program, op)
    kept = list({(address, mask): k for k, (address, mask) in enumerate(zip(addresses, masks, strict=True))}.values())
    for run in runs(t, [addresses[k] for k in kept], [masks[k] for k in kept], size, _WIDEST // size):
        run = [kept[k] for k in run]

        def write(run: list[int] = run) -> None:
            regs = [program.numeric.to_memory(values[k], elem) for k in run]
            alignment = min(t.multiple(addresses[run[0]]), size * len(run))
            program.group.store(addresses[run[0]], regs, max(alignment, size))

        conditions = [mask for mask in (masks[run[0]], once) if mask is not None]
        if not conditions:
            write()
        else:
            condition = conditions[0] if len(conditions) == 1 else t.binary("arith.andi", *conditions)
            t.do_when(condition, write)


def _written_once(program: Program, op: tt.StoreOp) -> Reg | None:
    if isinstance(op.ptr.type, TensorType):
        return held_once(program, program.layout(op.ptr))
    return first_invocation(program)


def first_invocation(program: Program) -> Reg:
    """Return whether this is the first invocation of the program."""
    target = program.target
    lanes, warps = ((0,) * (size.bit_length() - 1) for size in (target.warp_size, target.warps))
    found = held_once(program, Layout((), (), lanes, warps))
    assert found is not None
    return found


def held_once(program: Program, layout: Layout) -> Reg | None:
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
