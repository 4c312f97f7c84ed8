"""Memory of a run: arrays with guards around them, and workgroup memory that knows who touched which byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Array = np.ndarray
Reached = tuple[int, int] | None


class Fault(Exception):
    """Something that no device promises to do as the kernel means it."""


class Result(NamedTuple):
    """What a run left.

    Attributes:
        arrays: the arrays as they are afterwards.
        read, written: of each, the first byte that was read or written and the byte behind the last; None if none was.
    """

    arrays: list[Array]
    read: list[Reached]
    written: list[Reached]


class GlobalMemory:
    """Arrays at addresses that are multiples of 256, apart from each other. Only their own bytes may be reached.

    Args:
        lows: the address of each array, in ascending order, in place of these.

    Attributes:
        lows: the address of each array.
        bytes: the bytes of all.
    """

    def __init__(self, arrays: Sequence[Array], lows: Sequence[int] | None = None) -> None:
        sizes = np.array([array.nbytes for array in arrays], np.int64)
        apart = (1 << 40) + np.cumsum([0, *(-(-sizes // 256) * 256 + 256)])[:-1]
        self.lows = apart if lows is None else np.array(lows, np.int64)
        self._highs, self._starts = self.lows + sizes, np.cumsum([0, *sizes])
        self.bytes = np.frombuffer(b"".join(array.tobytes() for array in arrays), np.uint8).copy()
        self._is_read, self._is_written = (np.zeros(len(self.bytes), bool) for _ in range(2))

    def places(self, address: Array, size: int, alignment: int, active: Array, how: str) -> Array:
        """Return the places of the bytes that active invocations access; of others, places that exist.

        Args:
            how: "r" if they are read, "w" if they are written, or both.
        """
        if alignment and np.any(address[active] % alignment):
            raise Fault(f"an address is no multiple of {alignment}, as the access promises")
        number = np.maximum(np.searchsorted(self.lows, address, "right") - 1, 0)
        inside = (address >= self.lows[number]) & (address + size <= self._highs[number])
        if not np.all(inside[active]):
            raise Fault("an access out of bounds of all arrays")
        first = np.where(inside, address - self.lows[number] + self._starts[number], 0)
        found = np.minimum(first[:, None] + np.arange(size), len(self.bytes) - 1)
        for letter, noted in (("r", self._is_read), ("w", self._is_written)):
            if letter in how:
                noted[found[active]] = True
        return found

    def fill(self, number: int, content: Array) -> None:
        """Write an array."""
        self.bytes[self._starts[number] : self._starts[number + 1]] = content

    def result(self, arrays: Sequence[Array]) -> Result:
        """Return what the first arrays are now, and what of them was reached."""
        parts = [slice(*self._starts[number : number + 2]) for number in range(len(arrays))]
        now = [self.bytes[part].copy().view(x.dtype).reshape(x.shape) for part, x in zip(parts, arrays, strict=True)]
        return Result(
            now, [_span(self._is_read[part]) for part in parts], [_span(self._is_written[part]) for part in parts]
        )


def _span(noted: Array) -> Reached:
    places = np.flatnonzero(noted)
    return (int(places[0]), int(places[-1]) + 1) if len(places) else None


class _Touched:
    """Who has touched which byte since the last barrier: invocations, or subgroups."""

    NOBODY, MANY = -1, -2

    def __init__(self, size: int, who: str) -> None:
        self._who = who
        self._writer, self._reader = (np.full(size, self.NOBODY, np.int64) for _ in range(2))

    def clear(self, part: slice) -> None:
        self._writer[part] = self._reader[part] = self.NOBODY

    def read(self, at: Array, ids: Array) -> None:
        self._check(self._writer, at, ids, np.ones(at.shape, bool), "wrote")
        self._note(self._reader, at, ids)

    def write(self, at: Array, ids: Array, changes: Array) -> None:
        """Note a write. Several may write the same bytes: layouts repeat elements."""
        self._check(self._writer, at, ids, changes, "wrote")
        self._check(self._reader, at, ids, changes, "read")
        self._note(self._writer, at, ids)

    def _check(self, noted: Array, at: Array, ids: Array, changes: Array, did: str) -> None:
        # Several that wrote a byte wrote the same to it.
        if np.any((noted[at] != self.NOBODY) & (noted[at] != ids) & changes):
            raise Fault(f"a race in workgroup memory: another {self._who} {did} a byte, and no barrier followed")

    def _note(self, noted: Array, at: Array, ids: Array) -> None:
        noted[at] = np.where((noted[at] == self.NOBODY) | (noted[at] == ids), ids, self.MANY)
        noted[at[noted[at] != ids]] = self.MANY


class SharedMemory:
    """Workgroup memory of all workgroups, one after the other.

    It finds races: two invocations, one of which writes, reach a byte, and no barrier is between them. A barrier of a
    subgroup orders the accesses of its own invocations only.

    Args:
        groups: how many workgroups there are.
        size: the bytes of each.
        lanes: the invocations of a subgroup.
    """

    def __init__(self, groups: int, size: int, lanes: int) -> None:
        self.size, self._lanes = size, lanes
        self.bytes = np.full(groups * size, 0xAB, np.uint8)
        self._invocations = _Touched(groups * size, "invocation")
        self._subgroups = _Touched(groups * size, "subgroup")

    def places(self, offset: Array, size: int, group: Array, active: Array) -> Array:
        """Return the places of the bytes that active invocations access; of others, places that exist."""
        if np.any((offset < 0)[active]) or np.any((offset + size > self.size)[active]):
            raise Fault("an access out of bounds of workgroup memory")
        return np.where(active, offset + group * self.size, 0)[:, None] + np.arange(size)

    def touch(self, at: Array, active: Array, written: Array | None = None) -> None:
        """Note an access of bytes, and write them."""
        ids = np.broadcast_to(np.arange(len(active))[active][:, None], at[active].shape)
        at = at[active]
        for touched, who in ((self._invocations, ids), (self._subgroups, ids // self._lanes)):
            if written is None:
                touched.read(at, who)
            else:
                touched.write(at, who, self.bytes[at] != written[active])
        if written is not None:
            self.bytes[at] = written[active]
            if np.any(self.bytes[at] != written[active]):
                raise Fault("a race in workgroup memory: two invocations write different bytes to one place")

    def barrier(self, groups: Array, *, of_subgroup: bool) -> None:
        """End what is noted of these workgroups; at a barrier of a subgroup, what is noted of invocations."""
        for group in groups:
            part = slice(group * self.size, (group + 1) * self.size)
            self._invocations.clear(part)
            if not of_subgroup:
                self._subgroups.clear(part)
