"""Errors of compiling for a VeriSilicon device and of running on it."""

from __future__ import annotations

from foundry_core.failure import Failure


class VsiError(Failure):
    """A kernel cannot be compiled for the device or launched on it. Says what failed, why, and what to do next."""


class MissingError(VsiError):
    """A piece of VeriSilicon's SDK is not where it should be."""


class ZenCompilerError(VsiError):
    """zen-compiler did not compile a kernel. The message quotes its output."""
