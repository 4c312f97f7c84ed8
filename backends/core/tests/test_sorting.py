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
from kernels import structured
from results import poisoned


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


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
