"""tile.record and tile.check: claim a place in the launch's log, and write a record there (foundry_core/log.py).

One invocation of a program writes its records, so they are in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....dialects import tile
from ....log import CAPACITY, FAILED, FAILURE_CAPACITY, FIRST_FAILURE, FIRST_PRINTED, PRINTED, RECORD
from ..buffers import Buffer
from ..emission import statement
from ..mlir import GLOBAL, WIDTHS, Reg
from ..plan import is_tile
from ..space import Point, extents

if TYPE_CHECKING:
    from ..program import Program

_WORD = "i64"
# For the records of a kind: the words of the log with their number, their capacity, and the first of them.
_OF_VALUES = PRINTED, CAPACITY, FIRST_PRINTED
_OF_FAILURES = FAILED, FAILURE_CAPACITY, FIRST_FAILURE


@statement(tile.RecordOp)
def _record(program: Program, op: tile.RecordOp) -> None:
    tiles = program.tiles
    shape = extents(op.value) if op.value is not None else ()
    with tiles.space.alone(), tiles.space.each(shape, max(len(shape) - 1, 0), 1) as point:
        value = _word(program, tiles.at(op.value, point, {})) if op.value is not None else None
        _write(program, _OF_VALUES, op.site.value.data, _linear(program, shape, point), value)


@statement(tile.CheckOp)
def _check(program: Program, op: tile.CheckOp) -> None:
    t, tiles = program.text, program.tiles
    shape, site = extents(op.condition), op.site.value.data
    # Whether all elements passed, where all invocations of the program can read it. A scalar says so itself.
    cell = tiles.allocate(op.result, op) if is_tile(op.condition) and op.result.uses.get_length() else None
    place = Point((), 0, 1)
    if op.value is not None and is_tile(op.condition):
        _check_tile(program, op, cell, place)
        return
    with tiles.space.alone():
        if cell is not None:
            tiles.private.write(cell, place, t.integer(1, "i1"))
        with tiles.space.each(shape, max(len(shape) - 1, 0), 1) as point:
            fails = _inverted(program, tiles.at(op.condition, point, {}))
            with t.nested(f"scf.if {fails.name} {{"):
                if cell is not None:
                    tiles.private.write(cell, place, t.integer(0, "i1"))
                value = tiles.at(op.value, point, {}) if op.value is not None else None
                _write(program, _OF_FAILURES, site, _linear(program, shape, point), value)
    if cell is not None:
        tiles.scalars[op.result] = tiles.private.read(cell, place)
    elif not is_tile(op.condition):
        tiles.scalars[op.result] = tiles.scalar(op.condition)


def _check_tile(program: Program, op: tile.CheckOp, cell: Buffer | None, place: Point) -> None:
    """Write the record of the first element that fails. Whether there is one is found out with vectors.

    Args:
        cell, place: what becomes whether all elements passed; None if nobody asks.
    """
    t, tiles = program.text, program.tiles
    assert op.value is not None
    shape = extents(op.condition)
    lane = tiles.best_lane(op.condition)
    lanes = tiles.lanes(op.value, op, lane)
    passed = Buffer(t.private("i8", lanes), "i1", (lanes,), (0,))
    whole, only = Point((t.integer(0),), 0, lanes), Point((t.integer(0),), 0, 1)
    with tiles.space.alone():
        tiles.private.write(passed, whole, t.integer(1, "i1", lanes))
        with tiles.space.each(shape, lane, lanes) as point:
            condition = tiles.at(op.condition, point, {})
            tiles.private.write(passed, whole, t.binary("arith.andi", tiles.private.read(passed, whole), condition))
        found = tiles.private.read(passed, whole)
        all_passed = t.extract(found, 0)
        for number in range(1, lanes):
            all_passed = t.binary("arith.andi", all_passed, t.extract(found, number))
        if cell is not None:
            tiles.private.write(cell, place, all_passed)
        with t.nested(f"scf.if {_inverted(program, all_passed).name} {{"):
            seen, first, value = (Buffer(t.private(kind, 1), kind, (1,), (0,)) for kind in ("i8", t.index, _WORD))
            tiles.private.write(seen, only, t.integer(0, "i8"))
            with tiles.space.each(shape, max(len(shape) - 1, 0), 1) as point:
                fails = _inverted(program, tiles.at(op.condition, point, {}))
                unseen = t.compare("eq", tiles.private.read(seen, only), t.integer(0, "i8"))
                with t.nested(f"scf.if {t.binary('arith.andi', fails, unseen).name} {{"):
                    tiles.private.write(seen, only, t.integer(1, "i8"))
                    tiles.private.write(first, only, _linear(program, shape, point))
                    tiles.private.write(value, only, tiles.at(op.value, point, {}))
            records = tiles.private.read(first, only), tiles.private.read(value, only)
            _write(program, _OF_FAILURES, op.site.value.data, *records)
    if cell is not None:
        tiles.scalars[op.result] = tiles.private.read(cell, place)


def _inverted(program: Program, condition: Reg) -> Reg:
    return program.text.binary("arith.xori", condition, program.text.integer(1, "i1", condition.lanes))


def _linear(program: Program, shape: tuple[int, ...], point: Point) -> Reg:
    """Return the row-major index of the element at a point."""
    t, space = program.text, program.tiles.space
    index = t.integer(0)
    for i, extent in zip(point.index, shape, strict=True):
        index = space.plus(space.times(index, t.integer(extent)), i)
    return index


def _write(program: Program, words: tuple[int, int, int], site: int, index: Reg, value: Reg | None) -> None:
    """Write the record of one element, if there is room for it."""
    t, space, log = program.text, program.tiles.space, program.log()
    counter, limit, first = words
    number = program.tiles.memory.claim(t.shifted(log.name, counter, _WORD, GLOBAL))
    capacity = t.cast("arith.trunci", t.load(t.shifted(log.name, limit, _WORD, GLOBAL), _WORD, 1, GLOBAL), "i32")
    with t.nested(f"scf.if {t.compare('ult', number, capacity).name} {{"):
        x, y, z = (_word(program, program.program_id(axis)) for axis in range(3))
        record = (
            _pair(program, t.integer(site, _WORD), _word(program, index)),
            _pair(program, x, y),
            z,
            value or t.integer(0, _WORD),
        )
        offset = space.times(t.cast("arith.extui", number, t.index), t.integer(RECORD))
        place = t.address(t.shifted(log.name, first, _WORD, GLOBAL), offset, _WORD, GLOBAL)
        for at, word in enumerate(record):
            t.store(word, t.shifted(place, at, _WORD, GLOBAL), GLOBAL)


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
