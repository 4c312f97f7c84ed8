"""What fails on the way to a VeriSilicon device, or on one."""

from __future__ import annotations

from foundry_core.failure import Failure


class VsiError(Failure):
    """A kernel cannot be compiled for the device or launched on it: what failed, why, and the next thing to do."""


class MissingError(VsiError):
    """A piece of VeriSilicon's SDK is not where it should be."""


class ZenCompilerError(VsiError):
    """zen-compiler did not compile a kernel; says why in its own words."""
