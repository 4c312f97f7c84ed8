"""Launches a kernel: on arrays of the device without waiting for it, on arrays of the host until they are written."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..log import FIRST_FAILURE, Log
from ..runtime.launches import MOST_PROGRAMS
from ..scalars import passed
from ..spans import memory_spans, merged
from .array import DeviceTensor
from .device import LAUNCH, Direct, HostArrays, Pipeline, VulkanDevice
from .library import VulkanError, library
from .memory import DeviceBuffer, ImportedMemory

# Where the kernel's arguments begin in Triton's call, and the attributes that launch.c reads.
_BEFORE = 9
_ATTRIBUTES = tuple(map(sys.intern, ("address", "dense", "calls")))
# A range of the host's memory, and the address of its first byte as the device sees it.
Range = tuple[int, int, int]


class PipelineLauncher:
    """One kernel with the types of its parameters.

    Args:
        types: Triton's types of the kernel's parameters.
        offsets: where each is in the block of arguments, in bytes; see mapping.simt.lower.Simt.
        outputs: the numbers of the arguments that the kernel may store through.
    """

    def __init__(
        self,
        device: VulkanDevice,
        pipeline: Pipeline,
        types: Sequence[str],
        offsets: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self._device, self.pipeline = device, pipeline
        self._pointers = [number for number, type in enumerate(types) if type.startswith("*")]
        self._outputs = [number for number in self._pointers if number in outputs]
        self._rows = {number: passed(type) for number, type in enumerate(types) if number not in self._pointers}
        self._convert = {number: row.convert for number, row in self._rows.items()}
        letters = ["Q" if type.startswith("*") else passed(type).code for type in types]
        self._in_parts = device.splits_grids
        self._spare = (device.spare.address,) * (len(offsets) - len(types) - 1 - 4 * self._in_parts)
        code, at = f"<{LAUNCH}", 0
        self._places = [struct.calcsize(code) + offset for offset in offsets]
        letters += ["Q"] * len(self._spare) + ["I"] * (1 + 4 * self._in_parts)
        for letter, offset in zip(letters, offsets, strict=True):
            code += "x" * (offset - at) + letter
            at = offset + struct.calcsize(f"<{letter}")
        self._pack = struct.Struct(code).pack

    def _packed(self, grid: tuple[int, int, int], values: Sequence[Any]) -> bytes:
        if self._in_parts:
            return self._pack(self.pipeline.handle, *grid, *values, *self._spare, 0, *grid, 0)
        return self._pack(self.pipeline.handle, *grid, *values, *self._spare, 0)

    def direct(self, positions: Sequence[int]) -> Direct | None:
        """Return a function of launch.c that takes Triton's call of a launcher, for arrays that are all of the device.

        It returns the number of the batch; 0 after an error; or None if it launched nothing, because an argument is
        something else. None instead of a function: Python must round a number to a 16-bit float, or there are too many
        arguments.

        Args:
            positions: where the kernel's arguments are in those of the launch.
        """
        rounds = any(row.bits == 16 and row.carrier != row.dtype for row in self._rows.values())
        if rounds or not hasattr(ctypes.pythonapi, "PyCFunction_NewEx"):
            return None
        block = self._packed((1, 1, 1), [0] * len(positions))
        parts = [("g", 4, side, at) for side, at in enumerate((8, 12, 16))]
        if self._in_parts:
            parts += [("g", 4, side, at) for side, at in enumerate(self._places[-4:-1])]
        for number, (position, at) in enumerate(zip(positions, self._places, strict=False)):
            kind, size = ("o" if number in self._outputs else "p"), 8
            if row := self._rows.get(number):
                codes = {"f": "f", "d": "f", row.code.upper(): "u"}
                kind, size = "?" if row.bits == 1 else codes.get(row.code, "i"), row.bytes
            parts.append((kind, size, _BEFORE + position, at))
        plan = struct.pack(
            "<6Q4I",
            self._device.handle,
            *map(id, (DeviceTensor, *_ATTRIBUTES)),
            MOST_PROGRAMS,
            _BEFORE + max(positions, default=-1) + 1,
            len(parts),
            len(block),
            0,
        )
        packed = [struct.pack("<cBHI", kind.encode(), *rest) for kind, *rest in parts]
        found: Direct | None = library().launcher(b"".join([plan, *packed, block]))
        return found

    def __call__(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Run the kernel for every program of the grid, whose extents are at least 1.

        Raises:
            VulkanError: an array is neither of this device nor of the host, or the launch failed.
        """
        device = self._device
        tensors = {number: arguments[number] for number in self._pointers}
        hosts = {number: tensor for number, tensor in tensors.items() if type(tensor) is not DeviceTensor}
        for tensor in hosts.values():
            _refuse(tensor)
        spans = memory_spans(list(hosts.values()), whole_allocations=True)
        written = [hosts[number].data_ptr() for number in self._outputs if number in hosts]
        values = [
            (0 if number in hosts else argument.data_ptr()) if number in tensors else self._convert[number](argument)
            for number, argument in enumerate(arguments)
        ]
        self._packed(grid, values)  # refuses numbers that are too large, before anything is lent to the device
        # NVIDIA's driver refuses to share pages that are read-only, and from then on any memory at all.
        in_place = device.reach is HostArrays.IMPORT and not any(
            getattr(tensor, "readonly", False) for tensor in hosts.values()
        )
        with _on_device(device, spans, written, in_place=in_place) as ranges:
            for number, tensor in hosts.items():
                at = tensor.data_ptr()
                # A tensor without elements is in no range.
                values[number] = next((int(to + at - low) for low, high, to in ranges if low <= at < high), 0)
            try:
                device.launch(self.pipeline, grid, self._packed(grid, values))
                if hosts:
                    device.wait()
            except BaseException:
                # The kernel may still run, and write to them.
                device.abandoned.append(list(hosts.values()))
                raise


