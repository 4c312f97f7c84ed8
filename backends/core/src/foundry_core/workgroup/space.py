"""Loops whose turns the work-items of a program share, and the barriers around them.

What is computed from scalars alone, all work-items compute; so all of them take the same branches and reach the same
barriers. What is stored, to tiles or to global memory, each element is stored by one of them, between two barriers:
before, because another may still have to read what was there; after, because another will read what is there now.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ..workitem.mlir import Reg, Text
from ..workitem.space import Space

_BARRIER = "_Z7barrierj"
# CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE
_FENCES = 3


class WorkGroupSpace(Space):
    """Writes loops to a Text that is still empty; the first line finds out which work-item this is."""

    def __init__(self, text: Text, work_items: int) -> None:
        super().__init__(text)
        self._work_items = work_items
        self.work_item = text.call("_Z12get_local_idj", [text.integer(0, "i32")], "i64")

    def barrier(self) -> None:
        """Wait for all work-items; what they stored before is seen after."""
        self.text.run(_BARRIER, [self.text.integer(_FENCES, "i32")], "convergent")

    @contextmanager
    def together(self) -> Iterator[None]:
        self.barrier()
        yield
        self.barrier()

    @contextmanager
    def once(self) -> Iterator[None]:
        first = self.text.compare("eq", self.work_item, self.text.integer(0))
        with self.text.nested(f"scf.if {first.name} {{"):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self.together(), self.once():
            yield

    def shared_loop(self, low: Reg, high: Reg, step: int) -> AbstractContextManager[Reg]:
        first = self.plus(low, self.times(self.work_item, self.text.integer(step)))
        return self.text.loop(first, high, step * self._work_items)
