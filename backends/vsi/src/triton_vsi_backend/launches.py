"""What the last launch was: how many work-items a program had, how many commands were made for it."""

from __future__ import annotations

from typing import NamedTuple


class Launch(NamedTuple):
    """One launch of a kernel.

    Attributes:
        kernel: its name.
        grid: programs along x, y and z.
        threads: work-items that shared a program: the local size along x.
        matmuls, dmas: command buffers that the kernel was given, of each kind.
        command_bytes: in all of them.
    """

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    matmuls: int
    dmas: int
    command_bytes: int


_last: Launch | None = None


def last() -> Launch | None:
    """The launch that finished last; None before the first."""
    return _last


def note(launch: Launch) -> None:
    """Remember a launch as the last one."""
    global _last
    _last = launch
