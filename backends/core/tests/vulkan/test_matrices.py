"""Products that are kept in cooperative matrices: through loops, scaled by row, turned, in f16, and in attention."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from foundry_core.vulkan.device import MATRICES_VARIABLE, opened


@pytest.fixture(autouse=True)
def device_with_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the tests would say nothing: every device that they run on multiplies matrices of f16."""
    # A CPU device is not asked to by default.
    monkeypatch.setenv(MATRICES_VARIABLE, "1")
    assert any(each.factor == "f16" and each.total == "f32" for each in opened().target().fragments)


@triton.jit
def scaled(a, b, factors, out, N: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, N)
    x = tl.load(a + i[:, None] * N + k[None, :])
    y = tl.load(b + k[None, :] * N + i[:, None])
    f = tl.load(factors + i)
    z = tl.zeros((N, N), tl.float32)
    for _ in range(3):
        z = tl.dot(x, y.T, z * f[:, None])
    tl.store(out + i[:, None] * N + k[None, :], z.to(tl.float16))


def test_a_product_is_scaled_by_row_in_a_loop_and_nan_stays_in_its_row() -> None:
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    factors = random.standard_normal(16).astype(np.float32)
    a[3, 5], a[7, 2], factors[9] = np.inf, np.nan, 0.0
    out = np.full((16, 16), 99, np.float16)
    kernel = scaled[(1,)](Tensor(a), Tensor(b), Tensor(factors), Tensor(out), N=16, num_warps=1)
    with np.errstate(all="ignore"):
        expected = np.zeros((16, 16))
        for _ in range(3):
            expected = expected * factors[:, None] + a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    with np.errstate(all="ignore"):
        # Half a unit in the last place of f16, and 3 * 18 roundings to f32 of sums of magnitudes below 2**9.
        np.testing.assert_allclose(out, expected, rtol=2.0**-11, atol=54 * 2.0**-24 * 2**9)
    assert b"SPV_KHR_cooperative_matrix" in kernel.asm["spv"]


@triton.jit
def turned(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + k[:, None] * M + i[None, :]).T
    y = tl.load(b + j[:, None] * K + k[None, :]).T
    z = tl.load(c + i[:, None] * N + j[None, :])
    for _ in range(2):
        z = tl.dot(x, y, z, out_dtype=z.dtype)
    tl.store(out + i[:, None] * N + j[None, :], z)


@pytest.mark.parametrize(("factor", "total", "warps"), [("float16", "float16", 1), ("int8", "int32", 2)])
def test_factors_that_are_stored_by_columns(factor: str, total: str, warps: int) -> None:
    """All numbers are small integers, so that every sum is exact."""
    random = np.random.default_rng(2)
    x, y = (random.integers(-3, 4, (16, 16)).astype(factor) for _ in range(2))
    z, out = random.integers(-9, 9, (16, 16)).astype(total), np.full((16, 16), 99, total)
    columns = np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)
    turned[(1,)](*map(Tensor, (*columns, z, out)), M=16, N=16, K=16, num_warps=warps)
    np.testing.assert_array_equal(out, z + 2 * (x.astype(np.int32) @ y.astype(np.int32)))


@triton.jit
def attention(q, k, v, out, scale, T, D: tl.constexpr, B: tl.constexpr):
    rows, depth = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + depth[None, :])
    highest, weight = tl.full((B,), -float("inf"), tl.float32), tl.zeros((B,), tl.float32)
    total = tl.zeros((B, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * B, B):
        keys = start + tl.arange(0, B)
        scores = tl.dot(x, tl.trans(tl.load(k + keys[:, None] * D + depth[None, :])))
        scores = tl.where(rows[:, None] >= keys[None, :], scores * scale, -float("inf"))
        top = tl.maximum(highest, tl.max(scores, 1))
        powers = tl.exp(scores - top[:, None])
        shrink = tl.exp(highest - top)
        weight = weight * shrink + tl.sum(powers, 1)
        y = tl.load(v + keys[:, None] * D + depth[None, :])
        total = tl.dot(powers.to(y.dtype), y, total * shrink[:, None])
        highest = top
    tl.store(out + rows[:, None] * D + depth[None, :], total / weight[:, None])


def test_causal_attention() -> None:
    """Two subgroups have whole rows each, and exchange them without a barrier of the workgroup."""
    length, depth = 32, 16
    q, k, v = (np.random.default_rng(n).standard_normal((length, depth)).astype(np.float16) for n in range(3))
    out = np.full((length, depth), np.nan, np.float32)
    attention[(2,)](
        Tensor(q), Tensor(k), Tensor(v), Tensor(out), depth**-0.5, length, D=depth, B=16, num_warps=2, num_stages=1
    )
    scores = q.astype(np.float64) @ k.astype(np.float64).T * depth**-0.5
    scores[np.triu_indices(length, 1)] = -np.inf
    powers = np.exp(scores - scores.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True) @ v.astype(np.float64)
    # Each power is rounded to f16, with half a unit in the last place, and f32 is exact beside that.
    np.testing.assert_allclose(out, expected, rtol=0, atol=2.0**-11 * np.abs(v.astype(np.float64)).max() * 1.01)
