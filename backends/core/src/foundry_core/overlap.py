"""Checks whether elements of a strided tensor share memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


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
