"""Tiles that a loop adds to, and vectors of which only some elements exist: each element compared bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from image import ON_DPU
from results import before_a_closed_page, check_same

pytestmark = pytest.mark.any_release

rng = np.random.default_rng(0)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-40, 3.4028235e38, 6.1e-5, 1.0], np.float32)


def random(*shape: int, dtype: Any) -> np.ndarray:
    if np.dtype(dtype).kind != "f":
        return rng.integers(-128, 127, shape).astype(dtype)
    found = rng.standard_normal(shape).astype(dtype)
    with np.errstate(over="ignore"):
        found.reshape(-1)[::7] = SPECIAL[np.arange(len(found.reshape(-1)[::7])) % len(SPECIAL)]
    return found


@triton.jit
def weighted(a, x, out, m, n, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), KIND)
    for first in range(0, n, BN):
        inside = first + columns < n
        mask = (rows < m)[:, None] & inside[None, :]
        one = tl.load(a + rows[:, None] * n + first + columns[None, :], mask=mask, other=2)
        total += one.to(KIND) * tl.load(x + first + columns, mask=inside, other=3).to(KIND)[None, :]
    tl.store(out + rows[:, None] * BN + columns[None, :], total, mask=(rows < m)[:, None] & (columns >= 0)[None, :])


@pytest.mark.every_cpu
@pytest.mark.parametrize(("bm", "bn"), [(1, 64), (4, 16), (8, 16), (2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8])
def test_a_sum_of_rows(dtype: Any, bm: int, bn: int) -> None:
    carried, kind = (tl.float32, np.float32) if np.dtype(dtype).kind == "f" else (tl.int32, np.int32)
    for m, n in ((5, 0), (5, 1), (11, 3 * bn), (3, 2 * bn + 5)):
        a, x = random(m, n, dtype=dtype), random(n, dtype=dtype)
        out = np.full((m + 1, bn), 77, kind)
        weighted[(triton.cdiv(m, bm),)](Tensor(a), Tensor(x), Tensor(out), m, n, BM=bm, BN=bn, KIND=carried)
        steps = triton.cdiv(n, bn)
        wide_a, wide_x = np.full((m, steps * bn), 2, kind), np.full(steps * bn, 3, kind)
        wide_a[:, :n], wide_x[:n] = a, x
        expected = np.zeros((m, bn), kind)
        with np.errstate(all="ignore"):
            for step in range(steps):
                here = slice(step * bn, (step + 1) * bn)
                expected += wide_a[:, here] * wide_x[here]
        np.testing.assert_array_equal(out[:m], expected)
        np.testing.assert_array_equal(np.signbit(out[:m]), np.signbit(expected)) if kind == np.float32 else None
        assert (out[m] == 77).all()


@triton.jit
def moved(x, start, out, n, steps, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    here, scale = x + places, 1.0
    total, most = tl.load(start + places), tl.full((BLOCK,), float("-inf"), tl.float32)
    for step in range(steps):
        found = tl.load(here, mask=step * BLOCK + places < n, other=float("nan"))
        total += found * scale
        most = tl.maximum(most, found)
        here += BLOCK
        scale *= 0.5
    tl.store(out + places, total)
    tl.store(out + BLOCK + places, most)
    tl.store(out + 2 * BLOCK + places, tl.load(here, mask=places < n - steps * BLOCK, other=scale))


@pytest.mark.every_cpu
@pytest.mark.parametrize(("n", "steps"), [(0, 0), (0, 2), (40, 1), (128, 3), (77, 3), (300, 4)])
def test_pointers_and_scalars_that_the_loop_moves(n: int, steps: int) -> None:
    x, out = random(n, dtype=np.float32), np.full((3, 32), 77, np.float32)
    x[np.isnan(x)] = 1.0
    # Triton 3.6.0 makes 0.0 of a constant -0.0.
    start = np.full(32, -0.0, np.float32)
    moved[(1,)](Tensor(x), Tensor(start), Tensor(out), n, steps, BLOCK=32)
    wide = np.full((steps + 1, 32), np.nan, np.float32)
    wide.reshape(-1)[:n] = x[: wide.size]
    scales = np.float32(0.5) ** np.arange(steps + 1, dtype=np.float32)
    total, most = start.copy(), np.full(32, -np.inf, np.float32)
    with np.errstate(all="ignore"):
        for step in range(steps):
            total += wide[step] * scales[step]
            most = np.fmax(most, wide[step])
    rest = np.where(np.arange(32) < n - steps * 32, wide[steps], scales[steps])
    check_same(out, np.stack([total, most, rest]))


@triton.jit
def around_the_end_of_i32(x, out, start, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int32)
    for first in range(start, start + 48, 16):
        offsets = first + tl.arange(0, BLOCK)
        total += tl.load(x + (offsets - start), mask=offsets < n, other=1000)
    tl.store(out + tl.arange(0, BLOCK), total)


@pytest.mark.every_cpu
def test_offsets_that_wrap_around_are_below_every_limit() -> None:
    start, n = 2**31 - 80, 2**31 - 50
    x, out = np.arange(96, dtype=np.int32), np.full(64, 77, np.int32)
    around_the_end_of_i32[(1,)](Tensor(x), Tensor(out), start, n, BLOCK=64)
    offsets = start + np.arange(0, 48, 16)[:, None] + np.arange(64)
    exists = (offsets < n) | (offsets >= 2**31)
    np.testing.assert_array_equal(out, np.where(exists, offsets - start, 1000).sum(0))


@triton.jit
def nested(x, out, outer, inner, size, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    total, other = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
    for i in range(outer):
        part = tl.zeros((BLOCK,), tl.int32)
        for j in range(inner):
            part += tl.load(x + (i * inner + j + places) % size)
        if i % 2 == 0:
            total, other = other + part, total
        tl.store(out + (2 + i) * BLOCK + places, total)
    tl.store(out + places, total)
    tl.store(out + BLOCK + places, other)


@pytest.mark.every_cpu
@pytest.mark.parametrize(("outer", "inner", "size"), [(3, 0, 9), (0, 2, 9), (4, 5, 1), (3, 4, 11), (3, 4, 1000)])
def test_loops_in_loops_whose_tiles_change_places(outer: int, inner: int, size: int) -> None:
    x, out = rng.integers(-99, 99, size).astype(np.int32), np.full((2 + outer, 16), 77, np.int32)
    nested[(1,)](Tensor(x), Tensor(out), outer, inner, size, BLOCK=16)
    expected = np.full((2 + outer, 16), 77, np.int32)
    total, other = np.zeros((2, 16), np.int32)
    for i in range(outer):
        part = sum((x[(i * inner + j + np.arange(16)) % size] for j in range(inner)), np.zeros(16, np.int32))
        if i % 2 == 0:
            total, other = other + part, total
        expected[2 + i] = total
    expected[:2] = total, other
    np.testing.assert_array_equal(out, expected)


@triton.jit
def some(x, chosen, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (places < n) & (tl.load(chosen + places, mask=places < n, other=0) != 0)
    tl.store(out + places, tl.load(x + places, mask=mask, other=5), mask=places < n)
    tl.store(out + n + places, tl.load(x + places, mask=places < n), mask=mask)


@pytest.mark.every_cpu
@pytest.mark.skipif(ON_DPU, reason="a DPU does not read the host's pages")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8, np.int64])
def test_elements_that_do_not_exist_are_neither_read_nor_written(dtype: Any) -> None:
    """What follows the arrays is a page that the process may not access."""
    for n in (0, 1, 15, 77, 128):
        x, out = before_a_closed_page(n, dtype), before_a_closed_page(2 * n, dtype)
        x[:], out[:] = rng.integers(-9, 9, n), 77
        chosen = rng.integers(0, 2, n).astype(np.int8)
        some[(3,)](Tensor(x), Tensor(chosen), Tensor(out), n, BLOCK=64)
        np.testing.assert_array_equal(out[:n], np.where(chosen, x, 5))
        np.testing.assert_array_equal(out[n:], np.where(chosen, x, 77))
