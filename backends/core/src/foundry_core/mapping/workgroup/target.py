"""What the mapping to work-groups has to know of a device."""

from __future__ import annotations

from dataclasses import dataclass

from ..workitem.target import WorkItemTarget


@dataclass(frozen=True)
class WorkGroupTarget(WorkItemTarget):
    """A device that runs one program on a work-group.

    Attributes:
        work_items: how many of them a program has.
        local_bytes: how much memory they may share (CL_DEVICE_LOCAL_MEM_SIZE; 1 MiB on PoCL 6 here).
    """

    work_items: int = 128
    local_bytes: int = 1 << 20
