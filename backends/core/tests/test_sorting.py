"""tl.sort, tl.topk, tl.bitonic_merge, tl.flip, and steps of the same kind that users write, on the active device.

References follow Triton's definition step by step, so NaN and zeros of both signs are compared bit for bit. In
Triton's networks an element that is NaN may take the place of its neighbour, and of equal elements one may be taken
twice, so that the sign of a zero may change.
"""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.codegen.pipeline import to_mlir
from foundry_core.tensor import Tensor
from image import RELEASE
from kernels import structured
from results import poisoned

HAS_TOPK = hasattr(tl, "topk")
topk = getattr(tl, "topk", tl.sort)


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def sorted_row(x: np.ndarray) -> np.ndarray:
    """Sort upwards by the steps that Triton's standard.py defines."""
    at, stages = np.arange(x.size), x.size.bit_length() - 1
    for stage in range(1, stages + 1):
        flip = (at >> stage & 1).astype(bool)
        for bit in reversed(range(stage)):
            y, is_right = x[at ^ (1 << bit)], (at >> bit & 1).astype(bool)
            x = np.where((x > y) != (flip ^ is_right), y, x)
    return x


@triton.jit
def sort_rows(x, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.sort(v))
    tl.store(out + M * N + at, tl.sort(v, descending=True))
    tl.store(out + 2 * M * N + at, tl.flip(v, 1))
    if K:
        tl.store(out + 3 * M * N + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :], topk(v, K))


def test_sort_topk_and_flip_of_rows() -> None:
    (m, n), k = (4, 32), 4 if HAS_TOPK else 0
    x = np.random.default_rng(1).integers(0, 1 << 32, (m, n), np.uint32)
    x[0, :8] = x[0, 8:16]
    out = poisoned(3 * m * n + m * k, dtype=x.dtype)
    sort_rows[(1,)](Tensor(x), Tensor(out), M=m, N=n, K=k)
    found, expected = out[: 3 * m * n].reshape(3, m, n), np.sort(x, 1)
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], expected[:, ::-1])
    np.testing.assert_array_equal(found[2], x[:, ::-1])
    np.testing.assert_array_equal(out[3 * m * n :].reshape(m, k), expected[:, ::-1][:, :k])


