"""tile.record: claim a place in the launch's log, and write the record there. foundry_core/log.py has the layout.

One invocation of a program writes its records, so they are in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....dialects import tile
from ....log import CAPACITY, FAILED, FAILURE_CAPACITY, FIRST_FAILURE, FIRST_PRINTED, PRINTED, RECORD
from ..emission import statement
from ..mlir import GLOBAL, WIDTHS, Reg
from ..space import Point, extents

if TYPE_CHECKING:
    from ..program import Program

_WORD = "i64"


@statement(tile.RecordOp)
def _record(program: Program, op: tile.RecordOp) -> None:
    t, tiles = program.text, program.tiles
    element = op.value if op.value is not None else op.unless
    shape = extents(element) if element is not None else ()
    with tiles.space.alone(), tiles.space.each(shape, max(len(shape) - 1, 0), 1) as point:
        if op.unless is None:
            _write(program, op, shape, point)
            return
        fails = t.binary("arith.xori", tiles.at(op.unless, point, {}), t.integer(1, "i1"))
        with t.nested(f"scf.if {fails.name} {{"):
            _write(program, op, shape, point)


def _write(program: Program, op: tile.RecordOp, shape: tuple[int, ...], point: Point) -> None:
    """Write the record of one element, if there is room for it."""
    t, space, log = program.text, program.tiles.space, program.log()
    failure = op.unless is not None
    counter, limit, first = (FAILED, FAILURE_CAPACITY, FIRST_FAILURE) if failure else (PRINTED, CAPACITY, FIRST_PRINTED)
    number = program.claim(t.shifted(log.name, counter, _WORD, GLOBAL))
    capacity = t.cast("arith.trunci", t.load(t.shifted(log.name, limit, _WORD, GLOBAL), _WORD, 1, GLOBAL), "i32")
    with t.nested(f"scf.if {t.compare('ult', number, capacity).name} {{"):
        index = t.integer(0)
        for i, extent in zip(point.index, shape, strict=True):
            index = space.plus(space.times(index, t.integer(extent)), i)
        x, y, z = (_word(program, program.program_id(axis)) for axis in range(3))
        words = (
            _pair(program, t.integer(op.site.value.data, _WORD), _word(program, index)),
            _pair(program, x, y),
            z,
            _value(program, op, point),
        )
        offset = space.times(t.cast("arith.extui", number, t.index), t.integer(RECORD))
        place = t.address(t.shifted(log.name, first, _WORD, GLOBAL), offset, _WORD, GLOBAL)
        for at, word in enumerate(words):
            t.store(word, t.shifted(place, at, _WORD, GLOBAL), GLOBAL)


def _value(program: Program, op: tile.RecordOp, point: Point) -> Reg:
    if op.value is None:
        return program.text.integer(0, _WORD)
    return _word(program, program.tiles.at(op.value, point, {}))


def _word(program: Program, x: Reg) -> Reg:
    """Return the bits of a number or an address as a word."""
    t = program.text
    if x.elem == GLOBAL:
        x = t.cast("llvm.ptrtoint", x, t.index)
    elif x.is_float:
        x = t.cast("arith.bitcast", x, f"i{WIDTHS[x.elem]}")
    return t.cast("arith.extui", x, _WORD)


def _pair(program: Program, low: Reg, high: Reg) -> Reg:
    t = program.text
    return t.binary("arith.ori", low, t.binary("arith.shli", high, t.integer(32, _WORD)))
