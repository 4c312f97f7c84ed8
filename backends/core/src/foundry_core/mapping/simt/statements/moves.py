"""Tiles that are moved, put together, taken apart, looked up or counted: elements go to other invocations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ....emit.mlir import WIDTHS, Reg
from ....errors import unsupported
from ....ir import tt
from ....ir.elements import ElementMap, IndexMapping, index_mapping, is_same, row_major_source
from ..layouts import Layout, arrange_layout
from ..matrices.fragments import elements, to_fragments, to_registers
from ..program import SimtProgram, invocation_statement
from ..tiles import Division, convert_layout, merge
from .memory import owner_predicate


def _doubled(layout: Layout, low: bool) -> Layout:
    """Return the layout of two tiles with one more register bit: the lowest bit of the index, or the highest."""
    if low:
        shape = (*layout.shape, 2)
        parts = (tuple(2 * basis for basis in part) for part in (layout.registers, layout.lanes, layout.warps))
        registers, lanes, warps = parts
        return Layout(shape, (*registers, 1), lanes, warps)
    return Layout((2 * layout.shape[0],), (*layout.registers, layout.shape[0]), layout.lanes, layout.warps)


@invocation_statement(ElementMap)
def move(program: SimtProgram, op: Operation) -> None:
    """Write an operation that moves or repeats the elements of its only operand.

    Triton gives a result that repeats elements a layout in which these are in the same invocations.
    """
    (source,), (result,), of = op.operands, op.results, index_mapping(op.results[0])
    regs = program.values.get(source, ())
    if not isinstance(source.type, TensorType):
        program.values[result] = [program.scalar(source)] * program.size(result)
    elif not isinstance(result.type, TensorType):
        program.values[result] = regs[:1]
    elif is_same(op):
        _place(program, op, source, result)
    elif row_major_source(result) is not None:
        program.values[result] = convert_layout(program, op, regs, program.layout(source), program.layout(result))
    elif of is not None and of.keeps_all:
        before, after = program.layout(source), program.layout(result)
        if prod(before.shape) < prod(after.shape):
            moved = after.map_indices(before.shape, partial(_source_index, of, before, after))
            program.values[result] = [regs[before.register_of[index]] for index in moved.offsets]
        else:
            made = before.permute(of.to_result(range(len(before.shape)), None))
            program.values[result] = convert_layout(program, op, regs, made, after)
    else:
        raise unsupported(op)


def _source_index(of: IndexMapping, before: Layout, after: Layout, index: int) -> int:
    """Return the index of a source's element, from one of the result's."""
    return before.index(of.to_source(after.position(index), int))


def _place(program: SimtProgram, op: Operation, source: SSAValue, result: SSAValue) -> None:
    """Write a tile in another layout."""
    before, after = program.layout(source), program.layout(result)
    kept, factor = program.plan.fragments.get(source), program.plan.factors.get(op)
    if factor is not None:
        program.fragments[result] = to_fragments(program, op, elements(program, op, source), before, factor)
    elif kept is not None:
        program.values[result] = to_registers(program, op, kept, program.fragments[source], after)
    else:
        program.values[result] = convert_layout(program, op, program.values[source], before, after)


@invocation_statement(tt.JoinOp, tt.CatOp)
def _join(program: SimtProgram, op: tt.JoinOp | tt.CatOp) -> None:
    made = _doubled(program.layout(op.lhs), isinstance(op, tt.JoinOp))
    regs = [
        *program.values[op.lhs],
        *convert_layout(program, op, program.values[op.rhs], program.layout(op.rhs), program.layout(op.lhs)),
    ]
    program.values[op.result] = convert_layout(program, op, regs, made, program.layout(op.result))


@invocation_statement(tt.SplitOp)
def _split(program: SimtProgram, op: tt.SplitOp) -> None:
    made = _doubled(program.layout(op.lhs), True)
    regs = convert_layout(program, op, program.values[op.src], program.layout(op.src), made)
    program.values[op.lhs], program.values[op.rhs] = regs[: len(regs) // 2], regs[len(regs) // 2 :]


@invocation_statement(tt.GatherOp)
def _gather(program: SimtProgram, op: tt.GatherOp) -> None:
    t = program.code
    axis = op.axis.value.data
    source, wanted = program.layout(op.src), program.layout(op.indices)
    extent, stride = source.shape[axis], prod(source.shape[axis + 1 :])
    beyond, along = stride * wanted.shape[axis], (extent - 1) * stride
    # Where a register reads is known but for the position along the axis.
    reader = wanted.map_indices(source.shape, lambda index: index // beyond * stride * extent + index % stride)
    places = []
    for index, number in zip(program.indices(reader), program.values[op.indices], strict=True):
        # The lowest bits of a number beyond the tile.
        wide = t.cast("arith.extui" if WIDTHS[number.elem] < 32 else "arith.trunci", number, "i32")
        at = t.binary("arith.andi", wide, t.integer(extent - 1, "i32"))
        places.append(t.binary("arith.addi", index, t.binary("arith.muli", at, t.integer(stride, "i32"))))
    regs, unknown = program.values[op.src], reader.invocation_bits | along
    elem = program.numeric.moved_type(regs)
    division = Division(source.shape, elem, program.arena.free, (source.invocation_bits, unknown))
    found: dict[int, Reg] = {}
    for part in division.parts:
        with program.arena.borrow(op, division.rows.bytes) as first:
            start = division.rows.start(program, first)
            division.write(program, source, part, start, regs)
            wanting = [k for k, offset in enumerate(reader.offsets) if not (offset ^ part) & division.cut & ~unknown]
            inside = [division.part_index(program, places[k]) for k in wanting]
            for k, reg in zip(wanting, division.rows.read_at(program, inside, start), strict=True):
                merge(program, k, reg, division.has(program, part, places[k], unknown), found)
    gathered = [found[number] for number in range(wanted.size)]
    program.values[op.result] = convert_layout(program, op, gathered, wanted, program.layout(op.result))


@invocation_statement(tt.HistogramOp)
def _histogram(program: SimtProgram, op: tt.HistogramOp) -> None:
    t, group = program.code, program.group
    layout, result = program.layout(op.src), program.layout(op.result)
    (bins,) = result.shape
    masks: Sequence[Reg | None] = [None] * layout.size if op.mask is None else program.values[op.mask]
    once = owner_predicate(program, layout)
    division = Division((bins,), "i32", program.arena.free, (result.invocation_bits, result.invocation_bits))
    found: dict[int, Reg] = {}
    for part in division.parts:
        with program.arena.borrow(op, division.rows.bytes) as first:
            start = division.rows.start(program, first)
            group.barrier()
            division.write(program, result, part, start, [t.integer(0, "i32")] * result.size)
            group.barrier()
            for register in layout.distinct:
                value, mask = program.values[op.src][register], masks[register]
                wide = t.cast("arith.extui" if WIDTHS[value.elem] < 32 else "arith.trunci", value, "i32")
                counted = t.all_of(mask, once, division.has(program, part, wide))
                if bins < 1 << WIDTHS[value.elem] - 1:
                    counted = t.all_of(counted, t.compare("ult", value, t.integer(bins, value.elem)))
                place = t.binary("arith.addi", division.part_index(program, wide), start)
                t.do_when(counted, lambda place=place: group.count_shared(place))  # type: ignore[misc]
            group.barrier()
            division.read(program, result, part, start, found)
    program.values[op.result] = [found[number] for number in range(result.size)]


@invocation_statement(tt.MapElementwiseOp)
def _map(program: SimtProgram, op: tt.MapElementwiseOp) -> None:
    pack, block = op.pack.value.data, op.function.block
    assert block.last_op is not None
    layout = program.layout(op.srcs[0])
    if prod(layout.shape) % pack or pack & (pack - 1):
        raise unsupported(op, f"of {pack} elements at a time of a tensor with {prod(layout.shape)}")
    # What the function takes at a time, neighbours in row-major order, is in neighbouring registers.
    near = arrange_layout(layout, pack.bit_length() - 1) if pack > 1 else layout
    sources = [convert_layout(program, op, program.values[src], layout, near) for src in op.srcs]
    found: list[list[Reg]] = [[] for _ in op.res]
    for first in range(0, near.size, pack):
        taken = [reg for regs in sources for reg in regs[first : first + pack]]
        for argument, reg in zip(block.args, taken, strict=True):
            program.values[argument] = [reg]
        program.block(block)
        made = [program.scalar(value) for value in block.last_op.operands]
        for number, regs in enumerate(found):
            regs += made[number * pack : (number + 1) * pack]
    for result, regs in zip(op.res, found, strict=True):
        program.values[result] = convert_layout(program, op, regs, near, program.layout(result))
