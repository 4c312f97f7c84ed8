"""
Grouped products of matrices
============================

Several products of different sizes, in one launch. One launch for each would leave most of a device idle when they are
small. Here a fixed number of programs goes through the tiles of all products, one after the other.

    ./foundry run spirv examples/tutorials/08_grouped_gemm.py
    ./foundry run dpu examples/tutorials/08_grouped_gemm.py

It runs on every target. Elsewhere such kernels get an array of addresses. Addresses that a kernel loads as numbers do
not exist on DPUs, nor on a device whose memory is not the host's. So all operands lie one behind the other in one
array, and the kernel loads where each begins.
"""

import argparse

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor

# %%
# The kernel
# ----------
#
# A row of `sizes` describes a product: m, n, k, and where its operands and its result begin. A program takes every
# `PROGRAMS`-th tile, counted over all products: `tile` is its next one, `before` the number of tiles of the products
# that are behind it.

FIELDS = 6


@triton.jit
def grouped_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    sizes_ptr,
    products,
    PROGRAMS: tl.constexpr,
    FIELDS: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    tile = tl.program_id(0)
    before = 0
    for product in range(products):
        row = sizes_ptr + product * FIELDS
        m, n, k = tl.load(row), tl.load(row + 1), tl.load(row + 2)
        a, b, c = a_ptr + tl.load(row + 3), b_ptr + tl.load(row + 4), c_ptr + tl.load(row + 5)
        across = tl.cdiv(n, N)
        tiles = tl.cdiv(m, M) * across
        while tile < before + tiles:
            down, right = (tile - before) // across, (tile - before) % across
            rows, columns, inner = down * M + tl.arange(0, M), right * N + tl.arange(0, N), tl.arange(0, K)
            total = tl.zeros((M, N), tl.float32)
            for step in range(0, k, K):
                at = step + inner
                x = tl.load(
                    a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0
                )
                y = tl.load(
                    b + at[:, None] * n + columns[None, :], mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0
                )
                total = tl.dot(x, y, total, input_precision="ieee")
            inside = (rows[:, None] < m) & (columns[None, :] < n)
            tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)
            tile += PROGRAMS
        before += tiles


def grouped(pairs: list[tuple[np.ndarray, np.ndarray]], programs: int = 4) -> list[np.ndarray]:
    """Return the product of each pair of matrices."""
    rows, begin = [], [0, 0, 0]
    for a, b in pairs:
        (m, k), (_, n) = a.shape, b.shape
        rows.append([m, n, k, *begin])
        begin = [at + size for at, size in zip(begin, (m * k, k * n, m * n), strict=True)]
    a, b = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    c = np.full(begin[2], np.nan, np.float32)
    arrays = [Tensor(array) for array in (a, b, c, np.array(rows, np.int32))]
    grouped_kernel[(programs,)](*arrays, len(pairs), PROGRAMS=programs, FIELDS=FIELDS, M=16, N=16, K=16)
    ends = [row[5] + row[0] * row[1] for row in rows]
    return [c[row[5] : end].reshape(row[0], row[1]) for row, end in zip(rows, ends, strict=True)]


# %%
# Is it right?
# ------------
#
# A sum of k products in f32 is at most k roundings of the sum of absolute products from the exact one.


def check(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    for (a, b), found in zip(pairs, grouped(pairs), strict=True):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        error = np.abs(found - exact)
        print(f"{a.shape} times {b.shape}: largest error {error.max():.2e}")
        if not np.all(error <= a.shape[1] * np.finfo(np.float32).eps / 2 * magnitude):
            raise SystemExit("error: a result is further from the exact one than rounding explains")


def bench(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    operations = sum(2 * a.shape[0] * a.shape[1] * b.shape[1] for a, b in pairs)
    for name, function in (("triton", lambda: grouped(pairs)), ("numpy", lambda: [a @ b for a, b in pairs])):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = operations * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GFLOP/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--bench", action="store_true", help="time it, too")
    options = words.parse_args()
    random = np.random.default_rng(0)
    shapes = [(33, 20, 17), (16, 16, 16), (1, 50, 40), (40, 1, 5)]
    if options.bench:
        # In the shapes above, most of the time is that of a launch.
        shapes = [(512, 256, 384), (256, 256, 256), (64, 512, 512), (384, 100, 300)]
    pairs = [
        (random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)) for m, n, k in shapes
    ]
    check(pairs)
    if options.bench:
        bench(pairs)


if __name__ == "__main__":
    main()
