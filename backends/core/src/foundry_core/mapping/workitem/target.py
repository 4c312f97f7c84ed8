"""The properties of a device that the mapping to work-items uses."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.target import Target


@dataclass(frozen=True)
class WorkItemTarget(Target):
    """A device on which one work-item executes each program."""
