"""Matrix products, and the workgroup memory that their operands pass through."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...dialects import tt, ttg
from ..base.mlir import Reg
from ..base.numeric import element
from .exchange import Rows
from .program import Program, statement


@dataclass(frozen=True)
class Shared:
    """A tile in workgroup memory: how its rows are arranged, its first byte, and the type of its elements."""

    rows: Rows
    first: int
    kind: str


@statement(ttg.LocalAllocOp)
def _alloc(program: Program, op: ttg.LocalAllocOp) -> None:
    assert op.src is not None
    regs, source = program.values[op.src], program.layout(op.src)
    rows = Rows(source, regs[0].elem)
    tile = Shared(rows, program.arena.take(op, rows.bytes), regs[0].elem)
    program.shared[op.result] = tile
    program.group.barrier()
    rows.write(program, source, tile.first, regs)


@statement(ttg.LocalLoadOp)
def _local_load(program: Program, op: ttg.LocalLoadOp) -> None:
    tile = program.shared[op.src]
    program.group.barrier()
    program.values[op.result] = tile.rows.read(program, program.layout(op.result), tile.first)
    if is_last_use(op, op.src):
        program.arena.release(tile.first)


def is_last_use(op: Operation, value: SSAValue) -> bool:
    """Return whether no later operation uses a value, as far as one block tells."""
    users = [use.operation for use in value.uses]
    block = op.parent_block()
    if any(user.parent_block() is not block for user in users) or value.owner.parent_block() is not block:
        return False
    later = op.next_op
    while later is not None:
        if later in users:
            return False
        later = later.next_op
    return True


@statement(tt.DotOp)
def _dot(program: Program, op: tt.DotOp) -> None:
    t, numeric = program.code, program.numeric
    a, b, c = program.layout(op.a), program.layout(op.b), program.layout(op.c)
    x, y, z = (program.values[value] for value in (op.a, op.b, op.c))
    (*_, rows, depth), columns = a.shape, b.shape[-1]
    elem = element(op.c.type, op)
    held = z[0].elem
    widen = {"i8": "arith.extsi"}.get(x[0].elem)
    if widen:
        x, y = ([t.cast(widen, reg, held) for reg in regs] for regs in (x, y))
    found = []
    for number, offset in enumerate(c.offsets):
        batch, row, column = offset // (rows * columns), offset // columns % rows, offset % columns
        total = z[number]
        for k in range(depth):
            left = x[a.register_of[(batch * rows + row) * depth + k]]
            right = y[b.register_of[(batch * depth + k) * columns + column]]
            total = _step(program, left, right, total)
        found.append(numeric.rounded(total, elem))
    program.values[op.result] = found


def _step(program: Program, left: Reg, right: Reg, total: Reg) -> Reg:
    """Return left * right + total. Of floats, the device decides whether the product is rounded."""
    t = program.code
    if total.elem[0] == "f":
        return program.numeric.library("fma", [left, right, total])
    return t.binary("arith.addi", t.binary("arith.muli", left, right), total)
