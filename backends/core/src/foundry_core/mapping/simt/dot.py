"""Matrix products, and the workgroup memory that their operands pass through."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...dialects import tt, ttg
from ...effects import writes
from ..base.mlir import WIDTHS, Reg
from ..base.numeric import element
from .exchange import Rows
from .program import Program, statement


def _tile(value: SSAValue, op: Operation) -> tuple[tuple[int, ...], str]:
    """Return the shape of a tile in workgroup memory and the type of its elements."""
    assert isinstance(value.type, ttg.MemoryType)
    type = value.type.tile
    assert isinstance(type, TensorType)
    return type.get_shape(), element(type, op)


def _rows(value: SSAValue, op: Operation) -> Rows:
    """Return how a tile in workgroup memory is arranged: several that are side by side have one extent more."""
    shape, elem = _tile(value, op)
    return Rows(shape, elem)


@statement(ttg.LocalAllocOp)
def _alloc(program: Program, op: ttg.LocalAllocOp) -> None:
    rows = _rows(op.result, op)
    first = program.arena.take(op, rows.bytes)
    program.allocated[op.result] = first
    start = rows.start(program, first)
    program.values[op.result] = [start]
    if op.src is not None:
        program.group.barrier()
        rows.write(program, program.layout(op.src), start, program.values[op.src])


@statement(ttg.LocalDeallocOp)
def _dealloc(program: Program, op: ttg.LocalDeallocOp) -> None:
    program.arena.release(program.allocated.pop(op.src))


@statement(ttg.MemoryIndexOp)
def _index(program: Program, op: ttg.MemoryIndexOp) -> None:
    t = program.code
    length = t.integer(_rows(op.result, op).length, "i32")
    moved = t.binary("arith.muli", program.scalar(op.index), length)
    program.values[op.result] = [t.binary("arith.addi", program.scalar(op.src), moved)]


@statement(ttg.LocalStoreOp)
def _local_store(program: Program, op: ttg.LocalStoreOp) -> None:
    program.group.barrier()
    rows = _rows(op.dst, op)
    rows.write(program, program.layout(op.src), program.scalar(op.dst), program.values[op.src])


@statement(ttg.LocalLoadOp)
def _local_load(program: Program, op: ttg.LocalLoadOp) -> None:
    program.group.barrier()
    if _is_only_multiplied(op):
        # The product reads what it needs when it needs it: all of it at once would not fit in registers.
        return
    rows = _rows(op.src, op)
    program.values[op.result] = rows.read(program, program.layout(op.result), program.scalar(op.src))
    _release(program, op)


def _is_only_multiplied(op: ttg.LocalLoadOp) -> bool:
    """Return whether the one use of a tile is a product, with nothing between that writes memory."""
    uses = list(op.result.uses)
    if len(uses) != 1 or not isinstance(uses[0].operation, tt.DotOp):
        return False
    dot: Operation = uses[0].operation
    while dot.parent_block() is not op.parent_block():
        parent = dot.parent_op()
        if not isinstance(parent, scf.IfOp) or _writes_before(dot):
            return False
        dot = parent
    between = op.next_op
    while between is not None and between is not dot:
        if not isinstance(between, ttg.LocalLoadOp) and writes(between):
            return False
        between = between.next_op
    return between is dot


def _writes_before(op: Operation) -> bool:
    before = op.prev_op
    while before is not None:
        if writes(before):
            return True
        before = before.prev_op
    return False


def _release(program: Program, load: ttg.LocalLoadOp) -> None:
    if load.src in program.allocated and is_last_use(load, load.src):
        program.arena.release(program.allocated.pop(load.src))


# How many steps along K are read from workgroup memory at once.
_STEPS = 4


class _Operand:
    """An operand of a product: its registers, or workgroup memory from which they are read in steps along K."""

    def __init__(self, program: Program, value: SSAValue, axis: int) -> None:
        self._program = program
        self._layout = program.layout(value)
        self._regs = dict(enumerate(program.values.get(value, ())))
        self._load = value.owner if value not in program.values else None
        extents = self._layout.shape
        stride = 1 if axis == len(extents) - 1 else extents[-1]
        self._step = [offset // stride % extents[axis] for offset in self._layout.offsets]

    def at(self, index: int, step: int) -> Reg:
        """Return the register of an element, which is at a step along K."""
        register = self._layout.register_of[index]
        if register not in self._regs:
            assert isinstance(self._load, ttg.LocalLoadOp)
            first = step // _STEPS * _STEPS
            wanted = [
                number
                for number, at in enumerate(self._step)
                if first <= at < first + _STEPS and self._layout.register_of[self._layout.offsets[number]] == number
            ]
            rows = _rows(self._load.src, self._load)
            read = rows.read(self._program, self._layout, self._program.scalar(self._load.src), wanted)
            self._regs.update(zip(wanted, read, strict=True))
        return self._regs[register]

    def close(self) -> None:
        if isinstance(self._load, ttg.LocalLoadOp):
            _release(self._program, self._load)


def is_last_use(op: Operation, value: SSAValue) -> bool:
    """Return whether no later operation uses a value, as far as one block tells."""
    users = [use.operation for use in value.uses]
    block = op.parent_block()
    if any(user.parent_block() is not block for user in users) or value.owner.parent_block() is not block:
        return False
    later = op.next_op
    while later is not None:
        if later in users:
            return False
        later = later.next_op
    return True


@statement(tt.DotOp)
def _dot(program: Program, op: tt.DotOp) -> None:
    t, numeric = program.code, program.numeric
    c = program.layout(op.c)
    *_, rows, depth = program.layout(op.a).shape
    columns = c.shape[-1]
    a, b = (_Operand(program, value, len(c.shape) - 1 - k) for k, value in enumerate((op.a, op.b)))
    totals = list(program.values[op.c])
    signed = element(op.a.type, op) == "i8"
    for k in range(depth):
        for number, offset in enumerate(c.offsets):
            batch, row, column = offset // (rows * columns), offset // columns % rows, offset % columns
            left = a.at((batch * rows + row) * depth + k, k)
            right = b.at((batch * depth + k) * columns + column, k)
            if signed:
                left, right = (t.cast("arith.extsi", reg, "i32") for reg in (left, right))
            totals[number] = _step(program, left, right, totals[number])
    a.close()
    b.close()
    program.values[op.result] = [numeric.rounded(total, element(op.c.type, op)) for total in totals]


def _step(program: Program, left: Reg, right: Reg, total: Reg) -> Reg:
    """Return left * right + total. Of floats, the product is rounded if the device has no fused instruction."""
    t = program.code
    if total.elem[0] == "f":
        if WIDTHS[total.elem] in program.target.fuses:
            return program.numeric.multiply_add(left, right, total)
        return t.binary("arith.addf", t.binary("arith.mulf", left, right), total)
    return t.binary("arith.addi", t.binary("arith.muli", left, right), total)
