"""What the mapping to work-items has to know of a device."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.target import Target


@dataclass(frozen=True)
class WorkItemTarget(Target):
    """A device that runs one program a work-item."""
