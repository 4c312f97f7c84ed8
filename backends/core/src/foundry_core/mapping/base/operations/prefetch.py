"""Prefetching for tl.dot: while a loop's product is computed, the caches load what the next iteration reads.

The rows of a tile are too short, and too far from each other, for the device to see by itself what is read next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue

from ....analysis.flow import CountedLoop, counted_loop, incoming_values
from ....emit.mlir import WIDTHS, Reg
from ....front.scalars import constant_value
from ....ir import tile
from ....ir.arith import ConstantOp
from ....ir.elements import extents, index_mapping
from ....ops.elementwise import apply_row, is_elementwise
from ....ops.numeric import element_name, in_memory
from ..buffers import Buffer
from ..mapping import Mapping
from ..plan import is_tile, is_unit

# The most operations that are written again for the values that one tl.dot needs.
_MOST_STEPS = 64


class Rematerializer:
    """Writes again what computes an integer. Functions return None if that takes more than integer arithmetic."""

    def __init__(self, program: Mapping) -> None:
        self._tiles = program.tiles
        self._steps = 0

    def value_at(self, value: SSAValue, loops: Collection[CountedLoop] = ()) -> Reg | None:
        """Return an integer of this iteration of all loops, whether it is computed above or below this place.

        Args:
            loops: return None if an iteration of these computes what the integer depends on.
        """
        if isinstance(value.owner, ConstantOp):
            return self._tiles.scalar(value)
        if value in self._tiles.scalars:
            changes = any(is_inside(value, loop.body) for loop in loops)
            return None if changes else self._tiles.scalar(value)
        return self._computed(value, lambda operand: self.value_at(operand, loops))

    def index(self, value: SSAValue, loops: Collection[CountedLoop] = ()) -> Reg | None:
        """Return what `value_at` returns, as an index; a constant as one of the text's constants."""
        if (number := constant_value(value)) is not None:
            return self._tiles.text.integer(number)
        found = self.value_at(value, loops)
        return None if found is None else self._tiles.text.to_index(found)

    def next_value(self, value: SSAValue, loop: CountedLoop) -> Reg | None:
        """Return an integer as it will be in the next iteration of a loop whose body is being written."""
        if not is_inside(value, loop.body):
            return self.value_at(value)
        if value is loop.counter:
            return self._tiles.text.binary("arith.addi", self._tiles.scalar(value), self._tiles.scalar(loop.step))
        if value in loop.body.args:
            passed = incoming_values(value)
            return None if passed is None else self.value_at(passed[-1])
        return self._computed(value, lambda operand: self.next_value(operand, loop))

    def _computed(self, value: SSAValue, operand: Callable[[SSAValue], Reg | None]) -> Reg | None:
        """Apply the operation that computes an integer to what a function returns for its operands."""
        op = value.owner
        self._steps += 1
        if not isinstance(op, Operation) or not is_elementwise(op) or self._steps > _MOST_STEPS:
            return None
        if not all(isinstance(each.type, IntegerType) for each in (value, *op.operands)):
            return None
        operands: list[Reg] = []
        for each in op.operands:
            found = operand(each)
            if found is None:
                return None
            operands.append(found)
        return apply_row(self._tiles.numeric, op, operands)


def is_inside(value: SSAValue, outer: Block) -> bool:
    """Return whether a value is computed in a block, or in a region of one of its operations; a constant never is."""
    if isinstance(value.owner, ConstantOp):
        return False
    block: Block | None = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    while block is not None and block is not outer:
        block = block.parent_block()
    return block is not None


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
        loop = counted_loop(op.parent_op())
        self._next: list[_Next] = []
        if program.tiles.target.llvm_intrinsics and loop:
            rematerializer = Rematerializer(program)
            for load in _loads(op):
                if (found := self._of(load, loop, rematerializer)) is not None:
                    self._next.append(found)

    def _of(self, load: tile.Read, loop: CountedLoop, rematerializer: Rematerializer) -> _Next | None:
        shape, memory = extents(load.result), in_memory(element_name(load.result.type, load))
        lanes = [d for d, axis in enumerate(load.axes) if is_unit(axis)]
        if len(shape) != 2 or not lanes or load.gather is not None or is_tile(load.base):
            return None
        axes = [axis for axis in load.axes if tile.stride(axis) is not None]
        still = [
            load.base,
            *(operand for axis in axes if isinstance(axis.owner, Operation) for operand in axis.owner.operands),
        ]
        body = loop.body
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
