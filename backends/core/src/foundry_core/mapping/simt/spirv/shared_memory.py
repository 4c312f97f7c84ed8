"""Who has which bytes of workgroup memory, and which barriers accesses need.

An invocation must wait before it reads what another one wrote, and before it overwrites what another one still reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import Operation

from ....errors import TooLarge

Span = tuple[int, int]
# The bytes of an access at an unknown address.
EVERYTHING: Span = (0, 1 << 62)


class PendingAccesses:
    """The ranges of workgroup memory that have been read or written since the last barrier, on any path.

    Attributes:
        count: how many accesses and barriers have been recorded.
        some: whether what is written now can have no barriers, as it is executed by some invocations only.
    """

    def __init__(self) -> None:
        self._known: set[tuple[Span, bool]] = set()
        self.count = 0
        self.some = False

    def add(self, span: Span, *, writes: bool) -> None:
        """Record an access of some bytes of a range."""
        self._known.add((span, writes))
        self.count += 1

    def barrier(self) -> None:
        """Record a barrier."""
        self._known.clear()
        self.count += 1

    def conflict(self, span: Span, *, writes: bool) -> bool:
        """Return whether accesses of a range must wait for earlier ones, by other invocations."""
        low, high = span
        return any(begin < high and low < end and (writes or wrote) for (begin, end), wrote in self._known)

    @property
    def spans(self) -> list[Span]:
        """Return the ranges."""
        return [span for span, _ in self._known]

    def save(self) -> set[tuple[Span, bool]]:
        """Return what is known, for `restore` and `join`."""
        return set(self._known)

    def restore(self, known: set[tuple[Span, bool]]) -> None:
        self._known = set(known)

    def join(self, known: set[tuple[Span, bool]]) -> None:
        """Add what is known on another path that leads here."""
        self._known |= known

    @contextmanager
    def under_condition(self) -> Iterator[None]:
        """Record what some invocations do."""
        before, outer = self.save(), self.some
        self.some = True
        yield
        self.some = outer
        self.join(before)

    @contextmanager
    def skip_barriers(self) -> Iterator[None]:
        """Record what needs no barriers, as subgroups exchange it with themselves only."""
        outer, self.some = self.some, True
        yield
        self.some = outer

    @contextmanager
    def record_loop(self) -> Iterator[None]:
        """Record a loop. Before an iteration, everything may have been accessed by the one before."""
        before = self.save()
        self.add(EVERYTHING, writes=True)
        count = self.count
        yield
        if self.count == count:
            self.restore(before)
        else:
            self.add(EVERYTHING, writes=True)


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
    def borrow(self, op: Operation, size: int, avoided: Sequence[Span] = ()) -> Iterator[int]:
        """Take a range for one exchange; see `take`."""
        low = self.take(op, size, avoided)
        yield low
        self.release(low)
