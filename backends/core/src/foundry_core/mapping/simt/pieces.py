"""Tiles that are moved, put together, taken apart, looked up or counted: elements go to other invocations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...dialects import tt
from ...dialects.elements import is_same, moved, reordered
from ...errors import unsupported
from ..base.mlir import WIDTHS, Reg
from .exchange import Rows, convert
from .layouts import Layout, arranged
from .memory import held_once
from .program import Program, statement


def _doubled(layout: Layout, low: bool) -> Layout:
    """Return the layout of two tiles with one more register bit: the lowest bit of the index, or the highest."""
    if low:
        shape = (*layout.shape, 2)
        parts = (tuple(2 * basis for basis in part) for part in (layout.registers, layout.lanes, layout.warps))
        registers, lanes, warps = parts
        return Layout(shape, (*registers, 1), lanes, warps)
    return Layout((2 * layout.shape[0],), (*layout.registers, layout.shape[0]), layout.lanes, layout.warps)


def move(program: Program, op: Operation) -> None:
    """Write an operation that moves or repeats the elements of its only operand.

    Triton gives a result that repeats elements a layout in which these are in the same invocations.
    """
    (source,), (result,), of = op.operands, op.results, moved(op.results[0])
    regs = program.values.get(source, ())
    if not isinstance(source.type, TensorType):
        program.values[result] = [program.scalar(source)] * program.size(result)
    elif not isinstance(result.type, TensorType):
        program.values[result] = regs[:1]
    elif is_same(op):
        _place(program, op, source, result)
    elif reordered(result) is not None:
        program.values[result] = convert(program, op, regs, program.layout(source), program.layout(result))
    elif of is not None and of.keeps_all:
        before, after = program.layout(source), program.layout(result)
        if prod(before.shape) < prod(after.shape):
            indices = (before.index(of.to_source(after.position(offset), int)) for offset in after.offsets)
            program.values[result] = [regs[before.register_of[index]] for index in indices]
        else:
            made = before.permuted(of.to_result(range(len(before.shape)), None))
            program.values[result] = convert(program, op, regs, made, after)
    else:
        raise unsupported(op)


def _place(program: Program, op: Operation, source: SSAValue, result: SSAValue) -> None:
    """Write a tile in another layout."""
    from .fragments import elements, to_fragments, to_registers

    before, after = program.layout(source), program.layout(result)
    kept, factor = program.plan.fragments.get(source), program.plan.factors.get(op)
    if factor is not None:
        program.fragments[result] = to_fragments(program, op, elements(program, op, source), before, factor)
    elif kept is not None:
        program.values[result] = to_registers(program, op, kept, program.fragments[source], after)
    else:
        program.values[result] = convert(program, op, program.values[source], before, after)


@statement(tt.JoinOp, tt.CatOp)
def _join(program: Program, op: tt.JoinOp | tt.CatOp) -> None:
    made = _doubled(program.layout(op.lhs), isinstance(op, tt.JoinOp))
    regs = [
        *program.values[op.lhs],
        *convert(program, op, program.values[op.rhs], program.layout(op.rhs), program.layout(op.lhs)),
    ]
    program.values[op.result] = convert(program, op, regs, made, program.layout(op.result))


@statement(tt.SplitOp)
def _split(program: Program, op: tt.SplitOp) -> None:
    made = _doubled(program.layout(op.lhs), True)
    regs = convert(program, op, program.values[op.src], program.layout(op.src), made)
    program.values[op.lhs], program.values[op.rhs] = regs[: len(regs) // 2], regs[len(regs) // 2 :]


@statement(tt.GatherOp)
def _gather(program: Program, op: tt.GatherOp) -> None:
    t = program.code
    axis = op.axis.value.data
    source, wanted = program.layout(op.src), program.layout(op.indices)
    extent, stride = source.shape[axis], prod(source.shape[axis + 1 :])
    count, step = wanted.shape[axis], prod(wanted.shape[axis + 1 :])
    rows = Rows(source.shape, program.values[op.src][0].elem)
    places = []
    for index, number in zip(program.indices(wanted), program.values[op.indices], strict=True):
        # The lowest bits of a number beyond the tile.
        wide = t.cast("arith.extui" if WIDTHS[number.elem] < 32 else "arith.trunci", number, "i32")
        along = t.binary("arith.andi", wide, t.integer(extent - 1, "i32"))
        below = t.binary("arith.andi", index, t.integer(step - 1, "i32"))
        above = t.binary("arith.shrui", index, t.integer((step * count).bit_length() - 1, "i32"))
        place = t.binary("arith.addi", t.binary("arith.muli", above, t.integer(stride * extent, "i32")), below)
        places.append(t.binary("arith.addi", place, t.binary("arith.muli", along, t.integer(stride, "i32"))))
    with program.arena.borrowed(op, rows.bytes) as first:
        start = rows.start(program, first)
        rows.write(program, source, start, program.values[op.src])
        found = rows.read_at(program, places, start)
    program.values[op.result] = convert(program, op, found, wanted, program.layout(op.result))


@statement(tt.HistogramOp)
def _histogram(program: Program, op: tt.HistogramOp) -> None:
    t, group = program.code, program.group
    layout, result = program.layout(op.src), program.layout(op.result)
    (bins,) = result.shape
    masks: Sequence[Reg | None] = [None] * layout.size if op.mask is None else program.values[op.mask]
    rows = Rows((bins,), "i32")
    once = held_once(program, layout)
    with program.arena.borrowed(op, rows.bytes) as first:
        start = rows.start(program, first)
        group.barrier()
        rows.write(program, result, start, [t.integer(0, "i32")] * result.size)
        group.barrier()
        seen: set[int] = set()
        for offset, value, mask in zip(layout.offsets, program.values[op.src], masks, strict=True):
            if offset in seen:
                continue
            seen.add(offset)
            counted = (
                t.compare("ult", value, t.integer(bins, value.elem)) if bins < 1 << WIDTHS[value.elem] - 1 else None
            )
            for condition in (mask, once):
                if condition is not None:
                    counted = condition if counted is None else t.binary("arith.andi", counted, condition)
            wide = t.cast("arith.extui" if WIDTHS[value.elem] < 32 else "arith.trunci", value, "i32")
            place = t.binary("arith.addi", wide, start)
            if counted is None:
                group.count_shared(place)
            else:
                t.do_when(counted, lambda place=place: group.count_shared(place))  # type: ignore[misc]
        group.barrier()
        program.values[op.result] = rows.read(program, result, start)


@statement(tt.MapElementwiseOp)
def _map(program: Program, op: tt.MapElementwiseOp) -> None:
    pack, block = op.pack.value.data, op.function.block
    assert block.last_op is not None
    layout = program.layout(op.srcs[0])
    if prod(layout.shape) % pack or pack & (pack - 1):
        raise unsupported(op, f"of {pack} elements at a time of a tensor with {prod(layout.shape)}")
    # What the function takes at a time, neighbours in row-major order, is in neighbouring registers.
    near = arranged(layout, pack.bit_length() - 1) if pack > 1 else layout
    sources = [convert(program, op, program.values[src], layout, near) for src in op.srcs]
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
        program.values[result] = convert(program, op, regs, near, program.layout(result))
