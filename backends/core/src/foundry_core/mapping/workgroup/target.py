"""The properties of a device that the mapping to work-groups uses."""

from __future__ import annotations

from dataclasses import dataclass

from ..workitem.target import WorkItemTarget


@dataclass(frozen=True)
class WorkGroupTarget(WorkItemTarget):
    """A device on which a work-group executes each program.

    Attributes:
        work_items: work-items per program.
        local_bytes: memory that they may share (CL_DEVICE_LOCAL_MEM_SIZE; 1 MiB on PoCL 6 here).
    """

    work_items: int = 128
    local_bytes: int = 1 << 20
