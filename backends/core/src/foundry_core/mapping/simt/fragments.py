"""Exchanges elements between cooperative matrices and registers, through workgroup memory, and combines matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from ...dialects.arith import ConstantOp, SelectOp
from ..base.mlir import Reg
from ..base.numeric import element
from .cooperative import PAIRS, Fragments, is_local, is_splat, repeated
from .exchange import Rows
from .layouts import Layout
from .matrices import Matrices

if TYPE_CHECKING:
    from .program import Program


def matrices(program: Program) -> Matrices:
    """Return what writes instructions on cooperative matrices."""
    return Matrices(program.group)


def elements(program: Program, op: Operation, value: SSAValue) -> Sequence[Reg]:
    """Return the registers of a tile in its layout, also of one that is kept in fragments."""
    if value in program.values:
        return program.values[value]
    kept = program.plan.fragments[value]
    return to_registers(program, op, kept, program.fragments[value], program.layout(value))


class _Way:
    """The way of a tile through workgroup memory, a part at a time.

    Attributes:
        parts: for each part, the numbers of its fragments and of its registers, and which invocations have it; None
            if all do.
        fragments, layout: what both sides have of a part.
        rows: how a part is arranged.
    """

    def __init__(self, program: Program, op: Operation, fragments: Fragments, layout: Layout) -> None:
        self._program, self._op = program, op
        source = fragments.layout
        local = program.plan.scratch > 0 and is_local(layout, fragments)
        for self._local in (True, False) if local else (False,):
            mine = sum(source.warps) if self._local else 0
            limit = program.plan.scratch if self._local else program.arena.free
            cut, bits = 0, [*sorted(_cuts_of_invocations(source, layout)), *sorted(_cuts(source, layout))]
            self.rows = Rows(source.without(mine).shape, fragments.matrix.elem)
            while self.rows.bytes > limit and bits:
                cut |= bits.pop()
                self.rows = Rows(source.without(mine | cut).shape, fragments.matrix.elem)
            if self.rows.bytes <= limit:
                break
        # If the smallest parts do not fit, the arena refuses them.
        self.fragments, self.layout = source.without(mine | cut), layout.without(mine | cut)
        of_registers = sum(bit for bit in source.registers if cut & bit and bit in layout.registers)
        self.parts = []
        for part in sorted({offset & cut for offset in source.offsets}):
            sources = [number for number, offset in enumerate(source.offsets) if offset & cut == part]
            wanted = part & of_registers
            targets = [number for number, offset in enumerate(layout.offsets) if offset & of_registers == wanted]
            self.parts.append((sources, targets, self._having(layout, cut & ~of_registers, part)))

    def _having(self, layout: Layout, mask: int, part: int) -> Reg | None:
        """Return whether this invocation's elements have the bits of a part where a mask has some."""
        t, group = self._program.code, self._program.group
        found = None
        for bases, number in ((layout.lanes, group.lane()), (layout.warps, group.warp())):
            bits = [(1 << place, basis) for place, basis in enumerate(bases) if basis & mask]
            if bits:
                own = t.binary("arith.andi", number, t.integer(sum(bit for bit, _ in bits), "i32"))
                same = t.compare("eq", own, t.integer(sum(bit for bit, basis in bits if basis & part), "i32"))
                found = same if found is None else t.binary("arith.andi", found, same)
        return found

    @contextmanager
    def part(self) -> Iterator[tuple[Reg, Callable[[], None]]]:
        """Give where a part begins, in elements, and what writes a barrier for those that exchange it."""
        with place(self._program, self._op, self.rows, local=self._local) as found:
            yield found

    def places(self, start: Reg) -> list[Reg]:
        """Return where the fragments of a part begin."""
        program, t = self._program, self._program.code
        first = program.spread(self.fragments.warps, program.group.warp())
        indices = [t.binary("arith.addi", first, t.integer(offset, "i32")) for offset in self.fragments.offsets]
        return [t.binary("arith.addi", self.rows.place(program, index), start) for index in indices]


