"""Arrays for timing: page-aligned, so that no candidate depends on where malloc happened to put them."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def aligned(*shape: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return a page-aligned array of random numbers in [0, 1)."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + mmap.PAGESIZE, np.uint8)
    start = -raw.__array_interface__["data"][0] % mmap.PAGESIZE
    array = raw[start : start + size].view(dtype).reshape(shape)
    array[...] = np.random.default_rng(size).random(shape, np.float32)
    return array
