"""Loops whose iterations the work-items of a program share, and the barriers around them.

All work-items compute what depends on scalars only, so all of them take the same branches and reach the same barriers.
Each element of a tile or of global memory is stored by one work-item, between two barriers: one before, because another
work-item may still have to read the old value, and one after, because another work-item will read the new value.

There are no barriers under a condition. OpenCL allows them if all work-items take the same branch, but PoCL 6 loses
stores after them: of an if and an else in a loop, each with a barrier, it generated code for one only. So one work-item
alone executes what stores under a condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ...emit.mlir import Reg, Text
from ..base.space import Space

_BARRIER = "_Z7barrierj"
# CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE
_FENCES = 3


class WorkGroupSpace(Space):
    """Writes loops to a Text that is still empty; its first line gets the number of this work-item.

    Attributes:
        work_item: the number of this work-item.
        is_alone: true while the code being written is executed by one work-item only.
    """

    def __init__(self, text: Text, work_items: int) -> None:
        super().__init__(text)
        self._work_items = work_items
        self.is_alone = False
        self.work_item = text.call("_Z12get_local_idj", [text.integer(0, "i32")], "i64")

    def barrier(self) -> None:
        """Write a barrier: wait for all work-items, and make their earlier stores visible to all."""
        self.text.call_void(_BARRIER, [self.text.integer(_FENCES, "i32")], "convergent")

    @contextmanager
    def barriers(self) -> Iterator[None]:
        if self.is_alone:
            yield
            return
        self.barrier()
        yield
        self.barrier()

    @contextmanager
    def first_work_item(self) -> Iterator[None]:
        if self.is_alone:
            yield
            return
        first = self.text.compare("eq", self.work_item, self.text.integer(0))
        with self.text.when(first):
            yield

    @contextmanager
    def single_work_item(self) -> Iterator[None]:
        with self.barriers(), self.first_work_item():
            before, self.is_alone = self.is_alone, True
            yield
            self.is_alone = before

    def shared_loop(self, low: Reg, high: Reg, step: int) -> AbstractContextManager[Reg]:
        if self.is_alone:
            return super().shared_loop(low, high, step)
        first = self.plus(low, self.times(self.work_item, self.text.integer(step)))
        return self.text.loop(first, high, step * self._work_items)
