"""Matrix products: types, shapes, accumulators, precisions, batches."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, RELEASE, check, launch, operand, poisoned

rng = np.random.default_rng(0)


@triton.jit
def product(
    a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr, ADD: tl.constexpr
):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    at = i[:, None] * N + j[None, :]
    if ADD:
        tl.store(out + at, tl.dot(x, y, acc=tl.load(c + at), input_precision=PRECISION))
    else:
        tl.store(out + at, tl.dot(x, y, input_precision=PRECISION))


def near(out, a: np.ndarray, b: np.ndarray, c: np.ndarray, eps: float) -> None:
    """Check a sum of k products and one number, in any order: each rounding adds half an ulp of the magnitudes' sum."""
    out.check_fences("the output")
    a, b, c = (x.astype(np.float64) for x in (a, b, c))
    allowed = (a.shape[-1] + 2) * eps * (np.abs(a) @ np.abs(b) + np.abs(c))
    far = ~(np.abs(out.array.astype(np.float64) - (a @ b + c)) <= allowed)
    assert not far.any(), f"{far.sum()} of {far.size} elements are wrong"


@pytest.mark.operation("tl.dot")
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (16, 32, 64), (64, 64, 32)])
@pytest.mark.parametrize("add", [False, True])
def test_products_are_summed_in_f32(dtype: str, m: int, n: int, k: int, add: bool) -> None:
    a, b = (operand(DTYPES[dtype], seed, r * c, special=False).reshape(r, c) for seed, r, c in ((1, m, k), (2, k, n)))
    c, out = operand(np.float32, 3, m * n, special=False).reshape(m, n), poisoned(m, n, dtype=np.float32)
    launch(product, (1,), a, b, c, out, M=m, N=n, K=k, PRECISION="ieee", ADD=add)
    near(out, a, b, c if add else np.zeros((m, n)), float(np.finfo(np.float32).eps))


@pytest.mark.operation("tl.dot", type="f64")
@pytest.mark.skipif(RELEASE < (3, 3), reason="Triton 3.2 has no tl.dot of f64")
def test_f64_is_summed_in_f64() -> None:
    a, b = (operand(np.float64, seed, 256, special=False).reshape(16, 16) for seed in (1, 2))
    out = poisoned(16, 16, dtype=np.float64)
    launch(product, (1,), a, b, out, out, M=16, N=16, K=16, PRECISION="ieee", ADD=False)
    near(out, a, b, np.zeros((16, 16)), float(np.finfo(np.float64).eps))


@pytest.mark.operation("tl.dot, input_precision={precision}", type="f32")
@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "bf16x3", "bf16x6"])
def test_a_lower_precision_may_be_asked_for(precision: str) -> None:
    """tf32 has 10 bits after the point, three bf16 have 24; a backend may compute more exactly."""
    a, b = (operand(np.float32, seed, 256, special=False).reshape(16, 16) for seed in (1, 2))
    out = poisoned(16, 16, dtype=np.float32)
    launch(product, (1,), a, b, out, out, M=16, N=16, K=16, PRECISION=precision, ADD=False)
    near(out, a, b, np.zeros((16, 16)), 2.0**-10)


@pytest.mark.operation("tl.dot", type="i8")
@pytest.mark.parametrize("add", [False, True])
def test_i8_is_summed_in_i32(add: bool) -> None:
    a, b = (operand(np.int8, seed, 32 * 32).reshape(32, 32) for seed in (1, 2))
    c, out = operand(np.int32, 3, 32 * 32).reshape(32, 32), poisoned(32, 32, dtype=np.int32)
    launch(product, (1,), a, b, c, out, M=32, N=32, K=32, PRECISION="ieee", ADD=add)
    with np.errstate(over="ignore"):
        check(out, a.astype(np.int32) @ b.astype(np.int32) + (c if add else np.int32(0)))


@pytest.mark.operation("tl.dot", type="f32")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_reach_their_row_and_column_only(value: float) -> None:
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[3, 5] = value
    out = poisoned(16, 16, dtype=np.float32)
    launch(product, (1,), a, b, out, out, M=16, N=16, K=16, PRECISION="ieee", ADD=False)
    check(out, a.astype(np.float64) @ b)


@triton.jit
def matmul(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        x = tl.load(a + i[:, None] * k + at[None, :], mask=(i[:, None] < m) & (at[None, :] < k), other=0.0)
        y = tl.load(b + at[:, None] * n + j[None, :], mask=(at[:, None] < k) & (j[None, :] < n), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < m) & (j[None, :] < n))


