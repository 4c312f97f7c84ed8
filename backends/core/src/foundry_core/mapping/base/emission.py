"""Tables of the functions that write operations. The modules in operations/ register theirs with decorators.

A mapping that writes an operation differently copies a table and replaces entries:

    statements = STATEMENTS.replace(write_reduction, reduce_in_rows)

An operation that is in no table and is not elementwise is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Operation
from xdsl.traits import OpTrait

from ...emit.mlir import Reg
from .space import Memo, Point

# The first argument is the program, or its tiles: a mapping's own function takes the mapping's own subclass.
Statement: TypeAlias = Callable[[Any, Any], None]
ScalarValue: TypeAlias = Callable[[Any, Any], Reg]
TileValue: TypeAlias = Callable[[Any, Any, Point, Memo], Reg]

# An operation, or a trait that stands for all that have it.
OperationKind: TypeAlias = type[Operation] | type[OpTrait]
_Writer = TypeVar("_Writer", bound=Callable[..., Any])


class Writers(dict[OperationKind, _Writer]):
    """Functions, by the operations that they write, or by a trait that these have."""

    def register(self, *kinds: OperationKind) -> Callable[[_Writer], _Writer]:
        """Return a decorator of the function that writes these operations."""

        def enter(function: _Writer) -> _Writer:
            self.update(dict.fromkeys(kinds, function))
            return function

        return enter

    def replace(self, function: _Writer, by: _Writer) -> Writers[_Writer]:
        """Return a table in which another function writes what a function writes in this one."""
        return Writers({kind: by if each is function else each for kind, each in self.items()})


# Write an operation at its position in the block. The function gives each result a register (`program.tiles.scalars`)
# or a buffer (`program.tiles.buffers`).
STATEMENTS: Writers[Statement] = Writers()
statement = STATEMENTS.register
# Return the register of an operation's result, which is a scalar or a pointer.
SCALARS: Writers[ScalarValue] = Writers()
scalar_value = SCALARS.register
# Return the elements, at a point, of the tile that is an operation's result. The function may be called any number of
# times, and later than at the operation's position. So the operation must not be a sink.
TILES: Writers[TileValue] = Writers()
tile_value = TILES.register
