"""Atomic operations: every operation and type, masks, the values returned, several programs at once.

The grids have more programs than a device has threads or tasklets, and several elements of a tile have one address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, RELEASE, check, imported, launch, poisoned
from guarded import Guarded

PROGRAMS, BLOCK, BINS = 300, 32, 7
N = PROGRAMS * BLOCK - 5  # the last program is masked
BITWISE = ("and", "or", "xor")
TYPES = ("i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64")
OPERATIONS: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
# Triton's front end accepts floating-point sums of all types, and minima and maxima of 32 bits and more.
CASES = [
    (op, dtype)
    for op in OPERATIONS
    for dtype in TYPES
    if dtype[0] in "iu" or op == "add" or (op not in BITWISE and dtype in ("f32", "f64"))
]


# Options of the operations: none changes a value.
OPTIONS = {"max": 'sem="relaxed"', "min": 'sem="acquire", scope="sys"', "and": 'sem="release", scope="cta"'}
KERNELS = """
import triton
import triton.language as tl

@triton.jit
def accumulate(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_OP(out + i % BINS, tl.load(x + i, mask=i < n), mask=i < n, OPTIONS)

@triton.jit
def change(x, y, old, n, R: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0) * (R * C) + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(old + i, tl.atomic_OP(x + i, tl.load(y + i, mask=i < n), mask=i < n), mask=i < n)

@triton.jit
def change_tiles(out, x, ROWS: tl.constexpr, COLUMNS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) - 1
    v = tl.load(x + i + 1) + tl.arange(0, M)[:, None].to(x.dtype.element_ty) + tl.zeros([M, N], x.dtype.element_ty)
    a = tl.make_tensor_descriptor(out, shape=[ROWS, COLUMNS], strides=[COLUMNS, 1], block_shape=[M, N])
    a.atomic_OP([i * 2, i * 4], v)
"""


def kernels(op: str) -> Any:
    """Return a module with these kernels for an atomic operation."""
    return imported(KERNELS.replace("OPTIONS", OPTIONS.get(op, "")).replace("OP", op))


@pytest.mark.operation("tl.atomic_{op}")
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_programs_accumulate_into_the_same_elements(op: str, dtype: str) -> None:
    """Floats that are added are small whole numbers, whose sums are exact in every type and in any order."""
    kind, random = DTYPES[dtype], np.random.default_rng(15)
    if dtype[0] in "iu":
        x = random.integers(np.iinfo(kind).min, np.iinfo(kind).max, N, kind, endpoint=True)
        if op in ("and", "or"):
            # Some bits stay as they are in all numbers: else the result is 0, or all ones.
            x = x | kind(0x55) if op == "and" else x & kind(0x30)
        start = np.full(BINS, -1 if dtype[0] == "i" else np.iinfo(kind).max, kind) if op == "and" else np.arange(BINS)
    elif op == "add":
        x, start = np.where(np.arange(N) % 16 == 0, random.integers(0, 3, N), 0).astype(kind), np.arange(BINS)
    else:
        # All numbers of one bin are negative, and another has an infinity.
        x, start = random.normal(size=N).astype(kind), np.full(BINS, -np.inf if op == "max" else 3)
        x[2::BINS] = -np.abs(x[2::BINS]) - 1
        x[3] = np.inf if op == "max" else -np.inf
    start = start.astype(kind)
    # At an odd element: the first and the last word have neighbours.
    out = Guarded((BINS,), kind, fence=BLOCK, offset=1)
    out.fill(start)
    launch(kernels(op).accumulate, (PROGRAMS,), x, out, N, BINS=BINS, BLOCK=BLOCK)
    reference = [OPERATIONS[op].reduce(np.append(x[b::BINS], start[b]), dtype=kind) for b in range(BINS)]
    check(out, np.array(reference))


@triton.jit
def add_nothing(zeros, zero):
    tl.atomic_add(zeros + tl.program_id(0) % 5, tl.load(zero))


@pytest.mark.each_image
@pytest.mark.operation("tl.atomic_add")
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_special_values_keep_their_bits_when_a_negative_zero_is_added(dtype: str) -> None:
    if dtype == "bf16" and RELEASE < (3, 3):
        pytest.skip("this release of Triton has no sums of bf16")
    zeros = np.array([-0.0, 0.0, np.nan, -np.inf, 5], DTYPES[dtype])
    bits, before = f"u{zeros.itemsize}", zeros.copy()
    launch(add_nothing, (PROGRAMS,), zeros, zeros[:1].copy())
    np.testing.assert_array_equal(zeros.view(bits), before.view(bits))


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_each_element_returns_what_it_was(op: str, dtype: str) -> None:
    rows, columns = 4, 16
    n = 3 * rows * columns - 2
    random = np.random.default_rng(16)
    x, y = (random.integers(0 if dtype[0] == "u" else -50, 50, n).astype(DTYPES[dtype]) for _ in range(2))
    start, old = x.copy(), poisoned(n, dtype=DTYPES[dtype])
    launch(kernels(op).change, (3,), x, y, old, n, R=rows, C=columns)
    check(old, start)
    np.testing.assert_array_equal(x, OPERATIONS[op](start, y))


@triton.jit
def exchange(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.atomic_xchg(x + i, tl.load(y + i)))


@pytest.mark.operation("tl.atomic_xchg")
@pytest.mark.parametrize("dtype", ["i32", "i64", "f32", "f64"])
def test_exchange_returns_what_was_there(dtype: str) -> None:
    x, y = np.arange(32).astype(DTYPES[dtype]), np.arange(100, 132).astype(DTYPES[dtype])
    old, out = x.copy(), poisoned(32, dtype=DTYPES[dtype])
    launch(exchange, (1,), x, y, out, BLOCK=32)
    check(out, old)
    np.testing.assert_array_equal(x, y)


@triton.jit
def compare_and_swap(x, expected, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.atomic_cas(x + i, tl.load(expected + i), tl.load(y + i)))


@pytest.mark.operation("tl.atomic_cas")
@pytest.mark.parametrize("dtype", ["i16", "i32", "i64", "f16", "f32", "f64"])
def test_compare_and_swap_stores_where_it_found_what_was_expected(dtype: str) -> None:
    x, y = np.arange(32).astype(DTYPES[dtype]), np.arange(100, 132).astype(DTYPES[dtype])
    expected = np.where(np.arange(32) % 3 == 0, x, -1).astype(x.dtype)
    old, out = x.copy(), poisoned(32, dtype=DTYPES[dtype])
    launch(compare_and_swap, (1,), x, expected, y, out, BLOCK=32)
    check(out, old)
    np.testing.assert_array_equal(x, np.where(expected == old, y, old))


# Those of CASES that the front end accepts of a descriptor.
OF_DESCRIPTORS = [
    (op, dtype)
    for op, dtype in CASES
    if (op == "add" and dtype not in ("i64", "f64")) or (op != "add" and dtype[0] in "iu")
]


@pytest.mark.operation("atomic_{op} of a descriptor")
@pytest.mark.skipif(not hasattr(tl, "make_tensor_descriptor"), reason="this release of Triton has no descriptors")
@pytest.mark.parametrize(("op", "dtype"), OF_DESCRIPTORS)
def test_descriptors_change_tiles_that_overlap_and_reach_over_the_edges(op: str, dtype: str) -> None:
    """Seven programs change tiles of 4 x 8 elements, each two rows and four columns after the one before."""
    rows, columns, m, n = 10, 24, 4, 8
    random = np.random.default_rng(17)
    x = random.integers(0, 9, 7).astype(DTYPES[dtype])
    out = poisoned(rows, columns, dtype=DTYPES[dtype])
    reference = random.integers(0, 9, (rows, columns)).astype(DTYPES[dtype])
    out.fill(reference)
    launch(kernels(op).change_tiles, (7,), out, x, ROWS=rows, COLUMNS=columns, M=m, N=n)
    for program in range(7):
        for i, j in np.ndindex(m, n):
            at = 2 * (program - 1) + i, 4 * (program - 1) + j
            if 0 <= at[0] < rows and 0 <= at[1] < columns:
                reference[at] = OPERATIONS[op](reference[at], x[program] + x.dtype.type(i))
    check(out, reference)


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


@pytest.mark.operation("value returned by tl.atomic_add", type="i32")
def test_returned_values_are_those_of_some_order() -> None:
    counters = np.array([5, 0, 0, 9], np.int32)
    scalars, tiles, largest = (
        np.full(PROGRAMS, -1, np.int32),
        np.full(N, -1, np.int32),
        np.full(PROGRAMS * 4, -2, np.int32),
    )
    launch(take_tickets, (PROGRAMS,), *(a for a in (counters, scalars, tiles, largest)), N, BLOCK=BLOCK)
    assert counters.tolist() == [5 + 3 * PROGRAMS, N, PROGRAMS // 2 * 3, 9]
    check(np.sort(scalars), 5 + 3 * np.arange(PROGRAMS))
    check(np.sort(tiles), np.arange(N))
    rows = np.append(tiles, [-1] * (PROGRAMS * BLOCK - N)).reshape(PROGRAMS * 4, -1)
    check(largest, rows.max(1))


@triton.jit
def exchange_and_swap(cells, floats, scalars, tiles, swapped, BLOCK: tl.constexpr):
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
    launch(exchange_and_swap, (PROGRAMS,), *(a for a in (cells, floats, scalars, tiles, swapped)), BLOCK=BLOCK)
    check(np.sort([*scalars, cells[0]]), np.arange(PROGRAMS + 1))
    check(np.sort([*tiles, floats[0]]), np.arange(PROGRAMS * BLOCK + 1))
    assert cells[1] == PROGRAMS
    check(swapped, np.arange(PROGRAMS))


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


@pytest.mark.operation("lock of tl.atomic_cas and tl.atomic_xchg", type="i32")
def test_locks_and_volatile_loads_order_programs() -> None:
    programs = 64
    lock, turns = np.zeros(2, np.int32), np.zeros(2, np.int32)
    total, order = np.full(BLOCK, 77, np.int32), np.full(programs, -1, np.int32)
    launch(accumulate_in_turns, (programs,), *(a for a in (lock, total, turns, order)), BLOCK=BLOCK)
    check(total, np.arange(BLOCK) * programs + programs * (programs - 1) // 2)
    check(order, np.arange(programs))
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
    launch(in_order, (2,), x, before, after, x.size - 3, BLOCK=BLOCK)
    i = np.arange(x.size)
    expected = np.where(i < x.size - 3, 2 * i + 1, i)
    check(before, np.zeros(x.size))
    check(after, expected)
    check(x, np.maximum(expected, 10 * expected[i ^ 1]))


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
    launch(counts_down, (1,), count, seen, 4, BLOCK=BLOCK)
    check(seen, np.repeat([4, 19], BLOCK))
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
        launch(load_and_store, (4,), x, flags, out, BLOCK=16)
        check(out, np.tile(np.append(x[:8], np.full(8, 77, dtype)), 4))
