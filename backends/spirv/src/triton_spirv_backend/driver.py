"""Chooses the road to the device: OpenCL, or Vulkan.

Environment:
    FOUNDRY_SPIRV_API: `opencl` (the default) or `vulkan`.
"""

from __future__ import annotations

import os

if os.environ.get("FOUNDRY_SPIRV_API") == "vulkan":
    from .vulkan import VulkanDriver as SpirvDriver
else:
    from .opencl import SpirvDriver

__all__ = ["SpirvDriver"]
