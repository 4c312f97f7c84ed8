"""Atomic operations: every operation and type, masks, the values returned, several programs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, poisoned

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


@triton.jit
def accumulate(x, out, n, OP: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    at = out + i % BINS
    if OP == "add":
        tl.atomic_add(at, v, mask=i < n)
    elif OP == "max":
        tl.atomic_max(at, v, mask=i < n)
    elif OP == "min":
        tl.atomic_min(at, v, mask=i < n)
    elif OP == "and":
        tl.atomic_and(at, v, mask=i < n)
    elif OP == "or":
        tl.atomic_or(at, v, mask=i < n)
    else:
        tl.static_assert(OP == "xor")
        tl.atomic_xor(at, v, mask=i < n)


@pytest.mark.operation("tl.atomic_{op}")
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_programs_accumulate_into_the_same_elements(op: str, dtype: str) -> None:
    """Use small whole numbers, whose sums are exact in every type and in any order."""
    n, bins = 500, 7
    x = np.random.default_rng(15).integers(0 if dtype[0] == "u" else -3, 4, n).astype(DTYPES[dtype])
    start = np.arange(bins).astype(DTYPES[dtype])
    out = poisoned(bins, dtype=DTYPES[dtype])
    out.fill(start)
    launch(accumulate, (triton.cdiv(n, 64),), x, out, n, OP=op, BINS=bins, BLOCK=64)
    reference = np.array([OPERATIONS[op].reduce(np.append(x[b::bins], start[b])) for b in range(bins)])
    check(out, reference)


@triton.jit
def change(x, y, old, n, OP: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0) * (R * C) + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    at, v, inside = x + i, tl.load(y + i, mask=i < n), i < n
    if OP == "add":
        r = tl.atomic_add(at, v, mask=inside)
    elif OP == "max":
        r = tl.atomic_max(at, v, mask=inside)
    elif OP == "min":
        r = tl.atomic_min(at, v, mask=inside)
    elif OP == "and":
        r = tl.atomic_and(at, v, mask=inside)
    elif OP == "or":
        r = tl.atomic_or(at, v, mask=inside)
    else:
        tl.static_assert(OP == "xor")
        r = tl.atomic_xor(at, v, mask=inside)
    tl.store(old + i, r, mask=inside)


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_each_element_returns_what_it_was(op: str, dtype: str) -> None:
    rows, columns = 4, 16
    n = 3 * rows * columns - 2
    random = np.random.default_rng(16)
    x, y = (random.integers(0 if dtype[0] == "u" else -50, 50, n).astype(DTYPES[dtype]) for _ in range(2))
    start, old = x.copy(), poisoned(n, dtype=DTYPES[dtype])
    launch(change, (3,), x, y, old, n, OP=op, R=rows, C=columns)
    check(old, start)
    np.testing.assert_array_equal(x, OPERATIONS[op](start, y))


@triton.jit
def tickets(counter, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.atomic_add(counter + tl.zeros([BLOCK], tl.int32), 1)
    tl.store(out + i, mine)


@pytest.mark.operation("value returned by tl.atomic_add", type="i32")
def test_each_element_gets_a_value_of_its_own() -> None:
    counter, out = np.zeros(1, np.int32), poisoned(256, dtype=np.int32)
    launch(tickets, (4,), counter, out, BLOCK=64)
    out.check_fences("the output")
    assert counter[0] == 256
    np.testing.assert_array_equal(np.sort(out.array), np.arange(256))


@triton.jit
def scalar_ticket(counter, out):
    tl.store(out + tl.program_id(0), tl.atomic_add(counter, 3, sem="relaxed", scope="gpu"))


@pytest.mark.operation("value returned by tl.atomic_add", type="i32")
def test_each_program_gets_a_value_of_its_own() -> None:
    counter, out = np.array([5], np.int32), poisoned(100, dtype=np.int32)
    launch(scalar_ticket, (100,), counter, out)
    out.check_fences("the output")
    np.testing.assert_array_equal(np.sort(out.array), 5 + 3 * np.arange(100))


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


@triton.jit
def spin_lock(lock, total, turns):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    value = tl.load(total)
    tl.store(total, value + turns)
    tl.atomic_xchg(lock, 0, sem="release")


@pytest.mark.operation("lock of tl.atomic_cas and tl.atomic_xchg", type="i32")
def test_a_lock_keeps_programs_out_of_each_others_way() -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    launch(spin_lock, (64,), lock, total, 3)
    assert (lock[0], total[0]) == (0, 192)


@triton.jit
def change_tiles(out, x, OP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) - 1
    v = tl.load(x + i + 1) + tl.arange(0, M)[:, None].to(x.dtype.element_ty) + tl.zeros([M, N], x.dtype.element_ty)
    a = tl.make_tensor_descriptor(out, shape=[ROWS, COLUMNS], strides=[COLUMNS, 1], block_shape=[M, N])
    if OP == "add":
        a.atomic_add([i * 2, i * 4], v)
    elif OP == "max":
        a.atomic_max([i * 2, i * 4], v)
    elif OP == "min":
        a.atomic_min([i * 2, i * 4], v)
    elif OP == "and":
        a.atomic_and([i * 2, i * 4], v)
    elif OP == "or":
        a.atomic_or([i * 2, i * 4], v)
    else:
        tl.static_assert(OP == "xor")
        a.atomic_xor([i * 2, i * 4], v)


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
    launch(change_tiles, (7,), out, x, OP=op, ROWS=rows, COLUMNS=columns, M=m, N=n)
    for program in range(7):
        for i, j in np.ndindex(m, n):
            at = 2 * (program - 1) + i, 4 * (program - 1) + j
            if 0 <= at[0] < rows and 0 <= at[1] < columns:
                reference[at] = OPERATIONS[op](reference[at], x[program] + x.dtype.type(i))
    check(out, reference)
