"""What fails between a launch and the DPUs."""

from __future__ import annotations


class DpuError(Exception):
    """What failed on the way to DPUs or on one, why, and the next thing to do."""

    def __init__(self, what: str, *, why: str, next: str = "") -> None:
        lines = [what, f"  why:  {why}".replace("\n", "\n        ")]
        if next:
            lines.append(f"  next: {next}")
        super().__init__("\n".join(lines))


class SdkError(DpuError):
    """There is no SDK, or the shim over it cannot be built."""
