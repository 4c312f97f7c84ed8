"""The mapping to OpenCL work-items: each work-item executes one program and is a work-group by itself.

After the Triton kernel's arguments, a kernel takes the grid's extents x, y, z as i32.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...emit.mlir import WIDTHS, Reg, Text
from ...errors import LoweringError
from ...front.structured import kernel
from ...ir import tile, tt
from ...ir.elements import extents
from ...ops.numeric import element_name, in_memory
from ..base.buffers import Buffer
from ..base.mapping import Part
from ..base.operations import products
from ..base.plan import BufferPlan, stored_across
from ..base.target import WorkItemTarget
from ..base.tiles import Tiles
from .sums import SumsInRegisters

# Bytes of tiles that are stored only because they are read in rows and written in columns. They should stay in a cache.
_TURNED = 1 << 18


def lower_work_item(module: ModuleOp, target: WorkItemTarget) -> str:
    """Return the MLIR of a kernel in which each work-item executes one program; does not change the module.

    Raises:
        UnsupportedOperation: an operation, or a type in it, that this mapping does not support.
        LoweringError: the kernel's tiles need more private memory than the target has.
    """
    function = kernel(module)
    return WorkItem(function, work_item_tiles(function, target)).write()


def work_item_tiles(function: tt.FuncOp, target: WorkItemTarget) -> Tiles:
    """Build the empty text, registers and buffers of a kernel."""
    return Tiles(Text(), WorkItemPlan(function.body.block), target)


class WorkItemPlan(BufferPlan):
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
        if not tile.reads_late(load) or not all(map(tile.only_writes, self.sinks(value))):
            return False
        elem = in_memory(element_name(value.type, load))
        size = math.prod(extents(value)) * WIDTHS[elem] // 8
        dimension = stored_across(load, self.stored)
        if dimension is None or len(extents(value)) != 2 or size > self._room or element_name(value.type, load) == "i1":
            return False
        self._room -= size
        self.across[value] = dimension
        return True


class WorkItem(SumsInRegisters):
    """A kernel in which each OpenCL work-item executes one program and is a work-group by itself."""

    _grid = tuple(Reg(f"%grid_{axis}", "i32") for axis in tt.AXES)

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

    def accumulate(self, op: Operation, a: Buffer, b: Buffer, c: Buffer, part: Part) -> None:
        products.accumulate(self, op, a, b, c, part)

    def program_id(self, axis: int) -> Reg:
        group = self.text.call("_Z12get_group_idj", [self.text.integer(axis, "i32")], "i64")
        return self.text.cast("arith.trunci", group, "i32")

    def num_programs(self, axis: int) -> Reg:
        return self._grid[axis]
