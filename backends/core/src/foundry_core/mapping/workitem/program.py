"""The mapping to OpenCL work-items: each work-item executes one program and is a work-group by itself.

After the Triton kernel's arguments, a kernel takes the grid's extents x, y, z as i32.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...dialects import tt
from ...errors import LoweringError
from ...front.structured import kernel
from ..base.mapping import Mapping
from ..base.mlir import Reg, Text
from ..base.plan import Plan
from ..base.program import Program
from ..base.tiles import Tiles
from .target import WorkItemTarget


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
    return Tiles(Text(), Plan(function.body.block), target)


class WorkItem(Program):
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

    def program_id(self, axis: int) -> Reg:
        group = self.text.call("_Z12get_group_idj", [self.text.integer(axis, "i32")], "i64")
        return self.text.cast("arith.trunci", group, "i32")

    def num_programs(self, axis: int) -> Reg:
        return self._grid[axis]
