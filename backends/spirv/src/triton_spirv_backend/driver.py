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
from foundry_core.clock import DeviceInterface, cache_filler
from foundry_core.opencl import Device, DeviceError, Launcher, Memory, find
from foundry_core.ran import Ran
from foundry_core.workitem.target import WorkItemTarget
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from .compiler import target

if TYPE_CHECKING:
    import pyopencl as cl
    import torch

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

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """Build the module on the device.

        Returns:
            module, function, registers, spills and the most threads a program may have; Triton checks num_warps against
            the last. A function is the program and the name of a kernel in it: what its parameters are, the launcher
            knows.
        """
        opened = open_device()
        program = opened.build(kernel)
        return program, (program, name), 0, 0, opened.cl.max_work_group_size

    def unload_module(self, module: Any) -> None:
        """PyOpenCL releases a program with its last reference."""


class SpirvLauncher:
    """Launches one compiled kernel: picks what is passed out of what the user gave."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self._parameters = Parameters(src, metadata.name)
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


class SpirvDriver(DriverBase):  # type: ignore[misc]
    """The one OpenCL device of a process, as Triton's runtime sees it."""

    launcher_cls = SpirvLauncher

    def __init__(self) -> None:
        super().__init__()
        self.utils = SpirvUtils()

    @staticmethod
    def is_active() -> bool:
        """Whether there is a device that kernels can run on."""
        try:
            choose_device()
        except DeviceError:
            return False
        return True

    @classmethod
    def inactive_reason(cls) -> str:
        """Why is_active() is false; a Triton with this project's patches says it in its error."""
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
        is_pocl = opened.platform.name == "Portable Computing Language"
        return target(WorkItemTarget(4 * opened.native_vector_width_float, llvm_intrinsics=is_pocl))

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device; FOUNDRY_SPIRV_DEVICE chooses it."""

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[DeviceInterface]:
        return DeviceInterface

    def map_python_to_cpp_type(self, ty: str) -> str:
        """C's type of a kernel parameter, for Triton's ahead-of-time tools."""
        return "void*" if ty.startswith("*") else _C_TYPES[ty]

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton.testing import do_bench

        return do_bench  # type: ignore[no-any-return]

    def get_empty_cache_for_benchmark(self) -> Any:
        return cache_filler(open_device().cl.global_mem_cache_size)

    def clear_cache(self, cache: Any) -> None:
        cache.fill(0)


_C_TYPES = {
    "i1": "int8_t",
    "u1": "int8_t",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "fp64": "double",
}
