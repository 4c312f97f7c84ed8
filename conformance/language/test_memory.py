"""Loads and stores: masks, strides, out-of-bounds elements, addresses from memory, block pointers, descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, operand, poisoned

rng = np.random.default_rng(0)


@triton.jit
def masked_copy(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=OTHER)
    tl.store(out + i, v)


@pytest.mark.operation("tl.load with mask and other")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [100, 0])
def test_other_stands_where_a_load_is_masked(dtype: str, n: int) -> None:
    x, out = operand(DTYPES[dtype], 1, 128), poisoned(128, dtype=DTYPES[dtype])
    launch(masked_copy, (1,), x, out, n, OTHER=3, BLOCK=128)
    check(out, np.where(np.arange(128) < n, x, np.array(3, x.dtype)))


@pytest.mark.operation("copy of every bit pattern", type="{dtype}")
@pytest.mark.parametrize("dtype", ["i16", "f16", "bf16"])
def test_copying_keeps_every_bit_of_16_bit_types(dtype: str) -> None:
    bits, out = np.arange(1 << 16, dtype=np.uint16), poisoned(1 << 16, dtype=DTYPES[dtype])
    launch(masked_copy, (64,), bits.view(DTYPES[dtype]), out, bits.size, OTHER=0, BLOCK=1024)
    check(out.array.view(np.uint16), bits)


@triton.jit
def add_masked_rows(x, out, n, rows, N: tl.constexpr):
    j = tl.arange(0, N)
    total = tl.load(x + j)
    for k in range(1, rows):
        total += tl.load(x + k * N + j, mask=(j < n) & (j % 3 != 0), other=1)
    tl.store(out + j, total)
    tl.store(out + N, n)


@pytest.mark.parametrize("n", [1023, 0, 3, 100, 1024])
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


@pytest.mark.parametrize("n", [300, 0, 1, 63, 64, 65])
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
def reverse_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.debug_barrier()
    tl.store(x + (n - 1 - i), v, mask=i < n)


def test_a_barrier_between_a_load_and_a_store_changes_nothing() -> None:
    x = np.arange(100, dtype=np.int32)
    launch(reverse_in_place, (1,), x, 100, BLOCK=128)
    check(x, np.arange(100)[::-1])


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
def hints(x, out, BLOCK: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 8), 8)
    v = tl.load(tl.multiple_of(x + i, 8), cache_modifier=".ca", eviction_policy="evict_first", volatile=True)
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


@triton.jit
def scatter(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + i), tl.load(x + i), mask=i % 2 == 0)


def test_scatter_writes_only_where_its_mask_is_set() -> None:
    x, index, out = (
        rng.standard_normal(64).astype("f"),
        rng.permutation(64).astype(np.int32),
        poisoned(64, dtype=np.float32),
    )
    launch(scatter, (1,), x, index, out, BLOCK=64)
    expected = poisoned(64, dtype=np.float32).array
    expected[index[::2]] = x[::2]
    check(out, expected)


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
    launch(shift_up, (1,), x, BLOCK=128)
    check(x, [0, *range(128)])
    x, out = np.arange(128, dtype="f"), poisoned(128, dtype=np.float32)
    # Two arguments point to the same memory.
    launch(read_then_overwrite, (1,), x, x, out, BLOCK=128)
    check(out, np.arange(128))
    check(x, np.arange(128) * 2)


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
    launch(count_once, (1,), x, index, BLOCK=64)
    check(x, np.ones(8))
    for step, reach in ((1, 31), (0, 16), (16, 256)):
        x = np.zeros(256, np.int32)
        launch(count_once_on_diagonals, (1,), x, step, N=16)
        check(x, np.arange(256) < reach)
