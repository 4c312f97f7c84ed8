"""One kernel in structured form to MLIR text for a work-group a program.

The kernel's arguments are those of the mapping to work-items. Tiles that need memory are in that which the work-items
share; each work-item computes a part of each tile, and all of them all scalars (space.py).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects import tt
from ...effects import writes
from ...errors import LoweringError
from ...front.structured import kernel
from ..base.buffers import Buffer
from ..base.mapping import Mapping
from ..base.mlir import GLOBAL, LOCAL, Conventions, Text
from ..base.numeric import element, in_register
from ..base.plan import Plan, is_tile
from ..base.space import Point, Space, extents
from ..base.tiles import Tiles
from ..workitem.program import WorkItem
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
    program: Mapping = WorkGroup(function, tiles(function, target))
    return program.write()


def tiles(function: tt.FuncOp, target: WorkGroupTarget) -> WorkGroupTiles:
    """The empty text of a kernel."""
    size = f"reqd_work_group_size = array<i32: {target.work_items}, 1, 1>"
    return WorkGroupTiles(Text(Conventions(attributes=size)), Plan(function.body.block), target)


def _stores(op: scf.IfOp) -> bool:
    """Whether anything under a condition stores, to global memory or to tiles."""
    return writes(op) or any(is_tile(result) for inner in op.walk() for result in inner.results)


class WorkGroupTiles(Tiles):
    """Tiles in memory that work-items share, filled by all of them.

    Attributes:
        group: the space, as what it is.
    """

    target: WorkGroupTarget
    group: WorkGroupSpace

    def _space(self, text: Text) -> Space:
        self.group = WorkGroupSpace(text, self.target.work_items)
        return self.group

    def allocate(self, value: SSAValue, op: Operation, order: tuple[int, ...] | None = None) -> Buffer:
        return self.private.allocate(in_register(element(value.type, op)), extents(value), order, LOCAL)


def _reduce(program: WorkGroup, op: tt.ReduceOp) -> None:
    WorkGroupReduction(program.tiles, op, program.tiles.group, program.tiles.target.work_items).write()


class WorkGroup(WorkItem):
    """One program a work-group of OpenCL."""

    statements = WorkItem.statements | {tt.ReduceOp: _reduce}
    tiles: WorkGroupTiles

    def _if(self, op: scf.IfOp) -> None:
        """As any other; but what would need barriers is done by one work-item, which tells the others the results."""
        if self.tiles.group.is_alone or not _stores(op):
            super()._if(op)
            return
        t, private = self.text, self.tiles.private
        results = self._split(op.results)[0]
        place = Point((t.integer(0),), 0, 1)
        cells = []
        with self.tiles.group.alone():
            super()._if(op)
            for value in (self.tiles.scalar(result) for result in results):
                told = t.cast("llvm.ptrtoint", value, "i64") if value.elem == GLOBAL else value
                cells.append(private.allocate(told.elem, (1,), space=LOCAL))
                private.write(cells[-1], place, told)
        for result, cell in zip(results, cells, strict=True):
            told = private.read(cell, place)
            is_pointer = isinstance(result.type, tt.PointerType)
            self.tiles.scalars[result] = t.cast("llvm.inttoptr", told, GLOBAL) if is_pointer else told

    def write(self) -> str:
        text = super().write()
        used, limit = self.text.local_bytes, self.tiles.target.local_bytes
        if used > limit:
            raise LoweringError(
                f"kernel {self.function.sym_name.data} keeps {used >> 10} KiB of tiles in memory that its work-items "
                f"share, of which this device gives a program {limit >> 10} KiB; smaller blocks need less"
            )
        return text
