"""The two backends of Triton that take turns in one process, and torch: arrays, events, and which one is active.

A kernel is a triton.jit of its own for each backend, since Triton keeps what it compiled by the device's number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import triton


class Backend:
    """A driver of Triton with its arrays.

    Attributes:
        name: in reports.
        driver: set active before launches.
    """

    name: str
    driver: Any

    def __init__(self) -> None:
        self._kernels: dict[Callable[..., None], Any] = {}

    def use(self) -> None:
        """Make Triton launch on this backend."""
        triton.runtime.driver.set_active(self.driver)

    def jit(self, function: Callable[..., None]) -> Any:
        """Return the kernel for this backend."""
        if function not in self._kernels:
            self._kernels[function] = triton.jit(function)
        return self._kernels[function]

    def put(self, array: npt.NDArray[Any]) -> Any:
        """Copy an array to the device."""
        raise NotImplementedError

    def poisoned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array on the device, of NaN."""
        return self.put(np.full(shape, np.nan, dtype))

    def numpy(self, array: Any) -> npt.NDArray[Any]:
        """Copy an array from the device, after all launches."""
        raise NotImplementedError

    def event(self) -> Any:
        """Return an event that takes the time, recorded now."""
        event = self.driver.get_device_interface().Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        """Wait for all launches."""
        self.driver.get_device_interface().synchronize()

    def described(self) -> dict[str, str]:
        """Return the device and its driver, for reports."""
        raise NotImplementedError

    def compiled(self, kernel: Any) -> dict[str, float]:
        """Return what the device's compiler says of a kernel, such as its registers."""
        return {}


class Vulkan(Backend):
    """Our backend, on the Vulkan device that the environment names."""

    name = "Triton, Vulkan"

    def __init__(self) -> None:
        super().__init__()
        from triton_spirv_backend.vulkan import VulkanDriver

        self.driver = VulkanDriver()

    def put(self, array: npt.NDArray[Any]) -> Any:
        from foundry_core.vulkan.array import DeviceTensor

        return DeviceTensor.from_numpy(array)

    def poisoned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        from foundry_core.vulkan.array import DeviceTensor

        return DeviceTensor(shape, dtype).poison_()

    def numpy(self, array: Any) -> npt.NDArray[Any]:
        return array.numpy()  # type: ignore[no-any-return]

    def described(self) -> dict[str, str]:
        return dict(self.driver.device_report().as_dict())


class Cuda(Backend):
    """Triton's CUDA backend, with torch's tensors. torch itself is a peer, too."""

    name = "Triton, CUDA"

    def __init__(self) -> None:
        super().__init__()
        import torch
        from triton.backends import backends

        if not torch.cuda.is_available():
            raise RuntimeError("torch has no CUDA device")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        self.torch = torch
        self.driver = backends["nvidia"].driver()

    def put(self, array: npt.NDArray[Any]) -> Any:
        return self.torch.from_numpy(array).cuda()

    def numpy(self, array: Any) -> npt.NDArray[Any]:
        return array.cpu().numpy()  # type: ignore[no-any-return]

    def described(self) -> dict[str, str]:
        major, minor = self.torch.cuda.get_device_capability()
        return {
            "device": self.torch.cuda.get_device_name(),
            "capability": f"{major}.{minor}",
            "torch": self.torch.__version__,
            "CUDA": str(self.torch.version.cuda),
        }

    def compiled(self, kernel: Any) -> dict[str, float]:
        return {"registers": kernel.n_regs, "spills": kernel.n_spills}


class OpenCL(Backend):
    """Our backend on OpenCL: where there is no CUDA, it stands for the peer, to try that backends can take turns."""

    name = "Triton, OpenCL"

    def __init__(self) -> None:
        super().__init__()
        from triton_spirv_backend.opencl import SpirvDriver

        self.driver = SpirvDriver()

    def put(self, array: npt.NDArray[Any]) -> Any:
        from foundry_core import Tensor

        return Tensor(array.copy())

    def numpy(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(array.numpy())

    def described(self) -> dict[str, str]:
        return dict(self.driver.device_report().as_dict())


def peer(name: str) -> Backend | None:
    """Return the peer's backend, or None.

    Args:
        name: cuda, opencl or none.
    """
    return {"cuda": Cuda, "opencl": OpenCL}[name]() if name != "none" else None
