"""Poison: the contents of memory that nobody has written yet, in the checked mode.

`install` makes numpy.empty, numpy.empty_like and torch's counterparts return arrays that are filled with POISON. A
kernel that reads it, and an array that a launch leaves partly poisoned, are findings. Arrays that were made before
`install`, or in another way, such as by a library in C, have no poison.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..tensor import Storage, Tensor
from . import POISON

# Words that are searched for poison at a time.
_PART = 1 << 16
_BYTES = np.frombuffer(POISON.to_bytes(4, sys.byteorder), np.uint8)


def fill(memory: npt.NDArray[np.uint8]) -> None:
    """Fill bytes with POISON, in the phase that the alignment of their address gives."""
    phase = int(memory.__array_interface__["data"][0]) % 4
    head = min(-phase % 4, memory.size)
    body = (memory.size - head) // 4 * 4
    memory[:head] = np.roll(_BYTES, -phase)[:head]
    memory[head : head + body].view(np.uint32)[:] = POISON
    memory[head + body :] = _BYTES[: memory.size - head - body]


def poison_mask(array: npt.NDArray[Any], *, edges: bool = True) -> npt.NDArray[np.bool_]:
    """Return which elements of an array have the bytes of POISON.

    An element of fewer than 4 bytes does only if its whole aligned word has: any value of a byte is common.

    Args:
        edges: whether words that are partly outside of the array count as if they had poison there.
    """
    if not array.size:
        return np.zeros(array.shape, np.bool_)
    low, high = np.lib.array_utils.byte_bounds(array)
    phase = low % 4
    if not _has_poison(array, low, high) and not (edges and (phase or high % 4)):
        return np.zeros(array.shape, np.bool_)
    words = np.empty(-(-(phase + high - low) // 4), np.uint32)
    words[[0, -1]] = POISON if edges else 0
    words.view(np.uint8)[phase : phase + high - low] = Storage(low, high - low, array).view((high - low,), (1,))
    poisoned = np.repeat(words == POISON, 4)
    first = phase + int(array.__array_interface__["data"][0]) - low
    found = [
        np.ndarray(array.shape, np.bool_, poisoned, first + at, array.strides)
        for at in range(0, max(array.itemsize, 1), 4)
    ]
    return np.asarray(np.logical_and.reduce(found), np.bool_)


def _has_poison(array: npt.NDArray[Any], low: int, high: int) -> bool:
    """Return whether a whole aligned word in the memory of an array has the poison."""
    first, last = -(-low // 4) * 4, high // 4 * 4
    if first >= last:
        return False
    words = Storage(first, last - first, array).view(((last - first) // 4,), (4,), np.uint32)
    # In parts that stay in a cache.
    return any((words[at : at + _PART] == POISON).any() for at in range(0, len(words), _PART))


def memory_of(tensor: Any) -> npt.NDArray[Any] | None:
    """Return an array over a tensor's memory, or over a copy of it in the host's; None if its memory is not known."""
    base = getattr(tensor, "base", tensor)
    if type(base) is Tensor:
        return base.numpy()
    if isinstance(base, Tensor):
        return base.on_host()  # type: ignore[attr-defined, no-any-return]
    if str(getattr(getattr(base, "device", None), "type", "")) != "cpu" or not hasattr(base, "element_size"):
        return None
    size, strides = base.element_size(), base.stride()
    reach = sum((extent - 1) * stride for extent, stride in zip(base.shape, strides, strict=True))
    if 0 in base.shape:
        return None
    memory = Storage(base.data_ptr(), (reach + 1) * size, np.empty(0))
    return memory.view(tuple(base.shape), tuple(size * stride for stride in strides), f"V{size}")


def is_installed() -> bool:
    """Return whether new arrays are poisoned."""
    return hasattr(np.empty, "poisons")


def install() -> None:
    """Make new arrays of NumPy, and of torch if it is imported, poisoned; a second call does nothing."""
    for name in ("empty", "empty_like"):
        _replace(np, name, _fill_array)
    torch = sys.modules.get("torch")
    for name in ("empty", "empty_like", "empty_strided"):
        _replace(torch, name, _fill_torch)
    _replace(getattr(torch, "Tensor", None), "new_empty", _fill_torch)


def _replace(owner: Any, name: str, poison: Callable[[Any], None]) -> None:
    native = getattr(owner, name, None)
    if native is None or hasattr(native, "poisons"):
        return

    @functools.wraps(native)
    def poisoned(*arguments: Any, **named: Any) -> Any:
        made = native(*arguments, **named)
        poison(made)
        return made

    poisoned.poisons = True  # type: ignore[attr-defined]
    setattr(owner, name, poisoned)


def _fill_array(array: Any) -> None:
    if not array.dtype.hasobject and array.nbytes:
        fill(np.asarray(array).ravel(order="K").view(np.uint8))


def _fill_torch(tensor: Any) -> None:
    import torch

    # A graph that torch.compile traces has no addresses.
    if torch.compiler.is_compiling() or tensor.device.type != "cpu" or type(tensor) is not torch.Tensor:
        return
    storage = tensor.untyped_storage()
    if storage.nbytes():
        memory = (ctypes.c_uint8 * storage.nbytes()).from_address(storage.data_ptr())
        fill(np.frombuffer(memory, np.uint8))
