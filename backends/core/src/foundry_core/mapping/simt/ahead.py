"""Lets loops load what they multiply two iterations before they do.

Triton's pipeliner lets an iteration load the factors of the next product, and write them to workgroup memory behind its
own product. If little is computed with each element, as in a product of few rows, the iteration waits there for memory.
Here an iteration loads the factors of the product after the next one, and writes those that the iteration before it
loaded. They stay in registers in between: a second buffer in workgroup memory costs more than it saves.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...analysis.flow import CountedLoop, counted_loop, extend_operands
from ...ir import tt, ttg
from ...ir.arith import CmpiOp
from ...ir.build import builder_before, like
from ...ir.effects import reads, writes
from ...ir.facts import is_product
from .target import SimtTarget

# The most elements of a product in an invocation. On an H100, 64 x 8192 x 8192 in f16 reaches 0.60 of Triton CUDA
# instead of 0.54 with 32, and 16 rows reach 0.80 instead of 0.71. More was not measured.
_MOST_ELEMENTS = 32


def load_ahead(function: tt.FuncOp, target: SimtTarget) -> bool:
    """Let the loops of a pipelined kernel whose products are small load further ahead, in place.

    A loop that writes to global memory, or whose addresses come from memory, is left as it is.

    Returns:
        whether a loop does.
    """
    loops = [loop for op in function.body.walk() if (loop := counted_loop(op)) and _has_small_products(loop, target)]
    changed = [_load_ahead(loop) for loop in loops]
    return any(changed)


def _has_small_products(loop: CountedLoop, target: SimtTarget) -> bool:
    types = [op.results[0].type for op in loop.body.ops if is_product(op)]
    sizes = [prod(type.get_shape()) for type in types if isinstance(type, TensorType)]
    return bool(sizes) and max(sizes) <= _MOST_ELEMENTS * target.warps * target.warp_size


def _load_ahead(loop: CountedLoop) -> bool:
    body, end = loop.body, loop.body.last_op
    assert isinstance(loop.op, scf.ForOp) and isinstance(end, scf.YieldOp)
    loads = [op for op in body.ops if isinstance(op, tt.LoadOp) and not op.is_volatile and _is_staged(op, body)]
    if not loads or any(writes(op) and not isinstance(op, ttg.LocalStoreOp) for op in body.walk() if op is not end):
        return False
    before, first, initial, yielded = builder_before(loop.op), loads[0], loop.op.iter_args, end.operands
    here = builder_before(first)
    counter = here.insert(arith.AddiOp(loop.counter, loop.step)).result
    now = _Copies(here, body, lambda argument: argument, known_before=first)
    later = _Copies(here, body, lambda at: counter if at is loop.counter else now.of(yielded[at.index - 1]))
    start = _Copies(before, body, lambda at: loop.first if at is loop.counter else initial[at.index - 1])
    goes_on = here.insert(CmpiOp(CmpiOp.NAMES.index("slt"), counter, loop.end)).result
    begins = before.insert(CmpiOp(CmpiOp.NAMES.index("slt"), loop.first, loop.end)).result
    try:
        made = [(start.load(load, begins), later.load(load, goes_on)) for load in loads]
    except LookupError:
        return False  # what was written is not used
    for load in loads:
        load.result.replace_all_uses_with(body.insert_arg(load.result.type, len(body.args)))
        body.erase_op(load)
    initial_tiles, tiles = zip(*made, strict=True)
    body.erase_op(end)
    body.add_op(scf.YieldOp(*yielded, *tiles))
    extend_operands(loop.op, initial_tiles, [tile.type for tile in tiles])
    return True


def _is_staged(load: tt.LoadOp, body: Block) -> bool:
    """Return whether what a loop loads only goes to workgroup memory, in the same iteration."""
    users = [use.operation for use in load.result.uses]
    return bool(users) and all(isinstance(user, ttg.LocalStoreOp) and user.parent_block() is body for user in users)


class _Copies:
    """Copies of a loop's operations, with the values of some iteration.

    Args:
        here: writes the copies.
        given: returns what an argument of the body is in that iteration.
        known_before: an operation of the body, if the iteration is its own: what comes before it is not copied.
    """

    def __init__(
        self,
        here: Builder,
        body: Block,
        given: Callable[[BlockArgument], SSAValue],
        known_before: Operation | None = None,
    ) -> None:
        self._here, self._body, self._given, self._known_before = here, body, given, known_before
        self._made: dict[SSAValue, SSAValue] = {}

    def of(self, value: SSAValue) -> SSAValue:
        """Return what a value of the body is in the iteration; a value from outside of the body is returned unchanged.

        Raises:
            LookupError: it is not known before the iteration: it comes from memory, or from a loop or a branch.
        """
        if value not in self._made:
            if isinstance(value, BlockArgument):
                self._made[value] = self._given(value) if value.block is self._body else value
                return self._made[value]
            op = value.owner
            assert isinstance(op, Operation)
            before = self._known_before
            if op.parent_block() is not self._body or (before is not None and op.is_before_in_block(before)):
                return value
            if op.regions or reads(op) or writes(op):
                raise LookupError(op.name)
            copy = self._here.insert(op.clone({operand: self.of(operand) for operand in op.operands}))
            self._made.update(zip(op.results, copy.results, strict=True))
        return self._made[value]

    def load(self, load: tt.LoadOp, condition: SSAValue) -> SSAValue:
        """Return the tile that the iteration loads under a condition.

        Raises:
            LookupError: its addresses are not known before.
        """
        type = load.ptr.type
        assert isinstance(type, TensorType)
        kind = TensorType(i1, type.get_shape(), type.encoding)
        pointer, other = self.of(load.ptr), [self.of(load.other)] if load.other is not None else []
        mask = like(self._here, condition, kind)
        if load.mask is not None:
            mask = self._here.insert(arith.AndIOp(self.of(load.mask), mask)).result
        made = tt.LoadOp.build(operands=[pointer, [mask], other], result_types=[load.result.type])
        made.location = load.location
        return self._here.insert(made).result
