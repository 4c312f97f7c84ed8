"""Arrays in the memory of a Vulkan device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from .device import Buffer, opened
from .library import library


class DeviceTensor:
    """An array in the device's memory that can be passed to kernels; nothing is copied at a launch.

        x = DeviceTensor.of(np.arange(8, dtype=np.float32))
        kernel[(1,)](x, ...)
        x.numpy()

    Attributes:
        shape, dtype: extents, and the NumPy type of the elements.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._bytes = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        self._device = opened()
        self._buffer = Buffer(self._device, max(self._bytes, 16), of_host=False)
        self.device_address: int = self._buffer.address

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> DeviceTensor:
        """Copy an array to the device."""
        made = cls(array.shape, array.dtype)
        staging = Buffer(made._device, max(made._bytes, 16), of_host=True)
        data = np.ascontiguousarray(array)
        ctypes.memmove(staging.mapped, data.ctypes.data, made._bytes)
        made._copy(made._buffer, staging)
        made._device.wait()
        return made

    def _copy(self, to: Buffer, source: Buffer) -> None:
        if self._bytes:
            number = library().copy(self._device.handle, to.handle, 0, source.handle, 0, self._bytes)
            self._device.check(number, "a copy failed")

    def numpy(self) -> npt.NDArray[Any]:
        """Copy the elements to a new array of the host, after all launches so far."""
        staging = Buffer(self._device, max(self._bytes, 16), of_host=True)
        self._copy(staging, self._buffer)
        self._device.wait()
        found = np.empty(self.shape, self.dtype)
        ctypes.memmove(found.ctypes.data, staging.mapped, self._bytes)
        return found

    def data_ptr(self) -> int:
        """Return the address of the first element, as kernels see it."""
        return self.device_address

    def fill_word(self, word: int) -> DeviceTensor:
        """Write a 32-bit word everywhere."""
        size = -(-self._bytes // 4) * 4
        number = library().fill(self._device.handle, self._buffer.handle, 0, size, word)
        self._device.check(number, "a fill failed")
        return self

    def zero_(self) -> DeviceTensor:
        """Set every element to zero, in place."""
        return self.fill_word(0)
