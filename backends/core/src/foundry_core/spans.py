"""The memory that tensors reach: the ranges of several, and whether elements of one share memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np


class TensorLike(Protocol):
    """The methods of a pointer argument; `foundry_core.tensor.Tensor` and torch's CPU tensors have them."""

    def data_ptr(self) -> int: ...

    def untyped_storage(self) -> Any: ...


def memory_spans(tensors: Sequence[TensorLike], *, whole_allocations: bool = False) -> list[tuple[int, int]]:
    """Return the memory that `tensors` reach, as disjoint ranges of addresses (first byte, one past the last).

    Each tensor reaches from its first element to the end of its allocation: a kernel may step over its strides.

    Args:
        whole_allocations: each reaches from the beginning of its allocation, because a kernel may also step backwards.
    """
    reached = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        low = storage.data_ptr() if whole_allocations else tensor.data_ptr()
        high = storage.data_ptr() + storage.nbytes()
        if low < high:
            reached.append((low, high))
    return merged(sorted(reached))


def merged(ranges: Iterable[tuple[int, int]], *, gap: int = 0) -> list[tuple[int, int]]:
    """Return ranges, given in ascending order, with those joined that overlap.

    Args:
        gap: 1 to join those that only touch, too.
    """
    spans: list[tuple[int, int]] = []
    for low, high in ranges:
        if spans and low < spans[-1][1] + gap:
            spans[-1] = spans[-1][0], max(high, spans[-1][1])
        else:
            spans.append((low, high))
    return spans


def overlaps(tensor: Any) -> bool:
    """Return whether a tensor has two elements at the same address.

    Args:
        tensor: an object with `overlaps()`, or with `shape` and `stride()` in elements. Any other object counts as an
            array without overlap, because nothing is known of it.
    """
    if hasattr(tensor, "overlaps"):
        return bool(tensor.overlaps())
    if not hasattr(tensor, "shape") or not hasattr(tensor, "stride"):
        return False
    return strides_overlap(tuple(tensor.shape), tuple(tensor.stride()))


def strides_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether two indices of a shape have the same sum of strides."""
    steps = sorted((abs(step), extent) for step, extent in zip(strides, shape, strict=True) if extent != 1)
    reach, doubtful = 0, False
    for step, extent in steps:
        if extent == 0:
            return False
        doubtful |= step <= reach
        reach += step * (extent - 1)
    if not doubtful:
        return False
    if math.prod(shape) > reach + 1:
        return True
    # Strides that interleave, such as 2 and 3: compute all positions.
    taken = np.zeros(1, np.int64)
    for step, extent in steps:
        taken = np.add.outer(taken, step * np.arange(extent)).reshape(-1)
    return len(np.unique(taken)) < len(taken)
