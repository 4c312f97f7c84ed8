"""Which barriers accesses of workgroup memory need.

An invocation must wait before it reads what another one wrote, and before it overwrites what another one still reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
