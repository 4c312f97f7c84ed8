"""The block of arguments of a launch, on devices that take any grid in one dispatch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from foundry_core.vulkan.device import VulkanDevice


@pytest.fixture
def whole_grids(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the device one without a limit on grids, whose kernels take nothing behind their own arguments."""
    monkeypatch.setattr(VulkanDevice, "splits_grids", False)
    yield


@triton.jit
def sums(out, a, b: tl.int8, c: tl.int16, d: tl.int8):
    tl.store(out, a)
    tl.store(out + 1, b.to(tl.int32))
    tl.store(out + 2, c.to(tl.int32))
    tl.store(out + 3, d.to(tl.int32))


@pytest.mark.usefixtures("whole_grids")
def test_a_block_of_arguments_of_a_size_that_vulkan_does_not_take_is_passed() -> None:
    """Vulkan wants a multiple of 4 bytes; these are 17."""
    out = np.full(4, -1, np.int32)
    sums[(1,)](Tensor(out), 70000, -7, 300, 5)
    assert out.tolist() == [70000, -7, 300, 5]
