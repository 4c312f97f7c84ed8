"""Launches kernels on an OpenCL device; Triton's view of the device.

Environment:
    FOUNDRY_SPIRV_DEVICE: the device to use, by its number among all OpenCL devices or by a part of its or its
        platform's name. Without it: the first one that takes SPIR-V.
    FOUNDRY_SPIRV_MEMORY: how kernels reach the caller's arrays, `svm` or `buffer` (see foundry_core.opencl). Without
        it: zero-copy where the device allows, else buffers.

A launch returns when the kernel has finished. Arguments may be foundry_core.tensor.Tensor (NumPy), torch CPU tensors,
or anything with `data_ptr`, `dtype` and `untyped_storage`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from foundry_core.arguments import Parameters
from foundry_core.driver import SynchronousDriver, handles
from foundry_core.opencl import Device, DeviceError, Launcher, Memory, call_bytes, find, has_fma, is_pocl
from foundry_core.ran import Ran
from foundry_core.workitem.target import WorkItemTarget
from triton.backends.compiler import GPUTarget

from .compiler import target

if TYPE_CHECKING:
    import pyopencl as cl

DEVICE_VARIABLE = "FOUNDRY_SPIRV_DEVICE"
MEMORY_VARIABLE = "FOUNDRY_SPIRV_MEMORY"


def choose_device() -> cl.Device:
    """The device that the environment names.

    Raises:
        DeviceError: there is none; lists what there is.
    """
    return find(os.environ.get(DEVICE_VARIABLE, ""), variable=DEVICE_VARIABLE)


@functools.cache
def open_device() -> Device:
    """The device that the environment names, opened once a process.

    Raises:
        DeviceError: there is none, or it cannot do what the environment asks.
    """
    memory = os.environ.get(MEMORY_VARIABLE, "")
    if memory and memory not in list(Memory):
        raise DeviceError(f"{MEMORY_VARIABLE}={memory} is no memory mode", why=f"the modes are {' and '.join(Memory)}")
    return Device(choose_device(), Memory(memory) if memory else None)


class SpirvUtils:
    """What Triton's runtime asks of a driver about devices and binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Of the one device; shared memory and registers mean nothing to programs that are single work-items."""
        opened = open_device().cl
        return {
            "max_shared_mem": opened.local_mem_size,
            "multiprocessor_count": opened.max_compute_units,
            "sm_clock_rate": opened.max_clock_frequency * 1000,
            "warpSize": 1,
        }

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Build the module on the device.

        Returns:
            what foundry_core.driver.handles does. A function is the program and the name of a kernel in it: what its
            parameters are, the launcher knows.
        """
        opened = open_device()
        program = opened.build(kernel)
        return handles(program, (program, name), opened.cl.max_work_group_size)

    def unload_module(self, module: Any) -> None:
        """PyOpenCL releases a program with its last reference."""


class SpirvLauncher:
    """Launches one compiled kernel: picks what is passed out of what the user gave."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self._parameters = Parameters(src, metadata.name, metadata.written)
        self._launcher: Launcher | None = None

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: tuple[Any, str],
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        launcher = self._launcher
        if launcher is None:
            launcher = self._launcher = open_device().launcher(*function, self._parameters.types)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        launcher((x, y, z), self._parameters.pick(arguments))
        if exit_hook is not None:
            exit_hook(launch_metadata)


class SpirvDriver(SynchronousDriver):
    """The one OpenCL device of a process, as Triton's runtime sees it."""

    launcher_cls = SpirvLauncher

    def __init__(self) -> None:
        super().__init__()
        self.utils = SpirvUtils()

    @classmethod
    def inactive_reason(cls) -> str:
        try:
            choose_device()
        except DeviceError as error:
            return str(error)
        return ""

    def ran(self) -> Ran:
        """What launches run on, for reports."""
        return open_device().ran()

    def get_current_target(self) -> GPUTarget:
        try:
            opened = open_device().cl
        except DeviceError:
            # Only in compile-only mode does Triton get here without a device: any one will do.
            return target(WorkItemTarget())
        vector_bytes = 4 * opened.native_vector_width_float
        # Without the instruction, LLVM calls C's fma instead: right, and slow.
        intrinsics = is_pocl(opened) and has_fma(opened)
        return target(WorkItemTarget(vector_bytes, intrinsics, min(vector_bytes, call_bytes(opened))))

    def cache_bytes(self) -> int:
        return int(open_device().cl.global_mem_cache_size)
