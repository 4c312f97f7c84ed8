"""Launch kernels on an OpenCL device, and describe the device to Triton.

Environment:
    FOUNDRY_SPIRV_DEVICE: the device to use: its number among all OpenCL devices, or a part of its name or of its
        platform's name. Default: the first device that accepts SPIR-V.
    FOUNDRY_SPIRV_MEMORY: how kernels access the caller's arrays, `svm` or `buffer` (see foundry_core.runtime.opencl).
        Default: zero-copy if the device supports it, else buffers.
    FOUNDRY_SPIRV_MAPPING: what executes a program: `workitem`, or `simt`, a workgroup (see simt.py). Default: `simt` on
        a GPU, `workitem` on any other device.

A launch returns when the kernel has finished. Arguments may be foundry_core.tensor.Tensor (NumPy), torch CPU tensors,
or anything with `data_ptr`, `dtype` and `untyped_storage`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foundry_core.backend.driver import OpenCLDriver
from foundry_core.mapping.base.target import WorkItemTarget
from foundry_core.once import once
from foundry_core.runtime.launches import Grid, SynchronousLauncher
from foundry_core.runtime.opencl import (
    DeviceError,
    MemoryMode,
    OpenCLDevice,
    OpenCLLauncher,
    find,
    inactive_reason,
    is_gpu,
    work_item_target,
)
from triton.backends.compiler import GPUTarget

from .compiler import target

if TYPE_CHECKING:
    import pyopencl as cl
    from foundry_core.packed.roads import Road

DEVICE_VARIABLE = "FOUNDRY_SPIRV_DEVICE"
MEMORY_VARIABLE = "FOUNDRY_SPIRV_MEMORY"
MAPPING_VARIABLE = "FOUNDRY_SPIRV_MAPPING"
_MAPPINGS = ("workitem", "simt")


def choose_device() -> cl.Device:
    """Return the device that the environment selects.

    Raises:
        DeviceError: there is no such device; the message lists the available devices.
    """
    return find(os.environ.get(DEVICE_VARIABLE, ""), variable=DEVICE_VARIABLE)


@once
def open_device() -> OpenCLDevice:
    """Return the device that the environment selects. Each process opens it once.

    Raises:
        DeviceError: there is no such device, or it does not support what the environment asks for.
    """
    memory = os.environ.get(MEMORY_VARIABLE, "")
    if memory and memory not in list(MemoryMode):
        raise DeviceError(
            f"{MEMORY_VARIABLE}={memory} is not a memory mode", why=f"the modes are {' and '.join(MemoryMode)}"
        )
    return OpenCLDevice(choose_device(), MemoryMode(memory) if memory else None)


def is_simt(device: cl.Device) -> bool:
    """Return whether a workgroup executes each program.

    Raises:
        DeviceError: the environment names a mapping that there is not.
    """
    mapping = os.environ.get(MAPPING_VARIABLE) or _MAPPINGS[is_gpu(device)]
    if mapping not in _MAPPINGS:
        raise DeviceError(
            f"{MAPPING_VARIABLE}={mapping} is not a mapping", why=f"the mappings are {' and '.join(_MAPPINGS)}"
        )
    return mapping == "simt"


class SpirvLauncher(SynchronousLauncher[tuple[Any, str]]):
    """Launches one compiled kernel on the OpenCL device."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._launcher: OpenCLLauncher | None = None
        # A program is one work-item unless its compiler says otherwise.
        self._threads = getattr(metadata, "threads", 1)
        self._tables = getattr(metadata, "tables", int(self.log is not None))

    def prepare(self, function: tuple[Any, str]) -> None:
        if self._launcher is None:
            self._launcher = open_device().launcher(
                *function,
                self.parameters.types,
                threads=self._threads,
                tables=self._tables,
                addresses=self.addresses,
            )

    def launch(self, grid: Grid, function: tuple[Any, str], arguments: Sequence[Any]) -> None:
        assert self._launcher is not None
        with open_device().logging(self.log) as tables:
            self._launcher(grid, arguments, [*tables, *[open_device().spare] * (self._tables - len(tables))])


class SpirvDriver(OpenCLDriver):
    """The OpenCL device of a process, for Triton's runtime."""

    def __init__(self) -> None:
        # A program is one work-item.
        super().__init__(warp_size=1)
        self.launcher_cls = SpirvLauncher

    def device(self) -> OpenCLDevice:
        return open_device()

    @classmethod
    def inactive_reason(cls) -> str:
        return inactive_reason(choose_device)

    def road(self) -> Road:
        """Return how kernels are packed."""
        from foundry_core.packed.roads import OpenCLRoad

        return OpenCLRoad()

    def get_current_target(self) -> GPUTarget:
        try:
            opened = open_device().cl
        except DeviceError:
            # Triton calls this without a device only in compile-only mode. Any target will do then.
            return target(WorkItemTarget())
        if is_simt(opened):
            return target(open_device().simt_target())
        return target(work_item_target(opened))
