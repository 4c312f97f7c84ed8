"""One kernel in structured form to MLIR text for a work-group a program.

The kernel's arguments are those of the mapping to work-items. Tiles that need memory are in that which the work-items
share; each work-item computes a part of each tile, and all of them all scalars (space.py).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ..dialects import tt
from ..errors import LoweringError
from ..front.structured import kernel
from ..workitem.buffers import Buffer
from ..workitem.mlir import LOCAL, Conventions, Text
from ..workitem.numeric import element, in_register
from ..workitem.plan import Plan
from ..workitem.program import WorkItem
from ..workitem.space import Space, extents
from ..workitem.tiles import Tiles
from .reduce import WorkGroupReduction
from .space import WorkGroupSpace
from .target import WorkGroupTarget


def lower(module: ModuleOp, target: WorkGroupTarget) -> str:
    """The MLIR of a kernel for one work-group a program; reads the module only.

    Raises:
        UnsupportedOperation: an operation, or a type in it, that this mapping does not take.
        LoweringError: the kernel's tiles need more memory than a work-group has.
    """
    function = kernel(module)
    return WorkGroup(function, tiles(function, target)).write()


def tiles(function: tt.FuncOp, target: WorkGroupTarget) -> WorkGroupTiles:
    """The empty text of a kernel."""
    size = f"reqd_work_group_size = array<i32: {target.work_items}, 1, 1>"
    return WorkGroupTiles(Text(Conventions(attributes=size)), Plan(function.body.block), target)


class WorkGroupTiles(Tiles):
    """Tiles in memory that work-items share, filled by all of them."""

    target: WorkGroupTarget

    def _space(self, text: Text) -> Space:
        return WorkGroupSpace(text, self.target.work_items)

    def allocate(self, value: SSAValue, op: Operation, order: tuple[int, ...] | None = None) -> Buffer:
        return self.private.allocate(in_register(element(value.type, op)), extents(value), order, LOCAL)


class WorkGroup(WorkItem):
    """One program a work-group of OpenCL."""

    _tiles: WorkGroupTiles

    def _reduction(self, op: tt.ReduceOp) -> WorkGroupReduction:
        space = self._tiles.space
        assert isinstance(space, WorkGroupSpace)
        return WorkGroupReduction(self._tiles, op, space, self._tiles.target.work_items)

    def write(self) -> str:
        text = super().write()
        used, limit = self._text.local_bytes, self._tiles.target.local_bytes
        if used > limit:
            raise LoweringError(
                f"kernel {self._function.sym_name.data} keeps {used >> 10} KiB of tiles in memory that its work-items "
                f"share, of which this device gives a program {limit >> 10} KiB; smaller blocks need less"
            )
        return text
