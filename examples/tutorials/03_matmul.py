"""
Matrix multiplication
=====================

A product of matrices in tiles: a program computes one tile of the result and goes through the inner dimension in steps.
Two things make it fast. The programs are numbered in groups, so that those which run at the same time read the same
tiles. And the sizes of tiles are not guessed: `triton.autotune` times several and keeps the best.

    ./foundry run spirv examples/tutorials/03_matmul.py
    ./foundry run dpu examples/tutorials/03_matmul.py --size 64 65 33

It runs on every target. The sizes of tiles below are for all of them: on DPUs, tiles share the 64 KB of a DPU's working
memory.
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
# In the plain order, all programs of a row of tiles come first, and together they read all of B. In groups of
# `GROUP` rows, the same number of programs reads a part of A and a part of B that are both small.
#
# Offsets of rows and columns wrap around at the edge of the matrices, so the loads in the loop need a mask along the
# inner dimension only. What is computed for rows and columns that do not exist is not stored.


@triton.autotune(
    configs=[
        triton.Config({"M": 32, "N": 32, "K": 16, "GROUP": 4}),
        triton.Config({"M": 16, "N": 32, "K": 32, "GROUP": 4}),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_stride,
    b_stride,
    c_stride,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    GROUP: tl.constexpr,
):
    program = tl.program_id(0)
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    in_group = GROUP * across
    first = program // in_group * GROUP
    height = min(down - first, GROUP)
    row = first + program % in_group % height
    column = program % in_group // height

    rows = (row * M + tl.arange(0, M)) % m
    columns = (column * N + tl.arange(0, N)) % n
    inner = tl.arange(0, K)
    a = a_ptr + rows[:, None] * a_stride + inner[None, :]
    b = b_ptr + inner[:, None] * b_stride + columns[None, :]
    total = tl.zeros((M, N), tl.float32)
    for step in range(tl.cdiv(k, K)):
        left = k - step * K
        x = tl.load(a, mask=inner[None, :] < left, other=0.0)
        y = tl.load(b, mask=inner[:, None] < left, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        a += K
        b += K * b_stride

    rows = row * M + tl.arange(0, M)
    columns = column * N + tl.arange(0, N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * c_stride + columns[None, :], total, mask=inside)


# %%
# The launch
# ----------
#
# The grid depends on the sizes of tiles, which autotune chooses: it is a function of the chosen values.
# `input_precision="ieee"` asks for products of f32 as they are; Triton's default lets hardware shorten the operands.


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (m, k), (_, n) = a.shape, b.shape
    c = np.full((m, n), np.nan, np.float32)

    def grid(chosen: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, chosen["M"]) * triton.cdiv(n, chosen["N"]),)

    strides = (array.strides[0] // array.itemsize for array in (a, b, c))
    matmul_kernel[grid](Tensor(a), Tensor(b), Tensor(c), m, n, k, *strides)
    return c


# %%
# Is it right?
# ------------
#
# A sum of k products in f32, in any order, is at most k roundings of the sum of absolute products from the exact one.


def check(a: np.ndarray, b: np.ndarray) -> None:
    exact = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    error = np.abs(matmul(a, b) - exact)
    allowed = a.shape[1] * np.finfo(np.float32).eps / 2 * magnitude
    print(f"{a.shape} times {b.shape}: largest error {error.max():.2e}, chosen: {matmul_kernel.best_config}")
    if not np.all(error <= allowed):
        raise SystemExit("error: a result is further from the exact one than rounding explains")


def bench(a: np.ndarray, b: np.ndarray) -> None:
    operations = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    for name, function in (("triton", lambda: matmul(a, b)), ("numpy", lambda: a @ b)):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = operations * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GFLOP/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--size", type=int, nargs=3, metavar=("M", "N", "K"))
    words.add_argument("--bench", action="store_true", help="time it, too, by default a larger one")
    options = words.parse_args()
    m, n, k = options.size or ([512, 512, 512] if options.bench else [128, 130, 96])
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    check(a, b)
    if options.bench:
        bench(a, b)


if __name__ == "__main__":
    main()
