"""The region of a reduction, a scan or a map, written on registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ....emit.mlir import Reg
from ....ir.arith import CmpfOp, CmpiOp, ConstantOp, SelectOp
from ....ops.elementwise import apply_row, is_elementwise
from ..mapping import Mapping

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

# The comparisons of tl.argmax and tl.argmin, of signed and unsigned integers and of floats.
_BEYOND = ("sgt", "ugt", "ogt", "slt", "ult", "olt")
_EQUAL = ("eq", "oeq")
_BEFORE = ("slt", "ult")


class Combination:
    """A region whose block takes two sets of scalars and returns one; of a map, the second set is empty.

    Attributes:
        is_elementwise: whether the region can be written on vectors. One with control flow takes scalars only.
        is_commutative: whether the region is known to give the same in any order of the elements, but for the rounding
            of sums and products, and for the place that is found next to a NaN.
    """

    def __init__(self, program: Mapping, block: Block) -> None:
        self._program = program
        self._block = block
        last = block.last_op
        assert last is not None
        self._last = last
        self.is_elementwise = all(is_elementwise(op) or isinstance(op, ConstantOp) or op is last for op in block.ops)
        only = block.first_op
        self.is_commutative = _chooses_by_place(block, last) or (
            isinstance(only, _COMMUTATIVE)
            and only.next_op is last
            and set(only.operands) == set(block.args)
            and tuple(last.operands) == tuple(only.results)
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
                known[op.results[0]] = apply_row(tiles.numeric, op, [register(operand) for operand in op.operands])
        return [register(value) for value in self._last.operands]


def _chooses_by_place(block: Block, last: Operation) -> bool:
    """Return whether a region returns the larger or the smaller of two values with its place; of equal ones, the first.

    That is what tl.argmax, and tl.max with return_indices, have by default: g = v1 > v2 or (v1 == v2 and i1 < i2).
    """
    if len(block.args) != 4 or len(last.operands) != 2:
        return False
    v1, i1, v2, i2 = block.args
    value, place = (operand.owner for operand in last.operands)
    if not isinstance(value, SelectOp) or not isinstance(place, SelectOp) or value.cond is not place.cond:
        return False
    if (value.lhs, value.rhs, place.lhs, place.rhs) != (v1, v2, i1, i2) or not isinstance(
        value.cond.owner, arith.OrIOp
    ):
        return False
    for beyond, tie in _both_ways(value.cond.owner):
        if _compares(beyond, v1, v2, _BEYOND) and isinstance(tie.owner, arith.AndIOp):
            for equal, first in _both_ways(tie.owner):
                if _compares(equal, v1, v2, _EQUAL) and _compares(first, i1, i2, _BEFORE):
                    return True
    return False


def _both_ways(op: Operation) -> tuple[tuple[SSAValue, SSAValue], tuple[SSAValue, SSAValue]]:
    """Return the two operands of an operation, in either order."""
    x, y = op.operands
    return (x, y), (y, x)


def _compares(value: SSAValue, x: SSAValue, y: SSAValue, predicates: Sequence[str]) -> bool:
    """Return whether a value is a comparison of two others by one of some predicates."""
    op = value.owner
    return isinstance(op, CmpiOp | CmpfOp) and tuple(op.operands) == (x, y) and op.predicate_name in predicates
