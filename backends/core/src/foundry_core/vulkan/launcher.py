"""Launches a kernel on the caller's arrays, which are copied to the device and back."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from ..scalars import passed
from ..spans import reached
from .array import DeviceTensor
from .device import Buffer, Device, Pipeline


class Launcher:
    """One kernel with the types of its parameters: `launcher(grid, arguments)` runs it until it has finished.

    Args:
        types: Triton's types of the kernel's parameters.
        offsets: where each is in the block of arguments, in bytes.
        written: the numbers of the arguments that the kernel may store through.
    """

    def __init__(
        self, device: Device, pipeline: Pipeline, types: Sequence[str], offsets: Sequence[int], written: Sequence[int]
    ) -> None:
        self._device, self._pipeline = device, pipeline
        self._pointers = [number for number, type in enumerate(types) if type.startswith("*")]
        self._written = frozenset(written)
        self._convert = [None if type.startswith("*") else passed(type).convert for type in types]
        letters = ["Q" if type.startswith("*") else passed(type).code for type in types]
        # One argument more than the kernel has parameters is the address of the device's spare bytes.
        self._more = [device.spare.address] if len(offsets) > len(types) else []
        code, at = "<", 0
        for letter, offset in zip([*letters, *["Q"] * len(self._more)], offsets, strict=True):
            code += "x" * (offset - at) + letter
            at = offset + struct.calcsize(f"<{letter}")
        self._struct = struct.Struct(code)

    def __call__(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Run the kernel for every program of the grid, whose extents are at least 1."""
        device = self._device
        tensors = [arguments[number] for number in self._pointers if type(arguments[number]) is not DeviceTensor]
        if not tensors:
            values = [
                argument.device_address if convert is None else convert(argument)
                for convert, argument in zip(self._convert, arguments, strict=True)
            ]
            device.launch(self._pipeline, grid, self._struct.pack(*values, *self._more))
            return
        spans = reached(tensors, whole=True)
        buffers = [Buffer(device, high - low, of_host=True) for low, high in spans]
        for (low, high), buffer in zip(spans, buffers, strict=True):
            ctypes.memmove(buffer.mapped, low, high - low)

        def address(tensor: Any) -> int:
            at = int(tensor.data_ptr())
            if type(tensor) is DeviceTensor:
                return at
            for (low, high), buffer in zip(spans, buffers, strict=True):
                if low <= at < high:
                    return int(buffer.address + at - low)
            return 0  # a tensor without elements

        values = [
            address(argument) if convert is None else convert(argument)
            for convert, argument in zip(self._convert, arguments, strict=True)
        ]
        device.launch(self._pipeline, grid, self._struct.pack(*values, *self._more))
        device.wait()
        for number in self._written:
            if type(arguments[number]) is DeviceTensor:
                continue
            at = arguments[number].data_ptr()
            for (low, high), buffer in zip(spans, buffers, strict=True):
                if low <= at < high:
                    ctypes.memmove(low, buffer.mapped, high - low)
