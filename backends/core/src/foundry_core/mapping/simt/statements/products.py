"""Matrix products, and the workgroup memory that their operands pass through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ....analysis.flow import branch, incoming_values
from ....emit.mlir import WIDTHS, Reg
from ....errors import LoweringError
from ....ir import tt, ttg
from ....ops.numeric import element_name
from ..layouts import Layout
from ..matrices.fragments import define, elements, fragments_of, matrices, to_fragments
from ..matrices.plan import Fragments, Product
from ..program import SimtProgram, invocation_statement
from ..spirv.shared_memory import EVERYTHING, Span
from ..steps import AXIS, OF, PART
from ..tiles import Rows, part_registers


def _tile(value: SSAValue, op: Operation) -> tuple[tuple[int, ...], str]:
    """Return the shape of a tile in workgroup memory and the type of its elements."""
    assert isinstance(value.type, ttg.MemoryType)
    type = value.type.tile
    assert isinstance(type, TensorType)
    return type.get_shape(), element_name(type, op)


class SharedTile:
    """How a tile in workgroup memory is arranged: several that are side by side have one extent more.

    Left operands of products in f32 are transposed: a step along K needs a column of them. In rows of memory, an
    invocation reads its part of it in vectors, and the parts of neighbours are in different banks.

    Attributes:
        dims: the dimensions of the tile, the slowest first.
        rows: their arrangement in this order.
    """

    def __init__(self, program: SimtProgram, value: SSAValue, op: Operation) -> None:
        shape, elem = _tile(value, op)
        assert isinstance(value.type, ttg.MemoryType)
        layout = value.type.layout
        if not isinstance(layout, ttg.SharedLayout):
            raise LoweringError(f"a tile in workgroup memory has the layout {layout.name}")
        order = layout.numbers("order")
        if _roots(program, value) <= _column_allocations(program):
            order = tuple(reversed(order))
        beside = len(shape) - len(order)
        self.dims = (*range(beside), *(beside + d for d in reversed(order)))
        self._extents = [shape[d] for d in self.dims]
        self.rows = Rows(self._extents, elem)

    def write(self, program: SimtProgram, layout: Layout, start: Reg, regs: Sequence[Reg]) -> None:
        """Write a tile that begins at `start`, in elements."""
        self.rows.write(program, layout.permute(self.dims), start, regs)

    def read(self, program: SimtProgram, layout: Layout, start: Reg) -> list[Reg]:
        """Read a tile."""
        return self.rows.read(program, layout.permute(self.dims), start)

    def offsets(self, program: SimtProgram, layout: Layout, start: Reg, registers: Sequence[int]) -> list[Reg]:
        """Return where the elements of some registers are."""
        return self.rows.offsets(program, layout.permute(self.dims), start, registers)

    def stride(self, dimension: int) -> int:
        """Return the distance of neighbours along a dimension, in elements."""
        if dimension == self.dims[-1]:
            return 1
        # Rows of the dimensions between, such as of the other products of a batch, lie between the neighbours.
        between = self._extents[self.dims.index(dimension) + 1 : -1]
        distance: int = self.rows.stride * prod(between)
        return distance


def shared_tile(program: SimtProgram, value: SSAValue, op: Operation) -> SharedTile:
    """Return how a tile in workgroup memory is arranged; `op` is refused if its elements are not supported."""
    found: SharedTile | None = program.shared_tiles.get(value)
    if found is None:
        found = program.shared_tiles[value] = SharedTile(program, value, op)
    return found


def _column_allocations(program: SimtProgram) -> frozenset[SSAValue | None]:
    """Return the allocations that hold left operands of products in f32 only."""
    if program.column_allocations is None:
        columns: set[SSAValue | None] = set()
        others: set[SSAValue | None] = set()
        for op in program.function.walk():
            if isinstance(op, ttg.LocalLoadOp):
                columns_or_others = columns if _is_left_operand(op) else others
                columns_or_others |= _roots(program, op.src)
        program.column_allocations = frozenset() if None in columns | others else frozenset(columns - others)
    return program.column_allocations


def _is_left_operand(load: ttg.LocalLoadOp) -> bool:
    assert isinstance(load.result.type, TensorType) and isinstance(load.src.type, ttg.MemoryType)
    shape, elem = _tile(load.src, load)
    layout, memory = load.result.type.encoding, load.src.type.layout
    return (
        len(shape) == 2
        and elem == "f32"
        and isinstance(layout, ttg.DotOperandLayout)
        and layout.number("opIdx") == 0
        and isinstance(memory, ttg.SharedLayout)
        and memory.numbers("order") == (1, 0)
    )


def _start(program: SimtProgram, tile: SSAValue) -> Reg:
    """Return where a tile begins: a constant, if it is the only one of its allocation."""
    (root, *others) = _roots(program, tile)
    if root is None or others or root not in program.values:
        return program.scalar(tile)
    assert isinstance(root.owner, Operation)
    alone = prod(_tile(root, root.owner)[0]) == prod(_tile(tile, root.owner)[0])
    return program.scalar(root if alone else tile)


@invocation_statement(ttg.LocalAllocOp)
def _alloc(program: SimtProgram, op: ttg.LocalAllocOp) -> None:
    if any(use.operation in program.plan.passed for use in op.result.uses):
        return
    stored = shared_tile(program, op.result, op)
    first = program.arena.take(op, stored.rows.bytes, program.code.accesses.spans if op.src is not None else ())
    program.allocated[op.result] = first
    start = stored.rows.start(program, first)
    program.values[op.result] = [start]
    if op.src is not None:
        with _accessed(program, op.result):
            if OF in op.attributes:
                _write_part(program, op, stored, start)
            elif op.src not in program.values:
                fragments, turned = program.plan.fragments[op.src], stored.dims == (1, 0)
                places = _fragment_places(program, stored, start, fragments, range(fragments.layout.size))
                for place, reg in zip(places, program.fragments[op.src], strict=True):
                    matrices(program).store(fragments.matrix, reg, place, stored.rows.stride, column_major=turned)
            else:
                stored.write(program, program.layout(op.src), start, program.values[op.src])


def _write_part(program: SimtProgram, op: ttg.LocalAllocOp, stored: SharedTile, start: Reg) -> None:
    """Write the part of a tile that an allocation is for; see steps.py."""
    assert op.src is not None
    t, layout, regs = program.code, program.layout(op.src), program.values[op.src]
    axis, part, count = (int(op.attributes[name].value.data) for name in (AXIS, PART, OF))  # type: ignore[attr-defined]
    length = layout.shape[axis] // count * prod(layout.shape[axis + 1 :])
    mask = (count - 1) * length
    inner = layout.drop_bits(mask).permute(stored.dims)
    program.group.order(stored.rows.span(program, start), writes=True)
    for numbers, condition in part_registers(program, layout, part * length, mask):

        def write(numbers: list[int] = numbers) -> None:
            stored.rows.write(program, inner, start, [regs[number] for number in numbers], numbers)

        t.do_when(condition, write)


@invocation_statement(ttg.LocalDeallocOp)
def _dealloc(program: SimtProgram, op: ttg.LocalDeallocOp) -> None:
    program.arena.release(program.allocated.pop(op.src))


@invocation_statement(ttg.MemoryIndexOp)
def _index(program: SimtProgram, op: ttg.MemoryIndexOp) -> None:
    t = program.code
    if _tile(op.src, op)[0][0] == 1:
        program.values[op.result] = program.values[op.src]
        return
    length = t.integer(shared_tile(program, op.result, op).rows.length, "i32")
    moved = t.binary("arith.muli", program.scalar(op.index), length)
    program.values[op.result] = [t.binary("arith.addi", program.scalar(op.src), moved)]


@invocation_statement(ttg.MemoryTransOp)
def _transpose(program: SimtProgram, op: ttg.MemoryTransOp) -> None:
    """The order of the dimensions is in the layout: nothing moves."""
    program.values[op.result] = program.values[op.src]


@invocation_statement(ttg.LocalStoreOp)
def _local_store(program: SimtProgram, op: ttg.LocalStoreOp) -> None:
    with _accessed(program, op.dst):
        shared_tile(program, op.dst, op).write(
            program, program.layout(op.src), _start(program, op.dst), program.values[op.src]
        )


@contextmanager
def _accessed(program: SimtProgram, tile: SSAValue) -> Iterator[None]:
    """Write a barrier before a tile is written to workgroup memory, if one is needed."""
    span = _span(program, tile)
    # Loads of global memory that come before it stay before it; see _Operand.prepare.
    program.group.order(span, writes=True, pins=True)
    with program.group.limit_accesses(*span):
        yield


def _span(program: SimtProgram, tile: SSAValue) -> Span:
    """Return the range of workgroup memory that a tile is in; all of it if that is not known."""
    (root, *others) = _roots(program, tile) or {None}
    if root is None or others or root not in program.allocated or not isinstance(root.owner, ttg.LocalAllocOp):
        return EVERYTHING
    first = program.allocated[root]
    return first, first + shared_tile(program, root, root.owner).rows.bytes


def _roots(program: SimtProgram, tile: SSAValue) -> frozenset[SSAValue | None]:
    """Return the allocations that a tile may be a part of."""
    found = program.roots.get(tile)
    if found is None:
        found = program.roots[tile] = frozenset(_find_roots(tile, set()))
    return found


def _find_roots(tile: SSAValue, seen: set[SSAValue]) -> set[SSAValue | None]:
    if tile in seen:
        return set()
    seen.add(tile)
    owner = tile.owner
    if isinstance(owner, (ttg.MemoryIndexOp, ttg.MemoryTransOp)):
        return _find_roots(owner.src, seen)
    sources = incoming_values(tile)
    if sources is not None:
        return set[SSAValue | None]().union(*(_find_roots(source, seen) for source in sources))
    return {tile if isinstance(owner, ttg.LocalAllocOp) else None}


@invocation_statement(ttg.LocalLoadOp)
def _local_load(program: SimtProgram, op: ttg.LocalLoadOp) -> None:
    factor = program.plan.factors.get(op)
    if op in program.plan.passed and factor is not None:
        program.fragments[op.result] = _passed(program, op, program.plan.passed[op], factor)
        return
    multiplied = _is_only_multiplied(program, op)
    if not multiplied or any(use.operation in program.plan.products for use in op.result.uses):
        program.group.order(_span(program, op.src), writes=False, pins=True)
    if multiplied:
        # The product reads what it needs when it needs it: all of it at once would not fit in registers.
        program.unread.add(op)
        return
    if factor is not None:
        program.fragments[op.result] = _read_fragments(program, op, factor, range(factor.layout.size))
    else:
        with program.group.limit_accesses(*_span(program, op.src)):
            program.values[op.result] = shared_tile(program, op.src, op).read(
                program, program.layout(op.result), _start(program, op.src)
            )
    _release(program, op, op)


def _passed(program: SimtProgram, op: ttg.LocalLoadOp, source: SSAValue, factor: Fragments) -> Sequence[Reg]:
    """Return fragments of a tile in registers; before the loops of a kernel, they are made once."""
    key = (source, factor)
    if key not in program.resident:
        found = to_fragments(program, op, elements(program, op, source), program.layout(source), factor)
        if op.parent_block() is not program.function.body.block:
            return found
        program.resident[key] = found
    return program.resident[key]


def _read_fragments(program: SimtProgram, load: ttg.LocalLoadOp, factor: Fragments, wanted: Sequence[int]) -> list[Reg]:
    """Read some fragments of a tile in workgroup memory."""
    stored = shared_tile(program, load.src, load)
    stride, turned = stored.rows.stride, stored.dims == (1, 0)
    with program.group.limit_accesses(*_span(program, load.src), writes=False):
        return [
            matrices(program).load(factor.matrix, place, stride, column_major=turned)
            for place in _fragment_places(program, stored, _start(program, load.src), factor, wanted)
        ]


def _fragment_places(
    program: SimtProgram, stored: SharedTile, start: Reg, fragments: Fragments, wanted: Sequence[int]
) -> Iterator[Reg]:
    """Yield where some fragments of a tile begin."""
    t, layout = program.code, fragments.layout.permute(stored.dims)
    first = program.combine_bases(layout.warps, program.group.warp())
    for number in wanted:
        index = t.binary("arith.addi", first, t.integer(layout.offset(number), "i32"))
        yield t.binary("arith.addi", stored.rows.place(program, index), start)


def _is_only_multiplied(program: SimtProgram, load: ttg.LocalLoadOp) -> bool:
    """Return whether a tile is only multiplied, and can stay in workgroup memory until then: products read it."""
    users = [use.operation for use in load.result.uses]
    alike = all(user in program.plan.products and user.parent_block() is load.parent_block() for user in users)
    # Each of several products reads fragments.
    if not users or not all(isinstance(user, tt.DotOp) for user in users) or not (alike or len(users) == 1):
        return False
    found = [_between(load, user) for user in users]
    between = {op for each in found for op in each or ()}
    needed = sum(
        shared_tile(program, op.result, op).rows.bytes
        for op in between
        if isinstance(op, ttg.LocalAllocOp) and not any(use.operation in program.plan.passed for use in op.result.uses)
    )
    return None not in found and needed <= program.arena.free and not any(_writes(program, op, load) for op in between)


def _between(load: Operation, user: Operation) -> list[Operation] | None:
    """Return the operations between a load and its user, which may be in branches; None if it is in a loop."""
    found: list[Operation] = []
    while user.parent_block() is not load.parent_block():
        before, parent = user.prev_op, user.parent_op()
        if parent is None or not branch(parent):
            return None
        while before is not None:
            found += before.walk()
            before = before.prev_op
        user = parent
    before = user.prev_op
    while before is not None and before is not load:
        found += before.walk()
        before = before.prev_op
    return found if before is load else None


def _writes(program: SimtProgram, op: Operation, load: ttg.LocalLoadOp) -> bool:
    """Return whether an operation may change the tile that is loaded, or end its life."""
    if isinstance(op, (ttg.LocalLoadOp, ttg.MemoryTransOp, ttg.MemoryIndexOp)):
        return False
    tiles = _roots(program, load.src)
    found = [_roots(program, operand) for operand in op.operands if isinstance(operand.type, ttg.MemoryType)]
    return any(each & tiles or None in each | tiles for each in found)


def _readers(tile: SSAValue) -> Iterator[Operation]:
    """Yield the operations on a tile in workgroup memory, and on views of it."""
    for use in tile.uses:
        yield use.operation
        if isinstance(use.operation, (ttg.MemoryTransOp, ttg.MemoryIndexOp)):
            yield from _readers(use.operation.result)


def _release(program: SimtProgram, load: ttg.LocalLoadOp, reader: Operation) -> None:
    """Give back the workgroup memory of a tile after the last operation that reads it.

    Args:
        reader: the load, or the product that reads the tile now.
    """
    at = reader if reader.parent_block() is load.parent_block() else load
    later, after = set[Operation](), at.next_op
    while after is not None:
        later.add(after)
        after = after.next_op
    if not later.isdisjoint(use.operation for use in load.result.uses) and reader is not load:
        return
    program.unread.discard(load)
    (root, *others) = _roots(program, load.src)
    if root is None or others or root not in program.allocated:
        return
    readers, block = set(_readers(root)), at.parent_block()
    alone = all(each.parent_block() is block for each in (root.owner, *readers) if isinstance(each, Operation))
    if alone and readers.isdisjoint(later | program.unread):
        program.arena.release(program.allocated.pop(root))


# How many steps along K are read from workgroup memory at once, if K is along its rows.
_STEPS = 4


class _Operand:
    """An operand of a product: its registers, or workgroup memory from which they are read in steps along K.

    Attributes:
        is_read: whether it is in workgroup memory.
        steps: how many steps along K are read at once.
    """

    def __init__(self, program: SimtProgram, value: SSAValue, axis: int) -> None:
        self._program = program
        self._layout = program.layout(value)
        self._regs = dict(enumerate(program.values.get(value, ())))
        self._load = value.owner if value not in program.values else None
        self.is_read, self.steps = isinstance(self._load, ttg.LocalLoadOp), 1
        if isinstance(self._load, ttg.LocalLoadOp):
            source = self._load.src
            self._stored, self._start = shared_tile(program, source, self._load), _start(program, source)
            extents = self._layout.shape
            # Memory is read in vectors, of several steps if K is along its rows.
            self._stride = self._stored.stride(axis)
            if self._stride == 1:
                self.steps = min(_STEPS, extents[axis])
            along = prod(extents[axis + 1 :])
            self._wanted: dict[int, list[int]] = {}
            for number in self._layout.distinct:
                at = self._layout.offsets[number] // along % extents[axis]
                self._wanted.setdefault(at // self.steps, []).append(number)

    def _offsets(self, registers: Sequence[int]) -> list[Reg]:
        return self._stored.offsets(self._program, self._layout, self._start, registers)

    def prepare(self, steps: int) -> None:
        """Prepare to read `steps` steps in each iteration of a loop."""
        # Loads of global memory that come before a product stay before it: their results are needed after it only, and
        # by then they have come. A device's compiler that saves registers would move them there.
        span = self._stored.rows.span(self._program, self._start)
        self._program.group.order(span, writes=False, pins=True)
        self._moved = steps * self._stride
        self._vectors = []
        for each in range(steps // self.steps):
            wanted = self._wanted[each]
            vectors = self._stored.rows.vectors(self._program, self._offsets(wanted), self._moved)
            self._vectors += [([wanted[k] for k in numbers], index) for numbers, index in vectors]

    def read(self, iteration: Reg) -> None:
        """Read the steps of an iteration in the place of those of the first one."""
        t = self._program.code
        moved = []
        for numbers, index in self._vectors:
            distance = t.integer(self._moved // len(numbers), "i32")
            moved.append((numbers, t.binary("arith.addi", index, t.binary("arith.muli", iteration, distance))))
        self._regs = dict(self._stored.rows.read_vectors(self._program, moved, self._start))

    def at(self, index: int, step: int) -> Reg:
        """Return the register of an element, which is at a step along K."""
        register = self._layout.register_of[index]
        if register not in self._regs:
            wanted = self._wanted[step // self.steps]
            read = self._stored.rows.read_offsets(self._program, self._offsets(wanted), self._start)
            self._regs.update(zip(wanted, read, strict=True))
        return self._regs[register]

    def close(self, op: Operation) -> None:
        if isinstance(self._load, ttg.LocalLoadOp):
            _release(self._program, self._load, op)


@invocation_statement(tt.DotOp)
def _dot(program: SimtProgram, op: tt.DotOp) -> None:
    if op in program.plan.products:
        _multiply_fragments(program, op, program.plan.products[op])
        return
    t, numeric = program.code, program.numeric
    c = program.layout(op.c)
    *_, rows, depth = program.layout(op.a).shape
    columns = c.shape[-1]
    a, b = (_Operand(program, value, len(c.shape) - 1 - k) for k, value in enumerate((op.a, op.b)))
    signed = element_name(op.a.type, op) == "i8"
    # Row by row, so that an element of the left operand is used as often as possible in a row.
    order = sorted(range(c.size), key=lambda number: c.offsets[number])

    def added(totals: Sequence[Reg], steps: int) -> list[Reg]:
        totals = list(totals)
        for k in range(steps):
            for number in order:
                offset = c.offsets[number]
                batch, row, column = offset // (rows * columns), offset // columns % rows, offset % columns
                left = a.at((batch * rows + row) * depth + k, k)
                right = b.at((batch * depth + k) * columns + column, k)
                if signed:
                    left, right = (t.cast("arith.extsi", reg, "i32") for reg in (left, right))
                totals[number] = _step(program, left, right, totals[number])
        return totals

    steps = max(a.steps, b.steps)
    if a.is_read and b.is_read and steps < depth:

        def iteration(number: Reg, totals: Sequence[Reg]) -> list[Reg]:
            a.read(number)
            b.read(number)
            return added(totals, steps)

        for operand in (a, b):
            operand.prepare(steps)
        rolled = program.target.compiles_slowly
        totals = t.unroll_loop(depth // steps, program.values[op.c], iteration, rolled=rolled)
    else:
        totals = added(program.values[op.c], depth)
    a.close(op)
    b.close(op)
    program.values[op.result] = [numeric.round_float(total, element_name(op.c.type, op)) for total in totals]


class _Factor:
    """A factor of a cooperative product: its fragments, or workgroup memory from which each is read when needed."""

    def __init__(self, program: SimtProgram, op: tt.DotOp, value: SSAValue, fragments: Fragments) -> None:
        self._program, self._fragments, self._load = program, fragments, None
        if value in program.fragments and value not in program.plan.fragments:
            self._regs = dict(enumerate(program.fragments[value]))
        elif value in program.values or value in program.plan.fragments:
            made = to_fragments(program, op, elements(program, op, value), program.layout(value), fragments)
            self._regs = dict(enumerate(made))
        else:
            assert isinstance(value.owner, ttg.LocalLoadOp)
            self._load, self._regs = value.owner, {}

    def at(self, number: int) -> Reg:
        if number not in self._regs:
            assert self._load is not None
            (self._regs[number],) = _read_fragments(self._program, self._load, self._fragments, [number])
        return self._regs[number]

    def close(self, op: Operation) -> None:
        if self._load is not None:
            _release(self._program, self._load, op)


def _multiply_fragments(program: SimtProgram, op: tt.DotOp, product: Product) -> None:
    elem = element_name(op.c.type, op)
    total, writer = product.total, matrices(program)
    left, right = (_Factor(program, op, *pair) for pair in ((op.a, product.left), (op.b, product.right)))
    regs = [writer.convert(reg, total.matrix) for reg in fragments_of(program, op, op.c, total.retype(elem))]
    steps = product.depth // product.fragment.depth
    across = product.columns // product.across // product.fragment.columns
    signed = product.fragment.factor == "i8"
    for step in range(steps):
        for number, reg in enumerate(regs):
            row, column = divmod(number, across)
            a, b = left.at(row * steps + step), right.at(step * across + column)
            regs[number] = writer.multiply_add(a, b, reg, signed=signed)
    left.close(op)
    right.close(op)
    define(program, op, op.result, [writer.convert(reg, total.retype(elem).matrix) for reg in regs])


def _step(program: SimtProgram, left: Reg, right: Reg, total: Reg) -> Reg:
    """Return left * right + total. A product of floats is rounded if the device has no fused instruction."""
    t = program.code
    if total.elem[0] == "f":
        if WIDTHS[total.elem] in program.target.fuses:
            return program.numeric.multiply_add(left, right, total)
        return t.binary("arith.addf", t.binary("arith.mulf", left, right), total)
    return t.binary("arith.addi", t.binary("arith.muli", left, right), total)
