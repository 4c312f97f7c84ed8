"""Make the arrays that kernels read, from a seed, so that a script can make them again."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def fill(kind: str, seed: int, dtype: Any, size: int) -> Any:
    """Return an array of `size` elements.

    Args:
        kind: "small" numbers; "special" and small numbers in equal parts (NaN, infinities, zeros of both signs, the
            ends of the type's range, subnormals); or any "bits".
    """
    random, kind_of = np.random.default_rng(seed), np.dtype(dtype)
    if kind_of.kind == "b":
        return random.integers(0, 2, size).astype(bool)
    if kind_of.kind in "iu":
        info = np.iinfo(kind_of)
        if kind == "bits":
            return random.integers(info.min, info.max, size, kind_of, endpoint=True)
        small = random.integers(-4 if info.min else 0, 5, size).astype(kind_of)
        ends = [info.min, info.min + 1, info.max, info.max - 1, 1 << (info.bits - 2)]
        special = random.choice(np.array(ends, kind_of), size)
    else:
        limits = ml_dtypes.finfo(kind_of)
        if kind == "bits":
            bits = np.dtype(f"u{kind_of.itemsize}")
            anything = random.integers(0, np.iinfo(bits).max, size, bits, endpoint=True).view(kind_of)
            with np.errstate(all="ignore"):
                return np.where(np.isnan(anything), np.array(np.nan, kind_of), anything)
        small = (random.integers(-8, 9, size) / 2).astype(kind_of)
        tiny = [limits.smallest_normal, limits.smallest_subnormal, limits.eps]
        floats: list[Any] = [np.nan, np.inf, 0.0, limits.max, *tiny, 1.0]
        special = random.choice(np.array([*floats, *(-float(end) for end in floats)], kind_of), size)
    return np.where(random.integers(0, 2, size).astype(bool), small, special) if kind == "special" else small
