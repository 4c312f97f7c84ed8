"""Tables of the functions that write operations. The modules in operations/ register theirs with decorators.

A mapping that writes an operation differently copies a table and replaces entries:

    statements = STATEMENTS | {tt.ReduceOp: reduce_in_rows}

An operation that is in no table and is not elementwise is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation

from .mlir import Reg
from .space import Point

if TYPE_CHECKING:
    from .program import Program
    from .tiles import Memo, Tiles

# A mapping's own function takes the mapping's own subclass of Program.
Statement: TypeAlias = Callable[[Any, Any], None]
ScalarValue: TypeAlias = "Callable[[Program, Any], Reg]"
TileValue: TypeAlias = "Callable[[Tiles, Any, Point, Memo], Reg]"

STATEMENTS: dict[type[Operation], Statement] = {}
SCALARS: dict[type[Operation], ScalarValue] = {}
TILES: dict[type[Operation], TileValue] = {}


def statement(*kinds: type[Operation]) -> Callable[[Statement], Statement]:
    """Register a function that writes an operation at its position in the block.

    The function gives each result a register (`program.tiles.scalars`) or a buffer (`program.tiles.buffers`).
    """

    def enter(function: Statement) -> Statement:
        STATEMENTS.update(dict.fromkeys(kinds, function))
        return function

    return enter


def scalar_value(*kinds: type[Operation]) -> Callable[[ScalarValue], ScalarValue]:
    """Register a function that returns the register of an operation's result, which is a scalar or a pointer."""

    def enter(function: ScalarValue) -> ScalarValue:
        SCALARS.update(dict.fromkeys(kinds, function))
        return function

    return enter


def tile_value(*kinds: type[Operation]) -> Callable[[TileValue], TileValue]:
    """Register a function that returns the elements, at a point, of the tile that is an operation's result.

    The function may be called any number of times, and later than at the operation's position. So the operation must
    not be a sink.
    """

    def enter(function: TileValue) -> TileValue:
        TILES.update(dict.fromkeys(kinds, function))
        return function

    return enter
