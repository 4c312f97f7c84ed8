"""Masks of each form, strides, and offsets that wrap around: only what they name is read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import check, launch, poisoned

rng = np.random.default_rng(0)


@triton.jit
def transpose(x, out, m, n, stride_x, stride_out, M: tl.constexpr, N: tl.constexpr, BY_COLUMNS: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    mask = (i[:, None] < m) & (j[None, :] < n)
    tile = tl.load(x + i[:, None] * stride_x + j[None, :], mask=mask)
    if BY_COLUMNS:
        tl.store(out + j[None, :] * stride_out + i[:, None], tile, mask=mask)
    else:
        tl.store(out + j[:, None] * stride_out + i[None, :], tl.trans(tile), mask=(j[:, None] < n) & (i[None, :] < m))


@pytest.mark.every_cpu
@pytest.mark.operation("tl.load and tl.store of a transposed tile")
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize(("m", "n"), [(64, 64), (33, 70), (1, 5), (100, 3)])
def test_transpose(m: int, n: int, dtype: Any, by_columns: bool) -> None:
    size = np.dtype(dtype).itemsize
    x = rng.integers(0, 256, (m, n * size), np.uint8).view(dtype)
    out = poisoned(n, m, dtype=dtype)
    grid = triton.cdiv(m, 16), triton.cdiv(n, 32)
    launch(transpose, grid, x, out, m, n, n, m, M=16, N=32, BY_COLUMNS=by_columns)
    # Bytes are compared: also those of a signalling NaN are moved as they are.
    assert out.array.tobytes() == x.T.tobytes()
    out.check_fences("the output")


@triton.jit
def sums_of_existing_rows(x, sums, rows, columns, stride, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    tl.store(sums + i, tl.sum(tl.load(x + i[:, None] * stride + j[None, :], mask=mask, other=0.0), 1))


@pytest.mark.parametrize(("rows", "columns"), [(3, 500), (0, 512), (3, 512), (4, 512), (4, 0), (1, 1)])
def test_rows_that_do_not_exist_add_nothing_although_memory_is_there(rows: int, columns: int) -> None:
    x = np.full((5, 512), np.nan, np.float32)
    x[:rows, :columns] = rng.integers(-99, 99, (rows, columns))
    sums = poisoned(4, dtype=np.float32)
    launch(sums_of_existing_rows, (1,), x, sums, rows, columns, 512, M=4, N=512)
    check(sums, [x[i, :columns].sum() if i < rows else 0.0 for i in range(4)])


@triton.jit
def transpose_under_one_mask(x, out, m, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    inside = (i < m) & (j < n)
    tl.store(out + i * N + j, tl.trans(tl.load(x + i * N + j, mask=inside, other=-1.0)), mask=inside)


def test_a_mask_holds_for_the_tile_that_it_masks_and_not_for_its_transpose() -> None:
    x, out = rng.standard_normal((32, 32)).astype("f"), poisoned(32, 32, dtype=np.float32)
    launch(transpose_under_one_mask, (1,), x, out, 20, 9, N=32)
    expected = poisoned(32, 32, dtype=np.float32).array
    inside = np.zeros((32, 32), bool)
    inside[:20, :9] = True
    expected[:20, :9] = np.where(inside, x, np.float32(-1)).T[:20, :9]
    check(out, expected)


@triton.jit
def rows_by_the_numbers_of_columns(x, index, out, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    chosen = tl.load(index + places, mask=places < n, other=1)
    tile = tl.load(x + chosen[:, None] * BLOCK + places[None, :]) + chosen[None, :]
    tl.store(out + places, tl.sum(tile, 1))


@pytest.mark.parametrize("n", [5, 0, 16, 32])
def test_a_mask_of_indices_holds_for_the_dimension_that_they_index(n: int) -> None:
    x, out = rng.integers(-99, 99, (4, 32)).astype(np.int32), poisoned(32, dtype=np.int32)
    # Behind the first n there are rows that x does not have.
    index = np.concatenate([rng.integers(0, 4, n), np.full(32, 1 << 20)]).astype(np.int32)
    launch(rows_by_the_numbers_of_columns, (1,), x, index, out, n, BLOCK=32)
    chosen = np.where(np.arange(32) < n, index[:32], 1)
    check(out, x[chosen].sum(1) + chosen.sum())


@triton.jit
def strided(x, out, step, first, last, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = (i >= first) & (i < last)
    tl.store(out + i * step, tl.load(x + i * step, mask=inside, other=5.0), mask=i > 2)


@pytest.mark.parametrize(("first", "last"), [(3, 40), (0, 64), (17, 17), (30, 5), (-4, 100)])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_ranges_with_two_ends_and_strides(step: int, first: int, last: int) -> None:
    x, out = rng.standard_normal(64 * 3).astype("f"), poisoned(64 * 3, dtype=np.float32)
    launch(strided, (1,), x, out, step, first, last, BLOCK=64)
    expected, i = poisoned(64 * 3, dtype=np.float32).array, np.arange(64)
    value = np.where((i >= first) & (i < last), x[i * step], np.float32(5))
    expected[(i * step)[3:]] = value[3:]
    check(out, expected)


@triton.jit
def wrapped(x, out, first, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (first + i) % size))


@pytest.mark.parametrize(("first", "size"), [(0, 64), (0, 1000), (50, 60), (3, 7), (999, 1000), (0, 1)])
def test_modulo_wraps_any_number_of_times(first: int, size: int) -> None:
    x, out = rng.standard_normal(size).astype("f"), poisoned(64, dtype=np.float32)
    launch(wrapped, (1,), x, out, first, size, BLOCK=64)
    check(out, x[(first + np.arange(64)) % size])


@triton.jit
def two_wraps(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + (i % n) + (j % n)))


def test_dimensions_wrap_each_by_its_own_extent() -> None:
    x, out = rng.standard_normal(64).astype("f"), poisoned(16, 64, dtype=np.float32)
    launch(two_wraps, (1,), x, out, 20, M=16, N=64)
    check(out, x[np.arange(16)[:, None] % 20 + np.arange(64) % 20])


@triton.jit
def odd_masks(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = i * N + j
    tl.store(out + at, tl.load(x + at, mask=(i != j) & ~(j < n), other=7.0), mask=(i != 5) & ((i < 9) | (j == 3)))


def test_masks_that_are_no_rectangle() -> None:
    x, out = rng.standard_normal((16, 16)).astype("f"), poisoned(16, 16, dtype=np.float32)
    launch(odd_masks, (1,), x, out, 4, N=16)
    i, j = np.indices((16, 16))
    value = np.where((i != j) & (j >= 4), x, np.float32(7))
    check(out, np.where((i != 5) & ((i < 9) | (j == 3)), value, poisoned(1, dtype=np.float32).array))


@triton.jit
def narrow_offsets(x, delta, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + 128 + tl.load(delta + i) * 2))


def test_offsets_of_8_bits_wrap_around() -> None:
    x, delta, out = (
        rng.standard_normal(256).astype("f"),
        np.arange(-128, 128, dtype=np.int8)[::4].copy(),
        poisoned(64, dtype=np.float32),
    )
    launch(narrow_offsets, (1,), x, delta, out, BLOCK=64)
    check(out, x[128 + (delta * 2).astype(np.int8).astype(int)])
