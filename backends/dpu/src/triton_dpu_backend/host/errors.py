"""Errors between a launch and the DPUs."""

from __future__ import annotations

from foundry_core.failure import Failure


class DpuError(Failure):
    """Something failed on the way to DPUs or on one. Says what, why, and what to do next."""


class SdkError(DpuError):
    """There is no SDK, or the shim over it cannot be built."""
