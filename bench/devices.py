"""The devices that Triton launches on, with their arrays and clocks; and torch on the same devices."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import triton

from .problem import TYPES, Array, Problem
from .turns import Candidate, Candidates, Device, Plan

Options = Mapping[str, Any]
# Calls that are recorded to find what bounds their kernels.
_RECORDED = 3


def by(values: Any) -> str:
    """Return the sizes of a block as text."""
    return "x".join(map(str, values))


def blocks(*sizes: Sequence[int], names: Sequence[str] = ("BM", "BN", "BK")) -> dict[str, Options]:
    """Return launch options by label, for a kernel whose block has several sizes."""
    return {f"block {by(size)}": dict(zip(names, size, strict=False)) for size in sizes}


def driver_of(target: str) -> Any:
    return triton.backends.backends[target].driver()


class Triton(Device):
    """A driver of Triton that uses the caller's arrays.

    Args:
        name: in reports.
        driver: a driver of Triton. If None, the active one is used. If several drivers take turns, each needs its own
            triton.jit of a kernel, because Triton stores compiled kernels by the number of the device.
    """

    plan = Plan()

    def __init__(self, name: str = "Triton", driver: Any = None) -> None:
        self.name, self._several = name, driver is not None
        self.driver = driver or triton.runtime.driver.active
        self._kernels: dict[Any, Any] = {}

    def use(self) -> None:
        if self._several:
            triton.runtime.driver.set_active(self.driver)

    def jit(self, kernel: Any) -> Any:
        if not self._several:
            return kernel
        if kernel not in self._kernels:
            self._kernels[kernel] = triton.jit(kernel.fn)
        return self._kernels[kernel]

    def put(self, array: Array) -> Any:
        from foundry_core.tensor import Tensor

        return Tensor(array)

    def candidates(self, problem: Problem, configs: Mapping[str, Options]) -> Candidates:
        arrays = [self.put(array) for array in (*problem.inputs, problem.output)]
        output = problem.output if type(self) is Triton else arrays[-1]
        return {
            label: Candidate(partial(problem.launch, self.jit, *arrays, **options), self, output)
            for label, options in configs.items()
        }

    def described(self) -> str:
        return str(self.driver.device_report())


class _Gpu(Triton):
    """A device with its own memory. Its events measure the time."""

    refuses = True

    def seconds(self, call: Any, calls: int) -> float:
        interface = self.driver.get_device_interface()
        first, last = (interface.Event(enable_timing=True) for _ in range(2))
        call()
        first.record()
        for _ in range(calls):
            call()
        last.record()
        interface.synchronize()
        return float(first.elapsed_time(last)) * 1e-3 / calls


class ByHostClock(Device):
    """A device whose launches are timed by the host's clock until the last has ended."""

    def __init__(self, device: Triton) -> None:
        self._device = device

    def use(self) -> None:
        self._device.use()

    def seconds(self, call: Any, calls: int) -> float:
        wait = self._device.driver.get_device_interface().synchronize
        call()
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        return (time.perf_counter() - start) / calls


class Vulkan(_Gpu):
    """Our backend, on the Vulkan device that the environment names."""

    def __init__(self) -> None:
        from triton_spirv_backend.vulkan import VulkanDriver

        super().__init__("Triton, Vulkan", VulkanDriver())

    def put(self, array: Array) -> Any:
        from foundry_core.vulkan.array import DeviceTensor

        return DeviceTensor.from_numpy(array)

    def poison(self, array: Any) -> None:
        array.poison_()

    def numpy(self, array: Any) -> Array:
        return array.numpy()  # type: ignore[no-any-return]

    def compiled(self, returned: Any) -> str:
        return getattr(getattr(returned, "metadata", None), "fitted", "")

    def kernels(self, call: Any, seconds: float) -> list[dict[str, Any]]:
        from foundry_core.profile.recording import recording
        from foundry_core.profile.report import examine
        from foundry_core.runtime.launches import is_recorded

        if is_recorded() or os.environ.get("FOUNDRY_BENCH_BOUNDS") == "0":
            return []
        self.use()
        with recording() as recorder:
            for _ in range(_RECORDED):
                call()
        found = list(recorder.found.values())
        # Of several kernels, only the host knows what each took.
        return [examine(each, by_device=seconds if len(found) == 1 else None) for each in found]


class Cuda(_Gpu):
    """Triton's CUDA backend, with torch's tensors."""

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("torch has no CUDA device")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        super().__init__("Triton, CUDA", driver_of("nvidia"))
        self.torch = torch

    def put(self, array: Array) -> Any:
        return torch_of(array).cuda()

    def poison(self, array: Any) -> None:
        array.fill_(float("nan") if array.is_floating_point() else 0x55)

    def numpy(self, array: Any) -> Array:
        return _numpy_of(array.cpu())

    def compiled(self, returned: Any) -> str:
        return f"registers {returned.n_regs}, spills {returned.n_spills}" if hasattr(returned, "n_regs") else ""

    def described(self) -> str:
        major, minor = self.torch.cuda.get_device_capability()
        versions = f"torch {self.torch.__version__}, CUDA {self.torch.version.cuda}"
        return f"{self.torch.cuda.get_device_name()}, capability {major}.{minor}, {versions}"

    def torchs(self, problem: Problem) -> Candidates:
        """Return torch's own candidate, on this device."""
        arrays = [self.put(array) for array in (*problem.inputs, problem.output)]
        assert problem.torch is not None
        return {"": Candidate(partial(problem.torch, self.torch, *arrays), self, arrays[-1], returns=True)}


def torch_of(array: Array) -> Any:
    """Return torch's tensor in the memory of an array."""
    import torch

    if array.dtype == TYPES["bf16"]:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _numpy_of(tensor: Any) -> Array:
    found: Array = tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy()
    return found


class _TorchOnHost(Device):
    def numpy(self, array: Any) -> Any:
        return _numpy_of(array)


def torchs(problem: Problem) -> Candidates:
    """Return torch's candidate on this machine's processor, with tensors in the memory of the problem's arrays."""
    import torch

    assert problem.torch is not None
    tensors = [torch_of(array) for array in (*problem.inputs, problem.output)]
    return {"": Candidate(partial(problem.torch, torch, *tensors), _TorchOnHost(), problem.output, returns=True)}
