"""The common base of all plugins' drivers: one device, as Triton's runtime sees it."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
from triton.backends.driver import DriverBase

from .. import scalars
from ..checked import VARIABLE as CHECK_VARIABLE
from ..checked import memory
from ..tensor import Tensor

# `crash` is imported before PoCL, which changes what signals do.
from ..triton_hooks import clock, registration
from ..triton_hooks.registration import When

if TYPE_CHECKING:
    import torch

    from ..runtime.device_report import DeviceReport
    from ..runtime.opencl import OpenCLDevice

# At the import of a plugin, which is before a user can make a descriptor, or import a profiler.
registration.install(When.DRIVER)
# Before a user can make an array. A wrong value of the variable is refused at the first launch.
if os.environ.get(CHECK_VARIABLE, "") not in ("", "0"):
    memory.install()


def binary_info(module: Any, function: Any, most_threads: int) -> tuple[Any, ...]:
    """Return what Triton expects of load_binary: module, function, registers, spills, maximum threads of a program.

    The registers are not known. One is what scripts can divide by, see `properties`. Triton checks num_warps against
    the maximum. Releases without triton.knobs, such as 3.2, do not check it and expect the first four values only.
    """
    known = (module, function, 1, 0)
    return (*known, most_threads) if hasattr(triton, "knobs") else known


def properties(*, shared: int, units: int, clock: int, warp: int, threads: int) -> dict[str, int]:
    """Describe a device as Triton's own drivers do, for get_device_properties.

    Scripts compute from it how many programs the device executes at a time, and launch no more. With the registers of a
    GPU here, and one register for each kernel, its registers are never what limits them.

    Args:
        shared: bytes of memory that a program's work-items share.
        units: compute units.
        clock: in kHz; 0 if it is not known.
        warp: work-items of a warp.
        threads: work-items that a compute unit executes at a time.
    """
    return {
        "max_shared_mem": shared,
        "max_num_regs": 1 << 16,
        "multiprocessor_count": units,
        "sm_clock_rate": clock,
        "warpSize": warp,
        "max_threads_per_sm": threads,
    }


class SynchronousDriver(DriverBase):  # type: ignore[misc]
    """The one device of a process as Triton's runtime sees it, with everything that does not depend on the device.

    Attributes:
        pointer: the C type of a pointer parameter of a kernel.
        utils: answers Triton's runtime about devices and binaries: get_device_properties, load_binary, unload_module.
        launcher_cls: called with Triton's source object and the metadata; returns the launcher of a compiled kernel.
        loads_in_threads: whether several threads may load kernels at the same time.
    """

    pointer = "void*"
    utils: Any
    launcher_cls: Callable[[Any, Any], Any]
    loads_in_threads = False

    @classmethod
    def is_active(cls) -> bool:
        """Return whether kernels can run here."""
        return not cls.inactive_reason()

    @classmethod
    @abstractmethod
    def inactive_reason(cls) -> str:
        """Return why is_active() is false, or ""; Triton's error prints it, see triton_hooks/drivers.py."""

    def flushed(self) -> frozenset[str]:
        """Return the float types whose subnormal numbers may be zeros in arithmetic and comparisons, such as f32.

        What only moves numbers keeps them: loads, stores, selections, conversions of layouts and bits.
        """
        return frozenset()

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is one device, and the environment chooses it."""

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[Any]:
        return clock.DeviceInterface

    def as_tensor(self, argument: Any) -> Any:
        """Return the Tensor over an array, for Triton's autotuner; any other argument as it is."""
        return Tensor(argument) if isinstance(argument, np.ndarray) else argument

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the C type of a kernel parameter, for Triton's ahead-of-time tools.

        Raises:
            ScalarTypeError: a kernel cannot take a number of this type.
        """
        return self.pointer if ty.startswith("*") else scalars.passed(ty).c_type

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton.testing import do_bench

        return do_bench  # type: ignore[no-any-return]

    def cache_bytes(self) -> int:
        """Return the size of the cache that one measurement could leave warm for the next; 0 for none."""
        return 0

    def get_empty_cache_for_benchmark(self) -> Tensor:
        return Tensor(clock.cache_filler(self.cache_bytes()))

    def clear_cache(self, cache: Tensor) -> None:
        cache.zero_()

    def samples(self, call: Callable[[], object], **how: Any) -> list[float]:
        """Return the times of single calls in milliseconds, for triton.testing: see clock.samples."""
        return clock.samples(self, call, **how)


class OpenCLUtils:
    """Answers Triton's runtime about an OpenCL device and its binaries.

    Args:
        open_device: returns the device, the same one each time.
        warp_size: work-items that Triton treats as a warp.
    """

    def __init__(self, open_device: Callable[[], OpenCLDevice], warp_size: int) -> None:
        self._open_device = open_device
        self._warp_size = warp_size

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Describe the one device."""
        opened = self._open_device().cl
        return properties(
            shared=opened.local_mem_size,
            units=opened.max_compute_units,
            clock=opened.max_clock_frequency * 1000,
            warp=self._warp_size,
            threads=opened.max_work_group_size,
        )

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Build the module on the device.

        Returns:
            see `binary_info`. The function is the program and the name of a kernel in it; the launcher knows the
            kernel's parameters.
        """
        opened = self._open_device()
        program = opened.build(kernel)
        return binary_info(program, (program, name), opened.cl.max_work_group_size)

    def unload_module(self, module: Any) -> None:
        """Do nothing: PyOpenCL releases a program with its last reference."""


class OpenCLDriver(SynchronousDriver):
    """A driver of an OpenCL device. A plugin implements `device`.

    Args:
        warp_size: see OpenCLUtils.
    """

    # OpenCL's calls may be made by several threads, except those that set a kernel's arguments.
    loads_in_threads = True

    def __init__(self, warp_size: int) -> None:
        super().__init__()
        self.utils = OpenCLUtils(self.device, warp_size)

    @abstractmethod
    def device(self) -> OpenCLDevice:
        """Return the device; a process opens it once."""

    def device_report(self) -> DeviceReport:
        """Describe what launches run on, for reports."""
        return self.device().device_report()

    def cache_bytes(self) -> int:
        return int(self.device().cl.global_mem_cache_size)
