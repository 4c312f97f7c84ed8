"""Launches on OpenCL, with both ways to access the caller's memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from foundry_core.runtime.opencl import DeviceError, MemoryMode, OpenCLDevice
from foundry_core.tensor import Tensor
from launch_cases import LaunchCases, forget
from shared_kernels import scale_kernel
from triton_spirv_backend import opencl


class TestLaunches(LaunchCases):
    stages: ClassVar[list[str]] = ["ttir", "tile", "mlir", "llir", "spv"]
    tool = "mlir-opt"

    @pytest.fixture(autouse=True, params=list(MemoryMode))
    def memory(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Run a test in both memory modes: its launches use a device that was opened in that mode."""
        device = OpenCLDevice(opencl.choose_device(), request.param)
        monkeypatch.setattr(opencl, "open_device", lambda: device)
        forget()
        yield
        forget()


def test_views_that_buffers_cannot_express_are_refused_not_miscomputed() -> None:
    array = Tensor(np.zeros(16, np.float32))
    spirv = bytes(scale_kernel.warmup(array, array, 100, 3.0, BLOCK=256, grid=(1,)).asm["spv"])
    device = OpenCLDevice(opencl.choose_device(), MemoryMode.BUFFER)
    launcher = device.launcher(device.build(spirv), "scale_kernel", ["*fp32", "*fp32", "i32", "fp32"])
    base = np.arange(4096, dtype=np.float32)
    with pytest.raises(DeviceError, match="pass a copy"):
        launcher((1, 1, 1), [Tensor(base[:100]), Tensor(base[1001:]), 100, 3.0])
    assert np.array_equal(base, np.arange(4096))
