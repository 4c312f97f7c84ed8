"""tile.pairs: all steps in one buffer for each tile, in nested loops over the steps and over the pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ....emit.mlir import Reg
from ....ir import tile
from ....ir.elements import extents
from ..buffers import Buffer
from ..emission import statement
from ..mapping import Mapping
from ..space import Point
from .reductions import Combination


@dataclass(frozen=True)
class Ladder:
    """Steps for each `rung` from 0 on: bits from `first + rung` down to `last`, all with the flip `flip + rung`.

    If `flip` is -1, it is so in all steps.
    """

    first: int
    last: int
    flip: int
    rungs: int


def ladders(steps: Sequence[tuple[int, int]]) -> Iterator[Ladder]:
    """Group steps, each a bit and a flip; a bitonic sort is one ladder and a merge."""
    runs: list[tuple[int, int, int]] = []
    for bit, flip in steps:
        if runs and runs[-1][1] == bit + 1 and runs[-1][2] == flip:
            runs[-1] = (runs[-1][0], bit, flip)
        else:
            runs.append((bit, bit, flip))
    while runs:
        first, last, flip = runs[0]
        rungs = 1
        while rungs < len(runs) and runs[rungs] == (first + rungs, last, flip + rungs if flip >= 0 else -1):
            rungs += 1
        yield Ladder(first, last, flip, rungs)
        del runs[:rungs]


@statement(tile.PairsOp)
def _pairs(program: Mapping, op: tile.PairsOp) -> None:
    t = program.text
    buffers = [program.writable_buffer(src, op) for src in op.srcs]
    elements = [replace(buffer, extents=(math.prod(buffer.extents),), order=(0,)) for buffer in buffers]
    function = Combination(program, op.function.block)
    for ladder in ladders(op.steps):
        with ExitStack() as opened:
            first, flip = t.integer(ladder.first), t.integer(ladder.flip)
            if ladder.rungs > 1:
                rung = opened.enter_context(t.loop(t.integer(0), t.integer(ladder.rungs), 1))
                first = program.tiles.space.plus(first, rung)
                flip = program.tiles.space.plus(flip, rung) if ladder.flip >= 0 else flip
            count = t.binary("arith.subi", first, t.integer(ladder.last - 1))
            turn = opened.enter_context(t.loop(t.integer(0), count, 1))
            bit = t.binary("arith.subi", first, turn)
            _step(program, elements, function, bit, flip if ladder.flip >= 0 else None)
    for result, buffer in zip(op.results, buffers, strict=True):
        shape = extents(result)
        program.tiles.buffers[result] = replace(buffer, extents=shape, order=tuple(range(len(shape))))


def _step(program: Mapping, elements: Sequence[Buffer], function: Combination, bit: Reg, flip: Reg | None) -> None:
    """Write the loop over all pairs."""
    t, private, one = program.text, program.tiles.private, program.text.integer(1)
    distance = t.binary("arith.shli", one, bit)
    below = t.binary("arith.subi", distance, one)
    with program.tiles.space.iterate((elements[0].extents[0] // 2,), 0, 1) as point:
        # Insert a 0 at the bit.
        (pair,) = point.index
        low = t.binary("arith.andi", pair, below)
        left = t.binary("arith.subi", t.binary("arith.shli", pair, one), low)
        places = [Point((place,), 0, 1) for place in (left, t.binary("arith.addi", left, distance))]
        condition = t.integer(0, "i1")
        if flip is not None:
            condition = t.compare("ne", t.binary("arith.andi", t.binary("arith.shrui", left, flip), one), t.integer(0))
        old, partner = ([private.read(each, place) for each in elements] for place in places)
        cells = [(each, place) for place in places for each in elements]
        for (each, place), value in zip(cells, function.write(old, [*partner, condition]), strict=True):
            private.write(each, place, value)
