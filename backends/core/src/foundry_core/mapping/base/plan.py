"""Decides which tiles are stored in memory and which are computed where they are used.

A tile expression is evaluated a few elements at a time inside the loop of its sink: a store, a dot, a reduction, or the
end of a loop body. So `store(o, load(x) + load(y))` is one loop without intermediate tiles. A tile is written to
private memory instead if one of these holds:

- A later evaluation could read other bytes: an operation that writes, or waits for another program, is between a load
  and its sink, or the sink writes. Exceptions are a sink that stores to the same place for each element, or a sink
  that writes through another kernel argument.
- The tile is costly and would be evaluated more than once: it has several sinks, its sink is in a loop and the tile is
  defined outside of it, or it is broadcast.

We assume that two different kernel arguments either do not overlap or overlap element for element (in place). A kernel
that reads and writes shifted views of one buffer through two arguments in one program has a race on every target of
Triton.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...front.scalars import constant_value
from ...ir import tile, tt
from ...ir.arith import ConstantOp
from ...ir.effects import is_sink, reads, waits, writes
from ...ir.elements import extents, index_mapping, repeats, source
from ...ir.facts import first_number
from ...ops.elementwise import is_costly, is_elementwise
from ...scalars import LAYOUTS


def is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


class BufferPlan:
    """The decisions for one kernel.

    Attributes:
        stored: values that get a buffer where they are defined.
        across: those of them that are read in rows and written in columns, and that only stores use, with the dimension
            along which they are written.
    """

    def __init__(self, body: Block) -> None:
        self.stored: set[SSAValue] = set()
        self.across: dict[SSAValue, int] = {}
        # Expressions are graphs, not trees: each answer about a value is computed once.
        self._sinks: dict[SSAValue, set[Operation]] = {}
        self._index: dict[SSAValue, bool] = {}
        self._costly: dict[SSAValue, bool] = {}
        for op in reversed(list(body.walk())):
            for result in op.results:
                if is_tile(result) and not is_sink(op) and self._must_store(result):
                    self.stored.add(result)

    def sinks(self, value: SSAValue) -> set[Operation]:
        """Return the operations at which a value is read, through everything that is evaluated lazily."""
        if value not in self._sinks:
            found: set[Operation] = set()
            for use in value.uses:
                user = use.operation
                if is_sink(user):
                    found.add(user)
                    continue
                for result in user.results:
                    # A stored user is evaluated at its own position.
                    found |= {user} if result in self.stored else self.sinks(result)
            self._sinks[value] = found
        return self._sinks[value]

    def streams(self, value: SSAValue) -> bool:
        """Return whether memory limits an expression: it has at most one operation per load, and none is costly.

        A conversion of a narrow float takes a dozen operations, and counts as costly. So does a load whose elements are
        at different places.
        """
        loads, operations = set[Operation](), set[Operation]()
        pending = [value]
        while pending:
            current = pending.pop()
            op = current.owner
            if not is_tile(current) or self._is_index(current) or op in operations:
                continue
            if tile.reads_late(op):
                if current.type.element_type.name in LAYOUTS or not any(map(is_unit, op.axes)):  # type: ignore[attr-defined]
                    return False
                loads.add(op)
            elif isinstance(op, Operation) and is_elementwise(op) and not is_costly(op):
                operations.add(op)
                pending += op.operands
            else:
                return False
        return len(operations) <= len(loads)

    def _is_index(self, value: SSAValue) -> bool:
        """Return whether a tile is cheap integer arithmetic on ranges and scalars, which is recomputed, not stored."""
        if value not in self._index:
            op, of, type = value.owner, source(value), value.type
            if isinstance(op, Block):
                is_index = False
            elif isinstance(op, ConstantOp) or first_number(op) is not None or (of is not None and not is_tile(of)):
                is_index = True
            elif not isinstance(type, TensorType) or not isinstance(type.element_type, IntegerType):
                is_index = False
            else:
                is_index = (of is not None or is_elementwise(op)) and all(map(self._is_index, op.operands))
            self._index[value] = is_index
        return self._index[value]

    def _is_costly(self, value: SSAValue) -> bool:
        if value not in self._costly:
            op = value.owner
            if isinstance(op, Block) or is_sink(op):
                self._costly[value] = False
            else:
                self._costly[value] = (
                    reads(op)
                    or is_costly(op)
                    or any(self._is_costly(operand) for operand in filter(is_tile, op.operands))
                )
        return self._costly[value]

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
        if self._is_costly(value) and any(map(repeats, value.uses)):
            return True
        return reads(op) and any(self._may_change(op, sink) for sink in sinks)

    def _may_change(self, load: Operation, sink: Operation) -> bool:
        """Return whether what an operation reads may have been overwritten when the sink evaluates it."""
        op = load.next_op
        while op is not None and op is not sink:
            if writes(op) or waits(op):
                return True
            op = op.next_op
        if not writes(sink):
            return False
        if not tile.reads_late(load) or not isinstance(sink, tile.Access):
            return True
        read, written = argument(load.base), argument(sink.base)
        if read is not None and written is not None and read is not written:
            return False
        in_place = tile.only_writes(sink) and _same_elements(load, sink)
        return not (in_place and _is_straight(load.result, sink, set()))


def stored_across(load: tile.Read, stored: Collection[SSAValue] = ()) -> int | None:
    """Return the dimension of a load along which a store writes rows of its elements, if it is read in other rows.

    Args:
        stored: values that have buffers; an expression ends there.
    """
    shape = extents(load.result)
    rows = [d for d, axis in enumerate(load.axes) if shape[d] > 1 and is_unit(axis)]
    if not rows or load.gather is not None:
        return None
    # With each value, the dimension of the load that each of its dimensions is.
    pending, seen = [(load.result, tuple(range(len(shape))))], set[SSAValue]()
    while pending:
        value, dimensions = pending.pop()
        if value in seen or value in stored:
            continue
        seen.add(value)
        for use in value.uses:
            match use.operation:
                case store if tile.only_writes(store) and store.value is value and store.gather is None:
                    columns = [dimensions[d] for d, n in enumerate(extents(value)) if n > 1 and is_unit(store.axes[d])]
                    if columns and rows[-1] not in columns:
                        return columns[-1]
                case user if is_elementwise(user):
                    pending.append((user.results[0], dimensions))
                case user if len(user.results) == 1 and (of := index_mapping(user.results[0])) and of.is_permutation:
                    pending.append((user.results[0], tuple(of.to_result(dimensions, 0))))
    return None


def is_unit(axis: SSAValue) -> bool:
    """Return whether neighbours along an axis are neighbours in memory, except where the axis wraps around."""
    stride = tile.stride(axis)
    return stride is not None and constant_value(stride) == 1


def argument(pointer: SSAValue) -> SSAValue | None:
    """Return the kernel argument from which a scalar pointer is computed; None if unknown."""
    pointer = tt.pointer_root(pointer)
    is_argument = isinstance(pointer.owner, Block) and isinstance(pointer.owner.parent_op(), tt.FuncOp)
    return pointer if is_argument else None


def _number(value: SSAValue) -> object:
    """Return a key of a constant's number, equal for constants of the same value; else the value itself."""
    op = value.owner
    return (op.bits, value.type) if isinstance(op, ConstantOp) else value


