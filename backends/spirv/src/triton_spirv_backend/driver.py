"""The driver that Triton finds here: that of the road that FOUNDRY_SPIRV_API names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .roads import chosen

if TYPE_CHECKING:
    # Classes that derive from it have the interface of this road.
    from .opencl import SpirvDriver
else:
    SpirvDriver = chosen()

__all__ = ["SpirvDriver"]
