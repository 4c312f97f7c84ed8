"""What the drivers of all plugins have in common: one device, launches that have finished when they return."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import triton
from triton.backends.driver import DriverBase

from .clock import DeviceInterface, cache_filler
from .tensor import Tensor

if TYPE_CHECKING:
    import torch

# Of a kernel's parameters, as its binary has them: i1 as a byte, 16-bit floats as their bits.
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


def handles(module: Any, function: Any, most_threads: int) -> tuple[Any, ...]:
    """What a driver's load_binary returns: module, function, registers, spills, the most threads a program may have.

    Triton checks num_warps against the last; releases without triton.knobs, 3.2 among them, do not, and do not take it.
    """
    known = (module, function, 0, 0)
    return (*known, most_threads) if hasattr(triton, "knobs") else known


class SynchronousDriver(DriverBase):  # type: ignore[misc]
    """The one device of a process, as Triton's runtime sees it; what is the same whatever the device is.

    Attributes:
        pointer: C's type of a kernel parameter that is a pointer.
    """

    pointer = "void*"

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
        """C's type of a kernel parameter, for Triton's ahead-of-time tools."""
        return self.pointer if ty.startswith("*") else _C_TYPES[ty]

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
