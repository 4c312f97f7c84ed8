"""What scripts that were written for GPUs, such as Triton's tutorials, ask of Triton and torch beyond kernels.

`install` adds what Triton's wheel or torch for CPUs does not have. Nothing is replaced that works.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .import_order import call_after

_ADVICE = (
    "\n  why:  kernels run on {}, not on a GPU of CUDA"
    "\n  next: make tensors with device=triton.runtime.driver.active.get_active_torch_device()"
)


def install(_: type) -> None:
    """Add a stand-in of triton.profiler, and names of torch as soon as it is imported; a second call does nothing.

    Libraries of operators ask for the device's name when they are imported, before Triton has chosen a driver.
    """
    folder = str(Path(__file__).parent / "stand_ins")
    path = sys.modules["triton"].__path__
    if folder not in path:
        # Last, so that Triton's own modules are found first.
        path.append(folder)
        call_after(_extend_cpu, "torch.cpu", "set_device")
        call_after(_extend_cuda, "torch.cuda", "get_device_properties")


def _extend_cpu() -> None:
    cpu = sys.modules["torch.cpu"]
    if not hasattr(cpu, "set_stream"):
        # What works on the CPU has finished when it returns.
        cpu.set_stream = lambda stream: None  # type: ignore[attr-defined]


def _extend_cuda() -> None:
    cuda: Any = sys.modules["torch.cuda"]
    native, initialize = cuda.get_device_properties, cuda._lazy_init

    @functools.wraps(native)
    def get_device_properties(*arguments: Any, **named: Any) -> Any:
        try:
            return native(*arguments, **named)
        except (AssertionError, RuntimeError):  # there is no GPU of CUDA
            return _properties()

    @functools.wraps(initialize)
    def lazy_init() -> None:
        try:
            initialize()
        except (AssertionError, RuntimeError) as error:
            backend = _driver().get_current_target().backend
            raise type(error)(f"{error}{_ADVICE.format(backend)}") from None

    cuda.get_device_properties, cuda._lazy_init = get_device_properties, lazy_init


def _driver() -> Any:
    return sys.modules["triton"].runtime.driver.active


def _properties() -> SimpleNamespace:
    """Describe the active device by the names that torch has for a GPU's properties."""
    driver = _driver()
    known = driver.utils.get_device_properties(0)
    return SimpleNamespace(
        name=driver.device_report().device,
        multi_processor_count=known["multiprocessor_count"],
        shared_memory_per_block=known["max_shared_mem"],
        regs_per_multiprocessor=known["max_num_regs"],
        max_threads_per_multi_processor=known["max_threads_per_sm"],
        warp_size=known["warpSize"],
        major=0,
        minor=0,
    )
