"""Exchanges elements between cooperative matrices and registers, through workgroup memory, and combines matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ....emit.mlir import Reg
from ....ir import tt
from ....ir.arith import ConstantOp, SelectOp
from ....ops.numeric import element_name, in_register
from ..invocation import Invocation
from ..layouts import Layout, union_bits
from ..target import SimtTarget
from ..tiles import Division, Rows, convert_layout, is_permutation, part_registers
from .instructions import Matrices
from .plan import PAIRS, Fragments, find_repetition, is_local, is_splat, plan_cooperative


class Values(Invocation):
    """The registers of a kernel's values in one invocation, and the matrices that its subgroup holds.

    Attributes:
        values: the registers of each value: one for a scalar, one for each register of its layout for a tile. A
            pointer's register is an address, an i64; that of a tile in workgroup memory is where it begins, in
            elements.
        plan: what is kept in cooperative matrices.
        fragments: the matrices of each value that is.
        scratch: where the workgroup memory begins that subgroups have for themselves, in bytes.
    """

    def __init__(self, function: tt.FuncOp, target: SimtTarget) -> None:
        super().__init__(target)
        self.values: dict[SSAValue, Sequence[Reg]] = {}
        self.plan = plan_cooperative(function, target)
        self._layouts: dict[SSAValue, Layout] = {}
        self.fragments: dict[SSAValue, Sequence[Reg]] = {}
        self.scratch = 0

    def layout(self, value: SSAValue) -> Layout:
        """Return the layout of a tile in registers."""
        found = self._layouts.get(value)
        if found is None:
            found = self._layouts[value] = self.plan.layout(value)
        return found

    def size(self, value: SSAValue) -> int:
        """Return the number of registers of a value, which are matrices if it is kept in them."""
        if value in self.plan.fragments:
            return self.plan.fragments[value].layout.size
        return self.layout(value).size if isinstance(value.type, TensorType) else 1

    def scalar(self, value: SSAValue) -> Reg:
        (reg,) = self.values[value]
        return reg


def matrices(program: Values) -> Matrices:
    """Return what writes instructions on cooperative matrices."""
    return Matrices(program.group)


def elements(program: Values, op: Operation, value: SSAValue) -> Sequence[Reg]:
    """Return the registers of a tile in its layout, also of one that is kept in fragments."""
    if value in program.values:
        return program.values[value]
    kept = program.plan.fragments[value]
    return to_registers(program, op, kept, program.fragments[value], program.layout(value))


class _Way:
    """The way of a tile through workgroup memory, in parts that consist of whole fragments.

    Attributes:
        division: the parts.
    """

    def __init__(self, program: Values, op: Operation, fragments: Fragments, layout: Layout) -> None:
        self._program, self._op = program, op
        self._layout = source = fragments.layout
        local = program.plan.scratch > 0 and is_local(layout, fragments)
        for self._local in (True, False) if local else (False,):
            self._own = union_bits(source.warps) if self._local else 0
            limit = program.plan.scratch if self._local else program.arena.free
            # A division is possible where fragments begin.
            self.division = Division(
                source.shape,
                fragments.matrix.elem,
                limit,
                (source.invocation_bits, layout.invocation_bits),
                bits=source.registers,
                dropped=self._own,
                shortest=0,
            )
            if self.division.rows.bytes <= limit:
                break

    @contextmanager
    def part(self) -> Iterator[tuple[Reg, Callable[[], None]]]:
        """Give where a part begins, in elements, and what writes a barrier for those that exchange it."""
        with exchange_memory(self._program, self._op, self.division.rows, local=self._local) as found:
            yield found

    def fragment_offsets(self, part: int, start: Reg) -> Iterator[tuple[int, Reg]]:
        """Yield the numbers of the fragments of a part, and where each begins."""
        program, t = self._program, self._program.code
        inner = self._layout.drop_bits(self.division.cut | self._own)
        first = program.combine_bases(inner.warps, program.group.warp())
        ((numbers, _),) = part_registers(program, self._layout, part, self.division.cut)
        for number in numbers:
            index = t.binary("arith.addi", first, t.integer(inner.offsets[number], "i32"))
            yield number, t.binary("arith.addi", self.division.rows.place(program, index), start)


@contextmanager
def exchange_memory(
    program: Values, op: Operation, rows: Rows, *, local: bool
) -> Iterator[tuple[Reg, Callable[[], None]]]:
    """Give workgroup memory for an exchange: of all subgroups, or of each with itself if it is local."""
    t, group = program.code, program.group
    if local:
        own = t.integer(program.plan.scratch // rows.size, "i32")
        start = t.binary("arith.addi", t.binary("arith.muli", group.warp(), own), rows.start(program, program.scratch))
        span = program.scratch, program.scratch + program.plan.scratch * program.target.warps

        def order() -> None:
            if t.accesses.conflict(span, writes=True):
                matrices(program).barrier()

        with t.accesses.skip_barriers(), group.limit_accesses(*span):
            yield start, order
        return
    with program.arena.borrow(op, rows.bytes, t.accesses.spans) as first:
        span = first, first + rows.bytes
        with group.limit_accesses(*span):
            yield rows.start(program, first), partial(group.order, span, writes=True)


def _components(program: Values, fragments: Fragments, regs: Sequence[Reg], held: Layout) -> list[Reg]:
    """Return the elements of fragments that each invocation holds."""
    writer, elem, count = matrices(program), fragments.matrix.elem, held.size // len(regs)
    found = [writer.component(fragments.matrix, reg, number) for reg in regs for number in range(count)]
    return [program.numeric.from_memory(reg, elem) if elem == "f16" else reg for reg in found]


def _composed(program: Values, fragments: Fragments, regs: Sequence[Reg]) -> list[Reg]:
    """Return fragments of the elements that each invocation holds. Equal ones are made once."""
    writer, elem, count = matrices(program), fragments.matrix.elem, len(regs) // fragments.layout.size
    if in_register(elem) != elem:
        writer.type(fragments.matrix)
        regs = [program.code.cast("arith.bitcast", program.numeric.to_memory(reg, elem), elem) for reg in regs]
    parts = [tuple(regs[at : at + count]) for at in range(0, len(regs), count)]
    made = {part: writer.compose(fragments.matrix, part) for part in dict.fromkeys(parts)}
    return [made[part] for part in parts]


def to_registers(
    program: Values, op: Operation, fragments: Fragments, regs: Sequence[Reg], layout: Layout
) -> list[Reg]:
    """Return the elements of fragments in the registers of a layout."""
    held = program.plan.held(fragments)
    if held is not None and is_permutation(held, layout):
        return list(convert_layout(program, op, _components(program, fragments, regs, held), held, layout))
    writer, way = matrices(program), _Way(program, op, fragments, layout)
    found: dict[int, Reg] = {}
    for part in way.division.parts:
        with way.part() as (start, barrier):
            barrier()
            for number, at in way.fragment_offsets(part, start):
                writer.store(fragments.matrix, regs[number], at, way.division.rows.stride)
            barrier()
            way.division.read(program, layout, part, start, found)
    return [found[number] for number in range(layout.size)]


def to_fragments(
    program: Values, op: Operation, regs: Sequence[Reg], layout: Layout, fragments: Fragments
) -> list[Reg]:
    """Return the fragments of a tile that is in the registers of a layout."""
    held = program.plan.held(fragments)
    if held is not None and is_permutation(layout, held):
        return _composed(program, fragments, convert_layout(program, op, regs, layout, held))
    writer, way = matrices(program), _Way(program, op, fragments, layout)
    found: dict[int, Reg] = {}
    for part in way.division.parts:
        with way.part() as (start, barrier):
            barrier()
            way.division.write(program, layout, part, start, regs)
            barrier()
            for number, at in way.fragment_offsets(part, start):
                found[number] = writer.load(fragments.matrix, at, way.division.rows.stride)
    return [found[number] for number in range(fragments.layout.size)]


def fragments_of(program: Values, op: Operation, value: SSAValue, wanted: Fragments) -> Sequence[Reg]:
    """Return a tile as fragments: those it is kept in, or new ones."""
    if program.plan.fragments.get(value) == wanted:
        return program.fragments[value]
    if is_splat(value):
        reg, elem = program.values[value][0], wanted.matrix.elem
        number = program.code.cast("arith.truncf", reg, elem) if elem[0] == "f" else reg
        constant = isinstance(value.owner, ConstantOp) and number is reg
        return [matrices(program).splat(wanted.matrix, number, constant=constant)] * wanted.layout.size
    return to_fragments(program, op, elements(program, op, value), program.layout(value), wanted)


def _repeated_fragments(program: Values, op: Operation, value: SSAValue, wanted: Fragments) -> list[Reg]:
    """Return the fragments of a tile whose rows, or columns, are all the same.

    A matrix whose rows have the distance 0 in memory has the same row everywhere.
    """
    t, writer, found = program.code, matrices(program), find_repetition(value)
    assert found is not None
    source, along = found
    layout, elem = program.layout(source), wanted.matrix.elem
    columns = wanted.layout.shape[1]
    held = program.plan.held(wanted)
    line = held and held.map_indices(layout.shape, lambda index: _along(index, along, columns))
    if line is not None and is_permutation(layout, line):
        return _composed(program, wanted, convert_layout(program, op, program.values[source], layout, line))
    # An index of the tile, without the part that makes no difference.
    scale = columns if along == 1 else 1
    tile = Layout(
        wanted.layout.shape,
        *(tuple(b * scale for b in part) for part in (layout.registers, layout.lanes, layout.warps)),
    )
    rows = Rows((layout.shape[1 - along],), elem)
    local = along == 1 and is_local(tile, wanted) and rows.bytes // program.target.warps <= program.plan.scratch
    mine = sum(layout.warps) if local else 0
    part = layout.drop_bits(mine)
    rows = Rows((part.shape[1 - along],), elem)
    with exchange_memory(program, op, rows, local=local) as (start, barrier):
        barrier()
        rows.write(program, part, start, program.values[source])
        barrier()
        first = program.combine_bases(
            [0 if local else _along(basis, along, columns) for basis in wanted.layout.warps], program.group.warp()
        )
        made: dict[int, Reg] = {}
        result = []
        for offset in wanted.layout.offsets:
            at = _along(offset, along, columns)
            if at not in made:
                index = t.binary("arith.addi", t.binary("arith.addi", first, start), t.integer(at, "i32"))
                made[at] = writer.load(wanted.matrix, index, 0, column_major=along == 1)
            result.append(made[at])
        return result


def _along(index: int, along: int, columns: int) -> int:
    """Return the row of an element if rows repeat one number, else its column."""
    return index // columns if along == 1 else index % columns


def define(program: Values, op: Operation, value: SSAValue, regs: Sequence[Reg]) -> None:
    """Give a value its registers. If they are matrices and elements of it are needed, read these."""
    kept = program.plan.fragments.get(value)
    if kept is None:
        program.values[value] = regs
        return
    program.fragments[value] = regs
    if value in program.plan.in_registers:
        program.values[value] = to_registers(program, op, kept, regs, program.layout(value))


def combine_fragments(program: Values, op: Operation) -> None:
    """Write an operation on each pair of fragments."""
    (result,) = op.results
    kept, t, writer = program.plan.fragments[result], program.code, matrices(program)
    if isinstance(op, SelectOp):
        first, second = (program.fragments[value] for value in op.operands[1:])
        chosen = t.branch(program.scalar(op.operands[0]), lambda: first, lambda: second)
        define(program, op, result, chosen)
        return
    if len(op.operands) == 1:
        regs = [writer.convert(reg, kept.matrix) for reg in program.fragments[op.operands[0]]]
        define(program, op, result, regs)
        return
    sides = []
    for operand in op.operands:
        if operand in program.plan.fragments or is_splat(operand):
            sides.append(fragments_of(program, op, operand, kept))
        else:
            sides.append(_repeated_fragments(program, op, operand, kept))
    name = PAIRS[element_name(result.type, op)][op.name]
    define(program, op, result, [writer.combine(name, x, y) for x, y in zip(*sides, strict=True)])
