"""Accesses, and records of the launch's log (foundry_core/log.py).

memory.GlobalMemory writes the code of loads and stores, and the values computed once for the axes of their addresses.
tile.record and tile.check claim a place in the log, and write a record there. One invocation of a program writes its
records, so they are in order.
"""

from __future__ import annotations

from ....emit.mlir import GLOBAL, Reg
from ....ir import tile
from ....ir.elements import extents
from ....log import RECORD
from ..buffers import Buffer
from ..emission import scalar_value, statement, tile_value
from ..log_record import OF_FAILURES, OF_VALUES, WORD, as_word, invert_condition, record_words
from ..mapping import Mapping
from ..plan import is_tile
from ..space import Memo, Point
from ..tiles import Tiles


@statement(tile.StoreOp)
def _store(program: Mapping, op: tile.StoreOp) -> None:
    program.tiles.memory.store(op)


@statement(tile.AtomicOp, tile.VolatileLoadOp, tile.PollOp)
def _execute(program: Mapping, op: tile.Executed) -> None:
    program.tiles.memory.execute(op)


@scalar_value(tile.LoadOp)
def _load_scalar(program: Mapping, op: tile.LoadOp) -> Reg:
    return program.tiles.memory.load_scalar(op)


@tile_value(tile.LoadOp)
def _load(tiles: Tiles, op: tile.LoadOp, point: Point, memo: Memo) -> Reg:
    return tiles.memory.load(op, point, memo)


@statement(tile.WrappedOp)
def _prepare(program: Mapping, op: tile.WrappedOp) -> None:
    program.tiles.memory.prepare(op)


@statement(tile.AffineOp, tile.IndexedOp, tile.RangeOp)
def _nothing(program: Mapping, op: tile.AffineOp | tile.IndexedOp | tile.RangeOp) -> None:
    """Write nothing: accesses read the operands of these operations directly."""


@statement(tile.RecordOp)
def _record(program: Mapping, op: tile.RecordOp) -> None:
    t, tiles = program.text, program.tiles
    shape = extents(op.value) if op.value is not None else ()
    with tiles.space.single_work_item(), tiles.space.iterate(shape, max(len(shape) - 1, 0), 1) as point:
        value = as_word(t, tiles.evaluate(op.value, point, {})) if op.value is not None else None
        _write(program, OF_VALUES, op.site.value.data, _linear(program, shape, point), value)


@statement(tile.CheckOp)
def _check(program: Mapping, op: tile.CheckOp) -> None:
    t, tiles = program.text, program.tiles
    shape, site = extents(op.condition), op.site.value.data
    # Whether all elements passed, where all invocations of the program can read it. A scalar says so itself.
    cell = tiles.allocate(op.result, op) if is_tile(op.condition) and op.result.uses.get_length() else None
    place = Point((), 0, 1)
    if op.value is not None and is_tile(op.condition):
        _check_tile(program, op, cell, place)
        return
    with tiles.space.single_work_item():
        if cell is not None:
            tiles.private.write(cell, place, t.integer(1, "i1"))
        with tiles.space.iterate(shape, max(len(shape) - 1, 0), 1) as point:
            fails = invert_condition(t, tiles.evaluate(op.condition, point, {}))
            with t.when(fails):
                if cell is not None:
                    tiles.private.write(cell, place, t.integer(0, "i1"))
                value = tiles.evaluate(op.value, point, {}) if op.value is not None else None
                _write(program, OF_FAILURES, site, _linear(program, shape, point), value)
    if cell is not None:
        tiles.scalars[op.result] = tiles.private.read(cell, place)
    elif not is_tile(op.condition):
        tiles.scalars[op.result] = tiles.scalar(op.condition)


def _check_tile(program: Mapping, op: tile.CheckOp, cell: Buffer | None, place: Point) -> None:
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
    with tiles.space.single_work_item():
        tiles.private.write(passed, whole, t.integer(1, "i1", lanes))
        with tiles.space.iterate(shape, lane, lanes) as point:
            condition = tiles.evaluate(op.condition, point, {})
            tiles.private.write(passed, whole, t.binary("arith.andi", tiles.private.read(passed, whole), condition))
        found = tiles.private.read(passed, whole)
        all_passed = t.extract(found, 0)
        for number in range(1, lanes):
            all_passed = t.binary("arith.andi", all_passed, t.extract(found, number))
        if cell is not None:
            tiles.private.write(cell, place, all_passed)
        with t.when(invert_condition(t, all_passed)):
            seen, first, value = (Buffer(t.private(kind, 1), kind, (1,), (0,)) for kind in ("i8", t.index, WORD))
            tiles.private.write(seen, only, t.integer(0, "i8"))
            with tiles.space.iterate(shape, max(len(shape) - 1, 0), 1) as point:
                fails = invert_condition(t, tiles.evaluate(op.condition, point, {}))
                unseen = t.compare("eq", tiles.private.read(seen, only), t.integer(0, "i8"))
                with t.when(t.binary("arith.andi", fails, unseen)):
                    tiles.private.write(seen, only, t.integer(1, "i8"))
                    tiles.private.write(first, only, _linear(program, shape, point))
                    tiles.private.write(value, only, tiles.evaluate(op.value, point, {}))
            records = tiles.private.read(first, only), tiles.private.read(value, only)
            _write(program, OF_FAILURES, op.site.value.data, *records)
    if cell is not None:
        tiles.scalars[op.result] = tiles.private.read(cell, place)


def _linear(program: Mapping, shape: tuple[int, ...], point: Point) -> Reg:
    """Return the row-major index of the element at a point."""
    t, space = program.text, program.tiles.space
    index = t.integer(0)
    for i, extent in zip(point.index, shape, strict=True):
        index = space.plus(space.times(index, t.integer(extent)), i)
    return index


def _write(program: Mapping, words: tuple[int, int, int], site: int, index: Reg, value: Reg | None) -> None:
    """Write the record of one element, if there is room for it."""
    t, space, log = program.text, program.tiles.space, program.log()
    counter, limit, first = words
    number = program.tiles.memory.claim(t.offset_address(log.name, counter, WORD, GLOBAL))
    capacity = t.cast("arith.trunci", t.load(t.offset_address(log.name, limit, WORD, GLOBAL), WORD, 1, GLOBAL), "i32")
    with t.when(t.compare("ult", number, capacity)):
        record = record_words(t, site, index, map(program.program_id, range(3)), value)
        offset = space.times(t.cast("arith.extui", number, t.index), t.integer(RECORD))
        place = t.address(t.offset_address(log.name, first, WORD, GLOBAL), offset, WORD, GLOBAL)
        for at, word in enumerate(record):
            t.store(word, t.offset_address(place, at, WORD, GLOBAL), GLOBAL)
