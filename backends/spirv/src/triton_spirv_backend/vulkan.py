"""Launch kernels on a Vulkan device, and describe the device to Triton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from foundry_core.backend.driver import SynchronousDriver, binary_info, properties
from foundry_core.runtime import launches
from foundry_core.runtime.device_report import DeviceReport
from foundry_core.runtime.launches import MOST_PROGRAMS, Grid, GridError, SynchronousLauncher
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.device import Direct, Pipeline, opened
from foundry_core.vulkan.launcher import PipelineLauncher, logging
from foundry_core.vulkan.library import VulkanError
from foundry_core.vulkan.timing import VulkanInterface
from triton.backends.compiler import GPUTarget

from .compiler import target
from .conflicts import refuse_two

if TYPE_CHECKING:
    from foundry_core.packed.roads import Road


class VulkanLauncher(SynchronousLauncher[tuple[bytes, str]]):
    """Launches one compiled kernel."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._metadata = metadata
        code = getattr(getattr(getattr(src, "fn", None), "fn", None), "__code__", None)
        self._place = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
        self._launcher: PipelineLauncher | None = None
        # A kernel that makes pointers of numbers may get those that CUDA gave, which mean nothing to Vulkan.
        self.parameters.adopt = None if self.addresses else DeviceTensor.over
        self._positions = self.parameters.positions() if self.log is None else None
        self._direct: Direct | None = None

    def __call__(self, *arguments: Any) -> None:
        # The way of most launches: no hooks, no profile, arrays of the device only. All else takes the common way.
        if (
            self._launcher is None
            or self._direct is None
            or launches.observer is not None
            or not self._device.launch_directly(self._launcher.pipeline, self._direct, arguments)
        ):
            super().__call__(*arguments)

    def prepare(self, function: tuple[bytes, str]) -> None:
        if self._launcher is None:
            known, (binary, name) = self._metadata, function
            self._device = here = opened()
            pipeline = Pipeline(here, binary, name, known.argument_bytes, here.properties.subgroup, self._place)
            types = [*self.parameters.types, *["u64"] * (self.log is not None)]
            self._launcher = PipelineLauncher(here, pipeline, types, known.argument_offsets, self.parameters.outputs)
            self._direct = None if self._positions is None else self._launcher.direct(self._positions)
            self._most = (MOST_PROGRAMS, *here.properties.grid[1:])

    def launch(self, grid: Grid, function: tuple[bytes, str], arguments: Sequence[Any]) -> None:
        assert self._launcher is not None
        if any(side > most for side, most in zip(grid, self._most, strict=True)):
            raise GridError(
                f"kernel {self._metadata.name} is launched on a grid of {' x '.join(map(str, grid))} programs",
                why=f"{opened().name} takes {' x '.join(map(str, self._most))}",
                next="use the first axis for the largest extent",
            )
        if self.addresses:
            self._refuse_copies(arguments)
        with logging(opened(), self.log) as log:
            self._launcher(grid, [*arguments, *log])

    def wait(self) -> None:
        opened().wait()

    def described(self) -> dict[str, Any]:
        assert self._launcher is not None
        here = opened()
        return {
            "statistics": self._launcher.pipeline.describe(),
            "chosen": self._metadata.fitted,
            "hopes": self._metadata.hopes,
            "names": self.parameters.names,
            "workgroup_limit": here.properties.workgroup_bytes,
            "subgroup": here.properties.subgroup,
            "matrices": sorted({fragment.factor for fragment in here.target().fragments}),
        }

    def _refuse_copies(self, arguments: Sequence[Any]) -> None:
        """Refuse arrays of the host for a kernel that makes pointers of numbers.

        Raises:
            VulkanError: an argument is such an array.
        """
        if any(not isinstance(arguments[i], DeviceTensor) for i in self.parameters.pointers):
            raise VulkanError(
                f"kernel {self._metadata.name} makes pointers of numbers, which {opened().name} cannot follow",
                why="data_ptr() of an array of the host is an address of the host, and a launch copies the array",
                next="pass each array as a separate argument, or all of them as DeviceTensor "
                "(foundry_core.vulkan.array)",
            )


class VulkanUtils:
    """Answers Triton's runtime about the device and its binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Describe the one device."""
        known = opened().properties
        return properties(
            shared=known.workgroup_bytes, units=1, clock=0, warp=known.subgroup, threads=known.invocations
        )

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Return the module and its name; it is compiled before the first launch."""
        return binary_info(kernel, (kernel, name), opened().properties.invocations)

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
            ApiError: another backend is active, and nothing chooses.
        """
        refuse_two(cls, VulkanDriver)
        return True

    @classmethod
    def inactive_reason(cls) -> str:
        return ""

    def road(self) -> Road:
        """Return how kernels are packed."""
        from foundry_core.packed.vulkan_road import VulkanRoad

        return VulkanRoad()

    def flushed(self) -> frozenset[str]:
        return opened().flushed()

    def get_current_target(self) -> GPUTarget:
        return target(opened().target())

    def get_device_interface(self) -> type[VulkanInterface]:
        return VulkanInterface

    def get_empty_cache_for_benchmark(self) -> DeviceTensor:
        return DeviceTensor(self.cache_bytes() // 4, np.int32)

    def cache_bytes(self) -> int:
        # Vulkan does not tell. Triton's own drivers clear as much for any GPU.
        return 256 << 20

    def device_report(self) -> DeviceReport:
        """Describe what launches run on, for reports."""
        return opened().device_report()
