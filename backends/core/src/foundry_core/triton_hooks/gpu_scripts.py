"""What scripts that were written for GPUs, such as Triton's tutorials, ask of Triton and torch beyond kernels.

`install` adds what Triton's wheel or torch for CPUs does not have. Nothing is replaced that works.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_ADVICE = (
    "\n  why:  kernels run on {}, not on a GPU of CUDA"
    "\n  next: make tensors with device=triton.runtime.driver.active.get_active_torch_device()"
)


def install(_: type) -> None:
    """Let `import triton.profiler` find a stand-in where Triton comes without it; a second call does nothing."""
    folder = str(Path(__file__).parent / "stand_ins")
    path = sys.modules["triton"].__path__
    if folder not in path:
        # Last, so that Triton's own modules are found first.
        path.append(folder)


def extend_torch(torch: Any, driver: Any) -> None:
    """Add to torch what scripts call by the name of a device; a second call does nothing.

    Args:
        torch: the module.
        driver: of the active device.
    """
    if not hasattr(torch.cpu, "set_stream"):
        # What works on the CPU has finished when it returns.
        torch.cpu.set_stream = lambda stream: None
    cuda = torch.cuda
    if hasattr(cuda.get_device_properties, "of_foundry"):
        return
    native, initialize = cuda.get_device_properties, cuda._lazy_init

    @functools.wraps(native)
    def get_device_properties(*arguments: Any, **named: Any) -> Any:
        try:
            return native(*arguments, **named)
        except (AssertionError, RuntimeError):  # there is no GPU of CUDA
            return _properties(driver)

    @functools.wraps(initialize)
    def lazy_init() -> None:
        try:
            initialize()
        except (AssertionError, RuntimeError) as error:
            raise type(error)(f"{error}{_ADVICE.format(driver.get_current_target().backend)}") from None

    get_device_properties.of_foundry = True  # type: ignore[attr-defined]
    cuda.get_device_properties, cuda._lazy_init = get_device_properties, lazy_init


def _properties(driver: Any) -> SimpleNamespace:
    """Describe the active device by the names that torch has for a GPU's properties."""
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
