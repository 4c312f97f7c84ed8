"""Decides which tiles get memory of their own and which are computed where they are used.

A tile expression is evaluated a few elements at a time inside the loop of its sink: a store, a dot, a reduction, the
end of a loop body. So `store(o, load(x) + load(y))` is one loop without intermediate tiles. A tile is written to
private memory instead if

- evaluating it later could read other bytes: a load with a store between it and its sink, or in the sink itself, unless
  that store goes element for element to the same places or through another kernel argument;
- it would be evaluated more than once at a price: several sinks, a sink in a loop that it is outside of, a broadcast.

Two different kernel arguments are taken to overlap either not at all or element for element (in place). A kernel that
reads and writes shifted views of one buffer through two arguments in one program is a race on every target of Triton.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float8E5M2Type, Float16Type, IntegerType, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import tile, tt
from ...dialects.arith import ConstantOp
from ...effects import is_sink, reads, writes
from ...front.scalars import constant
from ...ops.elementwise import is_costly, is_elementwise

_CONVERTED = (Float8E5M2Type, Float16Type, BFloat16Type)


def is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


class Plan:
    """The decisions for one kernel.

    Attributes:
        stored: values that get a buffer where they are defined.
    """

    def __init__(self, body: Block) -> None:
        self.stored: set[SSAValue] = set()
        # Expressions are graphs, not trees: what is asked of a value is answered once.
        self._sinks: dict[SSAValue, set[Operation]] = {}
        self._index: dict[SSAValue, bool] = {}
        self._costly: dict[SSAValue, bool] = {}
        for op in reversed(list(body.walk())):
            for result in op.results:
                if is_tile(result) and not is_sink(op) and self._must_store(result):
                    self.stored.add(result)

    def sinks(self, value: SSAValue) -> set[Operation]:
        """The operations at which a value is read, through everything that is evaluated lazily."""
        if value not in self._sinks:
            found: set[Operation] = set()
            for use in value.uses:
                user = use.operation
                if is_sink(user):
                    found.add(user)
                    continue
                for result in user.results:
                    # A stored user is evaluated where it stands.
                    found |= {user} if result in self.stored else self.sinks(result)
            self._sinks[value] = found
        return self._sinks[value]

    def streams(self, value: SSAValue) -> bool:
        """Whether an expression does so little that memory sets the pace: an operation or less a load, none costly.

        Conversions of narrow floats are a dozen operations each, and count as costly.
        """
        loads, operations = set[Operation](), set[Operation]()
        pending = [value]
        while pending:
            current = pending.pop()
            op = current.owner
            if not is_tile(current) or self._is_index(current) or op in operations:
                continue
            if isinstance(op, tile.LoadOp):
                if isinstance(current.type.element_type, _CONVERTED):  # type: ignore[attr-defined]
                    return False
                loads.add(op)
            elif isinstance(op, Operation) and is_elementwise(op) and not is_costly(op):
                operations.add(op)
                pending += op.operands
            else:
                return False
        return len(operations) <= len(loads)

    def _is_index(self, value: SSAValue) -> bool:
        """Whether a tile is cheap integer arithmetic on ranges and scalars, computed again rather than kept."""
        if value not in self._index:
            self._index[value] = self._found_index(value)
        return self._index[value]

    def _found_index(self, value: SSAValue) -> bool:
        op = value.owner
        if isinstance(op, Block):
            return False
        if isinstance(op, tt.MakeRangeOp | tt.SplatOp | ConstantOp):
            return True
        if not isinstance(value.type, TensorType) or not isinstance(value.type.element_type, IntegerType):
            return False
        moves = isinstance(op, tt.ExpandDimsOp | tt.BroadcastOp | tt.TransOp | tt.ReshapeOp)
        return (moves or is_elementwise(op)) and all(self._is_index(operand) for operand in op.operands)

    def _is_costly(self, value: SSAValue) -> bool:
        if value not in self._costly:
            self._costly[value] = self._found_costly(value)
        return self._costly[value]

    def _found_costly(self, value: SSAValue) -> bool:
        op = value.owner
        if isinstance(op, Block) or is_sink(op):
            return False
        if reads(op) or is_costly(op):
            return True
        return any(self._is_costly(operand) for operand in op.operands if is_tile(operand))

    def _must_store(self, value: SSAValue) -> bool:
        op = value.owner
        assert isinstance(op, Operation)
        if self._is_index(value):
            return False
        sinks = self.sinks(value)
        here = op.parent_block()
        if any(sink.parent_block() is not here for sink in sinks):
            return True
        if len(sinks) > 1 and self._is_costly(value):
            return True
        if self._is_costly(value) and any(_repeats(use.operation) for use in value.uses):
            return True
        return reads(op) and any(self._may_change(op, sink) for sink in sinks)

    def _may_change(self, load: Operation, sink: Operation) -> bool:
        """Whether what an operation reads may have been overwritten when the sink evaluates it."""
        op = load.next_op
        while op is not None and op is not sink:
            if writes(op):
                return True
            op = op.next_op
        if not writes(sink):
            return False
        if not isinstance(load, tile.LoadOp) or not isinstance(sink, tile.Access):
            return True
        read, written = _argument(load.base), _argument(sink.base)
        if read is not None and written is not None and read is not written:
            return False
        in_place = isinstance(sink, tile.StoreOp) and _same_elements(load, sink)
        return not (in_place and _is_straight(load.result, sink, set()))


def _argument(pointer: SSAValue) -> SSAValue | None:
    """The kernel argument that a scalar pointer was made from; None if that is not known."""
    while isinstance(pointer.owner, tt.AddPtrOp | tt.BitcastOp):
        pointer = pointer.owner.operands[0]
    is_argument = isinstance(pointer.owner, Block) and isinstance(pointer.owner.parent_op(), tt.FuncOp)
    return pointer if is_argument else None


def _number(value: SSAValue) -> object:
    """A constant's number, so that two constants of one value are equal; else the value itself."""
    op = value.owner
    return (op.bits, value.type) if isinstance(op, ConstantOp) else value