def _refuse(tensor: Any) -> None:
    """Refuse a tensor of another device, whose address means nothing to this one."""
    kind = str(getattr(getattr(tensor, "device", None), "type", "cpu"))
    if kind != "cpu":
        raise VulkanError(
            f"a Vulkan launch cannot take a tensor on {kind}",
            why="Vulkan cannot use memory that CUDA allocated" if kind == "cuda" else "it is not in the host's memory",
            next="pass DeviceTensor.from_dlpack(tensor), a copy on the device, or tensor.cpu()",
        )


@contextmanager
def _on_device(
    device: VulkanDevice, spans: Sequence[tuple[int, int]], outputs: Sequence[int], *, in_place: bool
) -> Iterator[list[Range]]:
    """Let the device reach memory of the host during a launch.

    Args:
        spans: what it reaches.
        outputs: addresses in those spans that the launch writes to.
        in_place: try to share the memory; otherwise it is copied.
    """
    if in_place:
        page = os.sysconf("SC_PAGE_SIZE")
        # A device may refuse to share a page twice.
        pages = merged((low // page * page, -(-high // page) * page) for low, high in spans)
        shared: list[ImportedMemory] = []
        try:
            shared.extend(ImportedMemory(device, low, high) for low, high in pages)
        except VulkanError:
            # Such as memory that is mapped from a file: it is copied.
            for each in shared:
                each.close()
        else:
            yield [(low, high, each.address) for (low, high), each in zip(pages, shared, strict=True)]
            for each in shared:
                each.close()
            return
    buffers = [DeviceBuffer(device, high - low, of_host=device.shares_memory) for low, high in spans]
    for (low, high), buffer in zip(spans, buffers, strict=True):
        device.upload(buffer, 0, low, high - low)
    yield [(low, high, buffer.address) for (low, high), buffer in zip(spans, buffers, strict=True)]
    for (low, high), buffer in zip(spans, buffers, strict=True):
        if any(low <= at < high for at in outputs):
            device.download(buffer, 0, low, high - low)


@contextmanager
def logging(device: VulkanDevice, log: Log | None) -> Iterator[list[int]]:
    """Give a launch inside the `with` the address of its log, in memory that the host shares; wait, and report it.

    Yields nothing if there is no log.

    Raises:
        DeviceAssertionError: an assertion failed.
    """
    if log is None:
        yield []
        return
    buffer = DeviceBuffer(device, log.bytes, of_host=True)
    assert buffer.mapped is not None
    words = np.ctypeslib.as_array((ctypes.c_uint64 * (log.bytes // 8)).from_address(buffer.mapped))
    words[:FIRST_FAILURE] = log.header()
    yield [buffer.address]
    device.wait()
    log.report([words[: log.used_bytes(words[:FIRST_FAILURE]) // 8]])
