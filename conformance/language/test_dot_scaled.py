"""tl.dot_scaled: every format, scales, both packings of e2m1, batches, accumulators; compared with NumPy float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import RELEASE
from foundry_core.tensor import Tensor

FORMATS = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}
later_than_3_2 = pytest.mark.skipif(RELEASE < (3, 6), reason="3.2 scales a only, and takes bytes: see the last test")
M, N, K = 16, 16, 64


@triton.jit
def scaled(
    a,
    a_scale,
    b,
    b_scale,
    c,
    out,
    A: tl.constexpr,
    B: tl.constexpr,
    A_ROWS: tl.constexpr,
    A_COLUMNS: tl.constexpr,
    B_ROWS: tl.constexpr,
    B_COLUMNS: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    A_GROUPS: tl.constexpr,
    B_GROUPS: tl.constexpr,
    A_ALONG_K: tl.constexpr,
    B_ALONG_K: tl.constexpr,
    FAST: tl.constexpr,
):
    x = tl.load(a + tl.arange(0, A_ROWS)[:, None] * A_COLUMNS + tl.arange(0, A_COLUMNS)[None, :])
    y = tl.load(b + tl.arange(0, B_ROWS)[:, None] * B_COLUMNS + tl.arange(0, B_COLUMNS)[None, :])
    i, j = tl.arange(0, M), tl.arange(0, N)
    acc = tl.load(c + i[:, None] * N + j[None, :])
    sx = None
    if A_GROUPS > 0:
        sx = tl.load(a_scale + i[:, None] * A_GROUPS + tl.arange(0, A_GROUPS)[None, :])
    sy = None
    if B_GROUPS > 0:
        sy = tl.load(b_scale + j[:, None] * B_GROUPS + tl.arange(0, B_GROUPS)[None, :])
    r = tl.dot_scaled(
        x, sx, A, y, sy, B, acc, fast_math=FAST, lhs_k_pack=A_ALONG_K, rhs_k_pack=B_ALONG_K, out_dtype=tl.float32
    )
    tl.store(out + i[:, None] * N + j[None, :], r)


@triton.jit
def batched(a, a_scale, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    h, i, j, k = tl.arange(0, 2)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + h * M * K // 2 + i[None, :, None] * (K // 2) + tl.arange(0, K // 2)[None, None, :])
    sx = tl.load(a_scale + h * M * K // 32 + i[None, :, None] * (K // 32) + tl.arange(0, K // 32)[None, None, :])
    y = tl.load(b + h * K * N + k[None, :, None] * N + j[None, None, :])
    tl.store(out + h * M * N + i[None, :, None] * N + j[None, None, :], tl.dot_scaled(x, sx, "e2m1", y, None, "bf16"))


def halves(array: np.ndarray, axis: int) -> np.ndarray:
    """Return the numbers of packed e2m1 as float64; the lower half of a byte comes first along an axis."""
    both = np.stack([array & 15, array >> 4], axis + 1)
    shape = list(array.shape)
    shape[axis] *= 2
    sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    found = both.reshape(shape)
    return np.where(found & 8, -1.0, 1.0) * sizes[found & 7]


def drawn(random: np.random.Generator, format: str, shape: tuple[int, int], axis: int) -> tuple[Any, np.ndarray]:
    """Return an operand as it is passed, and its numbers."""
    if format == "e2m1":
        packed = [extent // (2 if d == axis else 1) for d, extent in enumerate(shape)]
        array = random.integers(0, 256, packed, np.uint8)
        return Tensor(array), halves(array, axis)
    array = random.standard_normal(shape).astype(FORMATS[format])
    return Tensor(array), array.astype(np.float64)


def powers(random: np.random.Generator, rows: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scales as bytes, and the numbers for each element along K."""
    scale = random.integers(120, 134, (rows, groups), np.uint8)
    return scale, np.exp2(scale.astype(np.float64) - 127)