def _same_elements(load: tile.Read, store: tile.Access) -> bool:
    """Return whether element i of a store has the address of element i of a load, and no other element has it.

    Each element has a distinct address if the axes have constant strides and each stride is longer than the shorter
    ones reach together. Nothing is known of indices from memory, of axes that wrap around, and of strides that are
    known only at run time.
    """
    if load.base is not store.base or _number(load.start) != _number(store.start):
        return False
    if load.gather is not None or store.gather is not None:
        return False
    shape = load.result.type.get_shape() if isinstance(load.result.type, TensorType) else ()
    strides: list[tuple[int, int]] = []
    for extent, ours, theirs in zip(shape, load.axes, store.axes, strict=True):
        one, other = (tile.even_stride(axis) for axis in (ours, theirs))
        if one is None or other is None:
            return False
        step = constant_value(one)
        if step is None or step != constant_value(other):
            return False
        if extent > 1:
            strides.append((abs(step), extent))
    reach = 0
    for stride, extent in sorted(strides):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def _is_straight(value: SSAValue, sink: Operation, seen: set[Operation]) -> bool:
    """Return whether only elementwise operations lead from a value to its sink: element i is read for element i."""
    for use in value.uses:
        user = use.operation
        if user is sink or user in seen:
            continue
        seen.add(user)
        if not is_elementwise(user) or not _is_straight(user.results[0], sink, seen):
            return False
    return True
