"""Divides a tasklet's part of WRAM among arrays that are needed at the same time, and writes the kernel's text."""

from __future__ import annotations

from ...emit.mlir import PRIVATE, WIDTHS, Conventions, Reg, Text
from ..base.target import DMA_ALIGNMENT

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
        # Addresses from `byte_address`: the part that changes, and the constant number of bytes behind it.
        self._parts: dict[str, tuple[str, int]] = {}

    def byte_address(self, array: str, offset: Reg) -> str:
        """Return the address of a byte of an array. What is added to it later is added before the array's own place.

        So arrays that are indexed alike share the part of an address that changes, and a load adds the constant.
        """
        first, _ = self._used[array]
        return self._later(super().address(_WRAM, offset, "i8", PRIVATE), first)

    def _later(self, root: str, distance: int) -> str:
        made = super().offset_address(root, distance, "i8", PRIVATE)
        self._parts[made] = (root, distance)
        return made

    def address(self, base: str, offset: Reg, elem: str, space: str) -> str:
        root, distance = self._parts.get(base, (base, 0))
        made = super().address(root, offset, elem, space)
        return self._later(made, distance) if base in self._parts else made

    def offset_address(self, address: str, count: int, elem: str, space: str) -> str:
        if address not in self._parts:
            return super().offset_address(address, count, elem, space)
        root, distance = self._parts[address]
        return self._later(root, distance + count * WIDTHS[elem] // 8)

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