@later_than_3_2
@pytest.mark.operation("tl.dot_scaled", type="{left}")
@pytest.mark.parametrize(
    ("left", "right", "along_k", "groups"),
    [
        ("e2m1", "e2m1", (True, True), (2, 2)),
        ("e2m1", "e2m1", (False, False), (2, 2)),
        ("bf16", "e2m1", (True, False), (0, 2)),
        ("e4m3", "e5m2", (True, True), (2, 2)),
        ("e5m2", "fp16", (True, True), (2, 0)),
    ],
)
def test_each_format_with_and_without_scales(
    left: str, right: str, along_k: tuple[bool, bool], groups: tuple[int, int]
) -> None:
    random = np.random.default_rng(3)
    a, x = drawn(random, left, (M, K), 1 if along_k[0] else 0)
    b, y = drawn(random, right, (K, N), 0 if along_k[1] else 1)
    c, out = random.standard_normal((M, N)).astype(np.float32), np.full((M, N), np.nan, np.float32)
    a_scale, x_scale = powers(random, M, max(groups[0], 1))
    b_scale, y_scale = powers(random, N, max(groups[1], 1))
    run(a, a_scale, b, b_scale, c, out, left, right, along_k, groups)
    if groups[0]:
        x = x * x_scale.repeat(K // groups[0], 1)
    if groups[1]:
        y = y * y_scale.repeat(K // groups[1], 1).T
    near(out, x, y, c)


def run(
    a: Any,
    a_scale: Any,
    b: Any,
    b_scale: Any,
    c: np.ndarray,
    out: np.ndarray,
    left: str,
    right: str,
    along_k: tuple[bool, bool] = (True, True),
    groups: tuple[int, int] = (2, 2),
    fast: bool = False,
) -> None:
    (a_rows, a_columns), (b_rows, b_columns) = a.shape, b.shape
    scaled[(1,)](
        a,
        Tensor(a_scale),
        b,
        Tensor(b_scale),
        Tensor(c),
        Tensor(out),
        A=left,
        B=right,
        A_ROWS=a_rows,
        A_COLUMNS=a_columns,
        B_ROWS=b_rows,
        B_COLUMNS=b_columns,
        M=M,
        N=N,
        A_GROUPS=groups[0],
        B_GROUPS=groups[1],
        A_ALONG_K=along_k[0],
        B_ALONG_K=along_k[1],
        FAST=fast,
    )


def near(out: np.ndarray, x: np.ndarray, y: np.ndarray, c: np.ndarray | float = 0.0) -> None:
    """Compare with a sum of K products in any order: each rounding adds half an ulp of the magnitudes' sum."""
    allowed = (K + 2) * 2.0**-23 * (np.abs(x) @ np.abs(y) + np.abs(c))
    assert (np.abs(out - (x @ y + c)) <= allowed).all()


@later_than_3_2
def test_a_scale_may_be_nan_or_the_smallest_power() -> None:
    """Byte 255 makes its group NaN, and byte 0 is 2^-127, which is subnormal in f32."""
    random = np.random.default_rng(4)
    a, x = drawn(random, "e4m3", (M, K), 1)
    b, y = drawn(random, "e4m3", (K, N), 0)
    out, zero = np.zeros((M, N), np.float32), np.zeros((M, N), np.float32)
    a_scale, b_scale = np.full((M, 2), 127, np.uint8), np.full((N, 2), 127, np.uint8)
    a_scale[3, 1] = b_scale[5, 0] = 255
    # A device that takes subnormal numbers for zeros cannot multiply by 2^-127.
    smallest = 40 if "f32" in triton.runtime.driver.active.flushed() else 0
    a_scale[7] = smallest
    b_scale[9] = 240
    run(a, a_scale, b, b_scale, zero, out, "e4m3", "e4m3")
    nan = np.zeros((M, N), bool)
    nan[3] = nan[:, 5] = True
    np.testing.assert_array_equal(np.isnan(out), nan)
    x[7] *= 2.0 ** (smallest - 127)
    y[:, 9] *= 2.0 ** (240 - 127)
    kept = np.flatnonzero(np.arange(M) != 3)[:, None], np.flatnonzero(np.arange(N) != 5)[None, :]
    # Sums of row 7 are subnormal: each rounding adds up to half of 2^-149.
    allowed = (K + 2) * (2.0**-23 * (np.abs(x) @ np.abs(y)) + 2.0**-150)
    assert (np.abs(out - x @ y)[kept] <= allowed[kept]).all()
    assert (out[7, np.arange(N) != 5] != 0).any()


@later_than_3_2
def test_scales_may_be_e4m3_of_16_elements() -> None:
    random = np.random.default_rng(5)
    a, x = drawn(random, "e2m1", (M, K), 1)
    b, y = drawn(random, "e2m1", (K, N), 0)
    out, zero = np.full((M, N), np.nan, np.float32), np.zeros((M, N), np.float32)
    a_scale = np.abs(random.standard_normal((M, K // 16))).astype(FORMATS["e4m3"])
    b_scale = np.abs(random.standard_normal((N, K // 16))).astype(FORMATS["e4m3"])
    run(a, a_scale, b, b_scale, zero, out, "e2m1", "e2m1", groups=(K // 16, K // 16), fast=True)
    near(out, x * a_scale.astype(np.float64).repeat(16, 1), y * b_scale.astype(np.float64).repeat(16, 1).T)


@triton.jit
def left_scaled(a, a_scale, b, out, A: tl.constexpr, PACKED: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    k, i, j = tl.arange(0, 64), tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + i * (64 // PACKED) + tl.arange(0, 64 // PACKED)[None, :])
    scale = tl.load(a_scale + i * 2 + tl.arange(0, 2)[None, :])
    tl.store(out + i * N + j, tl.dot_scaled(x, scale, A, tl.load(b + k[:, None] * N + j), None, "e5m2"))


@pytest.mark.parametrize("left", ["e2m1", "e5m2"])
def test_a_alone_may_be_scaled_and_operands_may_be_bytes(left: str) -> None:
    random = np.random.default_rng(6)
    a, x = drawn(random, left, (M, K), 1)
    b, y = drawn(random, "e5m2", (K, N), 0)
    a_scale, x_scale = powers(random, M, 2)
    out = np.full((M, N), np.nan, np.float32)
    raw = [Tensor(tensor.numpy().view(np.uint8)) for tensor in (a, b)]
    left_scaled[(1,)](raw[0], Tensor(a_scale), raw[1], Tensor(out), A=left, PACKED=K // a.shape[1], M=M, N=N)
    near(out, x * x_scale.repeat(32, 1), y)


@pytest.mark.skipif(RELEASE < (3, 9), reason="until 3.6 Triton takes no scales of a batch")
def test_a_batch_of_scaled_products() -> None:
    random = np.random.default_rng(7)
    a, scale = random.integers(0, 256, (2, M, K // 2), np.uint8), random.integers(120, 134, (2, M, 2), np.uint8)
    b, out = random.standard_normal((2, K, N)).astype(FORMATS["bf16"]), np.full((2, M, N), np.nan, np.float32)
    batched[(1,)](*map(Tensor, (a, scale, b, out)), M=M, N=N, K=K)
    for h in range(2):
        x = halves(a[h], 1) * np.exp2(scale[h].astype(np.float64) - 127).repeat(32, 1)
        near(out[h], x, b[h].astype(np.float64))
