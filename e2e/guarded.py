"""Memory that shows what a kernel wrote: poisoned before the launch, fenced on both sides, padded between the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# All bits set is a NaN in every floating-point format. As an integer it is -1, a likely result, so integers get another
# pattern.
_POISON_FLOAT = 0xFF
_POISON_INTEGER = 0xA5
_ALIGNMENT = 64


class WrongMemory(AssertionError):
    """A kernel stored to memory that it must not write."""


class Guarded:
    """A poisoned array inside a poisoned allocation.

    Args:
        shape: of `array`.
        dtype: NumPy dtype of the elements.
        fence: elements before and after the array that nothing may write; at least what a missing mask would overrun.
        layout: "row" (last index varies fastest) or "column" (first index does), for two dimensions.
        padding: elements between the end of a row (of a column) and the next one.
        offset: number of elements by which the array misses the alignment of the allocation.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        *,
        fence: int,
        layout: str = "row",
        padding: int = 0,
        offset: int = 0,
    ) -> None:
        self.dtype = np.dtype(dtype)
        size = self.dtype.itemsize
        inner_first = shape if layout == "column" else shape[::-1]
        strides = [size]
        for extent in inner_first[:-1]:
            strides.append(strides[-1] * (extent + padding))
        used = strides[-1] * inner_first[-1]
        self._before = -(-fence * size // _ALIGNMENT) * _ALIGNMENT + offset * size
        total = self._before + used + fence * size
        self._poison = _POISON_INTEGER if self.dtype.kind in "iu" else _POISON_FLOAT
        raw = np.full(total + _ALIGNMENT, self._poison, np.uint8)
        start = -raw.__array_interface__["data"][0] % _ALIGNMENT
        self._bytes = raw[start : start + total]
        self.array: npt.NDArray[Any] = np.ndarray(
            shape, self.dtype, self._bytes, self._before, strides if layout == "column" else strides[::-1]
        )

    def fill(self, values: npt.NDArray[Any]) -> None:
        """Set the array; fences and padding stay poisoned."""
        self.array[...] = values

    def check_fences(self, name: str) -> None:
        """Raise WrongMemory if a byte outside the array was written."""
        inside = np.zeros_like(self._bytes)
        bits = np.dtype(f"u{self.dtype.itemsize}")
        np.ndarray(self.array.shape, bits, inside, self._before, self.array.strides).fill(np.iinfo(bits).max)
        touched = np.flatnonzero((self._bytes != self._poison) & (inside == 0))
        if touched.size:
            first = (int(touched[0]) - self._before) // self.dtype.itemsize
            raise WrongMemory(
                f"{name}: {touched.size} bytes outside the array were written, the first of them {first} elements from "
                "the array's start"
            )
