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

import triton
from foundry_core.driver import BACKEND_VARIABLE, SynchronousDriver, reads_variable
from foundry_core.failure import Failure

API_VARIABLE = "FOUNDRY_SPIRV_API"
NAMES = ("opencl", "vulkan")


class RoadError(Failure):
    """No road to a device, or Triton could not choose it."""


def missing(api: str) -> RoadError | None:
    """Return why a road cannot be taken: it does not exist, or its Python packages are missing."""
    if api not in NAMES:
        return RoadError(
            f"there is no road {api!r} to a device", why=f"known: {', '.join(NAMES)}", next=f"set {API_VARIABLE}"
        )
    if api == "opencl" and find_spec("pyopencl") is None:
        return RoadError(
            "OpenCL cannot be used",
            why="the Python package pyopencl is not installed",
            next=f"pip install pyopencl, or use Vulkan: {API_VARIABLE}=vulkan",
        )
    return None


def road(api: str) -> type[SynchronousDriver]:
    """Return the driver of a road.

    Raises:
        RoadError: see `missing`.
    """
    if error := missing(api):
        raise error
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
            RoadError: the environment asks for a road that cannot be taken.
        """
        if os.environ.get(API_VARIABLE):
            road(_named())
        return False

    @classmethod
    def inactive_reason(cls) -> str:
        return str(missing(_named()))

    def get_current_target(self) -> Any:
        raise RoadError("there is no device", why=self.inactive_reason())


def chosen() -> type[SynchronousDriver]:
    """Return the driver of the road that the environment names."""
    return AbsentDriver if missing(_named()) else road(_named())


def _named() -> str:
    return os.environ.get(API_VARIABLE) or "opencl"


def refuse_two(driver: type[SynchronousDriver]) -> None:
    """Refuse to be one of two active backends, which Triton does not choose between.

    Triton's own message names classes and no remedy.

    Args:
        driver: the one that Triton asks, of Vulkan or derived from that. Another of these is as active as this one.

    Raises:
        RoadError: another backend is active, and nothing chooses.
    """
    if os.environ.get(BACKEND_VARIABLE) and reads_variable():
        return
    vulkan = road("vulkan")
    others = [
        name
        for name, each in triton.backends.backends.items()
        if each.driver is not driver and (vulkan in getattr(each.driver, "__mro__", ()) or each.driver.is_active())
    ]
    if not others:
        return
    chooses = f"set {BACKEND_VARIABLE}=spirv, or " if reads_variable() else ""
    ignores = "" if reads_variable() else f", and this release does not read {BACKEND_VARIABLE}"
    raise RoadError(
        f"{API_VARIABLE}=vulkan asks for Vulkan, and Triton's backend {', '.join(others)} is active, too",
        why=f"Triton {triton.__version__} needs exactly one active backend{ignores}",
        next=f"{chooses}call triton_spirv_backend.activate() before the first launch, or hide the other backend's "
        "device, such as by CUDA_VISIBLE_DEVICES= for CUDA",
    )