@pytest.mark.operation("matmul with edges")
@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (33, 47, 50), (1, 64, 16), (70, 3, 5)])
def test_matmul_with_edges(dtype: str, m: int, n: int, k: int) -> None:
    a, b = (operand(DTYPES[dtype], seed, r * c, special=False).reshape(r, c) for seed, r, c in ((1, m, k), (2, k, n)))
    out = poisoned(m, n, dtype=np.float32)
    launch(matmul, (triton.cdiv(m, 16), triton.cdiv(n, 16)), a, b, out, m, n, k, M=16, N=16, K=16)
    # Without input_precision="ieee", a backend may compute f32 in tf32.
    near(out, a, b, np.zeros((m, n)), 2.0**-10 if dtype == "f32" else float(np.finfo(np.float32).eps))


@triton.jit
def batches(
    a, b, c, out, turns, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr
):
    h, i, j, k = tl.arange(0, B)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + h * M * K + i[None, :, None] * K + k[None, None, :])
    if TURNED:
        y = tl.trans(tl.load(b + h * N * K + j[None, :, None] * K + k[None, None, :]), 0, 2, 1)
    else:
        y = tl.load(b + h * N * K + k[None, :, None] * N + j[None, None, :])
    at = h * M * N + i[None, :, None] * N + j[None, None, :]
    z = tl.load(c + at)
    for _ in range(turns):
        z = tl.dot(x, y, z, out_dtype=z.dtype, input_precision="ieee")
    tl.store(out + at, z)


@pytest.mark.operation("tl.dot of batches", type="")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("b", "m", "n", "k", "types"),
    [
        *((8, 16, 32, 16, types) for types in ("f32 f32", "f16 f32", "f16 f16", "bf16 f32", "f64 f64", "i8 i32")),
        (1, 16, 16, 16, "f32 f32"),
        (2, 32, 16, 64, "f64 f64"),
        (4, 8, 16, 2, "f32 f32"),
        (1, 2, 1, 4, "f32 f32"),
        (2, 1, 8, 16, "f16 f32"),
        (8, 4, 4, 1, "f16 f16"),
    ],
)
def test_batches_of_products_of_each_type(b: int, m: int, n: int, k: int, types: str, turned: bool) -> None:
    """All numbers are small integers, so that every sum is exact."""
    factor, result = (DTYPES[each] for each in types.split())
    random = np.random.default_rng(17)
    x, y = (random.integers(-3, 4, (b, *shape)).astype(factor) for shape in ((m, k), (k, n)))
    z, out = random.integers(-9, 9, (b, m, n)).astype(result), poisoned(b, m, n, dtype=result)
    stored = np.ascontiguousarray(y.transpose(0, 2, 1)) if turned else y
    launch(batches, (1,), x, stored, z, out, 2, B=b, M=m, N=n, K=k, TURNED=turned)
    check(out, z.astype(np.float64) + 2 * (x.astype(np.float64) @ y.astype(np.float64)))


@triton.jit
def plain_batch(a, b, out, B: tl.constexpr, S: tl.constexpr):
    h, i, j = tl.arange(0, B), tl.arange(0, S), tl.arange(0, S)
    at = h[:, None, None] * S * S + i[None, :, None] * S + j[None, None, :]
    # The batch is the last dimension of the second factor.
    y = tl.load(b + i[:, None, None] * S * B + j[None, :, None] * B + h[None, None, :])
    product = tl.dot(tl.load(a + at), tl.permute(y, (2, 0, 1)), out_dtype=out.dtype.element_ty, input_precision="ieee")
    tl.store(out + at, product)


@pytest.mark.parametrize("types", ["f16 f16", "f16 f32", "f32 f32"])
def test_a_batch_without_an_accumulator_has_the_type_that_is_asked_for(types: str) -> None:
    factor, result = (DTYPES[each] for each in types.split())
    x, y = (np.random.default_rng(seed).integers(-3, 4, (2, 16, 16)).astype(factor) for seed in (3, 4))
    out = poisoned(2, 16, 16, dtype=result)
    launch(plain_batch, (1,), x, np.ascontiguousarray(y.transpose(1, 2, 0)), out, B=2, S=16)
    check(out, x.astype(np.float64) @ y.astype(np.float64))


@triton.jit
def large_batch(a, b, out, B: tl.constexpr, S: tl.constexpr):
    at = tl.arange(0, B)[:, None, None] * S * S + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_a_batch_takes_memory_for_its_results_and_for_one_product() -> None:
    """The operands have 64 KiB, all the WRAM of a DPU."""
    a, b, out = (np.random.default_rng(1).integers(-4, 4, (32, 16, 16)).astype("f") for _ in range(3))
    out[:] = np.nan
    launch(large_batch, (1,), a, b, out, B=32, S=16)
    check(out, a @ b)


