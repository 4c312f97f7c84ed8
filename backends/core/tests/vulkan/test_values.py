"""Values on a Vulkan device: the order of a program's lines, and products whose operands lie in workgroup memory."""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from ordered import CASES


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("name", CASES)
def test_accesses_through_other_offsets_keep_the_order_of_the_lines(name: str, warps: int) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(3, 512)
    CASES[name].kernel[(3,)](Tensor(x), Tensor(out), BLOCK=512, num_warps=warps)
    np.testing.assert_array_equal(x, x_expected)
    np.testing.assert_array_equal(out, out_expected)


@triton.jit
def batches(a, b, out, turns, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    h, i, j, k = tl.arange(0, B)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + h * M * K + i[None, :, None] * K + k[None, None, :])
    y = tl.load(b + h * K * N + k[None, :, None] * N + j[None, None, :])
    at = h * M * N + i[None, :, None] * N + j[None, None, :]
    z = tl.zeros((B, M, N), tl.int32)
    for _ in range(turns):
        z = tl.dot(x, y, z, out_dtype=tl.int32)
    tl.store(out + at, z)


def test_a_step_along_k_goes_over_the_rows_of_the_other_products_of_a_batch() -> None:
    """Triton stores an operand with K as its slowest dimension, and the products of the batch between."""
    random = np.random.default_rng(17)
    a, b = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((8, 16, 16), (8, 16, 32)))
    out = np.full((8, 16, 32), 1 << 30, np.int32)
    kernel = batches[(1,)](Tensor(a), Tensor(b), Tensor(out), 2, B=8, M=16, N=32, K=16)
    np.testing.assert_array_equal(out, 2 * (a.astype(np.int64) @ b.astype(np.int64)))
    assert re.search(r"#ttg.swizzled_shared<.*order = \[\d, 0, \d\]", kernel.asm["ttgir"])
