"""
Block-scaled matrix multiplication
==================================

Numbers of 8 or 4 bits have a small range. In the formats of the OCP Microscaling specification, 32 neighbours along the
inner dimension share a scale, a power of two in a byte of its own. `tl.dot_scaled` multiplies such operands. On
hardware without them, the elements are scaled in a wider type first, and the result is the same.

    ./foundry run spirv examples/tutorials/10_block_scaled_matmul.py
    ./foundry run dpu examples/tutorials/10_block_scaled_matmul.py --format e4m3

It runs on every target.
"""

import argparse

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor

# %%
# The kernel
# ----------
#
# Elements are passed as bytes. A byte of e2m1 has two elements, the one with the lower index in its lower half; so a
# row of k elements has k / 2 bytes. A scale byte s means 2 ** (s - 127).


@triton.jit
def scaled_kernel(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    k,
    n,
    FORMAT: tl.constexpr,
    PACKED: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner, scales = tl.arange(0, K // PACKED), tl.arange(0, K // 32)
    total = tl.zeros((M, N), tl.float32)
    for step in range(0, k, K):
        at = step // PACKED + inner
        by = step // 32 + scales
        a = tl.load(a_ptr + rows[:, None] * (k // PACKED) + at[None, :])
        b = tl.load(b_ptr + at[:, None] * n + columns[None, :])
        a_scale = tl.load(a_scale_ptr + rows[:, None] * (k // 32) + by[None, :])
        b_scale = tl.load(b_scale_ptr + columns[:, None] * (k // 32) + by[None, :])
        total = tl.dot_scaled(a, a_scale, FORMAT, b, b_scale, FORMAT, total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total)


# %%
# The operands
# ------------
#
# `quantised` makes an operand of random bits: of its elements, which the reference reads with ml_dtypes, and of scales
# from 2 ** -2 to 2 ** 2. The elements along the inner dimension lie in rows of `a` and in columns of `b`.

FORMATS = {"e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3fn, "e2m1": ml_dtypes.float4_e2m1fn}


def quantised(random: np.random.Generator, rows: int, k: int, format: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes (rows, k or k / 2), the scales (rows, k / 32), and the values in float64 (rows, k)."""
    values = random.standard_normal((rows, k)).astype(FORMATS[format])
    codes = values.view(np.uint8)
    if format == "e2m1":
        codes = (codes[:, ::2] & 15) | (codes[:, 1::2] & 15) << 4
    scales = random.integers(125, 130, (rows, k // 32)).astype(np.uint8)
    factors = np.exp2(scales.astype(np.float64) - 127).repeat(32, axis=1)
    return np.ascontiguousarray(codes), scales, values.astype(np.float64) * factors


def scaled(a: np.ndarray, a_scale: np.ndarray, b: np.ndarray, b_scale: np.ndarray, format: str) -> np.ndarray:
    """Multiply; b has the inner dimension in columns."""
    packed = 2 if format == "e2m1" else 1
    m, n, k = a.shape[0], b.shape[1], a.shape[1] * packed
    c = np.full((m, n), np.nan, np.float32)
    arrays = map(Tensor, (a, a_scale, b, b_scale, c))
    scaled_kernel[(m // 16, n // 16)](*arrays, k, n, FORMAT=format, PACKED=packed, M=16, N=16, K=64)
    return c


# %%
# Is it right?
# ------------
#
# A scaled product has at most 8 + 8 bits, so it is exact in f32. What rounds is the sum, at most k times.


def check(m: int, n: int, k: int, format: str) -> None:
    random = np.random.default_rng(0)
    a, a_scale, a_values = quantised(random, m, k, format)
    b, b_scale, b_values = quantised(random, n, k, format)
    found = scaled(a, a_scale, np.ascontiguousarray(b.T), b_scale, format)
    error = np.abs(found - a_values @ b_values.T)
    allowed = k * np.finfo(np.float32).eps / 2 * (np.abs(a_values) @ np.abs(b_values.T))
    print(f"{format}: {m}x{k} times {k}x{n}: largest error {error.max():.2e}")
    if not np.all(error <= allowed):
        raise SystemExit("error: a result is further from the exact one than rounding explains")


def bench(m: int, n: int, k: int, format: str) -> None:
    random = np.random.default_rng(0)
    a, a_scale, a_values = quantised(random, m, k, format)
    b, b_scale, b_values = quantised(random, n, k, format)
    b, wide = np.ascontiguousarray(b.T), (a_values.astype(np.float32), b_values.astype(np.float32).T)
    for name, function in (
        ("triton", lambda: scaled(a, a_scale, b, b_scale, format)),
        # NumPy has the operands in f32 already.
        ("numpy", lambda: wide[0] @ wide[1]),
    ):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        who, rate, runs = f"{format:8}{name}", 2 * m * n * k * 1e-6 / np.median(taken), len(taken)
        print(f"{who:16}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GFLOP/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--size", type=int, nargs=3, metavar=("M", "N", "K"))
    words.add_argument("--format", choices=FORMATS, help="one of the formats; all by default")
    words.add_argument("--bench", action="store_true", help="time it, too, by default a larger one")
    options = words.parse_args()
    size = options.size or ([256, 256, 512] if options.bench else [32, 32, 128])
    for format in [options.format] if options.format else FORMATS:
        check(*size, format)
        if options.bench:
            bench(*size, format)


if __name__ == "__main__":
    main()
