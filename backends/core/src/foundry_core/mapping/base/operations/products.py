"""c += a * b on tiles in memory: a register tile of c, one row of b and one element of a at a time.

The products of a batch follow each other. Each stores the parts of a and b that it needs, unless these are in memory.

A register tile is `rows` x `columns` vectors of c (Tiles.register_tile). It stays in registers while all of K is added,
in the order of k, each product with one rounding. Register tiles of the same columns follow each other, so that their
columns of b, the panel, stay in the first cache (Goto and van de Geijn, Anatomy of high-performance matrix
multiplication, 2008). M rows that are no multiple of a register tile's are divided into tiles of two heights, of which
the lesser is one row less.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue, Use

from ....analysis.flow import CountedLoop, counted_loop, yield_targets
from ....emit.mlir import LLVM_INTRINSIC, WIDTHS, Reg, vector_type
from ....ir import tile, tt
from ....ir.arith import ConstantOp
from ....ir.elements import extents
from ....ir.facts import is_product
from ....ops.elementwise import is_elementwise
from ....ops.numeric import element_name, in_register
from ..buffers import Buffer
from ..emission import statement
from ..mapping import Mapping, Part
from ..tiles import Tiles
from .prefetch import Prefetcher, Rematerializer

# For processors with AVX-512 such as Skylake, LLVM splits vectors wider than this into two registers, except in a
# function that takes or returns wider ones, or calls one that does. PoCL computes this for each kernel (its pass
# fix-min-legal-vec-size). So a product of wider vectors passes one of them to a function, which is then inlined.
_PREFERRED_BITS = 256


@statement(tt.DotOp)
def _dot(program: Mapping, op: tt.DotOp) -> None:
    tiles = program.tiles
    c = program.writable_buffer(op.c, op)
    if len(c.extents) == 2:
        part = demand(program, op)
        a = program.buffer_of(op.a, op, (part.rows, part.depth))
        b = tiles.buffers.get(op.b)
        if b is None or b.order != (0, 1):
            b = _packed(program, op, (part.depth, part.columns))
        program.accumulate(op, a, b, c, part)
    else:
        _batch(program, op, c)
    tiles.buffers[op.result] = c
    elem = element_name(op.result.type, op)
    if in_register(elem) != elem:
        lane = len(c.extents) - 1
        with tiles.space.iterate(c.extents, lane, tiles.lanes(op.result, op, lane)) as point:
            tiles.private.write(c, point, tiles.numeric.round_float(tiles.private.read(c, point), elem))


def _packed(program: Mapping, op: tt.DotOp, ends: Sequence[Reg]) -> Buffer:
    """Write b, up to some ends, to a new buffer: in panels as wide as a register tile, if it is wider."""
    tiles = program.tiles
    (m, n), lane = extents(op.result), 1
    lanes = tiles.lanes(op.result, op, lane)
    width = lanes * tiles.register_tile(m, n // lanes)[1]
    panel = width if tiles.panels and width < n else 0
    b = tiles.allocate(op.b, op, panel=panel)
    tiles.fill(b, op.b, op, ends=ends)
    return b


def _batch(program: Mapping, op: tt.DotOp, c: Buffer) -> None:
    """Write one product after another for tiles (B, M, K), (B, K, N) and (B, M, N)."""
    t = program.text
    part_of_a = _parts(program, op, op.a, ((0, 1, 2), (0, 2, 1)))
    part_of_b = _parts(program, op, op.b, ((0, 1, 2),))
    part = demand(program, op)
    with t.loop(t.integer(0), t.integer(c.extents[0]), 1) as number:
        c_part = program.tiles.private.slice(c, number)
        program.accumulate(op, part_of_a(number), part_of_b(number), c_part, part)


def _parts(
    program: Mapping, op: tt.DotOp, value: SSAValue, orders: tuple[tuple[int, ...], ...]
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


def accumulate(program: Mapping, op: Operation, a: Buffer, b: Buffer, c: Buffer, part: Part) -> None:
    """Add the product of two tiles to a third, in place.

    Args:
        a: (M, K), in any order. b: (K, N), row-major or in panels of a register tile's columns. c: (M, N), row-major.
        part: what has to be computed.
    """
    tiles, t, prefetcher = program.tiles, program.text, Prefetcher(program, op)
    lanes = tiles.lanes(op.results[0], op, len(extents(op.results[0])) - 1)
    (m, k), n = a.extents, b.extents[1]
    most, columns = tiles.register_tile(m, n // lanes)

    def vector(buffer: Buffer, row: Reg, column: Reg) -> Reg:
        return t.load(tiles.private.address(buffer, (row, column)), buffer.elem, lanes, buffer.space)

    def widened(x: Reg) -> Reg:
        if x.elem == c.elem:
            return x
        return t.cast("arith.extf" if x.is_float else "arith.extsi", x, c.elem)

    def add(i: Reg, j: Reg, rows: int) -> None:
        """Add the product to the register tile at (i, j)."""
        prefetcher.write(i, j, rows, columns * lanes, c)
        row_index = [tiles.space.step(i, r) for r in range(rows)]
        column_index = [tiles.space.step(j, v * lanes) for v in range(columns)]
        panel = tiles.private.panel(b, j) if b.panel else b
        b_index = [t.integer(v * lanes) for v in range(columns)] if b.panel else column_index
        before = [vector(c, r, v) for r in row_index for v in column_index]
        if tiles.target.llvm_intrinsics and lanes * WIDTHS[c.elem] > _PREFERRED_BITS:
            before[0] = t.call_own(f"whole.v{lanes}{c.elem}", before[:1], c.elem, lambda _, x: x[0], inlined=True)

        steps = min(k, tiles.dot_steps)
        first = Reg(t.fresh(), t.index)
        carried = [Reg(t.fresh(), c.elem, lanes) for _ in before]
        results = [Reg(t.fresh(), c.elem, lanes) for _ in before]
        kind = vector_type(c.elem, lanes)
        head = (
            f"{', '.join(result.name for result in results)} = scf.for {first.name} = {zero.name} to "
            f"{part.depth.name} step {t.integer(steps).name} iter_args("
            f"{', '.join(f'{x.name} = {y.name}' for x, y in zip(carried, before, strict=True))}) -> "
            f"({', '.join([kind] * len(before))}) : {t.index} {{"
        )
        with t.nest(head):
            sums = carried
            for step in (tiles.space.step(first, number) for number in range(steps)):
                b_row = [widened(vector(panel, step, v)) for v in b_index]
                before_step, sums = sums, []
                for row in row_index:
                    x = t.load(tiles.private.address(a, (row, step)), a.elem, 1, a.space)
                    factor = t.broadcast(widened(x), lanes)
                    row_sums = before_step[len(sums) : len(sums) + columns]
                    sums += [multiply_accumulate(tiles, factor, y, z) for y, z in zip(b_row, row_sums, strict=True)]
            t.line(f"scf.yield {', '.join(x.name for x in sums)} : {', '.join([kind] * len(sums))}")
        places = [(r, v) for r in row_index for v in column_index]
        for result, (r, v) in zip(results, places, strict=True):
            t.store(result, tiles.private.address(c, (r, v)), c.space)

    zero = t.integer(0)
    with tiles.space.barriers():
        first = 0
        for rows, count in _heights(m, most):
            end = t.integer(first + rows * count)
            if part.rows != t.integer(m):
                end = t.select(t.compare("slt", part.rows, end), part.rows, end)
            limits = (t.integer(first), end), (zero, part.columns)
            with tiles.space.loops(limits, (rows, columns * lanes), tiles.product_order) as (i, j):
                add(i, j, rows)
            first += rows * count


def _heights(m: int, most: int) -> list[tuple[int, int]]:
    """Divide m rows into as few tiles as possible, of at most `most` rows; return each height with its number."""
    count = -(-m // most)
    rows = -(-m // count)
    tall = m - count * (rows - 1)
    return [(rows, tall), *([(rows - 1, count - tall)] if tall < count else [])]


def multiply_accumulate(tiles: Tiles, x: Reg, y: Reg, z: Reg) -> Reg:
    """Return x * y + z, rounded once if the device can do that in one instruction."""
    t = tiles.text
    if not x.is_float:
        return t.binary("arith.addi", t.binary("arith.muli", x, y), z)
    if tiles.target.llvm_intrinsics:
        vector = f"v{x.lanes}" if x.lanes > 1 else ""
        return t.call(f"{LLVM_INTRINSIC}fma.{vector}{x.elem}", [x, y, z], x.elem, x.lanes)
    return t.binary("arith.addf", t.binary("arith.mulf", x, y), z)


def demand(program: Mapping, op: Operation) -> Part:
    """Return the part of a product that has to be computed: nothing else of the result is read."""
    t, tiles = program.text, program.tiles
    (left, right, _), (result,) = op.operands, op.results
    (m, n), k = extents(result)[-2:], extents(left)[-1]
    ends = [t.integer(m), t.integer(n)]
    depth = t.integer(k)
    if tiles.panels and len(extents(result)) == 2:
        rematerializer, uses = Rematerializer(program), _Uses()
        if uses.follow(result) and len(uses.stores) == 1:
            for d, value in enumerate(uses.stores.pop().ranges):
                # What one iteration does not store of a sum, the next one may.
                ends[d] = rematerializer.index(tile.limits(value)[1], uses.loops) or ends[d]
        a, b = _terms(left, 1, rematerializer), _terms(right, 0, rematerializer)
        if a is not None and b is not None and depth not in (a, b):
            # Behind the last term, both factors are 0. One such term is added: it makes -0.0 a 0.0, as all of them do.
            last = t.binary("arith.addi", t.select(t.compare("slt", a, b), b, a), t.integer(1))
            depth = t.select(t.compare("slt", last, depth), last, depth)
    return Part(ends[0], ends[1], depth)


def _terms(value: SSAValue, dimension: int, rematerializer: Rematerializer) -> Reg | None:
    """Return the index along a dimension from which on a tile is 0; None if that is not known."""
    op = value.owner
    if not tile.reads_late(op) or not op.ranges:
        return None
    if op.other is not None and not (isinstance(op.other.owner, ConstantOp) and op.other.owner.splat == 0):
        return None
    return rematerializer.index(tile.limits(op.ranges[dimension])[1])


class _Uses:
    """Follows a tile to the stores that write it.

    Attributes:
        stores: those that were found.
        loops: loops that carry the tile from one iteration to the next.
    """

    def __init__(self) -> None:
        self.stores: set[tile.Access] = set()
        self.loops: set[CountedLoop] = set()
        self._seen: set[SSAValue] = set()

    def follow(self, value: SSAValue) -> bool:
        """Return whether an element of a tile has no effect except on the same element of stored tiles."""
        if value in self._seen:
            return True
        self._seen.add(value)
        return all(self._follow(use) for use in value.uses)

    def _follow(self, use: Use) -> bool:
        match use.operation:
            case op if tile.only_writes(op) and use.index == 0:
                self.stores.add(op)
                return True
            case op if values := yield_targets(op, use.index):
                if loop := counted_loop(op.parent_op()):
                    self.loops.add(loop)
                return all(map(self.follow, reversed(values)))
            case op if is_product(op) and use.index == 2:
                return self.follow(op.results[0])
            case op:
                return is_elementwise(op) and self.follow(op.results[0])
