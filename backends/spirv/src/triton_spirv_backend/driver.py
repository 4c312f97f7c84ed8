"""The driver that Triton finds here: that of the road that FOUNDRY_SPIRV_API names."""

from __future__ import annotations

from foundry_core.driver import SynchronousDriver

from .roads import chosen

SpirvDriver: type[SynchronousDriver] = chosen()

__all__ = ["SpirvDriver"]
