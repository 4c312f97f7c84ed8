"""Memory of a Vulkan device, and memory of the host that the device reaches, divided into blocks.

vkAllocateMemory is slow, and a device allows a limited number of allocations, such as 4096. So small blocks are parts
of slabs, and a block that is not used any more is kept for the next one of its size. The device works in order: its own
memory is used again at once. Memory that the host writes to is used again when the device has finished with it.
"""

from __future__ import annotations

import gc
import threading
from collections import defaultdict, deque
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from ..dlpack import SharingError
from .library import DeviceProperties, VulkanError, library

_SMALL = 1 << 20
_SLAB = 8 << 20
# Addresses are multiples of this; Triton wants 16 at least.
_ALIGNMENT = 256
# What library().allocate calls kinds of memory.
_OF_DEVICE, _OF_HOST, _EXPORTED = 0, 1, 2
# The vendor whose devices CUDA has. On others, memory that can be exported may cost more, and nobody maps it.
NVIDIA = 0x10DE


class DeviceMemoryError(VulkanError):
    """The device has no memory left, or cannot have so much at once."""


class Block(NamedTuple):
    """A part of a VkBuffer: `handle` for library(), and where it begins in it."""

    handle: int
    offset: int
    size: int
    address: int
    mapped: int | None


class Mapping(Protocol):
    """An allocation that CUDA maps (cuda.CudaMapping)."""

    address: int

    def close(self) -> None: ...


class Device(Protocol):
    """What memory needs of a device (device.VulkanDevice)."""

    name: str
    properties: DeviceProperties
    handle: Any
    memory: MemoryPool

    def wait(self) -> None: ...

    def check(self, result: Any, what: str) -> Any: ...

    def check_state(self) -> None: ...


class MemoryPool:
    """What a process has of a device's memory.

    Attributes:
        held: bytes that are allocated, used or not.
        allocations: how many of them there are.
        exports: whether memory of the device is allocated so that CUDA can map it.
        mappings: what CUDA has mapped, by the handle of its allocation.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.Lock()
        # A destructor may run anywhere, also while the lock is held: it only appends here.
        self._returned: deque[tuple[bool, Block]] = deque()
        # By kind and size: blocks, each with the last batch that may use it.
        self._free: dict[tuple[bool, int], deque[tuple[int, Block]]] = defaultdict(deque)
        self._slabs: dict[bool, tuple[Block, int]] = {}
        self.held = 0
        self.allocations = 0
        self.exports = bool(device.properties.exports) and device.properties.vendor == NVIDIA
        self.mappings: dict[int, Mapping] = {}

    def take(self, size: int, *, of_host: bool) -> Block:
        """Return a block of at least `size` bytes, with any content.

        Raises:
            DeviceMemoryError: there is no memory left.
        """
        # From 8 sizes to each power of two, so that blocks fit later requests; at most an eighth is lost.
        step = max(_ALIGNMENT, 1 << max(0, size.bit_length() - 4))
        rounded = max(1, -(-size // step)) * step
        if rounded > self._device.properties.most_buffer >= size:
            rounded = size
        with self._lock:
            self._collect()
            free = self._free[of_host, rounded]
            if free and (not of_host or free[0][0] <= library().finished(self._device.handle)):
                return free.popleft()[1]
            if rounded > _SMALL:
                return self._allocate(rounded, of_host)
            slab, used = self._slabs.get(of_host, (None, _SLAB))
            if slab is None or used + rounded > _SLAB:
                slab, used = self._allocate(_SLAB, of_host), 0
            self._slabs[of_host] = slab, used + rounded
            mapped = slab.mapped and slab.mapped + used
            return Block(slab.handle, used, rounded, slab.address + used, mapped)

    def give(self, block: Block, *, of_host: bool) -> None:
        """Take a block back that no later command uses."""
        self._returned.append((of_host, block))

    def _collect(self) -> None:
        if not self._returned:
            return
        number = library().recorded(self._device.handle)
        while self._returned:
            of_host, block = self._returned.popleft()
            self._free[of_host, block.size].append((number, block))

    def _allocate(self, size: int, of_host: bool) -> Block:
        known = self._device.properties
        handle, why = None, "it is more than a buffer may have"
        kind = _OF_HOST if of_host else _EXPORTED if self.exports else _OF_DEVICE
        if size <= known.most_buffer:
            handle = library().allocate(self._device.handle, size, kind)
            if not handle:
                self._device.check_state()
                self._release()
                handle = library().allocate(self._device.handle, size, kind)
                why = library().last_error()
        if not handle:
            raise DeviceMemoryError(
                f"{size} bytes cannot be allocated on {self._device.name}",
                why=f"{why}. This process holds {self.held} bytes in {self.allocations} allocations. The device has "
                f"{known.memory_bytes} bytes; it allows {known.most_buffer} in a buffer, {known.most_allocation} in "
                f"an allocation, and {known.allocations} allocations",
                next="delete DeviceTensors that are not needed, use smaller arrays, or end other processes on it",
            )
        self.held += size
        self.allocations += 1
        return Block(handle, 0, size, library().address(handle), library().mapped(handle))

    def _release(self) -> None:
        """Free what is not used, except parts of slabs."""
        gc.collect()
        with suppress(VulkanError, SharingError):
            self._device.wait()
            self._collect()
            for (_, size), free in self._free.items():
                while size > _SMALL and free:
                    handle = free.popleft()[1].handle
                    if mapping := self.mappings.pop(handle, None):
                        mapping.close()
                    library().free(self._device.handle, handle)
                    self.held -= size
                    self.allocations -= 1


class DeviceBuffer:
    """Memory that the device reaches.

    Args:
        of_host: whether it is memory of the host, which is mapped.

    Attributes:
        address: the address as kernels see it.
        mapped: the address in the host's memory, or None.
        handle, offset: its place for the copies of library().
        size: in bytes.

    Raises:
        DeviceMemoryError: there is no memory left.
    """

    def __init__(self, device: Device, size: int, *, of_host: bool) -> None:
        self._memory, self._of_host = device.memory, of_host
        self._block = device.memory.take(size, of_host=of_host)
        self.size = size
        self.handle, self.offset, _, self.address, self.mapped = self._block

    def __del__(self) -> None:
        if block := getattr(self, "_block", None):
            self._memory.give(block, of_host=self._of_host)


class ImportedMemory:
    """Memory of the process that the device sees where it is, until `close`.

    Args:
        low, high: addresses; multiples of the device's host_alignment.

    Raises:
        VulkanError: the device does not take it.
    """

    def __init__(self, device: Device, low: int, high: int) -> None:
        self._device = device
        self.handle = device.check(library().share(device.handle, low, high - low), "arrays cannot be shared")
        self.address = library().address(self.handle)

    def close(self) -> None:
        """Take it away from the device, which must have finished with it."""
        library().free(self._device.handle, self.handle)
