"""Matrix products, and the workgroup memory that their operands pass through."""

from __future__ import annotations

from ...dialects import tt, ttg
from ..base.mlir import WIDTHS, Reg
from .exchange import _reserve, _Rows
from .program import Program, statement


@statement(ttg.LocalAllocOp)
def _alloc(program: Program, op: ttg.LocalAllocOp) -> None:
    t, group = program.code, program.group
    assert op.src is not None
    regs, source = program.values[op.src], program.layout(op.src)
    kind = regs[0].elem
    size = WIDTHS[kind] // 8
    rows = _Rows(source, kind)
    first = -(-program.kept_bytes // 16) * 16 // size
    program.kept_bytes = first * size + rows.bytes
    _reserve(program, op, program.kept_bytes)
    program.places[op.result] = (rows, first)
    group.barrier()
    for reg, index in zip(regs, program.indices(source), strict=True):
        group.write_shared(t.binary("arith.addi", rows.place(program, index), t.integer(first, "i32")), [reg])
    program.values[op.result] = [regs[0]]


@statement(ttg.LocalLoadOp)
def _local_load(program: Program, op: ttg.LocalLoadOp) -> None:
    t, group = program.code, program.group
    rows, first = program.places[op.src]
    kind = program.values[op.src][0].elem
    group.barrier()
    read: dict[str, Reg] = {}
    found = []
    for index in program.indices(program.layout(op.result)):
        place = t.binary("arith.addi", rows.place(program, index), t.integer(first, "i32"))
        if place.name not in read:
            (read[place.name],) = group.read_shared(place, kind)
        found.append(read[place.name])
    program.values[op.result] = found


@statement(tt.DotOp)
def _dot(program: Program, op: tt.DotOp) -> None:
    a, b, c = program.layout(op.a), program.layout(op.b), program.layout(op.c)
    x, y, z = (program.values[value] for value in (op.a, op.b, op.c))
    depth, columns = a.shape[-1], b.shape[-1]
    found = []
    for number, offset in enumerate(c.offsets):
        row, column = offset // columns, offset % columns
        total = z[number]
        for k in range(depth):
            left = x[a.register_of[row * depth + k]]
            right = y[b.register_of[k * columns + column]]
            total = program.numeric.library("fma", [left, right, total])
        found.append(total)
    program.values[op.result] = found
