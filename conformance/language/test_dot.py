"""Matrix products: types, shapes, accumulators, precisions, batches, scaled operands."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, operand, poisoned


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
def batched(a, b, out, B: tl.constexpr, S: tl.constexpr):
    h = tl.arange(0, B)[:, None, None] * S * S
    at = h + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))


@pytest.mark.operation("tl.dot of batches", type="")
def test_a_batch_of_products() -> None:
    a, b = (operand(np.float32, seed, 4 * 256, special=False).reshape(4, 16, 16) for seed in (1, 2))
    out = poisoned(4, 16, 16, dtype=np.float32)
    launch(batched, (1,), a, b, out, B=4, S=16)
    near(out, a, b, np.zeros((4, 16, 16)), float(np.finfo(np.float32).eps))


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
@pytest.mark.parametrize(("b", "m", "n", "k"), [(1, 16, 16, 16), (8, 16, 32, 16), (2, 32, 16, 64)])
@pytest.mark.parametrize("types", ["f32 f32", "f16 f32", "f16 f16", "bf16 f32", "f64 f64", "i8 i32"])
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
def scaled(a, a_scale, b, b_scale, out, FORMAT: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    x_scale = tl.load(a_scale + i[:, None] * (K // 32) + s[None, :])
    y_scale = tl.load(b_scale + j[:, None] * (K // 32) + s[None, :])
    r = tl.dot_scaled(x, x_scale, FORMAT, y, y_scale, FORMAT)
    tl.store(out + i[:, None] * N + j[None, :], r)


@pytest.mark.operation("tl.dot_scaled", type="{format}")
@pytest.mark.parametrize("format", ["e5m2", "e4m3"])
def test_products_of_scaled_fp8(format: str) -> None:
    """A scale is a power of two for each 32 elements of a row of a, or of a column of b."""
    m, n, k = 32, 32, 64
    kind = {"e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3fn}[format]
    random = np.random.default_rng(10)
    a, b = (random.standard_normal(shape).astype(kind) for shape in ((m, k), (k, n)))
    a_scale, b_scale = (random.integers(124, 131, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    out = poisoned(m, n, dtype=np.float32)
    launch(scaled, (1,), a.view(np.uint8), a_scale, b.view(np.uint8), b_scale, out, FORMAT=format, M=m, N=n, K=k)
    x = a.astype(np.float64) * np.exp2(a_scale.astype(np.float64) - 127).repeat(32, 1)
    y = b.astype(np.float64) * np.exp2(b_scale.astype(np.float64) - 127).repeat(32, 1).T
    near(out, x, y, np.zeros((m, n)), float(np.finfo(np.float32).eps))


@triton.jit
def packed(
    a,
    a_scale,
    b,
    b_scale,
    out,
    A_ROWS: tl.constexpr,
    A_COLUMNS: tl.constexpr,
    B_ROWS: tl.constexpr,
    B_COLUMNS: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A_ALONG_K: tl.constexpr,
    B_ALONG_K: tl.constexpr,
):
    i, j, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    x = tl.load(a + tl.arange(0, A_ROWS)[:, None] * A_COLUMNS + tl.arange(0, A_COLUMNS)[None, :])
    y = tl.load(b + tl.arange(0, B_ROWS)[:, None] * B_COLUMNS + tl.arange(0, B_COLUMNS)[None, :])
    x_scale = tl.load(a_scale + i[:, None] * (K // 32) + s[None, :])
    y_scale = tl.load(b_scale + j[:, None] * (K // 32) + s[None, :])
    r = tl.dot_scaled(x, x_scale, "e2m1", y, y_scale, "e2m1", lhs_k_pack=A_ALONG_K, rhs_k_pack=B_ALONG_K)
    tl.store(out + i[:, None] * N + j[None, :], r)


def unpacked(array: np.ndarray, axis: int) -> np.ndarray:
    """Return the numbers of packed e2m1; the lower half of a byte comes first along an axis."""
    shape = list(array.shape)
    shape[axis] *= 2
    both = np.stack([array & 15, array >> 4], axis + 1).reshape(shape)
    return np.where(both & 8, -1.0, 1.0) * np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[both & 7]


@pytest.mark.operation("tl.dot_scaled", type="e2m1")
@pytest.mark.parametrize("along_k", [(True, True), (False, True), (True, False), (False, False)])
def test_products_of_scaled_e2m1(along_k: tuple[bool, bool]) -> None:
    """Two numbers in a byte are neighbours along K, or along the other dimension."""
    m, n, k = 16, 16, 64
    random = np.random.default_rng(11)
    a = random.integers(0, 256, (m, k // 2) if along_k[0] else (m // 2, k), np.uint8)
    b = random.integers(0, 256, (k // 2, n) if along_k[1] else (k, n // 2), np.uint8)
    a_scale, b_scale = (random.integers(124, 131, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    out = poisoned(m, n, dtype=np.float32)
    launch(
        packed,
        (1,),
        a,
        a_scale,
        b,
        b_scale,
        out,
        A_ROWS=a.shape[0],
        A_COLUMNS=a.shape[1],
        B_ROWS=b.shape[0],
        B_COLUMNS=b.shape[1],
        M=m,
        N=n,
        K=k,
        A_ALONG_K=along_k[0],
        B_ALONG_K=along_k[1],
    )
    x = unpacked(a, 1 if along_k[0] else 0) * np.exp2(a_scale.astype(np.float64) - 127).repeat(32, 1)
    y = unpacked(b, 0 if along_k[1] else 1) * np.exp2(b_scale.astype(np.float64) - 127).repeat(32, 1).T
    near(out, x, y, np.zeros((m, n)), float(np.finfo(np.float32).eps))
