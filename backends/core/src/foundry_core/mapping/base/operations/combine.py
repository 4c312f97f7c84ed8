"""The region of a reduction, a scan or a map, written on registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from ....dialects.arith import ConstantOp
from ....ops.elementwise import is_elementwise
from ..mlir import Reg

if TYPE_CHECKING:
    from ..program import Program


_COMMUTATIVE = (
    arith.AddiOp,
    arith.AddfOp,
    arith.MuliOp,
    arith.MulfOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
    arith.MinnumfOp,
    arith.MaxnumfOp,
    arith.MinimumfOp,
    arith.MaximumfOp,
)


class Combination:
    """A region whose block takes two sets of scalars and returns one; of a map, the second set is empty.

    Attributes:
        is_elementwise: whether the region can be written on vectors. One with control flow takes scalars only.
        is_commutative: whether the region is known to give the same, but for the rounding of sums and products, in any
            order of the elements.
    """

    def __init__(self, program: Program, block: Block) -> None:
        self._program = program
        self._block = block
        last = block.last_op
        assert last is not None
        self._last = last
        self.is_elementwise = all(is_elementwise(op) or isinstance(op, ConstantOp) or op is last for op in block.ops)
        only = block.first_op
        self.is_commutative = (
            isinstance(only, _COMMUTATIVE)
            and only.next_op is last
            and set(only.operands) == set(block.args)
            and last.operands == only.results
        )

    def lanes(self, wanted: int) -> int:
        """Return how many lanes the operands may have."""
        return wanted if self.is_elementwise else 1

    def fold_lanes(self, values: Sequence[Reg]) -> list[Reg]:
        """Combine all lanes of registers, each with its neighbour, so that the order of the elements is kept."""
        t, values = self._program.text, list(values)
        while (lanes := values[0].lanes) > 1:
            even, odd = ([t.shuffle(x, range(first, lanes, 2)) for x in values] for first in (0, 1))
            values = self.write(even, odd)
        return values

    def write(self, a: Sequence[Reg], b: Sequence[Reg]) -> list[Reg]:
        """Write the region on registers of as many lanes each; return its results."""
        tiles = self._program.tiles
        if not self.is_elementwise:
            tiles.scalars.update(zip(self._block.args, [*a, *b], strict=True))
            self._program.write_operations(op for op in self._block.ops if op is not self._last)
            return [tiles.scalar(value) for value in self._last.operands]
        lanes = a[0].lanes
        known: dict[SSAValue, Reg] = dict(zip(self._block.args, [*a, *b], strict=True))

        def register(value: SSAValue) -> Reg:
            return known[value] if value in known else tiles.text.broadcast(tiles.scalar(value), lanes)

        for op in self._block.ops:
            if is_elementwise(op):
                known[op.results[0]] = tiles.numeric.apply(op, [register(operand) for operand in op.operands])
        return [register(value) for value in self._last.operands]
