"""Atomic operations: each element once, by the invocation that holds it; the others are told the result.

Integers of 32 and 64 bits have instructions. Everything else is a loop of compare-and-exchange on the 32-bit word, or
the 64 bits, around the element. Neighbours that are known to fill a word share a loop. Some devices have
an instruction for two or four neighbouring f16; Vulkan has none for f32.

The instructions themselves are in no order with other accesses. Where Triton asks for one, there is one fence before
all elements of an operation, or after them: an instruction with an order waits for all accesses before it, each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....emit.mlir import WIDTHS, Reg
from ....errors import unsupported
from ....ir import tt
from ....ops.numeric import element_name
from ..program import SimtProgram, invocation_statement
from .memory import OwnerAccess

_INSTRUCTIONS = {
    "add": "AtomicIAdd",
    "max": "AtomicSMax",
    "min": "AtomicSMin",
    "umax": "AtomicUMax",
    "umin": "AtomicUMin",
    "and": "AtomicAnd",
    "or": "AtomicOr",
    "xor": "AtomicXor",
    "exch": "AtomicExchange",
}


@invocation_statement(tt.AtomicRMWOp)
def _rmw(program: SimtProgram, op: tt.AtomicRMWOp) -> None:
    t, group, numeric = program.code, program.group, program.numeric
    atomic = OwnerAccess(program, op, op.ptr, op.mask)
    values = program.values[op.value]
    kind, elem = op.kind.data, atomic.elem
    adds_halves = kind == "fadd" and elem == "f16" and 16 in program.target.atomic_adds
    together = (2, 4) if adds_halves else (max(1, 32 // WIDTHS[atomic.kind]),)

    def change(numbers: Sequence[int], address: Reg) -> Sequence[Reg]:
        value = numeric.to_memory(values[numbers[0]], elem)
        if elem in ("i32", "i64") or (kind == "exch" and elem in ("f32", "f64")):
            bits = f"i{WIDTHS[value.elem]}"
            old = group.atomic(_INSTRUCTIONS[kind], address, t.cast("arith.bitcast", value, bits))
            return [t.cast("arith.bitcast", old, value.elem)]
        if kind == "fadd" and elem in ("f32", "f64") and WIDTHS[elem] in program.target.atomic_adds:
            return [group.atomic("AtomicFAdd", address, value)]

        if adds_halves and len(numbers) > 1:
            halves = [t.cast("arith.bitcast", numeric.to_memory(values[number], elem), elem) for number in numbers]
            return [t.cast("arith.bitcast", old, atomic.kind) for old in group.add_halves(address, halves)]

        def changed(number: int, bits: Reg) -> Reg:
            return numeric.to_memory(_changed(program, op, numeric.from_memory(bits, elem), values[number]), elem)

        return _in_loop(program, atomic, numbers, address, changed)

    program.values[op.result] = atomic.write_and_share(change, together, _order(op))


def _order(op: tt.AtomicRMWOp | tt.AtomicCASOp) -> str:
    return op.order.data if op.order is not None else "acq_rel"


def _changed(program: SimtProgram, op: tt.AtomicRMWOp, old: Reg, value: Reg) -> Reg:
    t, numeric = program.code, program.numeric
    elem = element_name(op.value.type, op)
    match op.kind.data:
        case "fadd":
            return numeric.round_float(t.binary("arith.addf", old, value), elem)
        case "exch":
            return value
        case "add":
            return t.binary("arith.addi", old, value)
        case "and" | "or" | "xor" as name:
            return t.binary({"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}[name], old, value)
        case "max" | "min" | "umax" | "umin" as name:
            predicate = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}[name]
            return numeric.pick(predicate, old, value)
    raise unsupported(op, op.kind.data)


def _in_loop(
    program: SimtProgram,
    atomic: OwnerAccess,
    numbers: Sequence[int],
    address: Reg,
    changed: Callable[[int, Reg], Reg],
) -> Sequence[Reg]:
    """Exchange the word around elements until nothing else changed it meanwhile; return the elements' old bits.

    Args:
        numbers: the registers: one, or as many as fill a word.
        changed: returns the new bits of an element for the old ones.
    """
    t, group = program.code, program.group
    width = WIDTHS[atomic.kind]
    word = "i64" if width == 64 else "i32"
    at, shifts = address, [t.integer(place * width, "i32") for place in range(len(numbers))]
    is_part = len(numbers) * width < 32
    if is_part:
        at = t.binary("arith.andi", address, t.integer(~3, "i64"))
        t.state_multiple(at, 4)
        bytes = t.cast("arith.trunci", t.binary("arith.andi", address, t.integer(3, "i64")), "i32")
        shifts = [t.binary("arith.muli", bytes, t.integer(8, "i32"))]

    def inside(bits: Reg) -> list[Reg]:
        """Return the elements' bits of a word."""
        if width >= 32:
            return [t.cast("arith.bitcast", bits, atomic.kind)]
        return [t.cast("arith.trunci", t.binary("arith.shrui", bits, shift), f"i{width}") for shift in shifts]

    def replaced(bits: Reg, new: Sequence[Reg]) -> Reg:
        if width >= 32:
            return t.cast("arith.bitcast", new[0], word)
        total = t.integer(0, word)
        if is_part:
            mask = t.binary("arith.shli", t.integer((1 << width) - 1, "i32"), shifts[0])
            total = t.binary("arith.andi", bits, t.binary("arith.xori", mask, t.integer(-1, "i32")))
        for each, shift in zip(new, shifts, strict=True):
            total = t.binary("arith.ori", total, t.binary("arith.shli", t.cast("arith.extui", each, "i32"), shift))
        return total

    def test(regs: Sequence[Reg]) -> tuple[Reg, Sequence[Reg]]:
        return regs[1], regs

    def body(regs: Sequence[Reg]) -> Sequence[Reg]:
        expected = regs[0]
        new = replaced(expected, [changed(*each) for each in zip(numbers, inside(expected), strict=True)])
        found = group.atomic("AtomicCompareExchange", at, new, expected)
        return [found, t.compare("ne", found, expected)]

    (first,) = group.load(at, word, 1, 8 if word == "i64" else 4)
    last, _ = t.loop([first, t.integer(1, "i1")], test, body)
    return inside(last)


@invocation_statement(tt.AtomicCASOp)
def _cas(program: SimtProgram, op: tt.AtomicCASOp) -> None:
    t, group, numeric = program.code, program.group, program.numeric
    atomic = OwnerAccess(program, op, op.ptr, None)
    bits = f"i{WIDTHS[atomic.kind]}"

    def change(numbers: Sequence[int], address: Reg) -> Sequence[Reg]:
        compared, value = (
            t.cast("arith.bitcast", numeric.to_memory(program.values[each][numbers[0]], atomic.elem), bits)
            for each in (op.compare, op.value)
        )
        if WIDTHS[bits] < 32:

            def changed(number: int, old: Reg) -> Reg:
                return t.select(t.compare("eq", old, compared), value, old)

            return _in_loop(program, atomic, numbers, address, changed)
        return [t.cast("arith.bitcast", group.atomic("AtomicCompareExchange", address, value, compared), atomic.kind)]

    program.values[op.result] = atomic.write_and_share(change, order=_order(op))
