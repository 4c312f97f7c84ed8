"""The extent of an argument's array: which bytes belong to it, relative to its pointer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor

# Of an argument that does not say: everything. A distance from it does not overflow 64 bits.
_LOW, _BYTES = -(1 << 62), (1 << 63) - 1


def extent(tensor: Any) -> tuple[int, int]:
    """Return the first byte of an array, relative to its pointer, and the bytes from there to its last element's end.

    A view has the bytes from its lowest element to its highest: those between its strides belong to it, those of the
    array that it is a view of do not.

    Args:
        tensor: a Tensor, a torch tensor, or anything with `shape`, `stride()` and `element_size()`, or a wrapper of
            one (triton.reinterpret). Of anything else every byte belongs to it.
    """
    base = getattr(tensor, "base", tensor)
    if isinstance(base, Tensor):
        array = base.numpy() if type(base) is Tensor else base._array
        low, high = np.lib.array_utils.byte_bounds(array)
        return (low - base.data_ptr(), high - low) if array.size else (0, 0)
    try:
        shape, strides, size = tuple(base.shape), tuple(base.stride()), int(base.element_size())
    except (AttributeError, TypeError):
        return _LOW, _BYTES
    if 0 in shape:
        return 0, 0
    ends = [(extent - 1) * stride * size for extent, stride in zip(shape, strides, strict=True)]
    low = sum(end for end in ends if end < 0)
    return low, sum(end for end in ends if end > 0) - low + size


def shadow(tensor: Any, size: int) -> list[Any]:
    """Return an empty shadow of an array where the array is, a word for each element, and the number of words.

    Args:
        size: bytes of an element, as the kernel sees it.
    """
    low, bytes = extent(tensor)
    words = bytes // size if low != _LOW else 0
    shape = (max(words, 1),)
    on_device = getattr(getattr(tensor, "base", tensor), "zeros", None)
    return [on_device(shape, np.int64) if on_device is not None else Tensor(np.zeros(shape, np.int64)), words]
