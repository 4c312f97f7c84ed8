"""The arguments of a launch on a Vulkan device: their block, and pointers that are addresses of the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.device import VulkanDevice
from foundry_core.vulkan.library import VulkanError


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


@triton.jit
def followed(pointers, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(tl.load(pointers + i % 2).to(tl.pointer_type(tl.float32)) + i))


def test_a_kernel_follows_addresses_of_the_device() -> None:
    x, y = (np.random.default_rng(seed).standard_normal(64).astype(np.float32) for seed in (1, 2))
    arrays = [DeviceTensor.from_numpy(x), DeviceTensor.from_numpy(y)]
    pointers = DeviceTensor.from_numpy(np.array([array.data_ptr() for array in arrays]))
    out = DeviceTensor.from_numpy(np.full(64, np.nan, np.float32))
    followed[(1,)](pointers, out, N=64)
    np.testing.assert_array_equal(out.numpy(), np.where(np.arange(64) % 2, y, x))


def test_addresses_of_the_host_are_refused() -> None:
    x, out = np.ones(64, np.float32), np.full(64, np.nan, np.float32)
    pointers = np.array([Tensor(x).data_ptr()] * 2)
    with pytest.raises(VulkanError, match="kernel followed makes pointers of numbers"):
        followed[(1,)](Tensor(pointers), Tensor(out), N=64)
    assert np.isnan(out).all()
