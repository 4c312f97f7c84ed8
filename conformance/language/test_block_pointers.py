"""Block pointers (until Triton 3.6): edges, padding, order, and every way in which control flow carries them."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import RELEASE, check, launch

pytestmark = pytest.mark.skipif(RELEASE > (3, 6), reason="3.9 has no block pointers")


@triton.jit
def product(a, b, c, M, N, K, B: tl.constexpr):
    i, j = tl.program_id(0) * B, tl.program_id(1) * B
    left = tl.make_block_ptr(a, (M, K), (K, 1), (i, 0), (B, B), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (1, K), (0, j), (B, B), (0, 1))
    out = tl.make_block_ptr(c, (M, N), (N, 1), (i, j), (B, B), (1, 0))
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, K, B):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        total += tl.dot(x, tl.load(right, boundary_check=(1, 0), padding_option="zero"))
        left, right = tl.advance(left, (0, B)), tl.advance(right, (B, 0))
    tl.store(out, total, boundary_check=(0, 1))


@pytest.mark.operation("tl.make_block_ptr")
def test_a_product_of_tiles_that_reach_over_the_edges() -> None:
    M, N, K = 20, 35, 50
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 4, (rows, K)).astype(np.float32) for rows in (M, N))
    c = np.full((M, N), np.nan, np.float32)
    launch(product, (2, 3), a, b, c, M, N, K, B=16)
    check(c, a @ b.T)  # all numbers are exact in f32


@triton.jit(noinline=True)
def first(x, i, n):
    # Begins before the array and ends behind it.
    at = tl.make_block_ptr(x, (n,), (2,), (i - 3,), (16,), (0,))
    return tl.sum(tl.load(at, boundary_check=(0,), padding_option="zero"))


@triton.jit
def moved(at, by: tl.constexpr):
    return tl.advance(at, (by,))


@triton.jit
def carried(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = tl.make_block_ptr(x, (3 * B,), (1,), (0,), (B,), (0,))
    q = tl.make_block_ptr(y, (2 * B,), (1,), (B // 2,), (B,), (0,))
    for k in range(4):  # exchanges two pointers to different arrays
        tl.store(out + k * B + i, tl.load(p, boundary_check=(0,), padding_option="nan"))
        p, q = q, moved(p, B)
    if n > 2:  # noqa: SIM108  the form that is tested
        r = tl.make_block_ptr(x, (B,), (1,), (2,), (B,), (0,))
    else:
        r = tl.advance(q, (0,))
    tl.store(out + 4 * B + i, tl.load(r, boundary_check=(0,), padding_option="zero"))
    s = tl.make_block_ptr(y, (2 * B,), (1,), (0,), (B,), (0,))
    k = 5
    while k < n + 5:
        if k % 2 == 0:
            s = moved(s, 1)
        tl.store(out + k * B + i, tl.load(s))
        k += 1
    tl.store(out + k * B, first(x, 1, B))
    if n > 2:
        return
    tl.store(tl.make_block_ptr(out, (9 * B,), (1,), (8 * B,), (B,), (0,)), tl.load(s))


@pytest.mark.each_image
@pytest.mark.parametrize("n", [2, 3])
def test_control_flow_carries_block_pointers(n: int) -> None:
    B = 8
    x, y = np.arange(3 * B, dtype=np.float32), 100 + np.arange(2 * B, dtype=np.float32)
    out = np.full((9, B), -77, np.float32)
    launch(carried, (1,), x, y, out, n, B=B)
    expected = np.full((9, B), -77.0)
    beyond = np.full(B // 2, np.nan)
    expected[0], expected[1] = x[:B], y[B // 2 : 3 * B // 2]
    expected[2], expected[3] = x[B : 2 * B], np.concatenate([y[3 * B // 2 :], beyond])
    # After four exchanges, p begins at 2 B of x and q behind the end of y.
    expected[4] = np.concatenate([x[2:B], [0, 0]]) if n > 2 else 0
    start = 0
    for k in range(5, n + 5):
        start += k % 2 == 0
        expected[k] = y[start : start + B]
    # From -2 on: x[0], x[2] ... x[2 (n - 1)] of the n that the descriptor has.
    expected[n + 5, 0] = x[: 2 * B : 2].sum()
    if n <= 2:
        expected[8] = y[start : start + B]
    check(out, expected)


@triton.jit
def cubes(x, out, a, b, c):
    p = tl.make_block_ptr(x, (a, b, c), (b * c, c, 1), (0, 0, 0), (2, 4, 8), (2, 1, 0))
    q = tl.make_block_ptr(out, (a, b, c), (b * c, c, 1), (0, 0, 0), (2, 4, 8), (2, 1, 0))
    for _ in range(tl.cdiv(c, 8)):
        tl.store(q, tl.load(p, boundary_check=(0, 1, 2)) + 1, boundary_check=(0, 1, 2))
        p, q = tl.advance(p, (0, 0, 8)), tl.advance(q, (0, 0, 8))


def test_blocks_of_three_dimensions() -> None:
    x = np.arange(2 * 3 * 20, dtype=np.int32).reshape(2, 3, 20)
    out = np.full_like(x, -1)
    launch(cubes, (1,), x, out, 2, 3, 20)
    check(out, x + 1)
