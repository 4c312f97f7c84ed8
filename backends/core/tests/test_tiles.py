"""Shapes, addresses, control flow and the order of memory accesses after the lowering, each compared with NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.errors import LoweringError, UnsupportedOperation
from foundry_core.tensor import Tensor
from image import ON_DPU
from results import poisoned
from shared_kernels import softmax

rng = np.random.default_rng(0)
# Bytes for one program's tiles, of a DPU's 64 KiB of WRAM (foundry_core.mapping.tasklet.target).
WRAM_FOR_TILES = 60416


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
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize(("m", "n"), [(64, 64), (33, 70), (1, 5), (100, 3)])
def test_transpose(m: int, n: int, dtype: Any, by_columns: bool) -> None:
    size = np.dtype(dtype).itemsize
    x = rng.integers(0, 256, (m, n * size), np.uint8).view(dtype)
    out = np.concatenate([poisoned(n, m, dtype=dtype), x[:1, :1].repeat(m, 1)])
    rest = out[n:].tobytes()
    grid = triton.cdiv(m, 16), triton.cdiv(n, 32)
    transpose[grid](Tensor(x), Tensor(out), m, n, n, m, M=16, N=32, BY_COLUMNS=by_columns)
    # Bytes are compared: also those of a signalling NaN are moved as they are.
    assert out[:n].tobytes() == x.T.tobytes()
    assert out[n:].tobytes() == rest


@triton.jit
def sums_of_existing_rows(x, sums, rows, columns, stride, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    tl.store(sums + i, tl.sum(tl.load(x + i[:, None] * stride + j[None, :], mask=mask, other=0.0), 1))


@pytest.mark.parametrize(("rows", "columns"), [(0, 512), (3, 512), (4, 512), (3, 500), (4, 0), (1, 1)])
def test_rows_that_do_not_exist_add_nothing_although_memory_is_there(rows: int, columns: int) -> None:
    x = np.full((5, 512), np.nan, np.float32)
    x[:rows, :columns] = rng.integers(-99, 99, (rows, columns))
    sums = poisoned(4, dtype=np.float32)
    sums_of_existing_rows[(1,)](Tensor(x), Tensor(sums), rows, columns, 512, M=4, N=512)
    assert sums.tolist() == [x[i, :columns].sum() if i < rows else 0.0 for i in range(4)]


@triton.jit
def turned_and_reshaped(x, turned, flat, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + j * M + i)
    tl.store(turned + i * N + j, tile)
    tl.store(flat + tl.arange(0, M * N), tl.reshape(tile, (M * N,)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_tile_that_is_turned_is_also_stored_in_another_shape(dtype: Any) -> None:
    x = rng.integers(0, 256, (32, 8 * np.dtype(dtype).itemsize), np.uint8).view(dtype)
    turned, flat = poisoned(8, 32, dtype=dtype), poisoned(8 * 32, dtype=dtype)
    turned_and_reshaped[(1,)](*map(Tensor, (x, turned, flat)), M=8, N=32)
    assert turned.tobytes() == flat.tobytes() == x.T.tobytes()


@triton.jit
def transpose_under_one_mask(x, out, m, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    inside = (i < m) & (j < n)
    tl.store(out + i * N + j, tl.trans(tl.load(x + i * N + j, mask=inside, other=-1.0)), mask=inside)


def test_a_mask_holds_for_the_tile_that_it_masks_and_not_for_its_transpose() -> None:
    x, out = rng.standard_normal((32, 32)).astype("f"), poisoned(32, 32)
    transpose_under_one_mask[(1,)](Tensor(x), Tensor(out), 20, 9, N=32)
    expected = poisoned(32, 32)
    inside = np.zeros((32, 32), bool)
    inside[:20, :9] = True
    expected[:20, :9] = np.where(inside, x, np.float32(-1)).T[:20, :9]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def outer(x, y, out, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M))
    b = tl.load(y + tl.arange(0, N))
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.exp(a)[:, None] * b[None, :])


@pytest.mark.parametrize(("m", "n"), [(8, 64), (64, 8), (1, 16), (16, 1), (2, 2), (4, 256)])
def test_broadcast_of_rows_and_columns(m: int, n: int) -> None:
    x, y, out = rng.standard_normal(m).astype("f"), rng.standard_normal(n).astype("f"), poisoned(m, n)
    outer[(1,)](Tensor(x), Tensor(y), Tensor(out), M=m, N=n)
    np.testing.assert_allclose(out, np.exp(x.astype("d"))[:, None] * y, rtol=4 * 2.0**-23)


@triton.jit
def gather(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + i, tl.load(x + at, mask=(i < n) & (at % 3 != 0), other=-1.0), mask=i < n)


def test_gather_reads_only_where_its_mask_is_set() -> None:
    x, index, out = rng.standard_normal(500).astype("f"), rng.integers(0, 500, 1000), poisoned(1000)
    # Where the mask is not set, the address is invalid: reading it would fault.
    index[index % 3 == 0] = 3 * 10**15
    gather[(8,)](Tensor(x), Tensor(index), Tensor(out), 1000, BLOCK=128)
    np.testing.assert_array_equal(out, np.where(index % 3 != 0, x[index % 500], np.float32(-1)))


@triton.jit
def rows_by_the_numbers_of_columns(x, index, out, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    chosen = tl.load(index + places, mask=places < n, other=1)
    tile = tl.load(x + chosen[:, None] * BLOCK + places[None, :]) + chosen[None, :]
    tl.store(out + places, tl.sum(tile, 1))


@pytest.mark.parametrize("n", [0, 5, 16, 32])
def test_a_mask_of_indices_holds_for_the_dimension_that_they_index(n: int) -> None:
    x, out = rng.integers(-99, 99, (4, 32)).astype(np.int32), poisoned(32, dtype=np.int32)
    # Behind the first n there are rows that x does not have.
    index = np.concatenate([rng.integers(0, 4, n), np.full(32, 1 << 20)]).astype(np.int32)
    rows_by_the_numbers_of_columns[(1,)](Tensor(x), Tensor(index), Tensor(out), n, BLOCK=32)
    chosen = np.where(np.arange(32) < n, index[:32], 1)
    np.testing.assert_array_equal(out, x[chosen].sum(1) + chosen.sum())


@triton.jit
def scatter(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + i), tl.load(x + i), mask=i % 2 == 0)


def test_scatter_writes_only_where_its_mask_is_set() -> None:
    x, index, out = rng.standard_normal(64).astype("f"), rng.permutation(64).astype(np.int32), poisoned(64)
    scatter[(1,)](Tensor(x), Tensor(index), Tensor(out), BLOCK=64)
    expected = poisoned(64)
    expected[index[::2]] = x[::2]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def strided(x, out, step, first, last, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = (i >= first) & (i < last)
    tl.store(out + i * step, tl.load(x + i * step, mask=inside, other=5.0), mask=i > 2)


@pytest.mark.parametrize(("first", "last"), [(0, 64), (3, 40), (17, 17), (30, 5), (-4, 100)])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_ranges_with_two_ends_and_strides(step: int, first: int, last: int) -> None:
    x, out = rng.standard_normal(64 * 3).astype("f"), poisoned(64 * 3)
    strided[(1,)](Tensor(x), Tensor(out), step, first, last, BLOCK=64)
    expected, i = poisoned(64 * 3), np.arange(64)
    value = np.where((i >= first) & (i < last), x[i * step], np.float32(5))
    expected[(i * step)[3:]] = value[3:]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def wrapped(x, out, first, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (first + i) % size))


@pytest.mark.parametrize(("first", "size"), [(0, 64), (0, 1000), (50, 60), (3, 7), (999, 1000), (0, 1)])
def test_modulo_wraps_any_number_of_times(first: int, size: int) -> None:
    x, out = rng.standard_normal(size).astype("f"), poisoned(64)
    wrapped[(1,)](Tensor(x), Tensor(out), first, size, BLOCK=64)
    np.testing.assert_array_equal(out, x[(first + np.arange(64)) % size])


@triton.jit
def grid_3d(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.store(out + (z * ny + y) * nx + x, x + 10 * y + 100 * z + 1000 * nz)


def test_program_ids_in_three_dimensions() -> None:
    out = poisoned(2, 3, 5, dtype=np.int32)
    grid_3d[(5, 3, 2)](Tensor(out))
    z, y, x = np.indices((2, 3, 5))
    np.testing.assert_array_equal(out, x + 10 * y + 100 * z + 2000)


@triton.jit
def fibonacci(x, out, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = a * 2
    for _ in range(steps):
        a, b = b, a + b
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_tiles_that_a_loop_carries_may_change_places(steps: int) -> None:
    x = rng.integers(-9, 9, 64).astype(np.int32)
    out = poisoned(2, 64, dtype=np.int32)
    fibonacci[(1,)](Tensor(x), Tensor(out), steps, BLOCK=64)
    a, b = x, x * 2
    for _ in range(steps):
        a, b = b, a + b
    np.testing.assert_array_equal(out, [a, b])


@triton.jit
def rotate(x, out, steps, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    for k in range(steps):
        tile = tl.trans(tile) + k
    tl.store(out + i[:, None] * N + i[None, :], tile)


def test_a_carried_tile_may_be_read_in_another_order() -> None:
    x, out = rng.standard_normal((32, 32)).astype("f"), poisoned(32, 32)
    rotate[(1,)](Tensor(x), Tensor(out), 3, N=32)
    np.testing.assert_array_equal(out, ((x.T + np.float32(0)).T + np.float32(1)).T + np.float32(2))


@triton.jit
def branches(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if n > 3:
        v = v * 2
        if n > 10:
            v = tl.sqrt(v)
    else:
        v = v + 1
    k = 0
    while k < n:
        v += k
        k += 2
    tl.store(out + i, v)
    tl.store(out + BLOCK, k * 1.0)


@pytest.mark.parametrize("n", [0, 3, 4, 11])
def test_branches_and_while_loops(n: int) -> None:
    x, out = rng.uniform(0, 9, 128).astype("f"), poisoned(129)
    branches[(1,)](Tensor(x), Tensor(out), n, BLOCK=128)
    v = np.sqrt(x * 2) if n > 10 else x * 2 if n > 3 else x + 1
    for k in range(0, n, 2):
        v = v + np.float32(k)
    np.testing.assert_allclose(out[:128], v, rtol=3 * 2.0**-23)
    assert out[128] == len(range(0, n, 2)) * 2


@triton.jit
def pointers_in_a_loop(x, out, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = x + i * stride
    offsets = i
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total += tl.load(p) + tl.load(x + offsets)
        p += 1 + tl.arange(0, BLOCK)
        offsets += 2
    tl.store(out + i, total)


def test_pointers_and_offsets_that_a_loop_moves() -> None:
    n, x, out = 5, rng.integers(-99, 99, 4000).astype("f"), poisoned(64)
    pointers_in_a_loop[(1,)](Tensor(x), Tensor(out), n, 3, BLOCK=64)
    i = np.arange(64)
    expected = sum(x[i * 3 + k * (1 + i)] + x[i + 2 * k] for k in range(n))
    np.testing.assert_array_equal(out, expected)


@triton.jit
def shift_up(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(x + i + 1, v)


@triton.jit
def read_then_overwrite(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, v * 2)
    tl.store(out + i, v)


def test_a_load_sees_what_was_there_before_a_later_store() -> None:
    x = np.arange(129, dtype="f")
    shift_up[(1,)](Tensor(x), BLOCK=128)
    np.testing.assert_array_equal(x, [0, *range(128)])
    x, out = np.arange(128, dtype="f"), poisoned(128)
    # Two arguments point to the same memory.
    read_then_overwrite[(1,)](Tensor(x), Tensor(x), Tensor(out), BLOCK=128)
    np.testing.assert_array_equal(out, np.arange(128))
    np.testing.assert_array_equal(x, np.arange(128) * 2)


@triton.jit
def count_once(x, index, BLOCK: tl.constexpr):
    at = x + tl.load(index + tl.arange(0, BLOCK))
    tl.store(at, tl.load(at) + 1)


@triton.jit
def count_once_on_diagonals(x, step, N: tl.constexpr):
    at = x + tl.arange(0, N)[:, None] * step + tl.arange(0, N)[None, :]
    tl.store(at, tl.load(at) + 1)


def test_an_element_that_several_indices_share_is_read_before_it_is_written() -> None:
    x, index = np.zeros(8, np.int32), np.repeat(np.arange(8), 8).astype(np.int32)
    count_once[(1,)](Tensor(x), Tensor(index), BLOCK=64)
    np.testing.assert_array_equal(x, np.ones(8))
    for step, reach in ((1, 31), (0, 16), (16, 256)):
        x = np.zeros(256, np.int32)
        count_once_on_diagonals[(1,)](Tensor(x), step, N=16)
        np.testing.assert_array_equal(x, np.arange(256) < reach)


@triton.jit
def two_wraps(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + (i % n) + (j % n)))


def test_dimensions_wrap_each_by_its_own_extent() -> None:
    x, out = rng.standard_normal(64).astype("f"), poisoned(16, 64)
    two_wraps[(1,)](Tensor(x), Tensor(out), 20, M=16, N=64)
    np.testing.assert_array_equal(out, x[np.arange(16)[:, None] % 20 + np.arange(64) % 20])


@triton.jit
def odd_masks(x, out, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = i * N + j
    tl.store(out + at, tl.load(x + at, mask=(i != j) & ~(j < n), other=7.0), mask=(i != 5) & ((i < 9) | (j == 3)))


def test_masks_that_are_no_rectangle() -> None:
    x, out = rng.standard_normal((16, 16)).astype("f"), poisoned(16, 16)
    odd_masks[(1,)](Tensor(x), Tensor(out), 4, N=16)
    i, j = np.indices((16, 16))
    value = np.where((i != j) & (j >= 4), x, np.float32(7))
    np.testing.assert_array_equal(out, np.where((i != 5) & ((i < 9) | (j == 3)), value, poisoned(1)))


@triton.jit
def narrow_offsets(x, delta, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + 128 + tl.load(delta + i) * 2))


def test_offsets_of_8_bits_wrap_around() -> None:
    x, delta, out = rng.standard_normal(256).astype("f"), np.arange(-128, 128, dtype=np.int8)[::4].copy(), poisoned(64)
    narrow_offsets[(1,)](Tensor(x), Tensor(delta), Tensor(out), BLOCK=64)
    np.testing.assert_array_equal(out, x[128 + (delta * 2).astype(np.int8).astype(int)])


@triton.jit
def long_chain(x, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for k in tl.static_range(STEPS):
        v = tl.where(v > k, v - k, v + 1)
    tl.store(x + i, v)


def test_long_expressions_that_share_their_parts() -> None:
    x = rng.integers(0, 999, 64).astype(np.int32)
    expected = x.copy()
    for k in range(300):
        expected = np.where(expected > k, expected - k, expected + 1)
    long_chain[(1,)](Tensor(x), STEPS=300, BLOCK=64)
    np.testing.assert_array_equal(x, expected)


@triton.jit
def rows_in_nested_loops(x, out, rows, parts, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + i
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(rows):
        for _ in range(parts):
            total += tl.load(at)
            at += BLOCK
        at += 1
    tl.store(out + i, total)


def test_pointers_that_nested_loops_move() -> None:
    x, out = rng.integers(-99, 99, 999).astype("f"), poisoned(64)
    rows_in_nested_loops[(1,)](Tensor(x), Tensor(out), 3, 4, BLOCK=64)
    starts = [(4 * row + part) * 64 + row for row in range(3) for part in range(4)]
    np.testing.assert_array_equal(out, sum(x[s : s + 64] for s in starts))


@triton.jit
def one_of_two(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = x
    if n > 3:
        source = y
    tl.store(out + i, tl.load(source + i))


@pytest.mark.parametrize("n", [3, 4])
def test_a_pointer_may_be_chosen(n: int) -> None:
    x, y, out = np.zeros(64, "f"), np.ones(64, "f"), poisoned(64)
    one_of_two[(1,)](Tensor(x), Tensor(y), Tensor(out), n, BLOCK=64)
    np.testing.assert_array_equal(out, y if n > 3 else x)


@pytest.mark.parametrize("n", [1, 7, 64, 100, 128])
def test_softmax(n: int) -> None:
    x, out = rng.standard_normal((9, n)).astype("f"), poisoned(9, n)
    softmax[(9,)](Tensor(x), Tensor(out), n, n, BLOCK=128)
    e = np.exp(x.astype("d") - x.max(1, keepdims=True))
    # 3 ulp of exp and half an ulp of its argument (below 8, so 4 ulp of the result), and the same for each summand.
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=16 * 2.0**-23)


@triton.jit
def reductions(x, sums, tops, at, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, L: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    i = tl.arange(0, L)
    tl.store(sums + i, tl.sum(v, AXIS))
    tl.store(tops + i, tl.max(v, AXIS))
    tl.store(at + i, tl.argmax(v, AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(16, 64), (64, 16), (4, 2), (1, 32), (32, 1)])
def test_reductions_along_each_axis(m: int, n: int, axis: int) -> None:
    x = rng.integers(-99, 99, (m, n)).astype(np.int32)
    length = x.sum(axis).shape[0]
    sums, tops, at = (poisoned(length, dtype=np.int32) for _ in range(3))
    reductions[(1,)](Tensor(x), Tensor(sums), Tensor(tops), Tensor(at), M=m, N=n, AXIS=axis, L=length)
    np.testing.assert_array_equal(sums, x.sum(axis))
    np.testing.assert_array_equal(tops, x.max(axis))
    np.testing.assert_array_equal(at, x.argmax(axis))


@triton.jit
def rows_of_any_length(x, sums, most, places, n, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(sums + row, tl.sum(tl.load(x + row * n + offsets, mask=mask, other=0.0), 0))
    v = tl.load(x + row * n + offsets, mask=mask, other=-float("inf"))
    largest, place = tl.max(v, 0, return_indices=True)
    tl.store(most + row, largest)
    tl.store(places + row, place)


@pytest.mark.every_cpu
@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 80, 250, 511, 512])
def test_rows_of_any_length_are_reduced(n: int) -> None:
    x = rng.integers(-5, 6, (4, n)).astype("f")
    # Zeros of both signs are equal: the first one is the largest.
    x[1] = np.where(np.arange(n) % 2 == 0, np.float32(-0.0), np.float32(0.0))
    x[2, n // 2] = np.inf
    x[3] = -np.inf
    x[3, -1] = 7
    sums, most, places = poisoned(5), poisoned(5), poisoned(5, dtype=np.int32)
    rows_of_any_length[(4,)](Tensor(x), Tensor(sums), Tensor(most), Tensor(places), n, BLOCK=512)
    np.testing.assert_array_equal(places, [*x.argmax(1), *poisoned(1, dtype=np.int32)])
    np.testing.assert_array_equal(most[:4].view(np.int32), x[np.arange(4), x.argmax(1)].view(np.int32))
    np.testing.assert_array_equal(sums[:4], x.sum(1))
    assert most[4] == sums[4] == poisoned()


@triton.jit
def dots(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    z = tl.load(c + i[:, None] * N + j[None, :])
    z = tl.dot(x, y, z, out_dtype=z.dtype)
    # The first product is used twice: directly, and as the accumulator of the second.
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y, z, out_dtype=z.dtype) - z)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (1, 4, 2), (2, 128, 64), (128, 8, 16), (64, 2, 1)])
@pytest.mark.parametrize("types", [("f", "f"), ("e", "f"), ("d", "d"), ("b", "i")], ids="-".join)
def test_dot_of_all_shapes(m: int, n: int, k: int, types: tuple[str, str]) -> None:
    if types[0] == "d" and triton.__version__.startswith("3.2."):
        pytest.skip("Triton 3.2 has no tl.dot of f64")
    a, b = (rng.integers(-8, 8, s).astype(types[0]) for s in ((m, k), (k, n)))
    c = rng.integers(-8, 8, (m, n)).astype(types[1])
    expected = a.astype("d") @ b.astype("d")
    if ON_DPU and a.nbytes + b.nbytes + c.nbytes > WRAM_FOR_TILES:
        with pytest.raises(LoweringError, match=f"of which a DPU has {WRAM_FOR_TILES} bytes"):
            dots[(1,)](Tensor(a), Tensor(b), Tensor(c), M=m, N=n, K=k)
        return
    dots[(1,)](Tensor(a), Tensor(b), Tensor(c), M=m, N=n, K=k)
    np.testing.assert_array_equal(c, expected)


@triton.jit
def masked_product(a, b, c, m, n, k, OTHER: tl.constexpr, STEPWISE: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    i, j, part = tl.arange(0, M), tl.arange(0, M), tl.arange(0, K)
    total = tl.zeros((M, M), tl.float32)
    for step in range(tl.cdiv(k, K)):
        depth = step * K + part
        x = tl.load(a + i[:, None] * k + depth[None, :], mask=(i[:, None] < m) & (depth[None, :] < k), other=OTHER)
        y = tl.load(b + depth[:, None] * n + j[None, :], mask=(depth[:, None] < k) & (j[None, :] < n), other=OTHER)
        total = tl.dot(x, y, total) + 1.0
        if STEPWISE:
            # Each step stores one row more than the one before.
            tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] <= step) & (j[None, :] < n))
    if not STEPWISE:
        tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@pytest.mark.every_cpu
@pytest.mark.parametrize(("other", "stepwise"), [(0.0, False), (2.0, False), (0.0, True)])
def test_only_what_is_neither_stored_nor_added_is_left_out_of_a_product(other: float, stepwise: bool) -> None:
    for m, n, k in (5, 7, 9), (17, 29, 41), (31, 30, 47):
        a, b = (rng.integers(-8, 8, s).astype("f") for s in ((m, k), (k, n)))
        c = np.full((32, n), 7, "f")
        masked_product[(1,)](Tensor(a), Tensor(b), Tensor(c), m, n, k, OTHER=other, STEPWISE=stepwise, M=32, K=16)
        steps = -(-k // 16)
        x = np.pad(a, ((0, 0), (0, 16 * steps - k)), constant_values=other)
        y = np.pad(b, ((0, 16 * steps - k), (0, 0)), constant_values=other)
        expected = np.full((32, n), 7.0)
        for step in range(steps):
            rows = min(step + 1, m) if stepwise else m
            expected[:rows] = x[:rows, : 16 * (step + 1)] @ y[: 16 * (step + 1)] + step + 1
        np.testing.assert_array_equal(c, expected)


@triton.jit
def shift_up_by_a_pointer_that_moves(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x
    for _ in range(n):
        v = tl.load(at + i)
        tl.store(x + 1 + i, v)
        at += 1


def test_a_pointer_that_a_loop_moves_may_point_anywhere() -> None:
    x = np.arange(68, dtype="f")
    expected = x.copy()
    for k in range(3):
        expected[1:65] = expected[k : k + 64].copy()
    shift_up_by_a_pointer_that_moves[(1,)](Tensor(x), 3, BLOCK=64)
    np.testing.assert_array_equal(x, expected)


@triton.jit
def attention(q, k, v, out, n, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    queries = tl.load(q + i[:, None] * D + d[None, :], mask=i[:, None] < n, other=0.0)
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for first in tl.range(0, tl.minimum((tl.program_id(0) + 1) * M, n), N, num_stages=2):
        at = first + j
        keys = tl.load(k + at[None, :] * D + d[:, None], mask=at[None, :] < n, other=0.0)
        scores = tl.dot(queries, keys) * scale
        scores = tl.where((at[None, :] < n) & (i[:, None] >= at[None, :]), scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights, shrink = tl.exp(scores - higher[:, None]), tl.exp(top - higher)
        values = tl.load(v + at[:, None] * D + d[None, :], mask=at[:, None] < n, other=0.0)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        top = higher
    tl.store(out + i[:, None] * D + d[None, :], result / total[:, None], mask=i[:, None] < n)


def test_causal_attention() -> None:
    """A combination: masks that are not rectangles, reductions, five loop-carried values, two dots."""
    n, d, scale = 200, 32, 0.3
    q, k, v = (rng.standard_normal((n, d)).astype("f") for _ in range(3))
    out = poisoned(n, d)
    attention[(triton.cdiv(n, 64),)](Tensor(q), Tensor(k), Tensor(v), Tensor(out), n, scale, D=d, M=64, N=32)
    scores = np.where(np.tril(np.ones((n, n), bool)), q.astype("d") @ k.T.astype("d") * scale, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype("d")
    # A score is a sum of d products. Its error is d ulp of sum |q k|, which is below 2 d; exp makes it relative.
    bound = 2.0**-24 * (d * scale * (np.abs(q) @ np.abs(k).T).max() + n + 8) * np.abs(v).max()
    assert np.all(np.abs(out - expected) <= bound)


@triton.jit
def convert(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def test_every_f16_survives_the_way_to_f32_and_back() -> None:
    halves, wide = np.arange(1 << 16, dtype=np.uint16).view(np.float16), poisoned(1 << 16)
    convert[(256,)](Tensor(halves), Tensor(wide), BLOCK=256)
    numbers = ~np.isnan(halves)
    assert np.isnan(wide[~numbers]).all()
    np.testing.assert_array_equal(wide[numbers].view(np.uint32), halves[numbers].astype("f").view(np.uint32))
    back = np.full(1 << 16, 77, np.float16)
    convert[(256,)](Tensor(wide), Tensor(back), BLOCK=256)
    assert np.isnan(back[~numbers]).all()
    np.testing.assert_array_equal(back[numbers].view(np.uint16), halves[numbers].view(np.uint16))


def test_f32_around_the_middle_between_two_f16_rounds_to_the_next_one() -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype("d")
    middles = ((halves + np.append(halves[1:], 65536.0)) / 2).astype("f")
    x = np.concatenate([middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(1e38))])
    # Values that are too large, and f32's subnormals.
    x = np.concatenate([x, [1e38, np.inf, 1e-45, 2.0**-126]]).astype("f")
    x = np.resize(np.concatenate([x, -x]), -(-2 * len(x) // 256) * 256)
    out = np.full(len(x), np.nan, np.float16)
    convert[(len(x) // 256,)](Tensor(x), Tensor(out), BLOCK=256)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out.view(np.uint16), x.astype(np.float16).view(np.uint16))


@triton.jit
def promises(x, n, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    i = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), BLOCK), BLOCK)
    v = tl.load(tl.multiple_of(x + i, 16), mask=i < n, eviction_policy="evict_last", cache_modifier=".cg")
    tl.store(x + i, v + 1, mask=i < n, eviction_policy="evict_first")


def test_hints_and_promises_change_nothing() -> None:
    x = np.zeros(100, "f")
    promises[(1,)](Tensor(x), 100, BLOCK=128)
    assert np.all(x == 1)


@triton.jit
def long_code(x, out, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for k in tl.static_range(STAGES):
        v = tl.where(v > k, v * 3 - k, v + (k ^ 5))
        if k % 8 == 7:
            v += tl.sum(v)
    tl.store(out + i, v)


# The middle one is too long for a DPU if loops over its tiles are unrolled, although the estimate does not show it.
@pytest.mark.parametrize("stages", [16, 64, 160])
def test_code_of_any_length_that_fits(stages: int) -> None:
    x, out = rng.integers(-100, 100, 256).astype(np.int32), poisoned(256, dtype=np.int32)
    long_code[(4,)](Tensor(x), Tensor(out), STAGES=stages, BLOCK=64)
    v = x.reshape(4, 64)
    for k in range(stages):
        v = np.where(v > k, v * np.int32(3) - np.int32(k), v + np.int32(k ^ 5))
        if k % 8 == 7:
            v = v + v.sum(1, dtype=np.int32, keepdims=True)
    np.testing.assert_array_equal(out, v.reshape(-1))


@triton.jit
def huge(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    b = a * 2
    for _ in range(n):
        a, b = b, a
    tl.store(out + at, a + b)


def test_tiles_that_do_not_fit_private_memory_are_refused_with_the_numbers() -> None:
    x = Tensor(np.zeros(1024 * 1024 + 1, "f"))
    limit = f"a DPU has {WRAM_FOR_TILES} bytes" if ON_DPU else "gives a program 6144 KiB"
    with pytest.raises(LoweringError, match=rf"huge keeps \d{{5,}} \w+ .* {limit}"):
        huge[(1,)](x, x, 3, N=1024)


@triton.jit
def assembly(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [i], tl.int32, is_pure=True, pack=1))


def test_an_unsupported_operation_is_refused_by_name_and_line() -> None:
    with pytest.raises(UnsupportedOperation) as refused:
        assembly[(1,)](Tensor(np.zeros(16, "i4")), BLOCK=16)
    assert refused.value.operation == "tt.elementwise_inline_asm"
    assert str(refused.value).endswith("next: write it with functions of tl, or of triton.language.extra.libdevice")
    line = assembly.fn.__code__.co_firstlineno + 3
    assert refused.value.place.endswith(f"test_tiles.py:{line}")


@triton.jit
def waits(out, n):
    while n > 0:
        pass
    k = n
    while k > 0:
        k = k | 1
    while tl.load(out + n) == 0:
        k += 1
    tl.store(out, 7)


def test_a_loop_that_only_waits_is_kept() -> None:
    out = np.full(1, 1, np.int32)
    kernel = waits[(1,)](Tensor(out), 0)
    assert out.tolist() == [7]
    if "tile" in kernel.asm:
        # Each loop has an effect that no compiler removes.
        assert kernel.asm["tile"].count("tile.keep") == 3
        assert kernel.asm["llir"].count("store volatile") == 3


@triton.jit
def counts_down(out, n):
    while tl.load(out) > n:
        tl.store(out, tl.load(out) - 1)


def test_a_loop_that_carries_nothing() -> None:
    out = np.full(1, 9, np.int32)
    kernel = counts_down[(1,)](Tensor(out), 4)
    assert out.tolist() == [4]
    assert "tile.keep" not in kernel.asm.get("tile", "")
