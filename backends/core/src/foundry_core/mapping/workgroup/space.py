"""Loops whose turns the work-items of a program share, and the barriers around them.

What is computed from scalars alone, all work-items compute; so all of them take the same branches and reach the same
barriers. What is stored, to tiles or to global memory, each element is stored by one of them, between two barriers:
before, because another may still have to read what was there; after, because another will read what is there now.

There are no barriers under a condition. OpenCL allows them where all work-items take the same branch, but PoCL 6 loses
stores behind them (of an if and an else in a loop, each with a barrier, it made the code of one only). So what stores
under a condition is done by one work-item.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ..base.mlir import Reg, Text
from ..base.space import Space

_BARRIER = "_Z7barrierj"
# CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE
_FENCES = 3


class WorkGroupSpace(Space):
    """Writes loops to a Text that is still empty; the first line finds out which work-item this is.

    Attributes:
        work_item: its number.
        is_alone: whether what is being written is done by one work-item.
    """

    def __init__(self, text: Text, work_items: int) -> None:
        super().__init__(text)
        self._work_items = work_items
        self.is_alone = False
        self.work_item = text.call("_Z12get_local_idj", [text.integer(0, "i32")], "i64")

    def barrier(self) -> None:
        """Wait for all work-items; what they stored before is seen after."""
        self.text.run(_BARRIER, [self.text.integer(_FENCES, "i32")], "convergent")

    @contextmanager
    def together(self) -> Iterator[None]:
        if self.is_alone:
            yield
            return
        self.barrier()
        yield
        self.barrier()

    @contextmanager
    def once(self) -> Iterator[None]:
        if self.is_alone:
            yield
            return
        first = self.text.compare("eq", self.work_item, self.text.integer(0))
        with self.text.nested(f"scf.if {first.name} {{"):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self.together(), self.once():
            before, self.is_alone = self.is_alone, True
            yield
            self.is_alone = before

    def shared_loop(self, low: Reg, high: Reg, step: int) -> AbstractContextManager[Reg]:
        if self.is_alone:
            return super().shared_loop(low, high, step)
        first = self.plus(low, self.times(self.work_item, self.text.integer(step)))
        return self.text.loop(first, high, step * self._work_items)
