"""Rows between MRAM and WRAM: whole words or not, elements that do not exist, tiles that change their direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor

rng = np.random.default_rng(0)


@triton.jit(do_not_specialize=["low", "high", "first", "to"])
def moved_kernel(x_ptr, out_ptr, low, high, first, to, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + at, mask=(at >= low) & (at < high), other=7)
    tl.store(out_ptr + to + at, x)


@triton.jit
def turned_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x), mask=tl.trans(inside))


@triton.jit
def scaled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=-1000).to(tl.float32)
    difference = x - tl.max(x, axis=0)
    squares = difference * difference
    tl.store(out_ptr + at, squares / tl.sum(tl.where(inside, squares, 0.0), axis=0), mask=inside)


@triton.jit
def staged_kernel(a_ptr, b_ptr, out_ptr, n, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Keep several tiles at different times, some of them over a loop."""
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = row[:, None] * columns + column[None, :]
    a = tl.load(a_ptr + at)
    total = a - tl.sum(a, axis=1)[:, None]
    for i in range(n):
        b = tl.load(b_ptr + i * ROWS * columns + at)
        c = b * 2 - tl.max(b, axis=1)[:, None]
        total += c * tl.sum(c, axis=1)[:, None]
    tl.store(out_ptr + at, total + a)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.float16])
def test_a_row_is_moved_whatever_its_offset_in_a_word(kind: Any) -> None:
    x = rng.integers(0, 100, 400).astype(kind)
    for first, to, low, high in [(16, 16, 0, 256), (3, 3, 5, 200), (3, 2, 0, 255), (16, 5, 0, 0), (5, 16, 300, 400)]:
        out = np.full(400, 99, kind)
        moved_kernel[(1,)](Tensor(x), Tensor(out), low, high, first, to, BLOCK=256)
        at = np.arange(256)
        exact = np.full(400, 99, kind)
        exact[to : to + 256] = np.where((at >= low) & (at < high), x[first : first + 256], 7)
        assert np.array_equal(out, exact), (first, to, low, high)


@pytest.mark.parametrize(("first", "to"), [(0, 0), (16, 32), (0, 8), (4, 4), (8, 3), (1, 0), (5, 7)])
def test_an_array_begins_at_any_byte(first: int, to: int) -> None:
    x, out = rng.integers(0, 100, 400).astype(np.int8), np.full(400, 99, np.int8)
    moved_kernel[(1,)](Tensor(x[first:]), Tensor(out[to:]), 0, 256, 0, 0, BLOCK=256)
    exact = np.full(400, 99, np.int8)
    exact[to : to + 256] = x[first : first + 256]
    assert np.array_equal(out, exact)


@pytest.mark.parametrize(("rows", "columns", "block"), [(37, 50, (32, 16)), (40, 41, (16, 32)), (8, 3, (16, 16))])
def test_tiles_are_turned(rows: int, columns: int, block: tuple[int, int]) -> None:
    x = rng.uniform(-1, 1, (rows, columns)).astype(np.float32)
    out = np.full((columns, rows), np.nan, np.float32)
    grid = (-(-rows // block[0]), -(-columns // block[1]))
    turned_kernel[grid](Tensor(x), Tensor(out), rows, columns, ROWS=block[0], COLUMNS=block[1])
    assert np.array_equal(out, x.T)


@pytest.mark.parametrize("n", [1, 7, 250, 256])
def test_a_tile_takes_the_place_of_one_that_is_read_last(n: int) -> None:
    x = rng.integers(-100, 100, n).astype(np.int32)
    x[0], x[n // 2] = 0, 100
    out = np.full(n + 8, np.nan, np.float32)
    scaled_kernel[(1,)](Tensor(x), Tensor(out), n, BLOCK=256)
    squares = (x.astype(np.float64) - x.max()) ** 2
    with np.errstate(invalid="ignore"):
        exact = squares / squares.sum()
    assert np.allclose(out[:n], exact, rtol=300 * np.finfo(np.float32).eps, atol=0, equal_nan=True)
    assert np.isnan(out[n:]).all()


def test_tiles_that_are_needed_at_the_same_time_have_different_places() -> None:
    rows, columns, n = 4, 32, 3
    a, b = rng.integers(-9, 9, (rows, columns), np.int32), rng.integers(-9, 9, (n, rows, columns), np.int32)
    out = np.full_like(a, -1)
    staged_kernel[(1,)](Tensor(a), Tensor(b), Tensor(out), n, columns, ROWS=rows, COLUMNS=columns)
    exact = a - a.sum(axis=1, keepdims=True)
    for tile in b:
        c = tile * 2 - tile.max(axis=1, keepdims=True)
        exact += c * c.sum(axis=1, keepdims=True)
    assert np.array_equal(out, exact + a)
