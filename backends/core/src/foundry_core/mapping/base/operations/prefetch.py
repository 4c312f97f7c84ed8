"""Prefetching for tl.dot: while a loop's product is computed, the caches load what the next iteration reads.

The rows of a tile are too short, and too far from each other, for the device to see by itself what is read next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ....emit.mlir import WIDTHS, Reg
from ....ir import tile
from ....ir.elements import extents, index_mapping
from ....ops.elementwise import is_elementwise
from ....ops.numeric import element_name, in_memory
from ..buffers import Buffer
from ..mapping import Mapping
from ..plan import is_tile, is_unit
from .rematerialize import Rematerializer, is_inside

# Bytes that one prefetch loads.
_LINE = 64


@dataclass(frozen=True)
class _Next:
    """What the next iteration loads.

    Attributes:
        start: the offset of its first element from the load's base, in elements.
        lane: the dimension along which elements are contiguous.
        lines: cache lines along this dimension; a power of two.
    """

    load: tile.Read
    start: Reg
    lane: int
    lines: int


class Prefetcher:
    """Writes prefetches for one tl.dot, a part of them at each of its register tiles."""

    def __init__(self, program: Mapping, op: Operation) -> None:
        self._tiles = program.tiles
        loop = op.parent_op()
        self._next: list[_Next] = []
        if program.tiles.target.llvm_intrinsics and isinstance(loop, scf.ForOp):
            rematerializer = Rematerializer(program)
            for load in _loads(op):
                if (found := self._of(load, loop, rematerializer)) is not None:
                    self._next.append(found)

    def _of(self, load: tile.Read, loop: scf.ForOp, rematerializer: Rematerializer) -> _Next | None:
        shape, memory = extents(load.result), in_memory(element_name(load.result.type, load))
        lanes = [d for d, axis in enumerate(load.axes) if is_unit(axis)]
        if len(shape) != 2 or not lanes or load.gather is not None or is_tile(load.base):
            return None
        axes = [axis.owner for axis in load.axes if isinstance(axis.owner, tile.AffineOp | tile.WrappedOp)]
        still = [load.base, *(operand for axis in axes for operand in axis.operands)]
        body = loop.body.block
        if len(axes) < 2 or any(is_inside(value, body) for value in still) or not is_inside(load.start, body):
            return None
        start = rematerializer.next_value(load.start, loop)
        if start is None:
            return None
        lane = lanes[-1]
        lines = max(1, shape[lane] * WIDTHS[memory] // 8 // _LINE)
        return _Next(load, self._tiles.text.to_index(start), lane, lines)

    def write(self, i: Reg, j: Reg, rows: int, columns: int, c: Buffer) -> None:
        """Prefetch the part of a register tile of c: all tiles of c together prefetch everything.

        Args:
            i, j: the tile's first row and column.
            rows, columns: their number in the tile; columns divide those of c.
        """
        t, space = self._tiles.text, self._tiles.space
        m, n = c.extents
        row = space.plus(space.times(t.binary("arith.divui", j, t.integer(columns)), t.integer(m)), i)
        for found in self._next:
            shape, rows_of_all = extents(found.load.result), m * n // columns
            lines = shape[1 - found.lane] * found.lines
            # Lines that share an address: as many as there are in a row, but not more than the register tile's part.
            run = found.lines
            while run > 1 and run * rows_of_all > rows * lines:
                run //= 2
            runs = lines // run
            first = t.binary("arith.divui", space.times(row, t.integer(runs)), t.integer(rows_of_all))
            with t.loop(t.integer(0), t.integer(math.ceil(rows * runs / rows_of_all)), 1) as number:
                line = space.times(space.plus(first, number), t.integer(run))
                along = t.binary("arith.remui", line, t.integer(found.lines))
                index = [t.binary("arith.divui", line, t.integer(found.lines))]
                index.insert(found.lane, space.times(along, t.integer(shape[found.lane] // found.lines)))
                self._tiles.memory.prefetch(found.load, found.start, tuple(index), run, _LINE)


def _loads(op: Operation) -> list[tile.Read]:
    """Return the loads of a product's operands that are in its block."""
    found: list[tile.Read] = []
    pending, seen = list(op.operands[:2]), set[SSAValue]()
    while pending:
        value = pending.pop()
        owner = value.owner
        if value in seen or not isinstance(owner, Operation) or owner.parent_block() is not op.parent_block():
            continue
        seen.add(value)
        if tile.reads_late(owner):
            found.append(owner)
        elif is_elementwise(owner) or ((of := index_mapping(value)) is not None and of.is_permutation):
            pending += [operand for operand in owner.operands if is_tile(operand)]
    return found
