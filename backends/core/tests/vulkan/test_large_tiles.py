"""Tiles of many elements: the code for them stays short, since the compiler of a CPU device is slow for long code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from results import poisoned

# In bytes, of a loop over slices: it is as long for every size of the tile.
SHORT = 1 << 17


def launched(kernel: Any, *arguments: Any, **constants: Any) -> None:
    """Launch one program, and check that its code is short."""
    compiled = kernel[(1,)](*(Tensor(x) if isinstance(x, np.ndarray) else x for x in arguments), **constants)
    assert len(compiled.asm["spv"]) < SHORT


@triton.jit
def reductions(x, y, total, most, place, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(total, tl.sum(tl.load(y + i), 0))
    tl.store(most, tl.max(v, 0))
    tl.store(place, tl.argmax(v, 0))


@pytest.mark.parametrize("size", [1 << 14, 1 << 20])
def test_large_tile_is_reduced_by_a_short_module(size: int) -> None:
    random = np.random.default_rng(5)
    x = random.standard_normal(size).astype(np.float32)
    # The largest number is there twice, in different subgroups and slices; the first place counts.
    x[[size // 2 + 7_001, size - 5]] = 1e30
    x[:3] = -np.inf, -0.0, np.finfo(np.float32).smallest_subnormal
    y = random.integers(-(1 << 31), 1 << 31, x.size).astype(np.int32)
    total, most, place = (poisoned(1, dtype=dtype) for dtype in (np.int32, np.float32, np.int32))
    launched(reductions, x, y, total, most, place, N=size)
    assert (total[0], most[0], place[0]) == (y.sum(dtype=np.int32), np.float32(1e30), size // 2 + 7_001)


@triton.jit
def exponential(x, y, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    mask = i < n
    tl.store(out + i, tl.exp(tl.load(x + i, mask=mask, other=0) + tl.load(y + i, mask=mask)), mask=mask)


@pytest.mark.parametrize(("size", "valid"), [(1 << 16, 1 << 16), (1 << 20, (1 << 20) - 8_191), (1 << 14, 0)])
def test_large_tile_is_computed_by_a_short_module(size: int, valid: int) -> None:
    x = np.linspace(-90, 90, size).astype(np.float32)
    x[:3] = np.nan, np.inf, -np.inf
    y, out = np.linspace(2, -2, size).astype(np.float32), poisoned(size)
    before = out.copy()
    launched(exponential, x[: max(valid, 1)].copy(), y[: max(valid, 1)].copy(), out, valid, N=size)
    with np.errstate(over="ignore", under="ignore"):
        exact = np.exp((x + y).astype(np.float64)).astype(np.float32)
    # lavapipe may take subnormal numbers for zeros.
    np.testing.assert_allclose(out[:valid], exact[:valid], rtol=1e-6, atol=float(np.finfo(np.float32).smallest_normal))
    np.testing.assert_array_equal(out[valid:].view(np.int32), before[valid:].view(np.int32))


@triton.jit
def softmax(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    e = tl.exp(v - tl.max(v, 1)[:, None])
    total = tl.sum(e, 1)
    tl.store(out + i, e / total[:, None])


@triton.jit
def least_of_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.arange(0, M), tl.argmin(tl.load(x + i), 1))


@pytest.mark.parametrize(("rows", "columns"), [(1024, 1024), (1, 1 << 17), (1 << 15, 4)])
def test_softmax_of_a_large_tile_is_a_short_module(rows: int, columns: int) -> None:
    x = np.random.default_rng(6).standard_normal((rows, columns)).astype(np.float32)
    out, least = poisoned(rows, columns), poisoned(rows, dtype=np.int32)
    launched(softmax, x, out, M=rows, N=columns)
    launched(least_of_rows, x, least, M=rows, N=columns)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-4)
    np.testing.assert_array_equal(least, x.argmin(1))


@triton.jit
def doubled_in_place(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * 2)


@triton.jit
def reversed_in_place(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + (N - 1 - i), tl.load(x + i))


@triton.jit
def transposed_to(x, out, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + i, tl.trans(tl.load(x + i)))


@triton.jit
def transposed_by_addresses(x, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + j * N + i, tl.load(x + i * N + j))


@triton.jit
def moved_on(x, out, by, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + by + i, tl.load(x + i))


@triton.jit
def used_after_a_store(x, y, z, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, v + 1)
    tl.store(out + i, v + tl.load(z + i))


@triton.jit
def stored_twice(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v)
    tl.store(out + (i ^ (N // 2)), -v)


def test_large_tile_keeps_the_order_of_accesses() -> None:
    x = np.arange(1 << 14, dtype=np.int32)
    n = x.size
    doubled, turned, square = x.copy(), x.copy(), x.reshape(128, 128).copy()
    launched(doubled_in_place, doubled, N=n)
    np.testing.assert_array_equal(doubled, 2 * x)
    reversed_in_place[(1,)](Tensor(turned), N=n)
    np.testing.assert_array_equal(turned, x[::-1])
    # Both arguments are the same array, element for element.
    transposed_to[(1,)](shared := Tensor(square), shared, N=128)
    np.testing.assert_array_equal(square, x.reshape(128, 128).T)
    transposed_by_addresses[(1,)](shared, shared, N=128)
    np.testing.assert_array_equal(square, x.reshape(128, 128))
    longer = np.append(x, np.full(1000, 77, np.int32))
    moved_on[(1,)](shared := Tensor(longer), shared, 1000, N=n)
    np.testing.assert_array_equal(longer, np.append(x[:1000], x))
    both, out = Tensor(x.copy()), poisoned(n, dtype=np.int32)
    used_after_a_store[(1,)](both, both, Tensor(x), Tensor(out), N=n)
    np.testing.assert_array_equal(out, 2 * x)
    stored_twice[(1,)](Tensor(x), Tensor(out), N=n)
    np.testing.assert_array_equal(out, -(x ^ n // 2))
