"""Triton's view of a VeriSilicon device.

devices.py says how it is chosen, pieces.py where the compiler is, compiler.py what changes the code that is made.

A launch returns when the kernel has finished. Arguments may be foundry_core.tensor.Tensor (NumPy), torch tensors on the
CPU or on the device type vsi, whose memory the host sees, or anything with `data_ptr`, `dtype`, `shape` and
`untyped_storage`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from foundry_core.driver import OpenCLDriver
from foundry_core.failure import Failure
from foundry_core.ran import Ran
from triton.backends.compiler import GPUTarget

from . import launches, pieces
from .compiler import target
from .devices import choose_device, open_device
from .launches import LaunchedCommands

if TYPE_CHECKING:
    import torch
    from foundry_core.opencl import Device

    from .launcher import VsiLauncher


def launcher(src: Any, metadata: Any) -> VsiLauncher:
    """Return what launches a compiled kernel, imported at its first use: Triton imports every plugin at its start."""
    from .launcher import VsiLauncher

    return VsiLauncher(src, metadata)


class VsiDriver(OpenCLDriver):
    """The one device of a process, as Triton's runtime sees it."""

    def __init__(self) -> None:
        super().__init__(target().warp_size)
        self.launcher_cls = launcher

    def device(self) -> Device:
        return open_device()

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
        ran, opened = super().ran(), open_device()
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
    def last_launch(self) -> LaunchedCommands | None:
        """The launch that finished last; None before the first."""
        return launches.last()
