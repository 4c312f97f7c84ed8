"""The part of a product that has to be computed: what is stored of it, and the terms that are not masked."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue, Use

from ....analysis.flow import yield_targets
from ....emit.mlir import Reg
from ....ir import tile
from ....ir.arith import ConstantOp
from ....ir.elements import extents
from ....ir.facts import is_product
from ....ops.elementwise import is_elementwise
from ..mapping import Mapping, Part
from .rematerialize import Rematerializer


def demand(program: Mapping, op: Operation) -> Part:
    """Return the part of a product that has to be computed: nothing else of the result is read."""
    t, tiles = program.text, program.tiles
    (left, right, _), (result,) = op.operands, op.results
    (m, n), k = extents(result)[-2:], extents(left)[-1]
    ends = [t.integer(m), t.integer(n)]
    depth = t.integer(k)
    if tiles.panels and len(extents(result)) == 2:
        rematerializer, uses = Rematerializer(program), _Uses()
        if uses.follow(result) and len(uses.stores) == 1:
            for d, value in enumerate(uses.stores.pop().ranges):
                assert isinstance(value.owner, tile.RangeOp)
                # What one iteration does not store of a sum, the next one may.
                ends[d] = rematerializer.index(value.owner.high, uses.loops) or ends[d]
        a, b = _terms(left, 1, rematerializer), _terms(right, 0, rematerializer)
        if a is not None and b is not None and depth not in (a, b):
            # Behind the last term, both factors are 0. One such term is added: it makes -0.0 a 0.0, as all of them do.
            last = t.binary("arith.addi", t.select(t.compare("slt", a, b), b, a), t.integer(1))
            depth = t.select(t.compare("slt", last, depth), last, depth)
    return Part(ends[0], ends[1], depth)


def _terms(value: SSAValue, dimension: int, rematerializer: Rematerializer) -> Reg | None:
    """Return the index along a dimension from which on a tile is 0; None if that is not known."""
    op = value.owner
    if not tile.reads_late(op) or not op.ranges:
        return None
    if op.other is not None and not (isinstance(op.other.owner, ConstantOp) and op.other.owner.splat == 0):
        return None
    limit = op.ranges[dimension].owner
    assert isinstance(limit, tile.RangeOp)
    return rematerializer.index(limit.high)


class _Uses:
    """Follows a tile to the stores that write it.

    Attributes:
        stores: those that were found.
        loops: loops that carry the tile from one iteration to the next.
    """

    def __init__(self) -> None:
        self.stores: set[tile.StoreOp] = set()
        self.loops: set[scf.ForOp] = set()
        self._seen: set[SSAValue] = set()

    def follow(self, value: SSAValue) -> bool:
        """Return whether an element of a tile has no effect except on the same element of stored tiles."""
        if value in self._seen:
            return True
        self._seen.add(value)
        return all(self._follow(use) for use in value.uses)

    def _follow(self, use: Use) -> bool:
        match use.operation:
            case tile.StoreOp() as op if use.index == 0:
                self.stores.add(op)
                return True
            case scf.YieldOp() as op:
                outer, values = op.parent_op(), yield_targets(op, use.index)
                if isinstance(outer, scf.ForOp):
                    self.loops.add(outer)
                return bool(values) and all(map(self.follow, reversed(values)))
            case op if is_product(op) and use.index == 2:
                return self.follow(op.results[0])
            case op:
                return is_elementwise(op) and self.follow(op.results[0])
