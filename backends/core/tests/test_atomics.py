"""Atomic operations of many programs at once, on the active driver's device.

The grids have more programs than the device has threads or tasklets, and several elements of a tile have one address.
Sums are of small whole numbers, which are exact in every type and in every order.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.failure import Failure
from foundry_core.tensor import Tensor
from image import BACKEND

PROGRAMS, BLOCK, BINS = 300, 32, 7
N = PROGRAMS * BLOCK - 5  # the last program is masked
INTEGERS = {"i32": np.int32, "u64": np.uint64}
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
if triton.__version__.startswith("3.2."):
    del FLOATS["bf16"]  # Triton itself refuses it


def launched(dtype: Any) -> AbstractContextManager[object]:
    """Return the context of a launch on arrays of a type: vsi refuses 64 bits by the missing capability of SPIR-V."""
    if BACKEND == "vsi" and np.dtype(dtype).itemsize == 8:
        return pytest.raises(Failure, match=r"Int64Atomics|Float64")
    return nullcontext()


@triton.jit
def change(x, sums, most, least, both, either, odd, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    at = i % BINS
    tl.atomic_add(sums + at, v, mask=i < n)
    tl.atomic_max(most + at, v, mask=i < n, sem="relaxed")
    tl.atomic_min(least + at, v, mask=i < n, sem="acquire", scope="sys")
    tl.atomic_and(both + at, v | 0x55, mask=i < n, sem="release", scope="cta")
    tl.atomic_or(either + at, v & 0x30F0, mask=i < n)
    tl.atomic_xor(odd + at, v, mask=i < n)


@pytest.mark.parametrize("dtype", INTEGERS.values(), ids=INTEGERS)
def test_integers_are_those_of_the_operations_one_after_the_other(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, N, dtype, endpoint=True)
    starts = [np.arange(BINS, dtype=dtype), *(x[n : n + BINS].copy() for n in (0, 7, 14, 21, 28))]
    found = [start.copy() for start in starts]
    with launched(dtype):
        change[(PROGRAMS,)](Tensor(x), *(Tensor(a) for a in found), N, BINS=BINS, BLOCK=BLOCK)
        functions = (np.add, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
        values = (x, x, x, x | dtype(0x55), x & dtype(0x30F0), x)
        for function, value, start, result in zip(functions, values, starts, found, strict=True):
            expected = [function.reduce(np.append(value[b::BINS], start[b]), dtype=dtype) for b in range(BINS)]
            np.testing.assert_array_equal(result, expected, err_msg=function.__name__)


@triton.jit
def add_floats(x, sums, most, least, zeros, zero, n, EXTREMES: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(sums + i % BINS, (i % 3).to(v.dtype), mask=(i < n) & (i % 16 == 0))
    # Neighbours share a word of 4 bytes. A -0.0 changes nothing.
    tl.atomic_add(zeros + pid % 5, tl.load(zero))
    if EXTREMES:
        tl.atomic_max(most + i % BINS, v, mask=i < n)
        tl.atomic_min(least + i % BINS, v, mask=i < n)


@pytest.mark.parametrize("dtype", FLOATS.values(), ids=FLOATS)
def test_floats_are_exact_and_special_values_keep_their_bits(dtype: Any) -> None:
    x = np.random.default_rng(2).normal(size=N).astype(dtype)
    x[0], x[1], x[2::BINS] = -np.inf, np.inf, -np.abs(x[2::BINS]) - dtype(1)
    # An odd number of elements from an odd one on, so the first and last words have neighbours.
    memory = np.full(BINS + 3, 77, dtype)
    sums = memory[1 : BINS + 1]
    sums[:] = np.arange(BINS)
    most, least = np.full(BINS, -np.inf, dtype), np.full(BINS, 3, dtype)
    zeros = np.array([-0.0, 0.0, np.nan, -np.inf, 5], dtype)
    before, bits = zeros.copy(), np.dtype(f"u{np.dtype(dtype).itemsize}")
    with launched(dtype):
        arrays = (Tensor(a) for a in (x, sums, most, least, zeros, zeros[:1].copy()))
        add_floats[(PROGRAMS,)](*arrays, N, EXTREMES=bits.itemsize >= 4, BINS=BINS, BLOCK=BLOCK)
        i = np.arange(0, N, 16)
        expected = np.arange(BINS) + np.bincount(i % BINS, weights=i % 3)
        np.testing.assert_array_equal(sums.astype(np.float64), expected)
        assert (memory[[0, -2, -1]] == dtype(77)).all()
        np.testing.assert_array_equal(zeros.view(bits), before.view(bits))
        if bits.itemsize >= 4:
            np.testing.assert_array_equal(most, [x[b::BINS].max() for b in range(BINS)])
            np.testing.assert_array_equal(least, [min(x[b::BINS].min(), dtype(3)) for b in range(BINS)])


@triton.jit
def take_tickets(counters, scalars, tiles, sums, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    r, c = tl.arange(0, 4)[:, None], tl.arange(0, BLOCK // 4)[None, :]
    i = pid * BLOCK + r * (BLOCK // 4) + c
    one = tl.atomic_add(counters, 3)
    old = tl.atomic_add(counters + 1 + (i & 0), 1, mask=i < n)
    tl.store(scalars + pid, one)
    tl.store(tiles + i, old, mask=i < n)
    for turn in range(2):
        if pid % 2 == turn:
            # Nobody uses the result, and only some programs come here.
            tl.atomic_add(counters + 2, turn + 1)
    # A result that is used twice, once as a whole.
    tl.store(sums + pid * 4 + tl.arange(0, 4), tl.max(tl.where(i < n, old, -1), 1))


def test_returned_values_are_those_of_some_order() -> None:
    counters = np.array([5, 0, 0, 9], np.int32)
    scalars, tiles, largest = (
        np.full(PROGRAMS, -1, np.int32),
        np.full(N, -1, np.int32),
        np.full(PROGRAMS * 4, -2, np.int32),
    )
    take_tickets[(PROGRAMS,)](*(Tensor(a) for a in (counters, scalars, tiles, largest)), N, BLOCK=BLOCK)
    assert counters.tolist() == [5 + 3 * PROGRAMS, N, PROGRAMS // 2 * 3, 9]
    np.testing.assert_array_equal(np.sort(scalars), 5 + 3 * np.arange(PROGRAMS))
    np.testing.assert_array_equal(np.sort(tiles), np.arange(N))
    rows = np.append(tiles, [-1] * (PROGRAMS * BLOCK - N)).reshape(PROGRAMS * 4, -1)
    np.testing.assert_array_equal(largest, rows.max(1))


@triton.jit
def exchange(cells, floats, scalars, tiles, swapped, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(scalars + pid, tl.atomic_xchg(cells, pid + 1))
    # All elements of all tiles exchange with one float.
    mine = (pid * BLOCK + i + 1).to(tl.float32)
    tl.store(tiles + pid * BLOCK + i, tl.atomic_xchg(floats + i * 0, mine))
    # One program succeeds for each number, in the order of the numbers.
    seen = tl.atomic_cas(cells + 1, pid, pid + 1)
    while seen < pid:
        seen = tl.atomic_cas(cells + 1, pid, pid + 1)
    tl.store(swapped + pid, seen)


def test_exchanges_and_swaps_pass_each_value_on_once() -> None:
    cells, floats = np.zeros(2, np.int32), np.zeros(1, np.float32)
    scalars, swapped = np.full(PROGRAMS, -1, np.int32), np.full(PROGRAMS, -1, np.int32)
    tiles = np.full(PROGRAMS * BLOCK, np.nan, np.float32)
    exchange[(PROGRAMS,)](*(Tensor(a) for a in (cells, floats, scalars, tiles, swapped)), BLOCK=BLOCK)
    np.testing.assert_array_equal(np.sort([*scalars, cells[0]]), np.arange(PROGRAMS + 1))
    np.testing.assert_array_equal(np.sort([*tiles, floats[0]]), np.arange(PROGRAMS * BLOCK + 1))
    assert cells[1] == PROGRAMS
    np.testing.assert_array_equal(swapped, np.arange(PROGRAMS))


@triton.jit
def accumulate_in_turns(lock, total, turns, order, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    # As in Triton's tutorial on layer normalization: the first one stores, the others add.
    count = tl.load(lock + 1)
    value = i + pid
    if count == 0:
        tl.atomic_xchg(lock + 1, 1)
    else:
        value += tl.load(total + i)
    tl.store(total + i, value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")
    # Each program waits for the one before it.
    while tl.load(turns, volatile=True) != pid:
        pass
    place = tl.load(turns + 1)
    tl.store(order + place, pid)
    tl.store(turns + 1, place + 1)
    tl.atomic_add(turns, 1)


def test_locks_and_volatile_loads_order_programs() -> None:
    programs = 64
    lock, turns = np.zeros(2, np.int32), np.zeros(2, np.int32)
    total, order = np.full(BLOCK, 77, np.int32), np.full(programs, -1, np.int32)
    accumulate_in_turns[(programs,)](*(Tensor(a) for a in (lock, total, turns, order)), BLOCK=BLOCK)
    np.testing.assert_array_equal(total, np.arange(BLOCK) * programs + programs * (programs - 1) // 2)
    np.testing.assert_array_equal(order, np.arange(programs))
    assert (lock.tolist(), turns.tolist()) == ([0, 1], [programs, programs])


@triton.jit
def in_order(x, before, after, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    old = tl.atomic_add(x + i, a + 1, mask=i < n)
    b = tl.load(x + i)
    tl.atomic_max(x + (i ^ 1), 10 * b)
    tl.store(before + i, tl.where(i < n, a - old, 0))
    tl.store(after + i, b)


def test_loads_stay_where_they_are_among_atomics() -> None:
    x = np.arange(2 * BLOCK, dtype=np.int32)
    before, after = np.full(x.size, 77, np.int32), np.full(x.size, 77, np.int32)
    in_order[(2,)](Tensor(x), Tensor(before), Tensor(after), x.size - 3, BLOCK=BLOCK)
    i = np.arange(x.size)
    expected = np.where(i < x.size - 3, 2 * i + 1, i)
    np.testing.assert_array_equal(before, np.zeros(x.size))
    np.testing.assert_array_equal(after, expected)
    np.testing.assert_array_equal(x, np.maximum(expected, 10 * expected[i ^ 1]))


@triton.jit
def counts_down(count, seen, n, BLOCK: tl.constexpr):
    while tl.load(count) > n:
        tl.store(count, tl.load(count) - 1)
    place = tl.load(count)
    tl.store(count, place + 5)
    tl.store(seen + tl.arange(0, BLOCK), place)
    tl.atomic_add(count, 10)
    tl.store(seen + BLOCK + tl.arange(0, BLOCK), tl.load(count))


def test_a_program_reads_the_scalars_that_it_stored() -> None:
    count, seen = np.full(1, 1000, np.int32), np.full(2 * BLOCK, -1, np.int32)
    counts_down[(1,)](Tensor(count), Tensor(seen), 4, BLOCK=BLOCK)
    np.testing.assert_array_equal(seen, np.repeat([4, 19], BLOCK))
    assert count.tolist() == [19]


if hasattr(tl, "atomic_load"):  # since 3.9

    @triton.jit
    def load_and_store(x, flags, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        pid = tl.program_id(0)
        if pid == 0:
            tl.atomic_store(out + i, tl.atomic_load(x + i, mask=i < 9), mask=i < 8)
            tl.atomic_store(flags, 1)
        else:
            if pid == 1:
                while tl.atomic_load(flags) == 0:
                    pass
            elif tl.atomic_poll(flags, 1):
                tl.atomic_poll(flags + i * 0, 1, sem="relaxed")
            tl.store(out + pid * BLOCK + i, tl.atomic_load(out + i))

    @pytest.mark.parametrize("dtype", [np.int8, np.float32])
    def test_atomic_loads_and_stores(dtype: Any) -> None:
        x, flags, out = np.arange(1, 17).astype(dtype), np.zeros(1, np.int32), np.full(64, 77, dtype)
        load_and_store[(4,)](Tensor(x), Tensor(flags), Tensor(out), BLOCK=16)
        np.testing.assert_array_equal(out, np.tile(np.append(x[:8], np.full(8, 77, dtype)), 4))
