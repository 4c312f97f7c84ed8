"""Launch kernels on a Vulkan device, and describe the device to Triton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foundry_core.driver import SynchronousDriver, handles
from foundry_core.launches import Grid, SynchronousLauncher
from foundry_core.ran import Ran
from foundry_core.vulkan.device import Pipeline, opened
from foundry_core.vulkan.launcher import Launcher
from foundry_core.vulkan.logging import logging
from triton.backends.compiler import GPUTarget

from .roads import refuse_two
from .simt import target


class VulkanLauncher(SynchronousLauncher[tuple[bytes, str]]):
    """Launches one compiled kernel."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._metadata = metadata
        self._launcher: Launcher | None = None

    def prepare(self, function: tuple[bytes, str]) -> None:
        if self._launcher is None:
            known, (binary, name) = self._metadata, function
            here = opened()
            pipeline = Pipeline(here, binary, name, known.argument_bytes, here.properties.subgroup)
            types = [*self.parameters.types, *["u64"] * (self.log is not None)]
            self._launcher = Launcher(here, pipeline, types, known.argument_offsets, known.written)

    def launch(self, grid: Grid, function: tuple[bytes, str], arguments: Sequence[Any]) -> None:
        assert self._launcher is not None
        with logging(opened(), self.log) as log:
            self._launcher(grid, [*arguments, *log])


class VulkanUtils:
    """Answers Triton's runtime about the device and its binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Describe the one device."""
        known = opened().properties
        return {
            "max_shared_mem": known.workgroup_bytes,
            "multiprocessor_count": 1,
            "sm_clock_rate": 0,
            "warpSize": known.subgroup,
        }

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Return the module and its name; it is compiled before the first launch."""
        return handles(kernel, (kernel, name), opened().properties.invocations)

    def unload_module(self, module: Any) -> None:
        """Do nothing."""


class VulkanDriver(SynchronousDriver):
    """The Vulkan device of a process, for Triton's runtime."""

    def __init__(self) -> None:
        super().__init__()
        self.launcher_cls = VulkanLauncher
        self.utils = VulkanUtils()

    @classmethod
    def is_active(cls) -> bool:
        """Return True: the environment asked for Vulkan. What it lacks is said at the first use.

        Raises:
            RoadError: another backend is active, and nothing chooses.
        """
        refuse_two()
        return True

    @classmethod
    def inactive_reason(cls) -> str:
        return ""

    def flushed(self) -> frozenset[str]:
        return opened().flushed()

    def get_current_target(self) -> GPUTarget:
        return target(opened().target(4))

    def ran(self) -> Ran:
        """Describe what launches run on, for reports."""
        return opened().ran()
