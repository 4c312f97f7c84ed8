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
from .accesses import EVERYTHING, Span
from .layouts import Layout, arranged
from .program import Program, statement
from .runs import runs

# An access: the numbers of the registers, and the index of a vector of as many elements.
Vector = tuple[list[int], Reg]
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
    elem = regs[0].elem
    found: dict[int, Reg] = {}
    for of_source, of_target, part, elsewhere in _parts(program, source, target, elem):
        rows = Rows(part.shape, elem)
        with program.arena.borrowed(op, rows.bytes) as first:
            start = rows.start(program, first)
            rows.write(program, part, start, [regs[number] for number in of_source])
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

    def span(self, program: Program, start: Reg) -> Span:
        """Return the bytes of a tile that begins there."""
        first = program.code.value(start)
        return EVERYTHING if first is None else (first * self.size, first * self.size + self.bytes)

    def place(self, program: Program, index: Reg) -> Reg:
        """Return where an element of a layout is in the tile's memory, from its index in the tile."""
        t = program.code
        # The constant part of an index is made of other bits than the rest, so each part has a whole number of rows.
        base, step = t.parts(index)
        place = self._anywhere(program, base)
        return t.binary("arith.addi", place, t.integer(step + step // self._row * self._padding, "i32"))

    def _anywhere(self, program: Program, index: Reg) -> Reg:
        """Return where an element is, from an index that may be any number."""
        t = program.code
        if not self._padding:
            return index
        above = t.binary("arith.shrui", index, t.integer(self._row.bit_length() - 1, "i32"))
        return t.binary("arith.addi", index, t.binary("arith.muli", above, t.integer(self._padding, "i32")))

    def places(self, program: Program, layout: Layout, start: Reg, registers: Sequence[int] | None = None) -> list[Reg]:
        """Return where the elements of a layout's registers are, in an array that begins with workgroup memory.

        Args:
            registers: their numbers. Default: all.
        """
        t, indices = program.code, program.indices(layout, registers)
        return [t.binary("arith.addi", self.place(program, index), start) for index in indices]

    def vectors(self, program: Program, places: Sequence[Reg], multiple: int = 0) -> list[Vector]:
        """Divide registers into accesses.

        Args:
            multiple: in elements; all places may be moved by multiples of it.
        """
        t = program.code
        # One register for each place: where a layout repeats, several hold the same element.
        distinct = list({place.name: number for number, place in reversed(list(enumerate(places)))}.values())
        widest = min(_WIDEST // self.size, multiple & -multiple or _WIDEST)
        found = []
        for run in runs(t, [places[k] for k in distinct], [None] * len(distinct), 1, widest):
            numbers = [distinct[k] for k in run]
            # Both parts of the place are multiples of the vector's width. The index of a vector is a sum too, so that
            # its constant part becomes one of the instruction that reads or writes.
            base, step = t.parts(places[numbers[0]])
            if len(numbers) > 1:
                width = t.integer(len(numbers).bit_length() - 1, "i32")
                base, step = t.binary("arith.shrui", base, width), step // len(numbers)
            found.append((numbers, t.binary("arith.addi", base, t.integer(step, "i32"))))
        return found

    def write(self, program: Program, layout: Layout, start: Reg, regs: Sequence[Reg]) -> None:
        """Write a tile, after a barrier if other invocations may still read what was there.

        Args:
            start: where it begins in workgroup memory, in elements.
        """
        span = self.span(program, start)
        program.group.order(span, writes=True)
        self._write(program, self.places(program, layout, start), regs, span)

    def write_at(self, program: Program, indices: Sequence[Reg], start: Reg, regs: Sequence[Reg]) -> None:
        """Write the elements at some indices of the tile; the caller writes the barriers."""
        self._write(program, self._at(program, indices, start), regs, self.span(program, start))

    def _at(self, program: Program, indices: Sequence[Reg], start: Reg) -> list[Reg]:
        return [program.code.binary("arith.addi", self._anywhere(program, at), start) for at in indices]

    def _write(self, program: Program, places: Sequence[Reg], regs: Sequence[Reg], span: Span) -> None:
        bits = [program.numeric.to_memory(reg, self._elem) for reg in regs]
        for numbers, index in self.vectors(program, places):
            program.group.write_shared(index, [bits[k] for k in numbers], span)

    def read(self, program: Program, layout: Layout, start: Reg) -> list[Reg]:
        """Read a tile, after a barrier if it may have been written just now."""
        return self.read_places(program, self.places(program, layout, start), start)

    def read_at(self, program: Program, indices: Sequence[Reg], start: Reg) -> list[Reg]:
        """Read the elements at some indices of the tile, in row-major order."""
        return self.read_places(program, self._at(program, indices, start), start)

    def read_places(self, program: Program, places: Sequence[Reg], start: Reg) -> list[Reg]:
        """Read what is at places in the tile's memory."""
        program.group.order(self.span(program, start), writes=False)
        found: dict[str, Reg] = {}
        for number, reg in self.read_vectors(program, self.vectors(program, places), start):
            found[places[number].name] = reg
        return [found[place.name] for place in places]

    def read_vectors(self, program: Program, vectors: Sequence[Vector], start: Reg) -> Iterator[tuple[int, Reg]]:
        """Read registers of the tile; the caller writes barriers. Yields the number of each place, and its register."""
        span = self.span(program, start)
        for numbers, index in vectors:
            regs = program.group.read_shared(index, self._kind, len(numbers), span)
            for number, reg in zip(numbers, regs, strict=True):
                yield number, program.numeric.from_memory(reg, self._elem)


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
    """Return a partial result for each position outside the axis that this invocation has, by its index."""
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
    # The place of a partial result: which row, which lane outside the axis, and which warp.
    lane = _gathered(program, group.lane(), lanes)
    count, all_warps = 1 << len(lanes), program.target.warps
    kinds = [regs.elem for regs in next(iter(rows.values()))]
    tiles = [Rows((len(rows) * count * all_warps,), elem) for elem in kinds]
    # Not where something has been read since the last barrier: writing there would need another one.
    firsts = [program.arena.take(op, tile.bytes, t.accesses.spans) for tile in tiles]
    starts = [tile.start(program, first) for tile, first in zip(tiles, firsts, strict=True)]

    def place(row: int, warp: Reg) -> Reg:
        at = t.binary("arith.addi", t.binary("arith.muli", lane, t.integer(all_warps, "i32")), warp)
        return t.binary("arith.addi", at, t.integer(row * count * all_warps, "i32"))

    for tile, start in zip(tiles, starts, strict=True):
        group.order(tile.span(program, start), writes=True)
    # One lane of those that hold the same partial result writes it.
    same = sum(1 << bit for bit in range(len(source.lanes)) if bit not in lanes)

    def write() -> None:
        mine = [place(row, group.warp()) for row in range(len(rows))]
        for number, (tile, start) in enumerate(zip(tiles, starts, strict=True)):
            tile.write_at(program, mine, start, [values[number] for values in rows.values()])

    if same:
        bits = t.binary("arith.andi", group.lane(), t.integer(same, "i32"))
        t.do_when(t.compare("eq", bits, t.integer(0, "i32")), write)
    else:
        write()
    along_warps = [sum(1 << bit for k, bit in enumerate(warps) if other >> k & 1) for other in range(1 << len(warps))]
    mine = t.binary("arith.andi", group.warp(), t.integer((all_warps - 1) & ~along_warps[-1], "i32"))
    others = [t.binary("arith.addi", mine, t.integer(beside, "i32")) for beside in along_warps]
    for row, key in enumerate(rows):
        places = [place(row, warp) for warp in others]
        read = [tile.read_at(program, places, start) for tile, start in zip(tiles, starts, strict=True)]
        total, *more = zip(*read, strict=True)
        for values in more:
            total = tuple(combine(program, op, total, values))
        found[key] = list(total)
    for first in firsts:
        program.arena.release(first)
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
        """Return the index of a position outside the axis in the result's shape."""
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
