"""What the drivers of all plugins share: one device, launches that have finished when they return."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import triton
from triton.backends.driver import DriverBase

from . import scalars
from .arguments import Parameters
from .clock import DeviceInterface, cache_filler
from .tensor import Tensor

if TYPE_CHECKING:
    import torch

    from .opencl import Device
    from .ran import Ran

Grid = tuple[int, int, int]
Function = TypeVar("Function")


def handles(module: Any, function: Any, most_threads: int) -> tuple[Any, ...]:
    """Return what Triton expects of load_binary: module, function, registers, spills, most threads of a program.

    Triton checks num_warps against the last; releases without triton.knobs, 3.2 among them, do not, and do not take it.
    """
    known = (module, function, 0, 0)
    return (*known, most_threads) if hasattr(triton, "knobs") else known


class SynchronousDriver(DriverBase):  # type: ignore[misc]
    """The one device of a process, as Triton's runtime sees it; what is the same whatever the device is.

    Attributes:
        pointer: C's type of a kernel parameter that is a pointer.
        utils: what Triton's runtime asks about devices and binaries: get_device_properties, load_binary, unload_module.
        launcher_cls: called with Triton's source object and the metadata, it returns what launches a compiled kernel.
    """

    pointer = "void*"
    utils: Any
    launcher_cls: Callable[[Any, Any], Any]

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels can run here."""
        return not cls.inactive_reason()

    @classmethod
    @abstractmethod
    def inactive_reason(cls) -> str:
        """Why is_active() is false, or ""; a Triton with this project's patches says it in its error."""

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device; the environment chooses it."""

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[DeviceInterface]:
        return DeviceInterface

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return C's type of a kernel parameter, for Triton's ahead-of-time tools.

        Raises:
            ScalarTypeError: a kernel cannot take such a number.
        """
        return self.pointer if ty.startswith("*") else scalars.passed(ty).c_type

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton.testing import do_bench

        return do_bench  # type: ignore[no-any-return]

    def cache_bytes(self) -> int:
        """Size of the cache that a measurement could leave warm for the next; 0 for none."""
        return 0

    def get_empty_cache_for_benchmark(self) -> Tensor:
        return Tensor(cache_filler(self.cache_bytes()))

    def clear_cache(self, cache: Tensor) -> None:
        cache.zero_()


class SynchronousLauncher(Generic[Function]):
    """Launches one compiled kernel, in the form in which Triton's runtime calls it. A plugin adds `launch`.

    Args:
        src: Triton's source object.
        metadata: of the compiled kernel: its name, which arguments it writes, and what the plugin's compiler added.
    """

    def __init__(self, src: Any, metadata: Any) -> None:
        self.parameters = Parameters(src, metadata.name, metadata.written)

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: Function,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        self.prepare(function)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if x > 0 and y > 0 and z > 0:
            self.launch((x, y, z), function, self.parameters.pick(arguments))
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def prepare(self, function: Function) -> None:
        """Get ready before the hooks of a launch, which measure time; called at every launch, an empty one too."""

    def launch(self, grid: Grid, function: Function, arguments: Sequence[Any]) -> None:
        """Run the kernel to its end.

        Args:
            grid: programs along x, y and z, each at least 1.
            function: what the driver's load_binary returned as the function.
            arguments: those that are passed to the kernel: a tensor for each pointer, a number for each scalar.
        """
        raise NotImplementedError


class OpenCLUtils:
    """What Triton's runtime asks of a driver about an OpenCL device and its binaries.

    Args:
        open_device: returns the device, the same one each time.
        warp_size: work-items that Triton is to regard as a warp.
    """

    def __init__(self, open_device: Callable[[], Device], warp_size: int) -> None:
        self._open_device = open_device
        self._warp_size = warp_size

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Describe the one device."""
        opened = self._open_device().cl
        return {
            "max_shared_mem": opened.local_mem_size,
            "multiprocessor_count": opened.max_compute_units,
            "sm_clock_rate": opened.max_clock_frequency * 1000,
            "warpSize": self._warp_size,
        }

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Build the module on the device.

        Returns:
            see `handles`. The function is the program and the name of a kernel in it; the launcher knows the kernel's
            parameters.
        """
        opened = self._open_device()
        program = opened.build(kernel)
        return handles(program, (program, name), opened.cl.max_work_group_size)

    def unload_module(self, module: Any) -> None:
        """PyOpenCL releases a program with its last reference."""


class OpenCLDriver(SynchronousDriver):
    """A driver whose device is an OpenCL device. A plugin adds `device`.

    Args:
        warp_size: see OpenCLUtils.
    """

    def __init__(self, warp_size: int) -> None:
        super().__init__()
        self.utils = OpenCLUtils(self.device, warp_size)

    @abstractmethod
    def device(self) -> Device:
        """Return the device, opened once a process."""

    def ran(self) -> Ran:
        """Describe what launches run on, for reports."""
        return self.device().ran()

    def cache_bytes(self) -> int:
        return int(self.device().cl.global_mem_cache_size)
