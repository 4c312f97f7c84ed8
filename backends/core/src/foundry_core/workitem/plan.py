"""Decides which tiles get memory of their own and which are computed where they are used.

A tile expression is evaluated a few elements at a time inside the loop of its sink: a store, a dot, a reduction, the
end of a loop body. So `store(o, load(x) + load(y))` is one loop without intermediate tiles. A tile is written to
private memory instead if

- evaluating it later could read other bytes: a load with a store between it and its sink, or in the sink itself, unless
  that store goes to the very same elements or through another kernel argument;
- it would be evaluated more than once at a price: several sinks, a sink in a loop that it is outside of, a broadcast.

Two different kernel arguments are taken to overlap either not at all or element for element (in place). A kernel that
reads and writes shifted views of one buffer through two arguments in one program is a race on every target of Triton.
"""

from __future__ import annotations

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import BFloat16Type, Float16Type, FloatAttr, IntegerType, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ..dialects import tile, tt
from .numeric import ELEMENTWISE

# Operations at which expressions are evaluated.
SINKS = (tile.StoreOp, tt.DotOp, tt.ReduceOp, tt.UnsplatOp, scf.YieldOp, scf.ConditionOp, scf.ForOp, scf.WhileOp)
_COSTLY = (math.ExpOp, math.Exp2Op, math.LogOp, math.Log2Op, math.SinOp, math.CosOp, math.ErfOp, math.SqrtOp,
           math.RsqrtOp, math.TanhOp, math.PowFOp, arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp,
           arith.RemUIOp, tt.PreciseSqrtOp, tt.PreciseDivFOp)  # fmt: skip


def is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


class Plan:
    """The decisions for one kernel.

    Attributes:
        stored: values that get a buffer where they are defined.
    """

    def __init__(self, body: Block) -> None:
        self.stored: set[SSAValue] = set()
        self._sinks: dict[SSAValue, set[Operation]] = {}
        self._order: dict[Operation, int] = {op: i for i, op in enumerate(body.walk())}
        for op in reversed(list(body.walk())):
            for result in op.results:
                if is_tile(result) and not isinstance(op, SINKS) and not op.regions and self._must_store(result):
                    self.stored.add(result)

    def sinks(self, value: SSAValue) -> set[Operation]:
        """The operations at which a value is read, through everything that is evaluated lazily."""
        if value not in self._sinks:
            found: set[Operation] = set()
            for use in value.uses:
                user = use.operation
                if isinstance(user, SINKS):
                    found.add(user)
                for result in user.results:
                    if isinstance(user, SINKS):
                        continue
                    # A stored user is evaluated where it stands.
                    found |= {user} if result in self.stored else self.sinks(result)
            self._sinks[value] = found
        return self._sinks[value]

    def _must_store(self, value: SSAValue) -> bool:
        op = value.owner
        assert isinstance(op, Operation)
        if _is_index(value):
            return False
        sinks = self.sinks(value)
        here = op.parent_block()
        if any(sink.parent_block() is not here for sink in sinks):
            return True
        if len(sinks) > 1 and (isinstance(op, tile.LoadOp) or _is_costly(value)):
            return True
        if _is_costly(value) and any(_repeats(use.operation) for use in value.uses):
            return True
        return isinstance(op, tile.LoadOp) and any(self._may_change(op, sink) for sink in sinks)

    def _may_change(self, load: tile.LoadOp, sink: Operation) -> bool:
        """Whether what a load reads may have been overwritten when the sink evaluates it."""
        op = load.next_op
        while op is not None and op is not sink:
            if any(isinstance(inner, tile.StoreOp) for inner in op.walk()):
                return True
            op = op.next_op
        if not isinstance(sink, tile.StoreOp):
            return False
        read, written = _argument(load.base), _argument(sink.base)
        if read is not None and written is not None and read is not written:
            return False
        return not (self._same_place(load, sink) and self._straight(load.result, sink))

    @staticmethod
    def _same_place(load: tile.LoadOp, store: tile.StoreOp) -> bool:
        def described(axis: SSAValue) -> object:
            match axis.owner:
                case tile.AffineOp() as op:
                    return _number(op.stride)
                case _:
                    return axis

        return (
            load.base is store.base
            and _number(load.start) == _number(store.start)
            and load.gather is None
            and store.gather is None
            and [described(axis) for axis in load.axes] == [described(axis) for axis in store.axes]
        )

    def _straight(self, value: SSAValue, sink: Operation) -> bool:
        """Whether a value reaches its sink through elementwise operations only: element i is read for element i."""
        return all(
            use.operation is sink
            or (type(use.operation) in ELEMENTWISE and self._straight(use.operation.results[0], sink))
            for use in value.uses
        )


def _argument(pointer: SSAValue) -> SSAValue | None:
    """The kernel argument that a scalar pointer was made from; None if that is not known."""
    while isinstance(pointer.owner, tt.AddPtrOp | tt.BitcastOp):
        pointer = pointer.owner.operands[0]
    is_argument = isinstance(pointer.owner, Block) and isinstance(pointer.owner.parent_op(), tt.FuncOp)
    return pointer if is_argument else None


def _number(value: SSAValue) -> object:
    """A constant's number, so that two constants of one value are equal; else the value itself."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and not isinstance(op.value, FloatAttr):
        return op.value
    return value


def streams(value: SSAValue) -> bool:
    """Whether an expression does so little that memory sets the pace: an operation or less for each load, none costly.

    Conversions of f16 and bf16 are a dozen operations each, and count as costly.
    """
    loads, operations = set[Operation](), set[Operation]()
    pending = [value]
    while pending:
        current = pending.pop()
        op = current.owner
        if not is_tile(current) or _is_index(current):
            continue
        if isinstance(op, tile.LoadOp):
            if isinstance(current.type.element_type, Float16Type | BFloat16Type):  # type: ignore[attr-defined]
                return False
            loads.add(op)
        elif type(op) in ELEMENTWISE and not isinstance(op, _COSTLY):
            assert isinstance(op, Operation)
            operations.add(op)
            pending += op.operands
        else:
            return False
    return len(operations) <= len(loads)


def _is_index(value: SSAValue) -> bool:
    """Whether a tile is cheap integer arithmetic on ranges and scalars, which is evaluated again rather than kept."""
    if isinstance(value, BlockArgument):
        return False
    op = value.owner
    assert isinstance(op, Operation)
    if isinstance(op, tt.MakeRangeOp | tt.SplatOp | arith.ConstantOp):
        return True
    if not isinstance(value.type, TensorType) or not isinstance(value.type.element_type, IntegerType):
        return False
    if isinstance(op, tt.ExpandDimsOp | tt.BroadcastOp | tt.TransOp | tt.ReshapeOp) or type(op) in ELEMENTWISE:
        return all(_is_index(operand) for operand in op.operands)
    return False


def _is_costly(value: SSAValue) -> bool:
    if isinstance(value, BlockArgument):
        return False
    op = value.owner
    assert isinstance(op, Operation)
    if isinstance(op, tile.LoadOp):
        return True
    if isinstance(op, SINKS) or op.regions:
        return False
    return isinstance(op, _COSTLY) or any(_is_costly(operand) for operand in op.operands if is_tile(operand))


def _repeats(user: Operation) -> bool:
    """Whether an operation reads an element of its operand more than once."""
    if not isinstance(user, tt.BroadcastOp):
        return False
    before, after = user.src.type, user.result.type
    assert isinstance(before, TensorType) and isinstance(after, TensorType)
    return before.get_shape() != after.get_shape() and any(extent > 1 for extent in before.get_shape())
