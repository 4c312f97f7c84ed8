"""Lowers one kernel in structured form to MLIR text in which a work-group executes each program.

The kernel has the same arguments as in the mapping to work-items. Tiles that need memory are in the memory that the
work-items share. Each work-item computes a part of each tile, and all work-items compute all scalars (space.py).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...emit.mlir import GLOBAL, LOCAL, Conventions, Reg, Text
from ...errors import LoweringError
from ...front.structured import kernel
from ...ir import tt
from ...ir.effects import logs, waits, writes
from ...ops.numeric import element_name, in_register
from ..base.buffers import Buffer
from ..base.operations.reductions import Reduction, array_type, write_reduction
from ..base.plan import BufferPlan, is_tile
from ..base.space import Point, Space
from ..base.target import WorkGroupTarget
from ..base.tiles import Tiles
from ..workitem.program import WorkItem
from .space import WorkGroupSpace


def lower_work_group(module: ModuleOp, target: WorkGroupTarget) -> str:
    """Return the MLIR of a kernel in which each work-group executes one program; does not change the module.

    Raises:
        UnsupportedOperation: an operation, or a type in it, that this mapping does not support.
        LoweringError: the kernel's tiles need more memory than a work-group has.
    """
    function = kernel(module)
    return WorkGroup(function, work_group_tiles(function, target)).write()


def work_group_tiles(function: tt.FuncOp, target: WorkGroupTarget) -> WorkGroupTiles:
    """Build the empty text, registers and buffers of a kernel."""
    size = f"reqd_work_group_size = array<i32: {target.work_items}, 1, 1>"
    return WorkGroupTiles(Text(Conventions(attributes=size)), BufferPlan(function.body.block), target)


def _stores(op: scf.IfOp) -> bool:
    """Return whether anything under a condition needs a barrier: what stores to memory, the log or a tile, or waits."""
    effect = writes(op) or waits(op) or logs(op)
    return effect or any(is_tile(result) for inner in op.walk() for result in inner.results)


class WorkGroupTiles(Tiles):
    """Tiles in memory that the work-items share and fill together.

    Attributes:
        group: the same object as `space`, with its own type.
    """

    target: WorkGroupTarget
    group: WorkGroupSpace
    buffer_space = LOCAL
    # The work-items share the slowest: a product has more rows than columns of vectors.
    product_order = (0, 1)

    def _space(self, text: Text) -> Space:
        self.group = WorkGroupSpace(text, self.target.work_items)
        return self.group


class WorkGroupReduction(Reduction):
    """A reduction of a row: each work-item reduces a part of it, then each combines all the parts."""

    def __init__(self, program: WorkGroup, op: Operation) -> None:
        super().__init__(program, op)
        self._space = program.tiles.group
        self._work_items = program.tiles.target.work_items

    def _fold(self, count: int, step: int, point: Point) -> list[Reg]:
        turns = count // step
        most = min(turns, self._work_items)
        if len(self._shape) > 1 or most == 1 or self._space.is_alone:
            return super()._fold(count, step, point)
        t, private, me = self._tiles.text, self._tiles.private, self._space.work_item
        lanes = 1 if self._folds_lanes(point) else point.lanes
        if self._in_any_order:
            # Neighbouring work-items read neighbouring vectors.
            parts, first, stride, end = most, self._space.times(me, t.integer(step)), most * step, t.integer(count)
        else:
            # Each work-item combines consecutive elements, so that the parts are in their order.
            length = -(-turns // most) * step
            parts, first, stride = -(-count // length), self._space.times(me, t.integer(length)), step
            last, end = self._space.plus(first, t.integer(length)), t.integer(count)
            end = t.select(t.compare("slt", last, end), last, end)
        found = [
            Buffer(t.local(array_type(elem), parts * lanes), in_register(elem), (parts, lanes), (0, 1), LOCAL)
            for elem in (element_name(src.type, self._op) for src in self._op.operands)
        ]
        # The work-items that have a part; all of them if there are at least as many steps as work-items.
        has_one = t.compare("slt", me, t.integer(parts))
        with self._space.barriers(), t.when(has_one):
            values = self._folded(first, self._space.plus(first, t.integer(stride)), end, stride, point)
            self._write(found, Point((me, t.integer(0)), 1, lanes), values)
        zero = t.integer(0)

        def part(index: Reg) -> list[Reg]:
            return [private.read(buffer, Point((index, zero), 1, lanes)) for buffer in found]

        return self._combined(part(zero), t.integer(1), t.integer(parts), 1, part)


class WorkGroup(WorkItem):
    """A kernel in which each OpenCL work-group executes one program."""

    statements = WorkItem.statements.replace(
        write_reduction, lambda program, op: WorkGroupReduction(program, op).write()
    )
    keeps_sums = False
    tiles: WorkGroupTiles

    def _if(self, op: scf.IfOp) -> None:
        """Write an scf.if; one that would need barriers is executed by one work-item, which shares the results."""
        if self.tiles.group.is_alone or not _stores(op):
            super()._if(op)
            return
        t, private = self.text, self.tiles.private
        results = self._split(op.results)[0]
        place = Point((t.integer(0),), 0, 1)
        cells = []
        with self.tiles.group.single_work_item():
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