@triton.jit
def dots(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    z = tl.load(c + i[:, None] * N + j[None, :])
    z = tl.dot(x, y, z, out_dtype=z.dtype)
    # The first product is used twice: directly, and as the accumulator of the second.
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y, z, out_dtype=z.dtype) - z)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (1, 4, 2), (2, 128, 64), (128, 8, 16), (64, 2, 1)])
@pytest.mark.parametrize("types", [("f", "f"), ("e", "f"), ("d", "d"), ("b", "i")], ids="-".join)
def test_dot_of_all_shapes(m: int, n: int, k: int, types: tuple[str, str]) -> None:
    if types[0] == "d" and RELEASE < (3, 3):
        pytest.skip("Triton 3.2 has no tl.dot of f64")
    a, b = (rng.integers(-8, 8, s).astype(types[0]) for s in ((m, k), (k, n)))
    c = rng.integers(-8, 8, (m, n)).astype(types[1])
    expected = a.astype("d") @ b.astype("d")
    launch(dots, (1,), a, b, c, M=m, N=n, K=k)
    check(c, expected)


@triton.jit
def masked_product(a, b, c, m, n, k, OTHER: tl.constexpr, STEPWISE: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    i, j, part = tl.arange(0, M), tl.arange(0, M), tl.arange(0, K)
    total = tl.zeros((M, M), tl.float32)
    for step in range(tl.cdiv(k, K)):
        depth = step * K + part
        x = tl.load(a + i[:, None] * k + depth[None, :], mask=(i[:, None] < m) & (depth[None, :] < k), other=OTHER)
        y = tl.load(b + depth[:, None] * n + j[None, :], mask=(depth[:, None] < k) & (j[None, :] < n), other=OTHER)
        total = tl.dot(x, y, total) + 1.0
        if STEPWISE:
            # Each step stores one row more than the one before.
            tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] <= step) & (j[None, :] < n))
    if not STEPWISE:
        tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@pytest.mark.every_cpu
@pytest.mark.parametrize(("other", "stepwise"), [(0.0, False), (2.0, False), (0.0, True)])
def test_only_what_is_neither_stored_nor_added_is_left_out_of_a_product(other: float, stepwise: bool) -> None:
    for m, n, k in (5, 7, 9), (17, 29, 41), (31, 30, 47):
        a, b = (rng.integers(-8, 8, s).astype("f") for s in ((m, k), (k, n)))
        c = np.full((32, n), 7, "f")
        launch(masked_product, (1,), a, b, c, m, n, k, OTHER=other, STEPWISE=stepwise, M=32, K=16)
        steps = -(-k // 16)
        x = np.pad(a, ((0, 0), (0, 16 * steps - k)), constant_values=other)
        y = np.pad(b, ((0, 16 * steps - k), (0, 0)), constant_values=other)
        expected = np.full((32, n), 7.0)
        for step in range(steps):
            rows = min(step + 1, m) if stepwise else m
            expected[:rows] = x[:rows, : 16 * (step + 1)] @ y[: 16 * (step + 1)] + step + 1
        check(c, expected)


@triton.jit
def attention(q, k, v, out, n, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    queries = tl.load(q + i[:, None] * D + d[None, :], mask=i[:, None] < n, other=0.0)
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for first in tl.range(0, tl.minimum((tl.program_id(0) + 1) * M, n), N, num_stages=2):
        at = first + j
        keys = tl.load(k + at[None, :] * D + d[:, None], mask=at[None, :] < n, other=0.0)
        scores = tl.dot(queries, keys) * scale
        scores = tl.where((at[None, :] < n) & (i[:, None] >= at[None, :]), scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights, shrink = tl.exp(scores - higher[:, None]), tl.exp(top - higher)
        values = tl.load(v + at[:, None] * D + d[None, :], mask=at[:, None] < n, other=0.0)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        top = higher
    tl.store(out + i[:, None] * D + d[None, :], result / total[:, None], mask=i[:, None] < n)


def test_causal_attention() -> None:
    """A combination: masks that are not rectangles, reductions, five loop-carried values, two dots."""
    n, d, scale = 200, 32, 0.3
    q, k, v = (rng.standard_normal((n, d)).astype("f") for _ in range(3))
    out = poisoned(n, d, dtype=np.float32)
    launch(attention, (triton.cdiv(n, 64),), q, k, v, out, n, scale, D=d, M=64, N=32)
    scores = np.where(np.tril(np.ones((n, n), bool)), q.astype("d") @ k.T.astype("d") * scale, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype("d")
    # A score is a sum of d products. Its error is d ulp of sum |q k|, which is below 2 d; exp makes it relative.
    bound = 2.0**-24 * (d * scale * (np.abs(q) @ np.abs(k).T).max() + n + 8) * np.abs(v).max()
    out.check_fences("the output")
    assert np.all(np.abs(out.array - expected) <= bound)
