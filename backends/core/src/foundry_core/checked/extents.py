"""The extent of an argument's array: which bytes belong to it, relative to its pointer."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..spans import merged
from ..tensor import Storage, Tensor, note_address, reachable
from .memory import memory_of, poison_mask

# The extent of an argument that does not state its own: all memory. A distance from it does not overflow 64 bits.
_LOW, _BYTES = -(1 << 62), (1 << 63) - 1


def extent(tensor: Any) -> tuple[int, int]:
    """Return the first byte of an array, relative to its pointer, and the bytes from there to its last element's end.

    A view has the bytes from its lowest element to its highest: those between its strides belong to it, those of the
    array that it is a view of do not.

    Args:
        tensor: a Tensor, a torch tensor, or anything with `shape`, `stride()` and `element_size()`, or a wrapper of
            one (triton.reinterpret). Anything else has every byte of memory.
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
    """Return an empty shadow of an array where the array is, a word of 32 bits for each element, and its words.

    Args:
        size: bytes of an element, as the kernel sees it.
    """
    low, bytes = extent(tensor)
    words = bytes // size if low != _LOW else 0
    shape = (max(words, 1),)
    on_device = getattr(getattr(tensor, "base", tensor), "zeros", None)
    return [on_device(shape, np.int32) if on_device is not None else Tensor(np.zeros(shape, np.int32)), words]


def reach(tensor: Any) -> int:
    """Let kernels in the checked mode reach an array by an address that they load from memory or get as a number.

    They may as long as the array is there. A script that calls `Tensor.data_ptr` need not call this.

    Args:
        tensor: a Tensor, a NumPy array or a torch tensor.

    Returns:
        The address of its first element.
    """
    tensor = Tensor(tensor) if isinstance(tensor, np.ndarray) else tensor
    address = int(tensor.data_ptr())
    low, bytes = extent(tensor)
    note_address(tensor.untyped_storage().owner if isinstance(tensor, Tensor) else tensor, address + low, bytes)
    return address


def table(tensor: Any, size: int) -> list[Any]:
    """Return the memory that `reach` names: rows of a first address and a number of bytes, and how many rows.

    It is the same for each array.
    """
    parts = [(low, high - low) for low, high in merged(sorted(reachable()), gap=1)]
    return [Tensor(np.array(parts or [(0, 0)], np.int64)), len(parts)]


def poison_map(tensor: Any, size: int) -> list[Any]:
    """Return the lower byte of each element of an array that is poison, 0 for the others, and how many elements.

    There are none if the array has no poison. Parts of a word at the array's ends are not taken for poison.

    Args:
        size: bytes of an element, 1 or 2.
    """
    view = memory_of(tensor)
    if view is not None and view.size:
        low, high = np.lib.array_utils.byte_bounds(view)
        elements = Storage(low, high - low, view).view(((high - low) // size,), (size,), f"V{size}")
        found = poison_mask(elements, edges=False)
        if found.any():
            bytes = elements.view(np.uint8).reshape(-1, size)[:, 0 if sys.byteorder == "little" else -1]
            return [Tensor(np.where(found, bytes, 0).astype(np.int8)), found.size]
    return [Tensor(np.zeros(1, np.int8)), 0]
