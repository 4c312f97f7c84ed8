"""What the last launch was: how many work-items a program had, how many commands were made for it."""

from __future__ import annotations

from typing import NamedTuple

from foundry_core.launches import LaunchLog


class LaunchedCommands(NamedTuple):
    """One launch of a kernel, and the commands that were made for it.

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


_log: LaunchLog[LaunchedCommands] = LaunchLog()
last, note = _log.last, _log.note
