"""Memory that shows what a kernel wrote or should not touch, and comparisons of results with references."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

_POISON = 0x5A


def poisoned(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return memory with the same byte everywhere: not zero, and no NaN, because any NaN equals an expected one."""
    kind = np.dtype(dtype)
    return np.full((*shape, kind.itemsize), _POISON, np.uint8).view(kind).reshape(shape)


def before_a_closed_page(count: int, dtype: Any = np.float32) -> np.ndarray:
    """Return an array that ends where a page begins that the process may not access."""
    size = count * np.dtype(dtype).itemsize
    before = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    found: np.ndarray = np.frombuffer(mmap.mmap(-1, before + mmap.PAGESIZE), dtype, count, before - size)
    closed = ctypes.c_void_p(found.ctypes.data + size)
    assert ctypes.CDLL(None).mprotect(closed, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    return found


def unequal(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where two arrays differ: in a bit, or if their types differ, as f64. Any NaN is equal to any other."""
    with np.errstate(invalid="ignore"):  # for signalling NaNs
        if found.dtype != expected.dtype:
            found, expected = found.astype(np.float64), expected.astype(np.float64)
        nan = (found != found) & (expected != expected)
    bits = f"u{found.itemsize}"
    different: np.ndarray = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(expected).view(bits)
    return different & ~nan


def check_same(found: np.ndarray, expected: np.ndarray) -> None:
    """Check that two arrays have the same numbers, zeros with their signs, and NaN in the same places."""
    assert found.shape == expected.shape
    wrong = unequal(found, expected)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} are wrong: {found[wrong][:5]}, not {expected[wrong][:5]}"


def check_product(found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Check a product of two matrices that is summed in f32, in any order: gamma(k) |a| |b| (Higham, section 3.1)."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    roundings = x.shape[-1] * 2.0**-24
    wrong = ~(np.abs(found - x @ y) <= roundings / (1 - roundings) * (np.abs(x) @ np.abs(y)))
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} are wrong: {found[wrong][:5]}, not {(x @ y)[wrong][:5]}"
