"""The mapping to OpenCL work-items: each work-item executes one program and is a work-group by itself.

After the Triton kernel's arguments, a kernel takes the grid's extents x, y, z as i32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import tile, tt
from ...effects import is_sink
from ...errors import LoweringError
from ...front.structured import kernel
from ...ops.elementwise import is_elementwise
from ..base.buffers import Buffer
from ..base.mapping import Mapping
from ..base.mlir import WIDTHS, Reg, Text
from ..base.numeric import element, in_memory
from ..base.plan import Plan, is_tile, stored_across
from ..base.program import Program
from ..base.space import extents
from ..base.tiles import Tiles
from .target import WorkItemTarget

# Bytes of tiles that are stored only because they are read in rows and written in columns. They should stay in a cache.
_TURNED = 1 << 18
# Operations from a carried tile to the next one, for the tile to stay in registers: they are written for each vector.
_FEW = 4


def lower(module: ModuleOp, target: WorkItemTarget) -> str:
    """Return the MLIR of a kernel in which each work-item executes one program; does not change the module.

    Raises:
        UnsupportedOperation: an operation, or a type in it, that this mapping does not support.
        LoweringError: the kernel's tiles need more private memory than the target has.
    """
    function = kernel(module)
    program: Mapping = WorkItem(function, tiles(function, target))
    return program.write()


def tiles(function: tt.FuncOp, target: WorkItemTarget) -> Tiles:
    """Build the empty text, registers and buffers of a kernel."""
    return Tiles(Text(), WorkItemPlan(function.body.block), target)


class WorkItemPlan(Plan):
    """Decides which tiles are stored: those of every mapping, and those that are read in rows and written in columns.

    Such a tile is transposed in registers on its way to its buffer.
    """

    def __init__(self, body: Block) -> None:
        self._room = _TURNED
        super().__init__(body)

    def _must_store(self, value: SSAValue) -> bool:
        return self._is_turned(value) or super()._must_store(value)

    def _is_turned(self, value: SSAValue) -> bool:
        load = value.owner
        if not isinstance(load, tile.LoadOp) or not all(isinstance(op, tile.StoreOp) for op in self.sinks(value)):
            return False
        elem = in_memory(element(value.type, load))
        size = math.prod(extents(value)) * WIDTHS[elem] // 8
        dimension = stored_across(load, self.stored)
        if dimension is None or len(extents(value)) != 2 or size > self._room or element(value.type, load) == "i1":
            return False
        self._room -= size
        self.across[value] = dimension
        return True


class WorkItem(Program):
    """A kernel in which each OpenCL work-item executes one program and is a work-group by itself."""

    _grid = tuple(Reg(f"%grid_{axis}", "i32") for axis in tt.AXES)

    def __init__(self, function: tt.FuncOp, tiles: Tiles) -> None:
        super().__init__(function, tiles)
        # Buffers whose accesses are all known by constants: the device's compiler keeps their vectors in registers.
        self._registers: dict[str, int] = {}

    def carried(self, op: scf.ForOp, number: int) -> Buffer:
        """Keep a tile of a few vectors in registers while a loop computes the next one from it."""
        value, last = op.iter_args[number], op.body.block.last_op
        assert last is not None
        following = last.operands[number]
        lane = self.tiles.best_lane(following)
        lanes = self.tiles.lanes(following, last, lane)
        vectors = math.prod(extents(value)) // lanes
        if vectors > self.tiles.target.vector_registers // 2 or not self._is_sum(op, number):
            return super().carried(op, number)
        order = (*(d for d in range(len(extents(value))) if d != lane), lane)
        buffer = self.tiles.allocate(value, op, order)
        self._registers[buffer.name] = lane
        self.overwrite(buffer, value, op)
        return buffer

    def _is_sum(self, op: scf.ForOp, number: int) -> bool:
        """Return whether element i of a carried tile is only read for element i of the next one, by few operations."""
        last = op.body.block.last_op
        assert last is not None
        following = last.operands[number]
        pending, found = list[SSAValue]([op.body.block.args[number + 1]]), set[SSAValue]()
        while pending:
            for use in pending.pop().uses:
                user = use.operation
                if user is last and last.operands[use.index] is following:
                    continue
                if not is_elementwise(user) or user.parent_block() is not last.parent_block():
                    return False
                if user.results[0] in self.tiles.plan.stored:
                    return False
                if user.results[0] not in found:
                    found.add(user.results[0])
                    pending.append(user.results[0])
        return following in found and len(found) <= _FEW

    def begun(self, op: scf.ForOp, carried: Sequence[Buffer | None], values: Sequence[Reg]) -> Sequence[Reg]:
        """Write the iterations before the first one in which an element that it adds may not exist, without tests."""
        t, tiles, block = self.text, self.tiles, op.body.block
        last = block.last_op
        assert last is not None
        sums = [(value, buffer) for value, buffer in zip(last.operands, carried, strict=True) if buffer is not None]
        if not sums or not all(buffer.name in self._registers for _, buffer in sums) or not self._is_pure(block):
            return values
        lanes = [self._registers[buffer.name] for _, buffer in sums]
        runs = [tiles.runs(value, lane) for (value, _), lane in zip(sums, lanes, strict=True)]
        if not any(run.inside for found in runs for run in found or []) or None in runs:
            return values
        arguments = [block.args[0], *self._split(block.args[1:])[0]]
        types = ", ".join(reg.type for reg in values)
        before = self._fresh_scalars(arguments)
        pairs = ", ".join(f"{x.name} = {y.name}" for x, y in zip(before, values, strict=True))
        left = [Reg(t.fresh(), reg.elem, reg.lanes) for reg in values]
        names = ", ".join(reg.name for reg in left)
        with t.nested(f"{names} = scf.while ({pairs}) : ({types}) -> ({types}) {{"):
            # What is only evaluated where it is used, and stored tiles, are not needed for the conditions.
            scalars = [each for each in block.ops if not any(is_tile(result) for result in each.results)]
            self.write_operations(each for each in scalars if each is not last)
            conditions = [t.compare("slt", before[0], tiles.scalar(op.ub))]
            for (value, _), lane, found in zip(sums, lanes, runs, strict=True):
                exists = tiles.exists(value, lane, found or [])
                conditions += [] if exists is None else [exists]
            regs = ", ".join(reg.name for reg in before)
            t.line(f"scf.condition({tiles.memory.all(conditions).name}) {regs} : {types}")
        with t.nested("do {"):
            inside = self._fresh_scalars(arguments)
            t.line(f"^bb0({', '.join(f'{reg.name}: {reg.type}' for reg in inside)}):")
            self.write_operations(each for each in block.ops if each is not last)
            for (value, buffer), lane in zip(sums, lanes, strict=True):
                tiles.fill_at_once(buffer, value, last, lane, is_whole=True)
            following = [
                t.binary("arith.addi", inside[0], tiles.scalar(op.step)),
                *(tiles.scalar(value) for value in self._split(last.operands)[0]),
            ]
            t.line(f"scf.yield {', '.join(reg.name for reg in following)} : {types}")
        # What this loop stored is stored again by the iterations that are left.
        for result in (result for each in block.ops for result in each.results):
            tiles.buffers.pop(result, None)
        return left

    @staticmethod
    def _is_pure(block: Block) -> bool:
        """Return whether a loop's iterations do nothing but compute what the loop carries."""
        return all(not op.regions and not is_sink(op) for op in block.ops if op is not block.last_op)

    def overwrite(self, buffer: Buffer, value: SSAValue, op: Operation) -> None:
        if buffer.name in self._registers:
            self.tiles.fill_at_once(buffer, value, op, self._registers[buffer.name])
        else:
            super().overwrite(buffer, value, op)

    def left(self, result: SSAValue, op: scf.ForOp, buffer: Buffer) -> Buffer:
        """Copy what was in registers, because what follows may read it in loops."""
        if buffer.name not in self._registers:
            return super().left(result, op, buffer)
        copy, lane = self.tiles.allocate(result, op), self._registers[buffer.name]
        for point in self.tiles.points(extents(result), lane, self.tiles.lanes(result, op, lane)):
            self.tiles.private.write(copy, point, self.tiles.private.read(buffer, point))
        return copy

    def write(self) -> str:
        text = super().write()
        used, limit = self.text.private_bytes, self.tiles.target.private_bytes
        if used > limit:
            raise LoweringError(
                f"kernel {self.function.sym_name.data} keeps {used >> 10} KiB of tiles in private memory, of which "
                f"this device gives a program {limit >> 10} KiB; smaller blocks need less"
            )
        return text

    def more_parameters(self) -> list[str]:
        return [f"{reg.name}: i32" for reg in self._grid]

    def program_id(self, axis: int) -> Reg:
        group = self.text.call("_Z12get_group_idj", [self.text.integer(axis, "i32")], "i64")
        return self.text.cast("arith.trunci", group, "i32")

    def num_programs(self, axis: int) -> Reg:
        return self._grid[axis]
