"""What fails between a launch and the DPUs."""

from __future__ import annotations

from foundry_core.failure import Failure


class DpuError(Failure):
    """What failed on the way to DPUs or on one, why, and the next thing to do."""


class SdkError(DpuError):
    """There is no SDK, or the shim over it cannot be built."""
