"""c += a * b on tiles in memory: a register tile of c, one row of b and one element of a at a time.

The products of a batch follow each other. Each stores the parts of a and b that it needs, unless these are in memory.

A register tile is `rows` x `columns` vectors of c. It stays in registers while all of K is added. The mapping's
`accumulators` limits the number of vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from ....dialects import tt
from ....tools import LLVM_INTRINSIC
from ..buffers import Buffer
from ..emission import statement
from ..mlir import Reg, vector_type
from ..numeric import element, in_register
from ..space import extents

if TYPE_CHECKING:
    from ..program import Program
    from ..tiles import Tiles

_MOST_COLUMNS = 4


@statement(tt.DotOp)
def _dot(program: Program, op: tt.DotOp) -> None:
    tiles = program.tiles
    c = program.own_buffer(op.c, op)
    if len(c.extents) == 2:
        a = program.buffer_of(op.a, op)
        b = program.buffer_of(op.b, op)
        if b.order != (0, 1):
            b = program.copied(op.b, op)
        program.accumulate(op, a, b, c)
    else:
        _batch(program, op, c)
    tiles.buffers[op.result] = c
    elem = element(op.result.type, op)
    if in_register(elem) != elem:
        lane = len(c.extents) - 1
        with tiles.space.each(c.extents, lane, tiles.lanes(op.result, op, lane)) as point:
            tiles.private.write(c, point, tiles.numeric.rounded(tiles.private.read(c, point), elem))


def _batch(program: Program, op: tt.DotOp, c: Buffer) -> None:
    """Write one product after another for tiles (B, M, K), (B, K, N) and (B, M, N)."""
    t = program.text
    part_of_a = _parts(program, op, op.a, ((0, 1, 2), (0, 2, 1)))
    part_of_b = _parts(program, op, op.b, ((0, 1, 2),))
    with t.loop(t.integer(0), t.integer(c.extents[0]), 1) as number:
        program.accumulate(op, part_of_a(number), part_of_b(number), program.tiles.private.slice(c, number))


def _parts(
    program: Program, op: tt.DotOp, value: SSAValue, orders: tuple[tuple[int, ...], ...]
) -> Callable[[Reg], Buffer]:
    """Return a function that returns the buffer of a tile's part at an index of the first dimension.

    Args:
        orders: the orders in which the whole tile may be in memory. Otherwise each part is stored when it is needed.
    """
    tiles = program.tiles
    whole = tiles.buffers.get(value)
    if whole is not None and whole.order in orders:
        return functools.partial(tiles.private.slice, whole)
    part = tiles.allocate(value, op, shape=extents(value)[1:])

    def stored(number: Reg) -> Buffer:
        tiles.fill_slice(part, value, op, number)
        return part

    return stored


def accumulate(tiles: Tiles, op: Operation, a: Buffer, b: Buffer, c: Buffer, lanes: int) -> None:
    """Add the product of two tiles to a third, in place.

    Args:
        a: (M, K), in any order. b: (K, N), row-major. c: (M, N), row-major.
        lanes: elements of c in a vector; divides N.
    """
    t = tiles.text
    (m, k), n = a.extents, b.extents[1]
    columns = min(_MOST_COLUMNS, n // lanes)
    rows = min(m, tiles.accumulators // columns)

    def vector(buffer: Buffer, row: Reg, column: Reg) -> Reg:
        return t.load(tiles.private.address(buffer, (row, column)), buffer.elem, lanes, buffer.space)

    def widened(x: Reg) -> Reg:
        if x.elem == c.elem:
            return x
        return t.cast("arith.extf" if x.is_float else "arith.extsi", x, c.elem)

    zero = t.integer(0)
    limits = (zero, t.integer(m)), (zero, t.integer(n))
    with tiles.space.together(), tiles.space.loops(limits, (rows, columns * lanes), (0, 1)) as (i, j):
        row_index = [tiles.space.step(i, r) for r in range(rows)]
        column_index = [tiles.space.step(j, v * lanes) for v in range(columns)]
        before = [vector(c, r, v) for r in row_index for v in column_index]

        steps = min(k, tiles.dot_steps)
        first = Reg(t.fresh(), t.index)
        carried = [Reg(t.fresh(), c.elem, lanes) for _ in before]
        results = [Reg(t.fresh(), c.elem, lanes) for _ in before]
        kind = vector_type(c.elem, lanes)
        head = (
            f"{', '.join(result.name for result in results)} = scf.for {first.name} = {zero.name} to "
            f"{t.integer(k).name} step {t.integer(steps).name} iter_args("
            f"{', '.join(f'{x.name} = {y.name}' for x, y in zip(carried, before, strict=True))}) -> "
            f"({', '.join([kind] * len(before))}) : {t.index} {{"
        )
        with t.nested(head):
            sums = carried
            for step in (tiles.space.step(first, number) for number in range(steps)):
                b_row = [widened(vector(b, step, v)) for v in column_index]
                before_step, sums = sums, []
                for row in row_index:
                    x = t.load(tiles.private.address(a, (row, step)), a.elem, 1, a.space)
                    factor = t.broadcast(widened(x), lanes)
                    row_sums = before_step[len(sums) : len(sums) + columns]
                    sums += [multiply_add(tiles, factor, y, z) for y, z in zip(b_row, row_sums, strict=True)]
            t.line(f"scf.yield {', '.join(x.name for x in sums)} : {', '.join([kind] * len(sums))}")
        places = [(r, v) for r in row_index for v in column_index]
        for result, (r, v) in zip(results, places, strict=True):
            t.store(result, tiles.private.address(c, (r, v)), c.space)


def multiply_add(tiles: Tiles, x: Reg, y: Reg, z: Reg) -> Reg:
    """Return x * y + z, rounded once if the device can do that in one instruction."""
    t = tiles.text
    if not x.is_float:
        return t.binary("arith.addi", t.binary("arith.muli", x, y), z)
    if tiles.target.llvm_intrinsics:
        vector = f"v{x.lanes}" if x.lanes > 1 else ""
        return t.call(f"{LLVM_INTRINSIC}fma.{vector}{x.elem}", [x, y, z], x.elem, x.lanes)
    return t.binary("arith.addf", t.binary("arith.mulf", x, y), z)