@triton.jit
def sort_line(x, out, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for _ in range(rounds):
        v = tl.flip(tl.sort(v), 0)
    tl.store(x + i, tl.sort(tl.load(x + i)))
    tl.store(out + i, v)


@pytest.mark.skipif(RELEASE < (3, 6), reason="this Triton multiplies by 0 and adds, which changes such elements")
def test_sort_in_a_loop_and_in_place_of_numbers_of_all_kinds() -> None:
    n, rounds = 32, 2
    x = np.random.default_rng(2).standard_normal(n).astype(np.float16)
    x[:13] = [np.nan, np.inf, -np.inf, 0, -0.0, 0, 6e-8, -6e-8, 65504, -65504, np.nan, -0.0, 0]
    memory, out = x.copy(), poisoned(n, dtype=x.dtype)
    sort_line[(1,)](Tensor(memory), Tensor(out), rounds, N=n)
    np.testing.assert_array_equal(bits(memory), bits(sorted_row(x)))
    for _ in range(rounds):
        x = sorted_row(x)[::-1]
    np.testing.assert_array_equal(bits(out), bits(x))


@triton.jit
def pair_up(x, out, N: tl.constexpr):
    # Steps of a user: neighbours at growing distances become their sum and their difference.
    i = tl.arange(0, N)
    v, k = tl.load(x + i), tl.arange(0, 2)[None, :, None]
    for bit in tl.static_range(4):
        box = tl.reshape(v, (N // 2 // 2**bit, 2, 2**bit))
        total = tl.sum(box, 1, keep_dims=True)
        v = tl.reshape(tl.where(k == 0, total, total - 2 * box), (N,))
    tl.store(out + i, v)


def test_steps_of_a_user_become_one_operation() -> None:
    n = 16
    x, out = np.random.default_rng(3).integers(-99, 99, n).astype(np.int32), poisoned(n, dtype=np.int32)
    pair_up[(1,)](Tensor(x), Tensor(out), N=n)
    text = structured(pair_up, {"x": "*i32", "out": "*i32"}, {"N": n})
    assert text.count('tile.pairs"') == 1 and "tt.reduce" not in text
    # The transform of Walsh and Hadamard.
    signs = np.array([[1 - 2 * ((i & j).bit_count() % 2) for j in range(n)] for i in range(n)])
    np.testing.assert_array_equal(out, signs @ x)


@triton.jit
def only_sort(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at)))


def test_the_code_of_a_sort_does_not_grow_with_the_tile() -> None:
    text = structured(only_sort, {"x": "*fp32", "out": "*fp32"}, {"M": 16, "N": 256})
    # One for the stages that sort in turns upwards and downwards, one for the last stage.
    assert text.count('tile.pairs"') == 2 and "tt.reduce" not in text
    assert len(to_mlir(text).splitlines()) < 200


@triton.jit
def sort_and_bits(x, out, bits, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.sort(tl.load(x + i))
    tl.store(out + i, v)
    tl.store(bits + i, v.to(tl.int32, bitcast=True))


# In the checked mode a store computes a hash of the bits.
@pytest.mark.parametrize("check", [False, True])
def test_the_bits_of_sorted_numbers_are_used_after_the_numbers(check: bool) -> None:
    n = 16
    x = np.random.default_rng(5).standard_normal(n).astype(np.float32)
    out, integers = poisoned(n, dtype=np.float32), poisoned(n, dtype=np.int32)
    sort_and_bits[(1,)](Tensor(x), Tensor(out), Tensor(integers), N=n, check=check)
    np.testing.assert_array_equal(out, np.sort(x))
    np.testing.assert_array_equal(integers, bits(out).view(np.int32))


@triton.jit
def swap_both(x, ids, flip, BIT: tl.constexpr):
    shape: tl.constexpr = [x.numel // 2 // 2**BIT, 2, 2**BIT]
    y, j, right = tl.reshape(x, shape), tl.reshape(ids, shape), tl.arange(0, 2)[None, :, None]
    left_x = tl.reshape(tl.broadcast_to(tl.sum(y * (1 - right), 1)[:, None, :], shape).to(x.dtype), x.shape)
    right_x = tl.reshape(tl.broadcast_to(tl.sum(y * right, 1)[:, None, :], shape).to(x.dtype), x.shape)
    left_j = tl.reshape(tl.broadcast_to(tl.sum(j * (1 - right), 1)[:, None, :], shape), x.shape)
    right_j = tl.reshape(tl.broadcast_to(tl.sum(j * right, 1)[:, None, :], shape), x.shape)
    swap = (left_x > right_x) != flip
    a, b, c = left_x.to(tl.int16, bitcast=True), right_x.to(tl.int16, bitcast=True), x.to(tl.int16, bitcast=True)
    c ^= tl.where(swap, a ^ b, 0)
    ids ^= tl.where(swap, left_j ^ right_j, 0)
    return c.to(x.dtype, bitcast=True), ids


@triton.jit
def sort_with_index(x, out, index, M: tl.constexpr, STAGES: tl.constexpr):
    N: tl.constexpr = 2**STAGES
    i = tl.arange(0, N)[None, :]
    at = tl.arange(0, M)[:, None] * N + i
    v, ids = tl.load(x + at), at - at + i
    for stage in tl.static_range(1, STAGES + 1):
        for step in tl.static_range(stage):
            v, ids = swap_both(v, ids, ((at >> stage) & 1 if stage < STAGES else at * 0) != 0, stage - 1 - step)
    tl.store(out + at, v)
    tl.store(index + at, ids)


def test_a_users_sort_of_numbers_and_their_indices_becomes_one_operation() -> None:
    m, n = 2, 16
    x = np.stack([np.random.default_rng(4).permutation(n) for _ in range(m)]).astype(np.float16)
    out, index = poisoned(m, n, dtype=x.dtype), poisoned(m, n, dtype=np.int32)
    sort_with_index[(1,)](Tensor(x), Tensor(out), Tensor(index), M=m, STAGES=4)
    np.testing.assert_array_equal(out, np.sort(x, 1))
    np.testing.assert_array_equal(index, np.argsort(x, 1))
    types = {"x": "*fp16", "out": "*fp16", "index": "*i32"}
    text = structured(sort_with_index, types, {"M": m, "STAGES": 4})
    # One for the stages that sort in turns upwards and downwards, one for the last stage.
    assert text.count('tile.pairs"') == 2 and "tt.reduce" not in text
