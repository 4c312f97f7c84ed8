"""What needs elements of other invocations: conversions of layouts, and reductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...dialects import tt
from ..base.mlir import WIDTHS, Reg
from ..base.numeric import in_memory
from .layouts import Layout, arranged
from .program import Program, statement
from .runs import runs

# The most bytes of one access.
_WIDEST = 16
# Rows of workgroup memory are this much longer than a tile's, so that a column is in different banks.
_PADDING_BYTES = 16


def convert(program: Program, op: Operation, regs: Sequence[Reg], source: Layout, target: Layout) -> Sequence[Reg]:
    """Return the registers of a tile in another layout; the element of an index stays the same."""
    if (source.lanes, source.warps) == (target.lanes, target.warps) and set(target.offsets) <= set(source.offsets):
        return [regs[source.register_of[offset]] for offset in target.offsets]
    return _through_memory(program, op, regs, source, target)


def _through_memory(program: Program, op: Operation, regs: Sequence[Reg], source: Layout, target: Layout) -> list[Reg]:
    group = program.group
    elem = regs[0].elem
    found: dict[int, Reg] = {}
    for of_source, of_target, part, elsewhere in _parts(program, source, target, elem):
        rows = Rows(part.shape, elem)
        with program.arena.borrowed(op, rows.bytes) as first:
            # What other invocations still read of an earlier exchange must not be overwritten.
            group.barrier()
            start = rows.start(program, first)
            rows.write(program, part, start, [regs[number] for number in of_source])
            group.barrier()
            found.update(zip(of_target, rows.read(program, elsewhere, start), strict=True))
    return [found[number] for number in range(target.size)]


def _parts(
    program: Program, source: Layout, target: Layout, elem: str
) -> Iterator[tuple[list[int], list[int], Layout, Layout]]:
    """Divide a tile along its first dimension into parts that fit into workgroup memory, if registers allow it.

    Yields the registers of both layouts that a part has, and both layouts of the part.
    """
    shape, cut = source.shape, 0
    row = 1
    for extent in shape[1:]:
        row *= extent
    while Rows((shape[0] >> cut, *shape[1:]), elem).bytes > program.arena.free:
        basis = shape[0] >> cut + 1
        if basis == 0 or basis * row not in source.registers or basis * row not in target.registers:
            break
        cut += 1
    whole = shape[0] >> cut
    mask = (shape[0] - whole) * row
    smaller = [
        Layout(
            (whole, *shape[1:]),
            tuple(basis for basis in layout.registers if not basis & mask),
            layout.lanes,
            layout.warps,
        )
        for layout in (source, target)
    ]
    for part in range(1 << cut):
        numbers = [
            [number for number, offset in enumerate(layout.offsets) if offset & mask == part * whole * row]
            for layout in (source, target)
        ]
        yield numbers[0], numbers[1], smaller[0], smaller[1]


class Rows:
    """A tile in workgroup memory, in row-major order, with longer rows than it has.

    Attributes:
        size: bytes of an element.
        length, bytes: what the tile takes, in elements and in bytes.
    """

    def __init__(self, shape: Sequence[int], elem: str) -> None:
        self._elem = elem
        self._kind = in_memory(elem)
        self.size = WIDTHS[self._kind] // 8
        total = prod(shape)
        self._row = shape[-1] if shape else 1
        padded = len(shape) > 1 and total > self._row > 1
        self._padding = _PADDING_BYTES // self.size if padded else 0
        self.length = total + total // max(1, self._row) * self._padding
        self.bytes = self.length * self.size

    @property
    def stride(self) -> int:
        """Return the distance of rows, in elements."""
        return self._row + self._padding

    def start(self, program: Program, first: int) -> Reg:
        """Return where a tile begins that has its first byte there, in elements."""
        return program.code.integer(first // self.size, "i32")

    def place(self, program: Program, index: Reg) -> Reg:
        """Return where an element of a layout is in the tile's memory, from its index in the tile."""
        t = program.code
        # The constant part of an index is made of other bits than the rest, so each part has a whole number of rows.
        base, step = t.parts(index)
        place = self._anywhere(program, base)
        return t.binary("arith.addi", place, t.integer(step + step // self._row * self._padding, "i32"))

    def _anywhere(self, program: Program, index: Reg) -> Reg:
        """Return where an element is, from an index that may be any number."""
        if not self._padding:
            return index
        t = program.code
        above = t.binary("arith.shrui", index, t.integer(self._row.bit_length() - 1, "i32"))
        return t.binary("arith.addi", index, t.binary("arith.muli", above, t.integer(self._padding, "i32")))

    def _places(self, program: Program, layout: Layout, start: Reg) -> list[Reg]:
        """Return where the elements of a layout's registers are, in an array that begins with workgroup memory."""
        t = program.code
        return [t.binary("arith.addi", self.place(program, index), start) for index in program.indices(layout)]

    def _runs(self, program: Program, places: Sequence[Reg]) -> Iterator[tuple[list[int], Reg]]:
        """Divide registers into accesses; the index of each is that of a vector of its width."""
        t = program.code
        # One register for each place: where a layout repeats, several hold the same element.
        distinct = list({place.name: number for number, place in reversed(list(enumerate(places)))}.values())
        for run in runs(t, [places[k] for k in distinct], [None] * len(distinct), 1, _WIDEST // self.size):
            numbers = [distinct[k] for k in run]
            index = places[numbers[0]]
            if len(numbers) > 1:
                index = t.binary("arith.shrui", index, t.integer(len(numbers).bit_length() - 1, "i32"))
            yield numbers, index

    def write(self, program: Program, layout: Layout, start: Reg, regs: Sequence[Reg]) -> None:
        """Write a tile.

        Args:
            start: where it begins in workgroup memory, in elements.
        """
        bits = [program.numeric.to_memory(reg, self._elem) for reg in regs]
        for numbers, index in self._runs(program, self._places(program, layout, start)):
            program.group.write_shared(index, [bits[k] for k in numbers])

    def read(self, program: Program, layout: Layout, start: Reg, wanted: Sequence[int] | None = None) -> list[Reg]:
        """Read a tile, or some registers of its layout."""
        places = self._places(program, layout, start)
        return self._read(program, places if wanted is None else [places[k] for k in wanted])

    def read_at(self, program: Program, indices: Sequence[Reg], start: Reg) -> list[Reg]:
        """Read the elements at some indices of the tile, in row-major order."""
        t = program.code
        return self._read(program, [t.binary("arith.addi", self._anywhere(program, at), start) for at in indices])

    def _read(self, program: Program, places: Sequence[Reg]) -> list[Reg]:
        found: dict[str, Reg] = {}
        for numbers, index in self._runs(program, places):
            regs = program.group.read_shared(index, self._kind, len(numbers))
            for k, reg in zip(numbers, regs, strict=True):
                found[places[k].name] = program.numeric.from_memory(reg, self._elem)
        return [found[place.name] for place in places]


@statement(tt.ReduceOp)
def _reduce(program: Program, op: tt.ReduceOp) -> None:
    axis = op.axis.value.data
    source, regs, bits = along_axis(program, op, axis, ordered=not _commutes(op))
    along = sum(bits)
    tile = {offset: [src[source.register_of[offset]] for src in regs] for offset in source.offsets}
    rows = _unordered(program, op, tile, source, along) if _commutes(op) else _ordered(program, op, tile, source, bits)
    for number, result in enumerate(op.res):
        program.values[result] = _results(program, op, result, {k: v[number] for k, v in rows.items()}, source, axis)


def along_axis(
    program: Program, op: tt.ReduceOp | tt.ScanOp, axis: int, *, ordered: bool
) -> tuple[Layout, list[Sequence[Reg]], list[int]]:
    """Return the layout of the operands, their registers, and the bits of an index that are along an axis.

    Each basis of the layout is along the axis or not; with `ordered`, those along it are single bits. Operands with
    another layout are converted.
    """
    layout = program.layout(op.srcs[0])
    stride = prod(layout.shape[axis + 1 :])
    bits = [stride << bit for bit in range(layout.shape[axis].bit_length() - 1)]
    along = sum(bits)
    bases = (*layout.registers, *layout.lanes, *layout.warps)
    regs = [program.values[src] for src in op.srcs]
    if any(basis & along and (basis & ~along or (ordered and basis not in bits)) for basis in bases):
        plain = arranged(layout)
        return plain, [convert(program, op, each, layout, plain) for each in regs], bits
    return layout, regs, bits


# Operations for which the order of the operands does not matter.
_COMMUTATIVE = (
    *(arith.AddiOp, arith.AddfOp, arith.MuliOp, arith.MulfOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    *(arith.MinnumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MaximumfOp),
)


def _commutes(op: tt.ReduceOp) -> bool:
    """Return whether elements may be combined in any order, as far as one operation tells."""
    block = op.combine.block
    first, last = block.first_op, block.last_op
    assert first is not None and last is not None
    return isinstance(first, _COMMUTATIVE) and first.next_op is last and set(first.operands) == set(block.args)


def _unordered(
    program: Program, op: tt.ReduceOp, tile: dict[int, list[Reg]], source: Layout, along: int
) -> dict[int, list[Reg]]:
    """Return a partial result for each position beside the axis that this invocation has, by its index."""
    # The registers of this invocation.
    rows: dict[int, list[Reg]] = {}
    for offset, values in tile.items():
        key = offset & ~along
        rows[key] = combine(program, op, rows[key], values) if key in rows else values
    # The other invocations of the subgroup.
    for bit, basis in enumerate(source.lanes):
        if basis & along:
            for key, values in rows.items():
                others = [shuffled(program, op, value, mask=1 << bit) for value in values]
                rows[key] = combine(program, op, values, others)
    warps = sum({basis for basis in source.warps if basis & along})
    return _across_warps(program, op, rows, source, warps, along) if warps else rows


def _ordered(
    program: Program, op: tt.ReduceOp, rows: dict[int, list[Reg]], source: Layout, bits: Sequence[int]
) -> dict[int, list[Reg]]:
    """Do the same in the order of the axis, from its lowest bit: neighbours, then neighbouring pairs, and so on."""
    t, reduced = program.code, 0
    for number, basis in enumerate(bits):
        if basis & reduced:
            continue
        if basis in source.registers:
            rows = {
                key: combine(program, op, values, rows[key | basis]) for key, values in rows.items() if not key & basis
            }
        elif basis in source.lanes:
            bit = 1 << source.lanes.index(basis)
            upper = t.compare(
                "ne", t.binary("arith.andi", program.group.lane(), t.integer(bit, "i32")), t.integer(0, "i32")
            )
            for key, values in rows.items():
                others = [shuffled(program, op, value, mask=bit) for value in values]
                pairs = list(zip(values, others, strict=True))
                first = [t.select(upper, other, mine) for mine, other in pairs]
                second = [t.select(upper, mine, other) for mine, other in pairs]
                rows[key] = combine(program, op, first, second)
        else:
            # All bits of warps that follow each other.
            warps = 0
            for other in bits[number:]:
                if other not in source.warps:
                    break
                warps |= other
            rows = _across_warps(program, op, rows, source, warps, reduced)
            reduced |= warps
        reduced |= basis
    return rows


def shuffled(program: Program, op: Operation, value: Reg, lane: Reg | None = None, *, mask: int = 0) -> Reg:
    """Return a register of another lane: of the one with this number, or that differs in the bits of a mask."""
    t, group = program.code, program.group
    if not program.target.shuffles:
        other = t.binary("arith.xori", group.lane(), t.integer(mask, "i32")) if lane is None else lane
        return _through_places(program, op, value, other)
    wide = t.cast("arith.extui", value, "i32") if value.elem == "i1" else value
    moved = group.shuffle_xor(wide, mask) if lane is None else group.shuffle(wide, lane)
    return t.cast("arith.trunci", moved, "i1") if value.elem == "i1" else moved


def _through_places(program: Program, op: Operation, value: Reg, lane: Reg) -> Reg:
    """Return a register of another lane of this warp, through workgroup memory."""
    t, group, target = program.code, program.group, program.target
    rows = Rows((target.warps * target.warp_size,), value.elem)
    first = t.binary("arith.muli", group.warp(), t.integer(target.warp_size, "i32"))
    with program.arena.borrowed(op, rows.bytes) as low:
        first = t.binary("arith.addi", first, rows.start(program, low))
        group.barrier()
        group.write_shared(t.binary("arith.addi", first, group.lane()), [program.numeric.to_memory(value, value.elem)])
        group.barrier()
        (read,) = group.read_shared(t.binary("arith.addi", first, lane), in_memory(value.elem))
        return program.numeric.from_memory(read, value.elem)


def combine(program: Program, op: tt.ReduceOp | tt.ScanOp, first: Sequence[Reg], second: Sequence[Reg]) -> list[Reg]:
    """Write the region of a reduction or a scan on two sets of values."""
    block = op.combine.block
    for argument, reg in zip(block.args, (*first, *second), strict=True):
        program.values[argument] = [reg]
    for inner in block.ops:
        if inner is not block.last_op:
            program.operation(inner)
    assert block.last_op is not None
    return [program.scalar(operand) for operand in block.last_op.operands]


def _across_warps(
    program: Program, op: tt.ReduceOp, rows: dict[int, list[Reg]], source: Layout, along: int, reduced: int
) -> dict[int, list[Reg]]:
    """Combine the partial results of the warps along the axis, through workgroup memory, in the order of the axis.

    Args:
        along: the bits of an index that these warps have.
        reduced: the bits of an index along which lanes hold the same partial results.
    """
    t, group = program.code, program.group
    warps = sorted((bit for bit, basis in enumerate(source.warps) if basis & along), key=lambda bit: source.warps[bit])
    lanes = [bit for bit, basis in enumerate(source.lanes) if basis and not basis & reduced]
    found: dict[int, list[Reg]] = {key: list(values) for key, values in rows.items()}
    # The place of a partial result: which lane beside the axis, which row, and which warp.
    lane = _gathered(program, group.lane(), lanes)
    count = 1 << len(lanes)
    sizes = [WIDTHS["i32" if regs.elem == "i1" else regs.elem] // 8 for regs in next(iter(rows.values()))]
    places = [program.arena.take(op, len(rows) * program.target.warps * count * size) for size in sizes]
    starts = [place // size for place, size in zip(places, sizes, strict=True)]

    def place(number: int, row: int, warp: Reg) -> Reg:
        at = t.binary("arith.addi", t.binary("arith.muli", warp, t.integer(count, "i32")), lane)
        return t.binary("arith.addi", at, t.integer(starts[number] + row * program.target.warps * count, "i32"))

    group.barrier()
    # One lane of those that hold the same partial result writes it.
    same = sum(1 << bit for bit in range(len(source.lanes)) if bit not in lanes)

    def write() -> None:
        for row, values in enumerate(rows.values()):
            for number, value in enumerate(values):
                stored = t.cast("arith.extui", value, "i32") if value.elem == "i1" else value
                group.write_shared(place(number, row, group.warp()), [stored])

    if same:
        bits = t.binary("arith.andi", group.lane(), t.integer(same, "i32"))
        t.do_when(t.compare("eq", bits, t.integer(0, "i32")), write)
    else:
        write()
    group.barrier()
    mask = sum(1 << bit for bit in warps)
    mine = t.binary("arith.andi", group.warp(), t.integer(((1 << len(source.warps)) - 1) & ~mask, "i32"))
    for row, (key, values) in enumerate(rows.items()):
        total: list[Reg] | None = None
        for other in range(1 << len(warps)):
            beside = sum(1 << warps[k] for k in range(len(warps)) if other >> k & 1)
            warp = t.binary("arith.addi", mine, t.integer(beside, "i32"))
            read = []
            for number, value in enumerate(values):
                kind = "i32" if value.elem == "i1" else value.elem
                (reg,) = group.read_shared(place(number, row, warp), kind)
                read.append(t.cast("arith.trunci", reg, "i1") if value.elem == "i1" else reg)
            total = read if total is None else combine(program, op, total, read)
        assert total is not None
        found[key] = total
    for at in places:
        program.arena.release(at)
    return found


def _gathered(program: Program, number: Reg, bits: Sequence[int]) -> Reg:
    """Return some bits of a number, side by side."""
    t = program.code
    total = t.integer(0, "i32")
    for place, bit in enumerate(bits):
        one = t.binary("arith.andi", t.binary("arith.shrui", number, t.integer(bit, "i32")), t.integer(1, "i32"))
        total = t.binary("arith.addi", total, t.binary("arith.muli", one, t.integer(1 << place, "i32")))
    return total


def _results(
    program: Program, op: tt.ReduceOp, result: SSAValue, rows: dict[int, Reg], source: Layout, axis: int
) -> Sequence[Reg]:
    """Return a reduction's result in the layout of its type."""
    if not isinstance(result.type, TensorType):
        return [rows[0]]
    extent = source.shape[axis]
    stride = 1
    for other in source.shape[axis + 1 :]:
        stride *= other

    def without(index: int) -> int:
        """Return the index of a position beside the axis in the result's shape."""
        return index // (stride * extent) * stride + index % stride

    found = sorted(rows)
    registers = []
    for basis in source.registers:
        if basis & ((extent - 1) * stride) == 0 and basis:
            registers.append(without(basis))
    made = Layout(
        tuple(e for d, e in enumerate(source.shape) if d != axis),
        tuple(registers),
        tuple(0 if basis & ((extent - 1) * stride) else without(basis) for basis in source.lanes),
        tuple(0 if basis & ((extent - 1) * stride) else without(basis) for basis in source.warps),
    )
    by_index = {without(key): rows[key] for key in found}
    return convert(program, op, [by_index[offset] for offset in made.offsets], made, program.layout(result))
