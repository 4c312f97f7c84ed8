"""Who has which bytes of workgroup memory, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import Operation

from ...errors import TooLarge
from .accesses import Span

# Every place is a multiple of this, so that it is one of an array of any type.
ALIGNMENT = 16


class Arena:
    """Divides workgroup memory among tiles that are there at the same time.

    Attributes:
        most: the bytes that have been in use at once.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._used: list[Span] = []
        self.most = 0

    @property
    def free(self) -> int:
        """Return the bytes of the largest range that is free."""
        found = at = 0
        for low, high in sorted((*self._used, (self._size, self._size))):
            found = max(found, low - at)
            at = max(at, -(-high // ALIGNMENT) * ALIGNMENT)
        return found

    def take(self, op: Operation, size: int, avoided: Sequence[Span] = ()) -> int:
        """Return the first byte of the lowest range that is free.

        Args:
            avoided: ranges that are used only if there is no other place.

        Raises:
            TooLarge: the device has not so much workgroup memory.
        """
        at = self._first(size, [*self._used, *avoided])
        if at + size > self._size:
            at = self._first(size, self._used)
        if at + size > self._size:
            why = f"keeps {at + size} bytes of tiles in workgroup memory, of which the device has {self._size}"
            raise TooLarge(op, why, "workgroup memory", at + size, self._size)
        self._used.append((at, at + size))
        self.most = max(self.most, at + size)
        return at

    @staticmethod
    def _first(size: int, used: Sequence[Span]) -> int:
        at = 0
        for low, high in sorted(used):
            if at + size <= low:
                break
            at = max(at, -(-high // ALIGNMENT) * ALIGNMENT)
        return at

    def release(self, low: int) -> None:
        """Free a range that begins at this byte."""
        self._used = [each for each in self._used if each[0] != low]

    def save(self) -> list[Span]:
        """Return what is in use, for `restore`."""
        return list(self._used)

    def restore(self, used: list[Span]) -> None:
        self._used = list(used)

    @contextmanager
    def borrow(self, op: Operation, size: int) -> Iterator[int]:
        """Take a range for one exchange."""
        low = self.take(op, size)
        yield low
        self.release(low)
