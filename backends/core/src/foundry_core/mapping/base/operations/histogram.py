"""tt.histogram: one loop over the elements, which counts those that a bin exists for, as unsigned numbers."""

from __future__ import annotations

from ....emit.mlir import WIDTHS
from ....ir import tt
from ....ir.elements import extents
from ..emission import statement
from ..mapping import Mapping
from ..space import Point


@statement(tt.HistogramOp)
def _histogram(program: Mapping, op: tt.HistogramOp) -> None:
    tiles, t, private = program.tiles, program.text, program.tiles.private
    source = program.buffer_of(op.src, op)
    mask = program.buffer_of(op.mask, op) if op.mask is not None else None
    counts = tiles.allocate(op.result, op)
    (bins,) = extents(op.result)
    lanes = tiles.lanes(op.result, op, 0)
    with tiles.space.iterate((bins,), 0, lanes) as point:
        private.write(counts, point, t.integer(0, counts.elem, lanes))
    with tiles.space.single_work_item(), tiles.space.iterate(extents(op.src), 0, 1) as point:
        value = private.read(source, point)
        if WIDTHS[value.elem] < WIDTHS[t.index]:
            value = t.cast("arith.extui", value, t.index)
        counted = t.compare("ult", value, t.integer(bins, value.elem))
        if mask is not None:
            counted = t.binary("arith.andi", counted, private.read(mask, point))
        with t.nest(f"scf.if {counted.name} {{"):
            place = Point((t.cast("arith.trunci", value, t.index),), 0, 1)
            private.write(counts, place, t.binary("arith.addi", private.read(counts, place), t.integer(1, counts.elem)))
    tiles.buffers[op.result] = counts
