"""tt.reduce and tt.scan along one axis.

Scans use Sklansky's network. For each bit of an element's position along the axis, from the lowest: the elements whose
bit is set are combined with the last element of the half before theirs. It does not matter whether a bit belongs to
registers, lanes or warps; that decides only how the other element is reached. The order of the operands is that of the
axis, so the function need not commute.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ....emit.mlir import Reg
from ....ir import tt
from ....ir.combining import Order, reduction_order
from ....ops.numeric import in_memory
from ..layouts import Layout, arrange_layout
from ..program import SimtProgram, invocation_statement
from ..spirv.shared_memory import ALIGNMENT
from ..tiles import Rows, convert_layout, through_memory


@invocation_statement(tt.ReduceOp)
def _reduce(program: SimtProgram, op: tt.ReduceOp) -> None:
    axis = op.axis.value.data
    order = reduction_order(op)
    source, regs, bits = along_axis(program, op, axis, ordered=not order.is_free)
    along = sum(bits)
    tile = {offset: [src[source.register_of[offset]] for src in regs] for offset in source.offsets}
    if order.is_free:
        rows = _unordered(program, op, order, tile, source, along)
    else:
        rows = _ordered(program, op, tile, source, bits)
    for number, result in enumerate(op.res):
        program.values[result] = _results(program, op, result, {k: v[number] for k, v in rows.items()}, source, axis)


def along_axis(
    program: SimtProgram, op: tt.ReduceOp | tt.ScanOp, axis: int, *, ordered: bool
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
        plain = arrange_layout(layout)
        return plain, [convert_layout(program, op, each, layout, plain) for each in regs], bits
    return layout, regs, bits


def _unordered(
    program: SimtProgram, op: tt.ReduceOp, order: Order, tile: dict[int, list[Reg]], source: Layout, along: int
) -> dict[int, list[Reg]]:
    """Return a partial result for each position outside the axis that this invocation has, by its index."""
    # The registers of this invocation.
    rows: dict[int, list[Reg]] = {}
    for offset, values in tile.items():
        key = offset & ~along
        rows[key] = combine(program, op, rows[key], values, order.place) if key in rows else values
    # The other invocations of the subgroup.
    for bit, basis in enumerate(source.lanes):
        if basis & along:
            _across_lanes(program, op, rows, 1 << bit, ordered=not order.commutes, place=order.place)
    warps = sum({basis for basis in source.warps if basis & along})
    return _across_warps(program, op, rows, source, warps, along, order.place) if warps else rows


def _across_lanes(
    program: SimtProgram,
    op: tt.ReduceOp,
    rows: dict[int, list[Reg]],
    bit: int,
    *,
    ordered: bool = True,
    place: int | None = None,
) -> None:
    """Combine the partial results of lanes whose numbers differ in a bit, in place.

    Args:
        ordered: both lanes take the result of the lower one first.
        place: see `combine`; it decides in place of `ordered`.
    """
    t = program.code
    if ordered := ordered and place is None:
        mine = t.binary("arith.andi", program.group.lane(), t.integer(bit, "i32"))
        upper = t.compare("ne", mine, t.integer(0, "i32"))
    for key, values in rows.items():
        others = [shuffle(program, op, value, mask=bit) for value in values]
        first, second = values, others
        if ordered:
            pairs = list(zip(values, others, strict=True))
            first = [t.select(upper, other, mine) for mine, other in pairs]
            second = [t.select(upper, mine, other) for mine, other in pairs]
        rows[key] = combine(program, op, first, second, place)


def _ordered(
    program: SimtProgram, op: tt.ReduceOp, rows: dict[int, list[Reg]], source: Layout, bits: Sequence[int]
) -> dict[int, list[Reg]]:
    """Do the same in the order of the axis, from its lowest bit: neighbours, then neighbouring pairs, and so on."""
    reduced = 0
    for number, basis in enumerate(bits):
        if basis & reduced:
            continue
        if basis in source.registers:
            rows = {
                key: combine(program, op, values, rows[key | basis]) for key, values in rows.items() if not key & basis
            }
        elif basis in source.lanes:
            _across_lanes(program, op, rows, 1 << source.lanes.index(basis))
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


def shuffle(program: SimtProgram, op: Operation, value: Reg, lane: Reg | None = None, *, mask: int = 0) -> Reg:
    """Return a register of another lane: of the one with this number, or that differs in the bits of a mask."""
    t, group = program.code, program.group
    if not program.target.shuffles:
        other = t.binary("arith.xori", group.lane(), t.integer(mask, "i32")) if lane is None else lane
        return _through_places(program, op, value, other)
    wide = t.cast("arith.extui", value, "i32") if value.elem == "i1" else value
    moved = group.shuffle_xor(wide, mask) if lane is None else group.shuffle(wide, lane)
    return t.cast("arith.trunci", moved, "i1") if value.elem == "i1" else moved


def _through_places(program: SimtProgram, op: Operation, value: Reg, lane: Reg) -> Reg:
    """Return a register of another lane of this warp, through workgroup memory."""
    t, group, target = program.code, program.group, program.target
    rows = Rows((target.warps * target.warp_size,), value.elem)
    first = t.binary("arith.muli", group.warp(), t.integer(target.warp_size, "i32"))
    with program.arena.borrow(op, rows.bytes) as low:
        first = t.binary("arith.addi", first, rows.start(program, low))
        group.barrier()
        group.write_shared(t.binary("arith.addi", first, group.lane()), [program.numeric.to_memory(value, value.elem)])
        group.barrier()
        (read,) = group.read_shared(t.binary("arith.addi", first, lane), in_memory(value.elem))
        return program.numeric.from_memory(read, value.elem)


def combine(
    program: SimtProgram,
    op: tt.ReduceOp | tt.ScanOp,
    first: Sequence[Reg],
    second: Sequence[Reg],
    place: int | None = None,
) -> list[Reg]:
    """Write the region of a reduction or a scan on two sets of values.

    Args:
        place: if given, the set whose value of this number is less comes first.
    """
    block = op.combine.block
    if place is not None:
        t = program.code
        keeps = t.compare("slt", first[place], second[place])
        pairs = list(zip(first, second, strict=True))
        first = [t.select(keeps, x, y) for x, y in pairs]
        second = [t.select(keeps, y, x) for x, y in pairs]
    for argument, reg in zip(block.args, (*first, *second), strict=True):
        program.values[argument] = [reg]
    for inner in block.ops:
        if inner is not block.last_op:
            program.operation(inner)
    assert block.last_op is not None
    return [program.scalar(operand) for operand in block.last_op.operands]


def _across_warps(
    program: SimtProgram,
    op: tt.ReduceOp,
    rows: dict[int, list[Reg]],
    source: Layout,
    along: int,
    reduced: int,
    numbers: int | None = None,
) -> dict[int, list[Reg]]:
    """Combine the partial results of the warps along the axis, through workgroup memory, in the order of the axis.

    Args:
        along: the bits of an index that these warps have.
        reduced: the bits of an index along which lanes hold the same partial results.
        numbers: the operand that `combine` takes as a place.
    """
    t, group = program.code, program.group
    warps = sorted((bit for bit, basis in enumerate(source.warps) if basis & along), key=lambda bit: source.warps[bit])
    lanes = [bit for bit, basis in enumerate(source.lanes) if basis and not basis & reduced]
    count, all_warps = 1 << len(lanes), program.target.warps
    kinds = [regs.elem for regs in next(iter(rows.values()))]
    tiles = [Rows((len(rows) * count * all_warps,), elem) for elem in kinds]
    *begins, bytes = itertools.accumulate((-(-tile.bytes // ALIGNMENT) * ALIGNMENT for tile in tiles), initial=0)
    if bytes > program.arena.free and len(rows) > 1:
        keys, half = list(rows), len(rows) // 2
        parts = ({key: rows[key] for key in part} for part in (keys[:half], keys[half:]))
        return {
            k: v for part in parts for k, v in _across_warps(program, op, part, source, along, reduced, numbers).items()
        }
    found: dict[int, list[Reg]] = {key: list(values) for key, values in rows.items()}
    # The place of a partial result: which row, which lane outside the axis, and which warp.
    lane = _gathered(program, group.lane(), lanes)
    # Not where something has been read since the last barrier: writing there would need another one.
    first = program.arena.take(op, bytes, t.accesses.spans)
    starts = [tile.start(program, first + at) for tile, at in zip(tiles, begins, strict=True)]

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

    def partial_results(row: int, warps: Sequence[Reg]) -> list[tuple[Reg, ...]]:
        places = [place(row, warp) for warp in warps]
        read = [tile.read_at(program, places, start) for tile, start in zip(tiles, starts, strict=True)]
        return list(zip(*read, strict=True))

    if program.target.compiles_slowly:
        width = len(kinds)

        def iteration(number: Reg, totals: Sequence[Reg]) -> list[Reg]:
            beside = program.combine_bases([1 << bit for bit in warps], t.binary("arith.addi", number, one))
            added: list[Reg] = []
            for row in range(len(rows)):
                (values,) = partial_results(row, [t.binary("arith.addi", mine, beside)])
                added += combine(program, op, totals[row * width : (row + 1) * width], values, numbers)
            return added

        one, initial = t.integer(1, "i32"), [reg for row in range(len(rows)) for reg in partial_results(row, [mine])[0]]
        totals = t.unroll_loop(len(along_warps) - 1, initial, iteration, rolled=True)
        found = {key: totals[row * width : (row + 1) * width] for row, key in enumerate(rows)}
    else:
        others = [t.binary("arith.addi", mine, t.integer(beside, "i32")) for beside in along_warps]
        for row, key in enumerate(rows):
            total, *more = partial_results(row, others)
            for values in more:
                total = tuple(combine(program, op, total, values, numbers))
            found[key] = list(total)
    program.arena.release(first)
    return found


def _gathered(program: SimtProgram, number: Reg, bits: Sequence[int]) -> Reg:
    """Return some bits of a number, side by side."""
    t = program.code
    total = t.integer(0, "i32")
    for place, bit in enumerate(bits):
        one = t.binary("arith.andi", t.binary("arith.shrui", number, t.integer(bit, "i32")), t.integer(1, "i32"))
        total = t.binary("arith.addi", total, t.binary("arith.muli", one, t.integer(1 << place, "i32")))
    return total


def _results(
    program: SimtProgram, op: tt.ReduceOp, result: SSAValue, rows: dict[int, Reg], source: Layout, axis: int
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
    return convert_layout(program, op, [by_index[offset] for offset in made.offsets], made, program.layout(result))


@invocation_statement(tt.ScanOp)
def _scan(program: SimtProgram, op: tt.ScanOp) -> None:
    layout, values, bits = along_axis(program, op, op.axis.value.data, ordered=True)
    for number, basis in enumerate(bits):
        values = [*_Step(program, op, layout, basis, bits[:number]).write(values)]
    for result, regs in zip(op.res, values, strict=True):
        program.values[result] = convert_layout(program, op, regs, layout, program.layout(result))


class _Step:
    """One bit of the positions along the axis.

    Args:
        basis: the bit, as the distance that it makes in row-major order.
        lower: the bits below it.
    """

    def __init__(self, program: SimtProgram, op: tt.ScanOp, layout: Layout, basis: int, lower: Sequence[int]) -> None:
        self._program, self._op, self._layout = program, op, layout
        reverse = bool(op.reverse.value.data)
        # Where the other element is: its bit, and those below.
        self._bit = (basis, reverse)
        self._wanted = {basis: reverse} | dict.fromkeys(lower, not reverse)

    def _number(self, bases: Sequence[int], number: int) -> int:
        """Return the number of the register that has the other element."""
        for place, basis in enumerate(bases):
            if basis in self._wanted:
                number = number | 1 << place if self._wanted[basis] else number & ~(1 << place)
        return number

    def _moved(self, bases: Sequence[int], number: Reg) -> Reg:
        """Return the number of the lane or warp that has the other element."""
        t = self._program.code
        ones = sum(1 << place for place, basis in enumerate(bases) if self._wanted.get(basis) is True)
        zeros = sum(1 << place for place, basis in enumerate(bases) if self._wanted.get(basis) is False)
        if zeros:
            number = t.binary("arith.andi", number, t.integer(~zeros, "i32"))
        return t.binary("arith.ori", number, t.integer(ones, "i32")) if ones else number

    def write(self, values: Sequence[Sequence[Reg]]) -> list[list[Reg]]:
        layout, basis, reverse = self._layout, *self._bit
        others = self._others(values)
        condition = self._condition()
        found = [list(regs) for regs in values]
        for register in range(layout.size):
            if basis in layout.registers:
                is_set = bool(register >> layout.registers.index(basis) & 1)
                if is_set == reverse:
                    continue
            mine = [regs[register] for regs in values]
            new = combine(self._program, self._op, [other[register] for other in others], mine)
            for regs, old, reg in zip(found, mine, new, strict=True):
                regs[register] = reg if condition is None else self._program.code.select(condition, reg, old)
        return found

    def _condition(self) -> Reg | None:
        """Return whether this invocation's elements change; None if the registers tell."""
        t, layout, (basis, reverse) = self._program.code, self._layout, self._bit
        for bases, number in ((layout.lanes, self._program.group.lane()), (layout.warps, self._program.group.warp())):
            if basis in bases:
                bit = t.binary("arith.andi", number, t.integer(1 << bases.index(basis), "i32"))
                return t.compare("eq" if reverse else "ne", bit, t.integer(0, "i32"))
        return None

    def _others(self, values: Sequence[Sequence[Reg]]) -> list[list[Reg]]:
        """Return, for each register, the element that it is combined with."""
        layout, group = self._layout, self._program.group
        sources = [self._number(layout.registers, register) for register in range(layout.size)]
        if any(basis in self._wanted for basis in layout.warps):
            return [through_memory(self._program, self._op, regs, layout, layout, bits=self._wanted) for regs in values]
        if any(basis in self._wanted for basis in layout.lanes):
            lane = self._moved(layout.lanes, group.lane())
            moved = [
                {k: shuffle(self._program, self._op, regs[k], lane) for k in sorted(set(sources))} for regs in values
            ]
            return [[regs[k] for k in sources] for regs in moved]
        return [[regs[k] for k in sources] for regs in values]
