"""Describe a VeriSilicon device to Triton.

devices.py says how the device is chosen, pieces.py where the compiler is, compiler.py which variables change the code.

A launch returns when the kernel has finished. Arguments may be foundry_core.tensor.Tensor (NumPy), torch tensors on the
CPU or on the device type vsi (whose memory the host can access), or anything with `data_ptr`, `dtype`, `shape` and
`untyped_storage`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from foundry_core.backend.driver import OpenCLDriver
from foundry_core.failure import Failure
from foundry_core.runtime.device_report import DeviceReport
from triton.backends.compiler import GPUTarget

from . import launches, pieces
from .compiler import target
from .devices import choose_device, open_device
from .launches import LaunchedCommands

if TYPE_CHECKING:
    import torch
    from foundry_core.packed.roads import Road
    from foundry_core.runtime.opencl import OpenCLDevice

    from .launcher import VsiLauncher


def launcher(src: Any, metadata: Any) -> VsiLauncher:
    """Return the launcher of a compiled kernel. It is imported at first use: Triton imports every plugin at start."""
    from .launcher import VsiLauncher

    return VsiLauncher(src, metadata)


class VsiDriver(OpenCLDriver):
    """The device of a process, for Triton's runtime."""

    def __init__(self) -> None:
        super().__init__(target().warp_size)
        self.launcher_cls = launcher

    def device(self) -> OpenCLDevice:
        return open_device()

    @classmethod
    def inactive_reason(cls) -> str:
        try:
            pieces.zen_compiler()
            pieces.bridge()

            from foundry_core.runtime.opencl import inactive_reason
        except (Failure, ImportError) as error:
            return str(error)
        return inactive_reason(choose_device)

    def device_report(self) -> DeviceReport:
        ran, opened = super().device_report(), open_device()
        return dataclasses.replace(
            ran,
            driver=f"{ran.driver}; kernels compiled by {pieces.zen_compiler()}",
            memory="zero-copy OpenCL buffers" if opened.shares else ran.memory,
        )

    def road(self) -> Road:
        """Return how kernels are packed."""
        from .packing import VsiRoad

        return VsiRoad()

    def get_current_target(self) -> GPUTarget:
        return target()

    def get_active_torch_device(self) -> torch.device:
        import torch

        cpu = super().get_active_torch_device()
        # With its number, as the devices of tensors have one: programs compare those with this one.
        return torch.device("vsi", torch.vsi.current_device()) if hasattr(torch, "vsi") else cpu

    @property
    def last_launch(self) -> LaunchedCommands | None:
        """The last launch that finished; None before the first."""
        return launches.last()
