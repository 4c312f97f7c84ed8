"""A record of the last launch: how many work-items a program had, and how many commands were generated."""

from __future__ import annotations

from typing import NamedTuple

from foundry_core.runtime.launches import LaunchLog


class LaunchedCommands(NamedTuple):
    """One launch of a kernel, and the commands that were generated for it.

    Attributes:
        kernel: its name.
        grid: programs along x, y and z.
        threads: work-items of each program: the local size along x.
        matmuls, dmas: number of command buffers of each kind that the kernel got.
        command_bytes: total size of these buffers.
    """

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    matmuls: int
    dmas: int
    command_bytes: int


_log: LaunchLog[LaunchedCommands] = LaunchLog()
last, note = _log.last, _log.note
