"""Sums that a loop carries: small tiles stay in registers, and iterations in which all elements exist have no tests.

`total += tl.load(p, mask=...)` would otherwise read and write `total` in memory for each vector, and test each vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ...emit.mlir import Reg
from ...ir import tt
from ...ir.effects import KEEPS_CODE, is_sink
from ...ir.elements import extents
from ...ops.elementwise import is_elementwise
from ..base.buffers import Buffer
from ..base.plan import is_tile
from ..base.program import Program
from ..base.tiles import Run, Tiles

# Operations from a carried tile to the next one, for the tile to stay in registers: they are written for each vector.
_FEW = 4


@dataclass(frozen=True)
class _Sum:
    """A tile that stays in registers.

    Attributes:
        buffer: where it is while the loop runs. All accesses to it have constant indices, so that the device's compiler
            keeps its vectors in registers.
        lane: the dimension along which its vectors are.
        following: the tile of the next iteration.
        runs: the loads that it adds, if all are contiguous (Tiles.runs).
    """

    buffer: Buffer
    lane: int
    following: SSAValue
    runs: list[Run] | None


class SumsInRegisters(Program):
    """A program of one invocation, with registers for the sums of its loops."""

    # Where several invocations share a program's tiles, each would add to all of them.
    keeps_sums: ClassVar[bool] = True

    def __init__(self, function: tt.FuncOp, tiles: Tiles) -> None:
        super().__init__(function, tiles)
        self._sums: dict[str, _Sum] = {}

    def loop_buffer(self, op: scf.ForOp, number: int) -> Buffer:
        """Keep a sum of a few vectors in registers."""
        value, last = op.iter_args[number], _last(op.body.block)
        following = last.operands[number]
        lane = self.tiles.best_lane(following)
        vectors = math.prod(extents(value)) // self.tiles.lanes(following, last, lane)
        few = self.keeps_sums and vectors <= self.tiles.target.vector_registers // 2
        if not few or not self._is_sum(op, number):
            return super().loop_buffer(op, number)
        order = (*(d for d in range(len(extents(value))) if d != lane), lane)
        buffer = self.tiles.allocate(value, op, order)
        self._sums[buffer.name] = _Sum(buffer, lane, following, self.tiles.runs(following, lane))
        self.overwrite(buffer, value, op)
        return buffer

    def _is_sum(self, op: scf.ForOp, number: int) -> bool:
        """Return whether element i of a carried tile is only read for element i of the next one, by few operations."""
        block, last = op.body.block, _last(op.body.block)
        following = last.operands[number]
        pending, found = list[SSAValue]([block.args[number + 1]]), set[SSAValue]()
        while pending:
            for use in pending.pop().uses:
                user = use.operation
                if user is last and last.operands[use.index] is following:
                    continue
                if not is_elementwise(user) or user.parent_block() is not block:
                    return False
                (result,) = user.results
                if result in self.tiles.plan.stored:
                    return False
                if result not in found:
                    found.add(result)
                    pending.append(result)
        return following in found and len(found) <= _FEW

    def peel_iterations(self, op: scf.ForOp, buffers: Sequence[Buffer | None], values: Sequence[Reg]) -> Sequence[Reg]:
        """Write a loop without tests, which ends before the first iteration in which an element may not exist."""
        t, tiles, block = self.text, self.tiles, op.body.block
        sums = [self._sums.get(buffer.name) for buffer in buffers if buffer is not None]
        found = [each for each in sums if each is not None and each.runs is not None]
        masked = any(run.inside for each in found for run in each.runs or [])
        if not masked or len(found) < len(sums) or KEEPS_CODE in op.attributes:
            return values
        if any(is_sink(inner) for inner in block.ops if inner is not block.last_op):
            return values
        last = _last(block)
        arguments = [block.args[0], *self._split(block.args[1:])[0]]
        types = ", ".join(reg.type for reg in values)
        before = self._fresh_scalars(arguments)
        pairs = ", ".join(f"{x.name} = {y.name}" for x, y in zip(before, values, strict=True))
        rest = [Reg(t.fresh(), reg.elem, reg.lanes) for reg in values]
        names = ", ".join(reg.name for reg in rest)
        with t.nest(f"{names} = scf.while ({pairs}) : ({types}) -> ({types}) {{"):
            # The conditions need scalars only.
            self.write_operations(
                each for each in block.ops if each is not last and not any(is_tile(result) for result in each.results)
            )
            exist = [tiles.in_bounds(each.following, each.lane, each.runs or []) for each in found]
            conditions = [t.compare("slt", before[0], tiles.scalar(op.ub)), *filter(None, exist)]
            regs = ", ".join(reg.name for reg in before)
            t.line(f"scf.condition({tiles.memory.all(conditions).name}) {regs} : {types}")
        with t.nest("do {"):
            inside = self._fresh_scalars(arguments)
            t.line(f"^bb0({', '.join(f'{reg.name}: {reg.type}' for reg in inside)}):")
            self.write_operations(each for each in block.ops if each is not last)
            for each in found:
                tiles.fill_at_once(each.buffer, each.following, last, each.lane, is_whole=True)
            index = t.binary("arith.addi", inside[0], tiles.scalar(op.step))
            following = [index, *map(tiles.scalar, self._split(last.operands)[0])]
            t.line(f"scf.yield {', '.join(reg.name for reg in following)} : {types}")
        # What this loop stored is stored again by the iterations that are left.
        for operation in block.ops:
            for result in operation.results:
                tiles.buffers.pop(result, None)
        return rest

    def overwrite(self, buffer: Buffer, value: SSAValue, op: Operation) -> None:
        if buffer.name in self._sums:
            self.tiles.fill_at_once(buffer, value, op, self._sums[buffer.name].lane)
        else:
            super().overwrite(buffer, value, op)

    def loop_result(self, result: SSAValue, op: scf.ForOp, buffer: Buffer) -> Buffer:
        """Copy a sum from registers to memory, because what follows may read it in loops."""
        if buffer.name not in self._sums:
            return super().loop_result(result, op, buffer)
        copy, lane = self.tiles.allocate(result, op), self._sums[buffer.name].lane
        for point in self.tiles.points(extents(result), lane, self.tiles.lanes(result, op, lane)):
            self.tiles.private.write(copy, point, self.tiles.private.read(buffer, point))
        return copy


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op
