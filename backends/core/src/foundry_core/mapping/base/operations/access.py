"""Loads, stores, and the values computed once for the axes of their addresses; memory.GlobalMemory writes the code."""

from __future__ import annotations

from ....emit.mlir import Reg
from ....ir import tile
from ..emission import scalar_value, statement, tile_value
from ..mapping import Mapping
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
