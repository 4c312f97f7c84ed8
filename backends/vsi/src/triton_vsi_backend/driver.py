"""Triton's view of a VeriSilicon device.

devices.py says how it is chosen, pieces.py where the compiler is, compiler.py what changes the code that is made.

A launch returns when the kernel has finished. Arguments may be foundry_core.tensor.Tensor (NumPy), torch tensors on the
CPU or on the device type vsi, whose memory the host sees, or anything with `data_ptr`, `dtype`, `shape` and
`untyped_storage`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from foundry_core.driver import SynchronousDriver, handles
from foundry_core.failure import Failure
from foundry_core.ran import Ran
from triton.backends.compiler import GPUTarget

from . import launches, pieces
from .compiler import target
from .devices import choose_device, open_device
from .launches import Launch

if TYPE_CHECKING:
    import torch

    from .launcher import VsiLauncher


def launcher(src: Any, metadata: Any) -> VsiLauncher:
    """What launches a compiled kernel; imported by its first use, since Triton imports every plugin at its start."""
    from .launcher import VsiLauncher

    return VsiLauncher(src, metadata)


class VsiUtils:
    """What Triton's runtime asks of a driver about devices and binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Of the one device."""
        opened = open_device().cl
        return {
            "max_shared_mem": opened.local_mem_size,
            "multiprocessor_count": opened.max_compute_units,
            "sm_clock_rate": opened.max_clock_frequency * 1000,
            "warpSize": target().warp_size,
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


class VsiDriver(SynchronousDriver):
    """The one device of a process, as Triton's runtime sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = VsiUtils()
        self.launcher_cls = launcher

    @classmethod
    def inactive_reason(cls) -> str:
        try:
            pieces.zen_compiler()
            pieces.bridge()
            choose_device()
        except (Failure, ImportError) as error:
            return str(error)
        return ""

    def ran(self) -> Ran:
        """What launches run on, for reports."""
        opened = open_device()
        ran = opened.ran()
        return dataclasses.replace(
            ran,
            driver=f"{ran.driver}; kernels compiled by {pieces.zen_compiler()}",
            memory="zero-copy OpenCL buffers" if opened.shares else ran.memory,
        )

    def get_current_target(self) -> GPUTarget:
        return target()

    def get_active_torch_device(self) -> torch.device:
        import torch

        # With its number, as tensors on it have one: programs compare their devices with this.
        return torch.device("vsi", torch.vsi.current_device()) if hasattr(torch, "vsi") else torch.device("cpu")

    @property
    def last_launch(self) -> Launch | None:
        """The launch that finished last; None before the first."""
        return launches.last()

    def cache_bytes(self) -> int:
        return int(open_device().cl.global_mem_cache_size)
