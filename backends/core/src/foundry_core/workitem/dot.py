"""c += a * b on tiles in private memory: a register tile of c, one row of b and one element of a at a time.

A register tile is `rows` x `columns` vectors of c, updated for all of K while it stays in registers. 4 x 4 vectors
(16 accumulators, 4 vectors of b, the elements of a broadcast from memory) fit the 32 vector registers of AVX-512 and of
SVE, and cover a latency of 4 cycles at 2 multiply-adds a cycle twice over.
"""

from __future__ import annotations

from contextlib import ExitStack

from xdsl.ir import Operation

from ..tools import LLVM_INTRINSIC
from .buffers import Buffer
from .mlir import PRIVATE, Reg, vector_type
from .tiles import Tiles

_ACCUMULATORS = 16
_MOST_COLUMNS = 4


def accumulate(tiles: Tiles, op: Operation, a: Buffer, b: Buffer, c: Buffer, lanes: int) -> None:
    """Add the product of two tiles to a third, in place.

    Args:
        a: (M, K), in any order. b: (K, N), row-major. c: (M, N), row-major.
        lanes: elements of c in a vector; divides N.
    """
    t = tiles.text
    (m, k), n = a.extents, b.extents[1]
    columns = min(_MOST_COLUMNS, n // lanes)
    rows = min(m, _ACCUMULATORS // columns)

    def vector(buffer: Buffer, row: Reg, column: Reg) -> Reg:
        address = t.address(buffer.name, tiles.private.offset(buffer, (row, column)), buffer.elem, PRIVATE)
        return t.load(address, buffer.elem, lanes, PRIVATE)

    def widened(x: Reg) -> Reg:
        if x.elem == c.elem:
            return x
        return t.cast("arith.extf" if x.is_float else "arith.extsi", x, c.elem)

    with ExitStack() as loops:
        zero = t.integer(0)
        i = loops.enter_context(t.loop(zero, t.integer(m), rows)) if m > rows else zero
        j = loops.enter_context(t.loop(zero, t.integer(n), columns * lanes)) if n > columns * lanes else zero
        row_index = [tiles.space.plus(i, t.integer(r)) for r in range(rows)]
        column_index = [tiles.space.plus(j, t.integer(v * lanes)) for v in range(columns)]
        before = [vector(c, r, v) for r in row_index for v in column_index]

        step = Reg(t.fresh(), "i64")
        carried = [Reg(t.fresh(), c.elem, lanes) for _ in before]
        results = [Reg(t.fresh(), c.elem, lanes) for _ in before]
        kind = vector_type(c.elem, lanes)
        head = (
            f"{', '.join(result.name for result in results)} = scf.for {step.name} = {zero.name} to "
            f"{t.integer(k).name} step {t.integer(1).name} iter_args("
            f"{', '.join(f'{x.name} = {y.name}' for x, y in zip(carried, before, strict=True))}) -> "
            f"({', '.join([kind] * len(before))}) : i64 {{"
        )
        with t.nested(head):
            b_row = [widened(vector(b, step, v)) for v in column_index]
            after: list[Reg] = []
            for row in range(rows):
                address = t.address(a.name, tiles.private.offset(a, (row_index[row], step)), a.elem, PRIVATE)
                factor = t.broadcast(widened(t.load(address, a.elem, 1, PRIVATE)), lanes)
                for column in range(columns):
                    after.append(multiply_add(tiles, factor, b_row[column], carried[row * columns + column]))
            t.line(f"scf.yield {', '.join(x.name for x in after)} : {', '.join([kind] * len(after))}")
        places = [(r, v) for r in row_index for v in column_index]
        for result, (r, v) in zip(results, places, strict=True):
            t.store(result, t.address(c.name, tiles.private.offset(c, (r, v)), c.elem, PRIVATE), PRIVATE)


def multiply_add(tiles: Tiles, x: Reg, y: Reg, z: Reg) -> Reg:
    """x * y + z; rounded once where the device can do that in one instruction."""
    t = tiles.text
    if not x.is_float:
        return t.binary("arith.addi", t.binary("arith.muli", x, y), z)
    if tiles.target.llvm_intrinsics:
        vector = f"v{x.lanes}" if x.lanes > 1 else ""
        return t.call(f"{LLVM_INTRINSIC}fma.{vector}{x.elem}", [x, y, z], x.elem, x.lanes)
    return t.binary("arith.addf", t.binary("arith.mulf", x, y), z)