@contextmanager
def place(program: Program, op: Operation, rows: Rows, *, local: bool) -> Iterator[tuple[Reg, Callable[[], None]]]:
    """Give workgroup memory for an exchange: of all subgroups, or of each with itself if it is local."""
    t, group = program.code, program.group
    if local:
        own = t.integer(program.plan.scratch // rows.size, "i32")
        start = t.binary("arith.addi", t.binary("arith.muli", group.warp(), own), rows.start(program, program.scratch))
        high = program.scratch + program.plan.scratch * program.target.warps
        with t.accesses.unordered(), group.touching(program.scratch, high):
            yield start, matrices(program).barrier
        return
    with program.arena.borrowed(op, rows.bytes) as first:
        yield rows.start(program, first), group.barrier


def _cuts(fragments: Layout, layout: Layout) -> list[int]:
    """Return the bits of an index that only registers have, on both sides: a tile can be divided along them."""
    others = (*layout.lanes, *layout.warps, *(basis for basis in layout.registers if basis & basis - 1))
    taken = 0
    for basis in others:
        taken |= basis
    return [bit for bit in fragments.registers if bit in layout.registers and not bit & taken]


def _cuts_of_invocations(fragments: Layout, layout: Layout) -> list[int]:
    """Return the bits of an index that the registers of fragments have, and that tell invocations apart in a layout."""
    bases = (*layout.lanes, *layout.warps)
    mixed = [basis for basis in (*bases, *layout.registers) if basis & basis - 1]
    return [
        bit
        for bit in fragments.registers
        if bases.count(bit) == 1 and bit not in layout.registers and not any(basis & bit for basis in mixed)
    ]


def to_registers(
    program: Program, op: Operation, fragments: Fragments, regs: Sequence[Reg], layout: Layout
) -> list[Reg]:
    """Return the elements of fragments in the registers of a layout."""
    writer, way, t = matrices(program), _Way(program, op, fragments, layout), program.code
    found: dict[int, Reg] = {}
    for sources, targets, condition in way.parts:
        with way.part() as (start, barrier):
            barrier()
            for number, at in zip(sources, way.places(start), strict=True):
                writer.store(fragments.matrix, regs[number], at, way.rows.stride)
            barrier()
            for number, reg in zip(targets, way.rows.read(program, way.layout, start), strict=True):
                # An invocation that has none of this part reads something, and another part replaces it.
                if condition is not None and number in found:
                    reg = t.select(condition, reg, found[number])
                found[number] = reg
    return [found[number] for number in range(layout.size)]


def to_fragments(
    program: Program, op: Operation, regs: Sequence[Reg], layout: Layout, fragments: Fragments
) -> list[Reg]:
    """Return the fragments of a tile that is in the registers of a layout."""
    writer, way = matrices(program), _Way(program, op, fragments, layout)
    found: dict[int, Reg] = {}
    for targets, sources, condition in way.parts:
        with way.part() as (start, barrier):

            def write(start: Reg = start, sources: Sequence[int] = sources) -> None:
                way.rows.write(program, way.layout, start, [regs[number] for number in sources])

            barrier()
            if condition is None:
                write()
            else:
                program.code.do_when(condition, write)
            barrier()
            for number, at in zip(targets, way.places(start), strict=True):
                found[number] = writer.load(fragments.matrix, at, way.rows.stride)
    return [found[number] for number in range(fragments.layout.size)]


def fragments_of(program: Program, op: Operation, value: SSAValue, wanted: Fragments) -> Sequence[Reg]:
    """Return a tile as fragments: those it is kept in, or new ones."""
    if program.plan.fragments.get(value) == wanted:
        return program.fragments[value]
    if is_splat(value):
        reg, elem = program.values[value][0], wanted.matrix.elem
        number = program.code.cast("arith.truncf", reg, elem) if elem[0] == "f" else reg
        constant = isinstance(value.owner, ConstantOp) and number is reg
        return [matrices(program).filled(wanted.matrix, number, constant=constant)] * wanted.layout.size
    return to_fragments(program, op, elements(program, op, value), program.layout(value), wanted)


def _repeated_fragments(program: Program, op: Operation, value: SSAValue, wanted: Fragments) -> list[Reg]:
    """Return the fragments of a tile whose rows, or columns, are all the same.

    A matrix whose rows have the distance 0 in memory has the same row everywhere.
    """
    t, writer, found = program.code, matrices(program), repeated(value)
    assert found is not None
    source, along = found
    layout, elem = program.layout(source), wanted.matrix.elem
    columns = wanted.layout.shape[1]
    # An index of the tile, without the part that makes no difference.
    scale = columns if along == 1 else 1
    tile = Layout(
        wanted.layout.shape,
        *(tuple(b * scale for b in part) for part in (layout.registers, layout.lanes, layout.warps)),
    )
    rows = Rows((layout.shape[1 - along],), elem)
    local = along == 1 and is_local(tile, wanted) and rows.bytes // program.target.warps <= program.plan.scratch
    mine = sum(layout.warps) if local else 0
    part = layout.without(mine)
    rows = Rows((part.shape[1 - along],), elem)
    with place(program, op, rows, local=local) as (start, barrier):
        barrier()
        rows.write(program, part, start, program.values[source])
        barrier()
        first = program.spread(
            [0 if local else _along(basis, along, columns) for basis in wanted.layout.warps], program.group.warp()
        )
        made: dict[int, Reg] = {}
        result = []
        for offset in wanted.layout.offsets:
            at = _along(offset, along, columns)
            if at not in made:
                index = t.binary("arith.addi", t.binary("arith.addi", first, start), t.integer(at, "i32"))
                made[at] = writer.load(wanted.matrix, index, 0, turned=along == 1)
            result.append(made[at])
        return result


def _along(index: int, along: int, columns: int) -> int:
    """Return the row of an element if rows repeat one number, else its column."""
    return index // columns if along == 1 else index % columns


def combine_fragments(program: Program, op: Operation) -> None:
    """Write an operation on each pair of fragments."""
    (result,) = op.results
    kept, t, writer = program.plan.fragments[result], program.code, matrices(program)
    if isinstance(op, SelectOp):
        first, second = (program.fragments[value] for value in op.operands[1:])
        chosen = t.when(program.scalar(op.operands[0]), lambda: first, lambda: second)
        program.define(op, result, chosen)
        return
    if len(op.operands) == 1:
        regs = [writer.converted(reg, kept.matrix) for reg in program.fragments[op.operands[0]]]
        program.define(op, result, regs)
        return
    sides = []
    for operand in op.operands:
        if operand in program.plan.fragments or is_splat(operand):
            sides.append(fragments_of(program, op, operand, kept))
        else:
            sides.append(_repeated_fragments(program, op, operand, kept))
    name = PAIRS[element(result.type, op)][op.name]
    program.define(op, result, [writer.combined(name, x, y) for x, y in zip(*sides, strict=True)])
