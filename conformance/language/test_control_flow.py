"""Loops, conditions, and values that they carry."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import check, launch, operand, poisoned

rng = np.random.default_rng(0)


@triton.jit
def count(out, start, stop, STEP: tl.constexpr):
    total, turns = 0, 0
    for i in range(start, stop, STEP):
        total += i
        turns += 1
    tl.store(out, total)
    tl.store(out + 1, turns)


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 10, 1), (3, 3, 1), (5, 2, 1), (0, 10, 3), (-7, 8, 4)])
def test_a_loop_with_bounds_known_at_run_time(start: int, stop: int, step: int) -> None:
    out = poisoned(2, dtype=np.int32)
    launch(count, (1,), out, start, stop, STEP=step)
    turns = range(start, stop, step)
    check(out, np.array([sum(turns), len(turns)]))


@triton.jit
def count_down(out, start):
    total = 0
    for i in range(start, 0, -2):
        total = total * 3 + i
    tl.store(out, total)


def test_a_loop_that_counts_down() -> None:
    out, expected = poisoned(1, dtype=np.int32), 0
    launch(count_down, (1,), out, 9)
    for i in range(9, 0, -2):
        expected = expected * 3 + i
    check(out, np.array([expected]))


@triton.jit
def collatz(x, out):
    n = tl.load(x + tl.program_id(0))
    steps = 0
    while n != 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(out + tl.program_id(0), steps)


def test_while_runs_until_its_condition_is_false() -> None:
    x, out = np.arange(1, 33, dtype=np.int32), poisoned(32, dtype=np.int32)
    launch(collatz, (32,), x, out)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    check(out, np.array([steps(int(n)) for n in x]))


@triton.jit
def carried_tiles(x, out, turns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.zeros([BLOCK], tl.int32)
    for k in range(turns):
        a, b = a + b, a - k
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)


@pytest.mark.parametrize("turns", [7, 0, 1])
def test_a_loop_swaps_the_tiles_that_it_carries(turns: int) -> None:
    x, out = operand(np.int32, 1, 64), poisoned(128, dtype=np.int32)
    launch(carried_tiles, (1,), x, out, turns, BLOCK=64)
    a, b = x, np.zeros(64, np.int32)
    with np.errstate(over="ignore"):
        for k in range(turns):
            a, b = a + b, a - np.int32(k)
    check(out, np.concatenate([a, b]))


@triton.jit
def branches(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if pid == 0:
        v = v + 1
    elif pid == 1:
        v = v * 2 if n > 10 else v * 3
    else:
        v = -v
    tl.store(out + pid * BLOCK + i, v)


@pytest.mark.parametrize("n", [5, 50])
def test_nested_conditions(n: int) -> None:
    x, out = operand(np.float32, 1, 32, special=False), poisoned(3, 32, dtype=np.float32)
    launch(branches, (3,), x, out, n, BLOCK=32)
    wide = x.astype(np.float64)
    check(out, np.stack([wide + 1, wide * (2 if n > 10 else 3), -wide]))


@triton.jit
def condition_in_loop(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    best = tl.zeros([BLOCK], tl.float32) - 1e30
    for k in range(n):
        v = tl.load(x + k * BLOCK + i)
        best = tl.maximum(best, v) if k % 2 == 0 else best + v
    tl.store(out + i, best)


def test_a_condition_in_a_loop_changes_what_it_carries() -> None:
    x, out = operand(np.float32, 1, 160, special=False).reshape(5, 32), poisoned(32, dtype=np.float32)
    launch(condition_in_loop, (1,), x, out, 5, BLOCK=32)
    best = np.full(32, -1e30, np.float32)
    for k in range(5):
        best = np.maximum(best, x[k]) if k % 2 == 0 else best + x[k]
    check(out, best)


@triton.jit
def stores_in_a_loop(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, i * 0)
    for k in range(n):
        v = tl.load(out + i)
        tl.debug_barrier()
        tl.store(out + (i + 1) % BLOCK, v + k)
        tl.debug_barrier()


def test_loop_iteration_loads_what_the_one_before_stored() -> None:
    out = poisoned(32, dtype=np.int32)
    launch(stores_in_a_loop, (1,), out, 6, BLOCK=32)
    check(out, np.full(32, sum(range(6))))


@triton.jit
def rotate(x, out, steps, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    for k in range(steps):
        tile = tl.trans(tile) + k
    tl.store(out + i[:, None] * N + i[None, :], tile)


def test_a_carried_tile_may_be_read_in_another_order() -> None:
    x, out = rng.standard_normal((32, 32)).astype("f"), poisoned(32, 32, dtype=np.float32)
    launch(rotate, (1,), x, out, 3, N=32)
    check(out, ((x.T + np.float32(0)).T + np.float32(1)).T + np.float32(2))


@triton.jit
def branches_and_while(x, out, n, BLOCK: tl.constexpr):
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


@pytest.mark.parametrize("n", [11, 0, 3, 4])
def test_branches_and_while_loops(n: int) -> None:
    x, out = rng.uniform(0, 9, 128).astype("f"), poisoned(129, dtype=np.float32)
    launch(branches_and_while, (1,), x, out, n, BLOCK=128)
    v = np.sqrt(x * 2) if n > 10 else x * 2 if n > 3 else x + 1
    for k in range(0, n, 2):
        v = v + np.float32(k)
    np.testing.assert_allclose(out.array[:128], v, rtol=3 * 2.0**-23)
    assert out.array[128] == len(range(0, n, 2)) * 2


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
    launch(long_chain, (1,), x, STEPS=300, BLOCK=64)
    check(x, expected)


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
    launch(long_code, (4,), x, out, STAGES=stages, BLOCK=64)
    v = x.reshape(4, 64)
    for k in range(stages):
        v = np.where(v > k, v * np.int32(3) - np.int32(k), v + np.int32(k ^ 5))
        if k % 8 == 7:
            v = v + v.sum(1, dtype=np.int32, keepdims=True)
    check(out, v.reshape(-1))