def _same_elements(load: tile.LoadOp, store: tile.StoreOp) -> bool:
    """Whether element i of a store lies where element i of a load does, and no other element does.

    Each element has an address of its own if the axes have constant strides, each longer than what the shorter ones
    reach together. Of indices from memory, of what wraps around and of strides known at run time nothing is known.
    """
    if load.base is not store.base or _number(load.start) != _number(store.start):
        return False
    if load.gather is not None or store.gather is not None:
        return False
    shape = load.result.type.get_shape() if isinstance(load.result.type, TensorType) else ()
    strides: list[tuple[int, int]] = []
    for extent, ours, theirs in zip(shape, load.axes, store.axes, strict=True):
        if not isinstance(ours.owner, tile.AffineOp) or not isinstance(theirs.owner, tile.AffineOp):
            return False
        one, other = constant(ours.owner.stride), constant(theirs.owner.stride)
        if one is None or one != other:
            return False
        if extent > 1:
            strides.append((abs(one), extent))
    reach = 0
    for stride, extent in sorted(strides):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def _is_straight(value: SSAValue, sink: Operation, seen: set[Operation]) -> bool:
    """Whether a value reaches its sink through elementwise operations only: element i is read for element i."""
    for use in value.uses:
        user = use.operation
        if user is sink or user in seen:
            continue
        seen.add(user)
        if not is_elementwise(user) or not _is_straight(user.results[0], sink, seen):
            return False
    return True


def _repeats(user: Operation) -> bool:
    """Whether an operation reads an element of its operand more than once."""
    if not isinstance(user, tt.BroadcastOp):
        return False
    before, after = user.src.type, user.result.type
    assert isinstance(before, TensorType) and isinstance(after, TensorType)
    return before.get_shape() != after.get_shape() and any(extent > 1 for extent in before.get_shape())
