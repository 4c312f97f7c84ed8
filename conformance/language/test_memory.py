"""Loads and stores: masks, strides, out-of-bounds elements, addresses from memory, block pointers, descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, operand, poisoned


@triton.jit
def masked_copy(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=OTHER)
    tl.store(out + i, v)


@pytest.mark.operation("tl.load with mask and other")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 100])
def test_other_stands_where_a_load_is_masked(dtype: str, n: int) -> None:
    x, out = operand(DTYPES[dtype], 1, 128), poisoned(128, dtype=DTYPES[dtype])
    launch(masked_copy, (1,), x, out, n, OTHER=3, BLOCK=128)
    check(out, np.where(np.arange(128) < n, x, np.array(3, x.dtype)))


@triton.jit
def add_masked_rows(x, out, n, rows, N: tl.constexpr):
    j = tl.arange(0, N)
    total = tl.load(x + j)
    for k in range(1, rows):
        total += tl.load(x + k * N + j, mask=(j < n) & (j % 3 != 0), other=1)
    tl.store(out + j, total)
    tl.store(out + N, n)


@pytest.mark.parametrize("n", [0, 3, 100, 1023, 1024])
def test_most_of_a_long_row_is_masked_by_an_end_and_by_each_element(n: int) -> None:
    size = 1024
    x, out = np.random.default_rng(4).integers(-99, 99, (3, size)).astype(np.int32), poisoned(size + 1, dtype=np.int32)
    launch(add_masked_rows, (1,), x, out, n, 3, N=size)
    j = np.arange(size)
    check(out, np.append(x[0] + np.where((j < n) & (j % 3 != 0), x[1:], 1).sum(0), n))


@triton.jit
def masked_store(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=(i < n) & (i % 3 != 1))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 300])
def test_a_masked_store_leaves_what_was_there(n: int) -> None:
    x, out = operand(np.int32, 1, 384), poisoned(384, dtype=np.int32)
    i = np.arange(384)
    reference = np.where((i < n) & (i % 3 != 1), x, out.array)
    launch(masked_store, (3,), x, out, n, BLOCK=128)
    check(out, reference)


@triton.jit
def copy_tile(x, out, m, n, stride_x, stride_out, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inside = (i < m) & (j < n)
    tl.store(out + i + j * stride_out, tl.load(x + i * stride_x + j, mask=inside), mask=inside)


@pytest.mark.operation("tl.load and tl.store of a transposed tile")
@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "i64"])
@pytest.mark.parametrize(("m", "n"), [(16, 16), (1, 1), (17, 33), (5, 40), (40, 5)])
def test_rows_become_columns_with_edges(dtype: str, m: int, n: int) -> None:
    x, out = operand(DTYPES[dtype], 1, m * n).reshape(m, n), poisoned(n, m, dtype=DTYPES[dtype])
    launch(copy_tile, (triton.cdiv(m, 16), triton.cdiv(n, 16)), x, out, m, n, n, m, M=16, N=16)
    check(out, x.T)


@triton.jit
def gather_rows(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + i, tl.load(x + at, mask=(i < n) & (at >= 0), other=-1), mask=i < n)


def test_a_gather_reads_only_where_its_mask_is_set() -> None:
    x = operand(np.int32, 1, 50)
    index = np.random.default_rng(3).integers(0, 50, 100)
    # Reading at these addresses would fault.
    index[::5] = -(10**14)
    out = poisoned(100, dtype=np.int32)
    launch(gather_rows, (1,), x, index, out, 100, BLOCK=128)
    check(out, np.where(index >= 0, x[np.maximum(index, 0)], -1))


@triton.jit
def scatter(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + i), tl.load(x + i))


def test_a_scatter_writes_each_element_at_its_index() -> None:
    x, index, out = operand(np.float32, 1, 64), np.random.default_rng(4).permutation(64), poisoned(64, dtype=np.float32)
    launch(scatter, (1,), x, index, out, BLOCK=64)
    reference = np.empty_like(x)
    reference[index] = x
    check(out, reference)


@triton.jit
def scalars(x, out, flag, scale):
    v = tl.load(x)
    if flag:
        tl.store(out, v * scale)
    tl.store(out + 1, v + 1)


@pytest.mark.parametrize("flag", [True, False])
def test_scalars_are_loaded_and_stored(flag: bool) -> None:
    x, out = np.array([2.5], np.float32), poisoned(2, dtype=np.float32)
    launch(scalars, (1,), x, out, flag, 3.0)
    check(out, np.array([7.5 if flag else out.array[0], 3.5]))


@triton.jit
def shift_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(x + i + 1, v, mask=i < n)


def test_a_tile_is_loaded_before_it_is_stored_over() -> None:
    x = poisoned(64, dtype=np.int32)
    x.fill(np.arange(64))
    launch(shift_in_place, (1,), x, 63, BLOCK=64)
    check(x, np.concatenate([[0], np.arange(63)]))


@triton.jit
def grid_of_three(out, X: tl.constexpr, Y: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    value = x * 10000 + y * 100 + z + tl.num_programs(0) * 1000000
    tl.store(out + x + X * (y + Y * z), value)


def test_each_program_of_a_grid_runs_once() -> None:
    out = poisoned(2, 3, 4, dtype=np.int32)
    launch(grid_of_three, (4, 3, 2), out, X=4, Y=3)
    z, y, x = np.indices((2, 3, 4))
    check(out, x * 10000 + y * 100 + z + 4000000)


@triton.jit
def negative_stride(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x - i, mask=i < n), mask=i < n)


def test_addresses_may_go_backwards() -> None:
    x, out = operand(np.float32, 1, 100), poisoned(100, dtype=np.float32)
    launch(negative_stride, (1,), x[::-1], out, 100, BLOCK=128)
    check(out, x[::-1])


@triton.jit
def by_block_pointer(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    a = tl.make_block_ptr(x, (m, n), (n, 1), (0, 0), (M, N), (1, 0))
    b = tl.make_block_ptr(out, (m, n), (n, 1), (0, 0), (M, N), (1, 0))
    for _ in range(tl.cdiv(n, N)):
        v = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        tl.store(b, v + 1, boundary_check=(0, 1))
        a = tl.advance(a, (0, N))
        b = tl.advance(b, (0, N))


@pytest.mark.operation("tl.make_block_ptr")
@pytest.mark.parametrize(("m", "n"), [(16, 32), (13, 29), (1, 1)])
def test_block_pointers(m: int, n: int) -> None:
    x, out = operand(np.int32, 1, m * n).reshape(m, n), poisoned(m, n, dtype=np.int32)
    launch(by_block_pointer, (1,), x, out, m, n, M=16, N=16)
    with np.errstate(over="ignore"):
        check(out, x + 1)


@triton.jit
def by_descriptor(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    a = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    b = tl.make_tensor_descriptor(out, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    for j in range(0, n, N):
        b.store([0, j], a.load([0, j]) * 2)


@pytest.mark.operation("tl.make_tensor_descriptor")
@pytest.mark.skipif(not hasattr(tl, "make_tensor_descriptor"), reason="this release of Triton has no descriptors")
@pytest.mark.parametrize(("m", "n"), [(16, 32), (13, 28), (3, 4)])
def test_descriptors(m: int, n: int) -> None:
    x, out = operand(np.float32, 1, m * n, special=False).reshape(m, n), poisoned(m, n, dtype=np.float32)
    launch(by_descriptor, (1,), x, out, m, n, M=16, N=16)
    check(out, x.astype(np.float64) * 2)


@triton.jit
def through_pointers_in_memory(table, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(table + i).to(tl.pointer_type(tl.int32))
    tl.store(out + i, tl.load(at))


def test_integers_become_pointers() -> None:
    x, out = operand(np.int32, 1, 16), poisoned(16, dtype=np.int32)
    order = np.random.default_rng(5).permutation(16)
    table = (x.ctypes.data + 4 * order).astype(np.int64)
    launch(through_pointers_in_memory, (1,), table, out, BLOCK=16)
    check(out, x[order])


@triton.jit
def chosen_pointer(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(tl.where(i % 2 == 0, x + i, y + i)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pointer_of_any_type_is_chosen_for_each_element(dtype: str) -> None:
    x, y, out = operand(DTYPES[dtype], 1, 32), operand(DTYPES[dtype], 2, 32), poisoned(32, dtype=DTYPES[dtype])
    launch(chosen_pointer, (1,), x, y, out, BLOCK=32)
    check(out, np.where(np.arange(32) % 2 == 0, x, y))


@triton.jit
def chosen_targets(x, y, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.where(i % 3 == 0, x + i, y + n - 1 - i)
    tl.store(target, tl.load(value + i, mask=i < n), mask=(i < n) & (i % 5 != 0))


def test_stores_go_where_the_chosen_pointers_point() -> None:
    n = 300
    x, y, value = poisoned(n, dtype=np.int32), poisoned(n, dtype=np.int32), operand(np.int32, 1, n)
    i = np.arange(n)
    expected = (
        np.where((i % 3 == 0) & (i % 5 != 0), value, x.array),
        np.where((i % 3 != 0) & (i % 5 != 0), value, y.array),
    )
    for place in np.flatnonzero((i % 3 == 0) | (i % 5 == 0)):
        expected[1][place] = y.array[n - 1 - place]
    launch(chosen_targets, (3,), x, y, value, n, BLOCK=128)
    check(x, expected[0])
    check(y, expected[1][::-1].copy())


@triton.jit
def pointers_in_branches(x, y, out, turns, BLOCK: tl.constexpr):
    i, turn = tl.arange(0, BLOCK), 0
    p, q = x + i, y + i
    while turn < turns:
        p, q = q, p
        if turn == 2:
            q = x + 2 * i
        else:
            p += BLOCK
        turn += 1
    tl.store(out + i, tl.load(p) * 2 + tl.load(q))


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4])
def test_loops_and_branches_move_pointers(turns: int) -> None:
    x, y, out = operand(np.int32, 1, 128), operand(np.int32, 2, 128), poisoned(16, dtype=np.int32)
    i = np.arange(16)
    p, q = (x, i), (y, i)
    for turn in range(turns):
        p, q = q, p
        if turn == 2:
            q = (x, 2 * i)
        else:
            p = (p[0], p[1] + 16)
    launch(pointers_in_branches, (1,), x, y, out, turns, BLOCK=16)
    check(out, p[0][p[1]] * 2 + q[0][q[1]])


@triton.jit
def summed_groups(table, sizes, out, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    i, total = tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32)
    for group in range(GROUPS):
        first, size = tl.load(table + group).to(tl.pointer_type(tl.float16)), tl.load(sizes + group)
        for start in range(0, size, BLOCK):
            total += tl.load(first + start + i, mask=start + i < size, other=0.0)
    tl.store(out + i, total)


def test_arrays_are_reached_through_a_table_of_their_addresses() -> None:
    sizes = np.array([5, 64, 130, 1], np.int32)
    arrays = [operand(np.float16, seed, size, special=False) for seed, size in enumerate(sizes.tolist())]
    table, out = np.array([array.ctypes.data for array in arrays], np.int64), poisoned(64, dtype=np.float32)
    launch(summed_groups, (1,), table, sizes, out, GROUPS=4, BLOCK=64)
    padded = [np.pad(array.astype(np.float64), (0, 192 - array.size)).reshape(3, 64).sum(0) for array in arrays]
    np.testing.assert_allclose(out.array, sum(padded), atol=2.0**-18)


@triton.jit
def hints(x, out, BLOCK: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 8), 8)
    v = tl.load(x + i, cache_modifier=".ca", eviction_policy="evict_first", volatile=True)
    tl.assume(tl.num_programs(0) == 1)
    tl.store(out + i, v, cache_modifier=".wb", eviction_policy="evict_last")


def test_hints_change_nothing() -> None:
    x, out = operand(np.float32, 1, 64), poisoned(64, dtype=np.float32)
    launch(hints, (1,), x, out, BLOCK=64)
    check(out, x)


def test_strided_arrays_are_passed_by_their_first_element() -> None:
    whole: Any = np.arange(200, dtype=np.int32).reshape(10, 20)
    out = poisoned(4, 5, dtype=np.int32)
    launch(copy_tile, (1, 1), whole[2:7, 3:7], out, 5, 4, 20, 5, M=16, N=16)
    check(out, whole[2:7, 3:7].T)
