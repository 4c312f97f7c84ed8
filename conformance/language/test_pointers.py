"""Pointers that are chosen for each element, moved by control flow, cast, or made of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, operand, poisoned

rng = np.random.default_rng(0)


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
def chosen(x, y, out, m, n, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M + tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    inside = (row < m) & (column < n)
    source = tl.where(row > column, x + row * n + column, y + column * m + row)
    value = tl.load(source, mask=inside, other=-1)
    # Each element of the result goes back to the array that it did not come from, and to the output.
    tl.store(tl.where(row > column, y + column * m + row, x + row * n + column), value + 1, mask=inside)
    tl.store(out + row * N + column, value + tl.load(source, mask=inside, other=0))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_pointers_into_two_arrays_are_chosen_for_each_element(dtype: Any) -> None:
    m, n = 45, 29
    x, y = (rng.integers(1, 50, shape).astype(dtype) for shape in ((m, n), (n, m)))
    out, x_before, y_before = poisoned(48, 32, dtype=dtype), x.copy(), y.copy()
    launch(chosen, (6,), x, y, out, m, n, M=8, N=32)
    is_x = np.arange(m)[:, None] > np.arange(n)
    value = np.where(is_x, x_before, y_before.T)
    expected = np.full((48, 32), -1, dtype)
    expected[:m, :n] = 2 * value
    check(out, expected)
    check(x, np.where(is_x, x_before, value + 1))
    check(y, np.where(is_x, value + 1, y_before.T).T)


@triton.jit
def swapped(x, y, out, turns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p, q, total = x + i, y + i, tl.zeros((BLOCK,), tl.int32)
    for _ in range(turns):
        total = total * 2 + tl.load(p)
        p, q = q, p
        q += BLOCK
    tl.store(out + i, total)
    tl.store(out + BLOCK + i, tl.load(p))


@pytest.mark.parametrize("turns", [4, 0, 1])
def test_a_loop_swaps_pointers(turns: int) -> None:
    both, out, i = rng.integers(0, 100, (2, 64)).astype(np.int32), poisoned(2, 16, dtype=np.int32), np.arange(16)
    launch(swapped, (1,), both[0].copy(), both[1].copy(), out, turns, BLOCK=16)
    p, q, total = i, i + 64, np.zeros(16, np.int32)
    for _ in range(turns):
        total = total * 2 + both.ravel()[p]
        p, q = q, p + 16
    check(out, [total, both.ravel()[p]])


@triton.jit
def moved_by_branches(x, y, out, turns, BLOCK: tl.constexpr):
    i, turn = tl.arange(0, BLOCK), 0
    p, scalar = x + i, x
    while turn < turns:
        if turn % 2 == 1:
            p = y + i + turn * BLOCK
            scalar = y
        else:
            p = tl.trans(tl.reshape(tl.where(i < 5, p, x + i), (BLOCK // 4, 4))).reshape(BLOCK)
            scalar += 1
        turn += 1
    tl.store(out + i, tl.load(p))
    tl.store(out + BLOCK, tl.load(scalar if turns > 2 else x + 3))


@pytest.mark.parametrize("turns", [5, 0, 1, 2])
def test_branches_move_pointers_to_other_arrays(turns: int) -> None:
    both, out, i = rng.integers(0, 100, (2, 128)).astype(np.int32), poisoned(17, dtype=np.int32), np.arange(16)
    launch(moved_by_branches, (1,), both[0].copy(), both[1].copy(), out, turns, BLOCK=16)
    p, scalar = i, 0
    for turn in range(turns):
        if turn % 2 == 1:
            p, scalar = 128 + i + turn * 16, 128
        else:
            p, scalar = np.where(i < 5, p, i).reshape(4, 4).T.ravel(), scalar + 1
    check(out, both.ravel()[[*p, scalar if turns > 2 else 3]])


@triton.jit
def as_other_types(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x.to(tl.pointer_type(tl.uint8), bitcast=True) + i * 4 + 3).to(tl.int32))
    tl.store(out + BLOCK + i, tl.load((x + i).to(tl.pointer_type(tl.int16), bitcast=True) + 1).to(tl.int32))
    tl.store(out + 2 * BLOCK + i, tl.load((x + i).to(tl.pointer_type(tl.int32), bitcast=True)))
    tl.store((out + 3 * BLOCK + i).to(tl.pointer_type(tl.int8), bitcast=True) + 1, i.to(tl.int8))


def test_pointers_become_pointers_to_other_types() -> None:
    x, out = rng.standard_normal(64).astype("f"), np.full((4, 64), 0x11223344, np.int32)
    expected = np.stack([x.view(np.uint8)[3::4], x.view(np.int16)[1::2], x.view(np.int32), out[3]], dtype=np.int32)
    expected[3].view(np.int8)[1::4] = np.arange(64)
    launch(as_other_types, (1,), x, out, BLOCK=64)
    check(out, expected)


@triton.jit
def grouped(pointers, sizes, out, addresses, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for group in range(GROUPS):
        first = tl.load(pointers + group).to(tl.pointer_type(tl.float16))
        size = tl.load(sizes + group)
        for start in range(0, size, BLOCK):
            total += tl.load(first + start + i, mask=start + i < size, other=0.0)
    group = i % GROUPS
    each = tl.load(pointers + group).to(tl.pointer_type(tl.float16))
    tl.store(out + i, total)
    tl.store(out + BLOCK + i, tl.load(each + i, mask=i < tl.load(sizes + group), other=-1.0))
    tl.store(addresses + i, (each + i).to(tl.int64))
    tl.store(addresses + BLOCK, pointers.to(tl.int64))


def test_arrays_are_reached_through_a_table_of_their_addresses() -> None:
    sizes = np.array([5, 64, 130], np.int32)
    arrays = [rng.standard_normal(size).astype(np.float16) for size in sizes]
    pointers = np.array([array.ctypes.data for array in arrays], np.int64)
    out, addresses = poisoned(2, 64, dtype=np.float32), poisoned(65, dtype=np.int64)
    launch(grouped, (1,), pointers, sizes, out, addresses, GROUPS=3, BLOCK=64)
    padded = np.zeros((3, 192))
    for row, array in zip(padded, arrays, strict=True):
        row[: array.size] = array
    np.testing.assert_allclose(out.array[0], padded.reshape(9, 64).sum(0), rtol=2.0**-20, atol=2.0**-20)
    i = np.arange(64)
    check(out.array[1], np.where(i < sizes[i % 3], padded[i % 3, i], -1))
    check(addresses, [*(pointers[i % 3] + 2 * i), pointers.ctypes.data])
    out.check_fences("the output")


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
    n, x, out = 5, rng.integers(-99, 99, 4000).astype("f"), poisoned(64, dtype=np.float32)
    launch(pointers_in_a_loop, (1,), x, out, n, 3, BLOCK=64)
    i = np.arange(64)
    expected = sum(x[i * 3 + k * (1 + i)] + x[i + 2 * k] for k in range(n))
    check(out, expected)


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
    x, out = rng.integers(-99, 99, 999).astype("f"), poisoned(64, dtype=np.float32)
    launch(rows_in_nested_loops, (1,), x, out, 3, 4, BLOCK=64)
    starts = [(4 * row + part) * 64 + row for row in range(3) for part in range(4)]
    check(out, sum(x[s : s + 64] for s in starts))


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
    launch(shift_up_by_a_pointer_that_moves, (1,), x, 3, BLOCK=64)
    check(x, expected)
