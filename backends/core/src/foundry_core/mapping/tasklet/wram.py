"""Divides a tasklet's part of WRAM among arrays that are needed at the same time, and writes the kernel's text."""

from __future__ import annotations

from ..base.mlir import PRIVATE, WIDTHS, Conventions, Text
from .target import DMA_ALIGNMENT

_WRAM = "%wram"


class TaskletText(Text):
    """A kernel whose private arrays are parts of one, in which those that are released leave room for others.

    Attributes:
        private_bytes: the most bytes that have been in use at once.
    """

    def __init__(self, conventions: Conventions) -> None:
        super().__init__(conventions)
        # The first byte of each array in use, and the byte behind it.
        self._used: dict[str, tuple[int, int]] = {}

    def private(self, elem: str, count: int) -> str:
        """Allocate an array that nothing else uses until it is released."""
        size = -(-count * WIDTHS[elem] // 8 // DMA_ALIGNMENT) * DMA_ALIGNMENT
        first = 0
        for low, high in sorted(self._used.values()):
            if first + size <= low:
                break
            first = max(first, high)
        name = f"%p{len(self._allocas)}"
        self._allocas.append(f"{name} = llvm.getelementptr {_WRAM}[{first}] : ({PRIVATE}) -> {PRIVATE}, i8")
        self._used[name] = (first, first + size)
        self.private_bytes = max(self.private_bytes, first + size)
        return name

    def in_use(self) -> list[str]:
        """Return the arrays that have not been released, in the order in which they were allocated."""
        return list(self._used)

    def release(self, array: str) -> None:
        """Give an array's bytes to later ones."""
        del self._used[array]

    def _body(self) -> list[str]:
        whole = []
        if self._allocas:
            one = self.integer(1, "i32").name
            alignment = f"{{alignment = {DMA_ALIGNMENT} : i64}}"
            kind = f"!llvm.array<{self.private_bytes} x i8>"
            whole = [f"{_WRAM} = llvm.alloca {one} x {kind} {alignment} : (i32) -> {PRIVATE}"]
        self._allocas = whole + self._allocas
        return super()._body()
