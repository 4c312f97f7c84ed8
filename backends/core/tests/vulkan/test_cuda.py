"""Memory that Vulkan and CUDA share, with a CUDA that is made up: it maps what lavapipe exports, and the host reads it.

So an array of NumPy stands for a tensor of torch on CUDA: it reads and writes what kernels do, without a copy.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core import dlpack
from foundry_core.runtime.arguments import ArgumentError
from foundry_core.tensor import Tensor
from foundry_core.vulkan import cuda
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.device import VulkanDevice, opened
from foundry_core.vulkan.library import library
from foundry_core.vulkan.memory import MemoryPool


class FakeCuda:
    """libcuda.so.1: two devices, of which the second is ours. Each call is noted, and those in `failing` fail."""

    def __init__(self, uuid: bytes) -> None:
        self.uuids = [bytes(16), uuid]
        self.calls: list[str] = []
        self.failing: set[str] = set()
        self.maps: dict[int, mmap.mmap] = {}
        self.shift = 0
        self.seen: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name in self.failing:
                return 999
            getattr(type(self), f"_{name}", lambda *_: None)(self, *arguments)
            return 0

        return call

    def cuGetErrorString(self, result: int, text: Any) -> int:
        text._obj.value = b"made up"
        return 0

    def _cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.uuids)

    def _cuDeviceGet(self, device: Any, number: int) -> None:
        device._obj.value = 40 + number

    def _cuDeviceGetUuid(self, found: Any, device: Any) -> None:
        found.raw = self.uuids[device.value - 40]

    def _cuImportExternalMemory(self, memory: Any, handle: Any) -> None:
        known = handle._obj
        # lavapipe's files begin with their size, and where the memory begins.
        size, offset = np.frombuffer(os.pread(known.fd, 16, 0), np.uint64).tolist()
        assert (known.type, known.flags) == (1, 0)
        assert 0 < offset <= size - known.size < offset + mmap.PAGESIZE
        mapped = mmap.mmap(known.fd, size)
        os.close(known.fd)
        memory._obj.value = ctypes.addressof(ctypes.c_char.from_buffer(mapped)) + offset
        self.maps[memory._obj.value] = mapped

    def _cuExternalMemoryGetMappedBuffer(self, address: Any, memory: Any, whole: Any) -> None:
        address._obj.value = memory.value + self.shift

    def _cuDestroyExternalMemory(self, memory: Any) -> None:
        self.maps.pop(memory.value).close()

    def _cuMemcpyDtoD_v2(self, to: Any, source: Any, size: Any) -> None:
        ctypes.memmove(to.value, source.value, size.value)

    def _cuCtxSynchronize(self) -> None:
        self.seen.append(library().recorded(opened().handle))


@pytest.fixture
def device() -> Iterator[VulkanDevice]:
    """The device as if it were a GPU, whose memory is allocated to be exported."""
    known = opened()
    pool, known.memory = known.memory, MemoryPool(known)
    known.memory.exports = True
    yield known
    known.wait()
    known.__dict__.pop("border", None)
    known.memory, known.shared = pool, None


@pytest.fixture
def fake(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    found = FakeCuda(bytes(device.properties.uuid))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: found)
    return found


class OfTorch:
    """A tensor of torch on CUDA, over an array of the memory that the made up CUDA maps."""

    is_cuda = True

    def __init__(self, array: Any, kind: str = "", place: tuple[int, int] = (2, 1)) -> None:
        self.array, self.kind, self.place = array, kind, place
        self.device = dlpack.place_name(place)
        self.dtype, self.shape = kind or array.dtype, array.shape

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        assert stream == -1
        return dlpack.give(self.array, self.kind, max_version, place=self.place)


def torch_from_dlpack(tensor: Any) -> OfTorch:
    """Return what torch.from_dlpack returns."""
    found = dlpack.take(tensor)
    assert found.place == (2, 1), "on CUDA, and the device that has the UUID"
    return OfTorch(found.array, found.kind)


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def follow_kernel(pointers, out):
    tl.store(out, tl.load(tl.load(pointers).to(tl.pointer_type(tl.float32))))


def test_torch_and_kernels_read_what_the_other_wrote_without_a_copy(fake: FakeCuda) -> None:
    x, y = DeviceTensor(1000).poison_(), DeviceTensor(1000).poison_()
    theirs, result = torch_from_dlpack(x), torch_from_dlpack(y)
    assert np.isnan(result.array).all()
    for number in (3, 4):
        theirs.array[:] = number
        double_kernel[(4,)](x, y, 1000, BLOCK=256)
        assert (result.array == 2 * number).all() and (y.numpy() == 2 * number).all()
    assert fake.calls.count("cuImportExternalMemory") == 1, "both are in one allocation"
    assert "cuMemcpyDtoD_v2" not in fake.calls


@pytest.mark.parametrize("size", [1000, 3 << 20])
def test_a_tensor_of_torch_over_our_memory_is_an_argument(fake: FakeCuda, size: int) -> None:
    values = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    x, y = torch_from_dlpack(DeviceTensor.from_numpy(values)), torch_from_dlpack(DeviceTensor(size).poison_())
    double_kernel[(-(-size // 1024),)](x, y, size, BLOCK=1024)
    assert (y.array == 2 * values).all()
    part, x.array[:] = OfTorch(y.array[256:512]), 1
    double_kernel[(1,)](x, part, 200, BLOCK=256)
    assert (y.array[256:456] == 2).all() and (y.array[456:512] == 2 * values[456:512]).all()


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "float16", ml_dtypes.bfloat16, "int64", "float64", "fp8e5", "fp8e4nv"], ids=str
)
def test_types_and_strides_are_the_same_on_both_sides(fake: FakeCuda, dtype: Any) -> None:
    tensor = DeviceTensor((4, 6), dtype)
    raw = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 256, 24 * tensor.element_size(), np.uint8)
    tensor._write(raw.view(tensor._array.dtype).reshape(4, 6))
    for key in (np.s_[:], np.s_[1:, ::2], np.s_[2, 3], np.s_[2:2], np.s_[:, 5]):
        part: Any = tensor[key]
        for view in (part, part.T):
            theirs = torch_from_dlpack(view)
            assert theirs.dtype == view.dtype and theirs.array.shape == view.shape
            assert theirs.array.tobytes() == view.numpy().tobytes()
            back = DeviceTensor.from_dlpack(theirs, copy=False)
            assert back.dtype == view.dtype and back.shape == view.shape
            assert back.numpy().tobytes() == view.numpy().tobytes()
            assert not view.numel() or (back.address, back.stride()) == (view.address, view.stride())


def test_memory_that_torch_allocated_is_refused_by_name_and_copied_on_request(fake: FakeCuda) -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    theirs, y = OfTorch(values[1:, ::2]), DeviceTensor(9).poison_()
    for _ in range(2):  # before CUDA was asked for anything, and after
        with pytest.raises(ArgumentError, match=r"reach x_ptr, a tensor on cuda:1(?s:.*)DeviceTensor.from_dlpack"):
            double_kernel[(1,)](theirs, y, 9, BLOCK=16)
        with pytest.raises(BufferError, match="allow a copy"):
            DeviceTensor.from_dlpack(theirs, copy=False)
        copied = DeviceTensor.from_dlpack(theirs)
        assert copied.stride() == (6, 2) and (copied.numpy() == values[1:, ::2]).all()
    values[:] = 0
    assert copied.numpy().all()
    assert (DeviceTensor.from_dlpack(values).numpy() == 0).all()
    assert not DeviceTensor.from_dlpack(OfTorch(np.empty((0, 3), np.float16))).numel()


def test_memory_of_another_gpu_is_refused(fake: FakeCuda) -> None:
    shared = torch_from_dlpack(DeviceTensor.zeros(8))
    with pytest.raises(BufferError, match=r"made of a tensor on cuda:0(?s:.*) is cuda:1"):
        DeviceTensor.from_dlpack(OfTorch(np.ones(8, np.float32), place=(2, 0)))
    with pytest.raises(ArgumentError, match="cannot reach x_ptr"):
        double_kernel[(1,)](OfTorch(np.ones(8, np.float32), place=(2, 0)), shared, 8, BLOCK=8)


def test_memory_lives_as_long_as_either_side(fake: FakeCuda, device: VulkanDevice) -> None:
    tensor = DeviceTensor.full(1000, 7)
    address, theirs = tensor.address, torch_from_dlpack(tensor)
    del tensor
    gc.collect()
    others = [DeviceTensor.full(1000, 1) for _ in range(4)]
    assert address not in [each.address for each in others] and (theirs.array == 7).all()
    back = DeviceTensor.from_dlpack(theirs, copy=False)
    del theirs
    gc.collect()
    assert back.address == address and (back.numpy() == 7).all()
    del back
    gc.collect()
    assert DeviceTensor(1000).address == address


def test_a_capsule_that_nobody_takes_gives_the_memory_back(fake: FakeCuda, device: VulkanDevice) -> None:
    for version in (None, (1, 0)):
        tensor = DeviceTensor.zeros(8)
        capsule = tensor.__dlpack__(max_version=version)
        assert len(device.border._loans) == 1
        del capsule
        gc.collect()
        assert not device.border._loans


def test_each_command_waits_for_cuda_and_ends_before_it_while_cuda_has_memory(
    fake: FakeCuda, device: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = DeviceTensor.zeros(1000), DeviceTensor.zeros(1000)
    commands = (
        lambda: double_kernel[(4,)](x, y, 1000, BLOCK=256),
        lambda: x.copy_(y),
        lambda: x.fill_(1),
        lambda: x.numpy(),
    )
    theirs = torch_from_dlpack(y)
    for command in commands:
        fake.seen.clear()
        before = library().recorded(device.handle)
        command()
        # Nothing of the command was recorded when CUDA's work had not ended, and all of it has ended when it returns.
        assert fake.seen[0] == before
        assert library().finished(device.handle) == library().recorded(device.handle) > before
    del theirs
    gc.collect()
    fake.seen.clear()
    for command in commands:
        command()
    assert len(fake.seen) == 1, "what CUDA may still do there ends before the first command, and nothing more"


def test_a_readonly_tensor_is_not_written(fake: FakeCuda) -> None:
    theirs, x = torch_from_dlpack(DeviceTensor.zeros(8)), DeviceTensor.full(8, 1)
    theirs.array.flags.writeable = False
    for written in (theirs, DeviceTensor.from_dlpack(theirs, copy=False)):
        with pytest.raises(ArgumentError, match="y_ptr, which is read-only"):
            double_kernel[(1,)](x, written, 8, BLOCK=8)
    double_kernel[(1,)](theirs, x, 8, BLOCK=8)
    assert not theirs.array.any() and not x.numpy().any()


def test_a_kernel_that_follows_numbers_takes_no_tensor_of_cuda(fake: FakeCuda) -> None:
    x, out = torch_from_dlpack(DeviceTensor.full(1, 3)), DeviceTensor.zeros(1)
    pointers = torch_from_dlpack(DeviceTensor.from_numpy(np.array([x.data_ptr()])))
    with pytest.raises(ArgumentError, match="cannot reach pointers, a tensor on cuda:1"):
        follow_kernel[(1,)](pointers, out)


def test_a_copy_for_the_host_or_another_owner_is_made_on_request(fake: FakeCuda) -> None:
    tensor = DeviceTensor.full((2, 3), 5)
    copied = np.from_dlpack(tensor, device="cpu")
    tensor.zero_()
    assert (copied == 5).all()
    with pytest.raises(BufferError, match="memory of the host"):
        np.from_dlpack(tensor, device="cpu", copy=False)
    with pytest.raises(BufferError, match=r"memory of cuda:0\n.*it is on cuda:1"):
        tensor.__dlpack__(dl_device=(2, 0))
    own = DeviceTensor.from_dlpack(torch_from_dlpack(tensor), copy=True)
    assert own.address != tensor.address


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda fake: fake.uuids.pop(), "CUDA sees 1 devices, and none is this one"),
        (lambda fake: fake.failing.add("cuInit"), r"cuInit: made up \(999\)\n.*CUDA_VISIBLE_DEVICES"),
        (lambda fake: fake.failing.add("cuDevicePrimaryCtxRetain"), "cuDevicePrimaryCtxRetain: made up"),
        (lambda fake: fake.failing.add("cuImportExternalMemory"), "cuImportExternalMemory: made up"),
        (lambda fake: fake.failing.add("cuExternalMemoryGetMappedBuffer"), "cuExternalMemoryGetMappedBuffer: made up"),
        (lambda fake: setattr(fake, "shift", 16), "not divisible alike"),
    ],
)
def test_refusal_of_cuda_is_said_and_leaves_nothing_behind(fake: FakeCuda, damage: Any, message: str) -> None:
    damage(fake)
    tensor, files = DeviceTensor.full(8, 2), len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(BufferError, match=message):
        tensor.__dlpack__(max_version=(1, 0))
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert (tensor.numpy() == 2).all()
    assert fake.calls.count("cuCtxPushCurrent_v2") == fake.calls.count("cuCtxPopCurrent_v2")


def test_a_machine_without_cuda_names_vulkan_and_the_way_by_the_host(
    device: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "LIBRARY", "libnot-there.so.1")
    tensor = DeviceTensor.zeros(8)
    assert tensor.__dlpack_device__() == (7, 0)
    with pytest.raises(BufferError, match=r"cannot share memory with CUDA\n.*libnot-there(?s:.*)tensor.cpu\(\)"):
        tensor.__dlpack__()
    device.memory.exports = False
    with pytest.raises(BufferError, match="it is not NVIDIA's"):
        tensor.__dlpack__()


def test_memory_that_is_freed_is_taken_from_cuda_before(fake: FakeCuda, device: VulkanDevice) -> None:
    tensor = DeviceTensor.zeros(3 << 20)
    theirs = torch_from_dlpack(tensor)
    del tensor, theirs
    gc.collect()
    device.memory._release()
    assert fake.calls.count("cuMemFree_v2") == fake.calls.count("cuDestroyExternalMemory") == 1
    assert not device.memory.mappings


def test_an_array_of_the_host_stands_beside_a_shared_tensor(fake: FakeCuda) -> None:
    x, y = torch_from_dlpack(DeviceTensor.full(8, 3)), np.zeros(8, np.float32)
    double_kernel[(1,)](x, Tensor(y), 8, BLOCK=8)
    assert (y == 6).all()
