"""The device as CUDA sees it: memory of Vulkan that CUDA maps, so that torch's tensors share it with DeviceTensors.

Vulkan and CUDA do not see each other's work. So while CUDA has any of our memory, each command of Vulkan waits for what
CUDA was given before, and ends before CUDA is given more (`Border`). Without CUDA's tensors, nothing waits.

`libcuda.so.1` is opened when memory is first shared. All happens in the device's primary context, which is torch's.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..dlpack import CUDA, SharingError
from .library import library
from .memory import Device, DeviceBuffer

LIBRARY = "libcuda.so.1"
_OPAQUE_FD = 1  # CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
_DEDICATED = 1  # CUDA_EXTERNAL_MEMORY_DEDICATED
_EXPORTS_DEDICATED = 2  # DeviceProperties.exports
# Triton takes an address of CUDA for one of Vulkan when it looks by what it is divisible.
_ALIGNMENT = 256
_COPY = "tensor.cpu() passes through the host's memory"


class _Handle(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_HANDLE_DESC. `fd` is in a union of two pointers."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("fd", ctypes.c_int64),
        ("unused", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 16),
    ]


class _Range(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_BUFFER_DESC."""

    _fields_ = [
        ("offset", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 16),
    ]


class Cuda:
    """One device in CUDA.

    Args:
        uuid: the device's, which Vulkan and CUDA name alike.
        name: the device's, for messages.

    Attributes:
        number: the device's, for torch.

    Raises:
        SharingError: CUDA is not there, or does not see the device.
    """

    def __init__(self, uuid: bytes, name: str) -> None:
        self._name = name
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise SharingError(
                f"{name} cannot share memory with CUDA", why=str(error), next=f"install CUDA's driver; or copy: {_COPY}"
            ) from error
        self._call("cuInit", 0)
        count, device, found = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(16)
        self._call("cuDeviceGetCount", ctypes.byref(count))
        for self.number in range(count.value):
            self._call("cuDeviceGet", ctypes.byref(device), self.number)
            self._call("cuDeviceGetUuid", found, device)
            if found.raw == uuid:
                break
        else:
            raise SharingError(
                f"{name} cannot share memory with CUDA",
                why=f"CUDA sees {count.value} devices, and none is this one (its UUID is {uuid.hex()})",
                next="look at CUDA_VISIBLE_DEVICES and FOUNDRY_VULKAN_DEVICE: both must name the same device",
            )
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)

    def _call(self, function: str, *arguments: Any) -> None:
        if result := getattr(self._library, function)(*arguments):
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(result, ctypes.byref(text))
            raise SharingError(
                f"{self._name} cannot share memory with CUDA",
                why=f"{function}: {(text.value or b'an error').decode()} ({result})",
                next="look at CUDA_VISIBLE_DEVICES, which hides devices from CUDA" if function == "cuInit" else "",
            )

    @contextmanager
    def _current(self) -> Iterator[None]:
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def synchronize(self) -> None:
        """Wait for all of CUDA's work on the device, of every stream."""
        with self._current():
            self._call("cuCtxSynchronize")

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy bytes between addresses of CUDA, after all of its work, and wait."""
        with self._current():
            self._call("cuCtxSynchronize")
            self._call("cuMemcpyDtoD_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size))
            self._call("cuCtxSynchronize")

    def map(self, fd: int, size: int, *, dedicated: bool) -> CudaMapping:
        """Map memory that another API exported, which takes `fd`."""
        handle = _Handle(type=_OPAQUE_FD, fd=fd, size=size, flags=_DEDICATED * dedicated)
        memory, address = ctypes.c_void_p(), ctypes.c_uint64()
        with self._current():
            try:
                self._call("cuImportExternalMemory", ctypes.byref(memory), ctypes.byref(handle))
            except SharingError:
                os.close(fd)
                raise
            try:
                whole = _Range(size=size)
                self._call("cuExternalMemoryGetMappedBuffer", ctypes.byref(address), memory, ctypes.byref(whole))
            except SharingError:
                self._library.cuDestroyExternalMemory(memory)
                raise
        return CudaMapping(self, memory, address.value)

    def unmap(self, memory: ctypes.c_void_p, address: int) -> None:
        """Take memory away from CUDA, when it has finished with it."""
        with self._current():
            self._call("cuCtxSynchronize")
            self._call("cuMemFree_v2", ctypes.c_uint64(address))
            self._call("cuDestroyExternalMemory", memory)


class CudaMapping:
    """An allocation of Vulkan that CUDA maps at an address, until `close`."""

    def __init__(self, cuda: Cuda, memory: ctypes.c_void_p, address: int) -> None:
        self._cuda, self._memory, self.address = cuda, memory, address

    def close(self) -> None:
        """Take it away from CUDA, when it has finished with it."""
        self._cuda.unmap(self._memory, self.address)


class Loan:
    """Memory of a DeviceTensor that CUDA has, as long as this object lives.

    Attributes:
        buffer: the memory.
        size: how many bytes of it the tensor has.
        address: its first byte for CUDA.
    """

    def __init__(self, border: Border, buffer: DeviceBuffer, size: int, address: int) -> None:
        self._border, self.buffer, self.size, self.address = border, buffer, size, address

    def __del__(self) -> None:
        # CUDA may still be at work on it. A deleter of torch's comes here: it must not wait, nor raise.
        self._border.was_lent = True


class Border:
    """Where work passes from Vulkan to CUDA and back.

    Attributes:
        was_lent: whether CUDA may be at work on memory that it does not have any more.

    Raises:
        SharingError: see Cuda; or the device exports no memory.
    """

    def __init__(self, device: Device) -> None:
        if not device.memory.exports:
            exports = device.properties.exports
            raise SharingError(
                f"{device.name} cannot share memory with CUDA",
                why="it is not NVIDIA's" if exports else "it exports no memory (VK_KHR_external_memory_fd)",
                next=f"copy: {_COPY}",
            )
        self._device = device
        self.cuda = Cuda(bytes(device.properties.uuid), device.name)
        self.place = (CUDA, self.cuda.number)
        self._loans: weakref.WeakSet[Loan] = weakref.WeakSet()
        self.was_lent = False

    def lend(self, buffer: DeviceBuffer, size: int) -> Loan:
        """Let CUDA have memory of the device, after everything that was launched.

        Raises:
            SharingError: CUDA does not take it.
        """
        mapping = self._device.memory.mappings.get(buffer.handle)
        if mapping is None:
            whole = ctypes.c_uint64()
            fd = library().export(self._device.handle, buffer.handle, ctypes.byref(whole))
            if fd < 0:
                raise SharingError(f"{self._device.name} cannot share memory with CUDA", why=library().last_error())
            dedicated = self._device.properties.exports == _EXPORTS_DEDICATED
            mapping = self.cuda.map(fd, whole.value, dedicated=dedicated)
            start = buffer.address - buffer.offset
            if (mapping.address - start) % _ALIGNMENT:
                mapping.close()
                raise SharingError(
                    f"{self._device.name} cannot share memory with CUDA",
                    why=f"CUDA maps {start:#x} at {mapping.address:#x}, which are not divisible alike",
                )
            self._device.memory.mappings[buffer.handle] = mapping
        loan = Loan(self, buffer, size, mapping.address + buffer.offset)
        self._loans.add(loan)
        self._device.wait()
        return loan

    def owner(self, address: int, size: int) -> Loan | None:
        """Return the loan that has bytes at an address of CUDA; None if they are not ours."""
        for loan in list(self._loans):
            if loan.address <= address and address + size <= loan.address + loan.size:
                return loan
        return None

    def before(self) -> None:
        """Wait for CUDA's work on our memory, before a command of Vulkan."""
        if self._loans or self.was_lent:
            self._device.check_state()
            self.was_lent = False
            self.cuda.synchronize()

    def after(self) -> None:
        """Wait for the command, before CUDA can read what it wrote."""
        if self._loans:
            self._device.wait()
