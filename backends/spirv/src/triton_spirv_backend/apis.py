"""The roads to a device, and which of them Triton gets: OpenCL, or Vulkan.

Environment:
    FOUNDRY_SPIRV_API: `opencl` (the default) or `vulkan`.

A driver of Vulkan is active only where this variable asks for it: Triton refuses to choose between two backends that
are active, and on a machine with an NVIDIA GPU its own is active already.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from foundry_core.backend.compiler import without_collections
from foundry_core.backend.driver import SynchronousDriver

from .conflicts import API_VARIABLE, ApiError

NAMES = ("opencl", "vulkan")


def unavailable(api: str) -> ApiError | None:
    """Return why a road cannot be taken: it does not exist, or its Python packages are missing."""
    if api not in NAMES:
        return ApiError(
            f"there is no road {api!r} to a device", why=f"known: {', '.join(NAMES)}", next=f"set {API_VARIABLE}"
        )
    if api == "opencl" and find_spec("pyopencl") is None:
        return ApiError(
            "OpenCL cannot be used",
            why="the Python package pyopencl is not installed",
            next=f"pip install pyopencl, or use Vulkan: {API_VARIABLE}=vulkan",
        )
    return None


def api_driver(api: str) -> type[SynchronousDriver]:
    """Return the driver of a road.

    Raises:
        ApiError: see `unavailable`.
    """
    if error := unavailable(api):
        raise error
    with without_collections():
        if api == "vulkan":
            from .vulkan import VulkanDriver

            return VulkanDriver
        from .opencl import SpirvDriver

        return SpirvDriver


class AbsentDriver(SynchronousDriver):
    """Stands for a road that cannot be taken, so that `import triton` works and other backends are not disturbed."""

    @classmethod
    def is_active(cls) -> bool:
        """Return False.

        Raises:
            ApiError: the environment asks for a road that cannot be taken.
        """
        if os.environ.get(API_VARIABLE):
            api_driver(_named())
        return False

    @classmethod
    def inactive_reason(cls) -> str:
        return str(unavailable(_named()))

    def get_current_target(self) -> Any:
        raise ApiError("there is no device", why=self.inactive_reason())


def environment_driver() -> type[SynchronousDriver]:
    """Return the driver of the road that the environment names."""
    return AbsentDriver if unavailable(_named()) else api_driver(_named())


def _named() -> str:
    return os.environ.get(API_VARIABLE) or "opencl"
