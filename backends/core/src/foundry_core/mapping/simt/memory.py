"""Loads and stores of global memory, as wide as addresses, alignment and masks allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...dialects import tt
from ..base.mlir import WIDTHS, Reg
from ..base.numeric import element, in_memory, in_register, scalar_type
from .program import Program, statement

# The most bytes of one access.
_WIDEST = 16


def _memory_type(elem: str) -> str:
    """Return the type with which an element is read and written; f16 has an instruction that converts it."""
    return "f16" if elem == "f16" else in_memory(elem)


def _pointee(op: Operation, pointer: SSAValue) -> str:
    type = scalar_type(pointer.type)
    assert isinstance(type, tt.PointerType)
    return element(type.pointee, op)


@statement(tt.AddPtrOp)
def _add(program: Program, op: tt.AddPtrOp) -> None:
    t = program.code
    size = t.integer(max(1, WIDTHS[_memory_type(_pointee(op, op.ptr))] // 8), "i64")
    program.values[op.result] = [
        t.binary("arith.addi", address, t.binary("arith.muli", t.cast("arith.extsi", offset, "i64"), size))
        for address, offset in zip(program.values[op.ptr], program.values[op.offset], strict=True)
    ]


def _runs(program: Program, addresses: Sequence[Reg], others: Sequence[object], size: int) -> Iterator[list[int]]:
    """Divide registers into accesses: registers of neighbouring elements, as many as their alignment allows.

    Args:
        others: what the registers of one access must have in common.
        size: bytes of an element.
    """
    t = program.code
    parts = [t.parts(address) for address in addresses]
    order = sorted(range(len(addresses)), key=lambda k: (parts[k][0].name, parts[k][1]))
    at = 0
    while at < len(order):
        base, step = parts[order[at]]
        run = 1
        while run * size < _WIDEST:
            more = order[at + run : at + 2 * run]
            fits = len(more) == run and t.multiple(addresses[order[at]]) % (2 * run * size) == 0
            expected = [(base, step + (run + k) * size) for k in range(run)]
            if not fits or [parts[k] for k in more] != expected or any(others[k] != others[order[at]] for k in more):
                break
            run *= 2
        yield order[at : at + run]
        at += run


@statement(tt.LoadOp)
def _load(program: Program, op: tt.LoadOp) -> None:
    t = program.code
    elem = _pointee(op, op.ptr)
    stored, held = _memory_type(elem), in_register(elem)
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
    for run in _runs(program, [addresses[k] for k in distinct], [masks[k] for k in distinct], size):
        run = [distinct[k] for k in run]

        def read(run: list[int] = run) -> list[Reg]:
            alignment = min(t.multiple(addresses[run[0]]), size * len(run))
            regs = program.group.load(addresses[run[0]], stored, len(run), max(alignment, size))
            return [program.numeric.from_memory(reg, elem) for reg in regs]

        mask = masks[run[0]]
        regs = read() if mask is None else t.when(mask, read, lambda run=run: [others[k] for k in run])  # type: ignore[misc]
        found.update(zip(run, regs, strict=True))
    program.values[op.result] = [found[seen[key]] for key in zip(addresses, masks, others, strict=True)]


@statement(tt.StoreOp)
def _store(program: Program, op: tt.StoreOp) -> None:
    t = program.code
    elem = _pointee(op, op.ptr)
    size = WIDTHS[_memory_type(elem)] // 8
    addresses, values = program.values[op.ptr], program.values[op.value]
    masks = program.values[op.mask] if op.mask is not None else [None] * len(addresses)
    once = _written_once(program, op)
    kept = list({(address, mask): k for k, (address, mask) in enumerate(zip(addresses, masks, strict=True))}.values())
    for run in _runs(program, [addresses[k] for k in kept], [masks[k] for k in kept], size):
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
    """Return whether this invocation is the one that writes elements that several hold; None if none are."""
    t = program.code
    type = op.ptr.type
    lanes = [0] * (program.target.warp_size.bit_length() - 1)
    warps = [0] * (program.target.warps.bit_length() - 1)
    if isinstance(type, TensorType):
        layout = program.layout(op.ptr)
        lanes, warps = list(layout.lanes), list(layout.warps)
    found = None
    for bases, number in ((lanes, program.group.lane()), (warps, program.group.warp())):
        repeated = sum(1 << bit for bit, basis in enumerate(bases) if basis == 0)
        if repeated:
            bits = t.binary("arith.andi", number, t.integer(repeated, "i32"))
            mine = t.compare("eq", bits, t.integer(0, "i32"))
            found = mine if found is None else t.binary("arith.andi", found, mine)
    return found
