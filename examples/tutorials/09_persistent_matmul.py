"""
Persistent matrix multiplication
================================

Usually there is a program for each tile of the result. A persistent kernel has as many programs as the device runs at a
time, and each computes several tiles. It starts once, and what is the same for all tiles is computed once.

    ./foundry run spirv examples/tutorials/09_persistent_matmul.py
    ./foundry run vsi examples/tutorials/09_persistent_matmul.py --programs 2

It runs on every target.
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
# The outer loop goes through the tiles of this program, the inner one through the inner dimension. `tl.range` may
# flatten both into one loop, so that the first loads of a tile overlap with the last products of the one before, where
# the target's compiler does that; elsewhere it is an ordinary loop.


@triton.jit
def persistent_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, PROGRAMS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    across = tl.cdiv(n, N)
    tiles = tl.cdiv(m, M) * across
    inner = tl.arange(0, K)
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        rows = tile // across * M + tl.arange(0, M)
        columns = tile % across * N + tl.arange(0, N)
        total = tl.zeros((M, N), tl.float32)
        for step in range(0, k, K):
            at = step + inner
            x_mask = (rows[:, None] < m) & (at[None, :] < k)
            y_mask = (at[:, None] < k) & (columns[None, :] < n)
            x = tl.load(a_ptr + rows[:, None] * k + at[None, :], mask=x_mask, other=0.0)
            y = tl.load(b_ptr + at[:, None] * n + columns[None, :], mask=y_mask, other=0.0)
            total = tl.dot(x, y, total)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        tl.store(c_ptr + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


def matmul(a: np.ndarray, b: np.ndarray, programs: int) -> np.ndarray:
    (m, k), (_, n) = a.shape, b.shape
    c = np.full((m, n), np.nan, np.float16)
    arrays = map(Tensor, (a, b, c))
    persistent_kernel[(programs,)](*arrays, m, n, k, PROGRAMS=programs, M=16, N=32, K=16)
    return c


# %%
# Is it right?
# ------------
#
# The products of f16 are exact in f32, where they are summed; the sum is rounded to f16 once. The result does not
# depend on the number of programs: each tile is computed in the same way by whichever program has it.


def check(a: np.ndarray, b: np.ndarray, programs: int) -> None:
    found = matmul(a, b, programs)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    in_f32 = a.shape[1] * np.finfo(np.float32).eps / 2 * magnitude
    allowed = in_f32 + (np.abs(exact) + in_f32) * np.finfo(np.float16).eps / 2 + np.finfo(np.float16).smallest_subnormal
    error = np.abs(found - exact)
    print(f"{a.shape} times {b.shape} by {programs} programs: largest error {error.max():.2e}")
    if not np.all(error <= allowed):
        raise SystemExit("error: a result is further from the exact one than rounding explains")
    if not np.array_equal(found, matmul(a, b, programs + 1)):
        raise SystemExit("error: the result depends on the number of programs")


def bench(a: np.ndarray, b: np.ndarray, programs: int) -> None:
    operations = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    for name, function in (
        ("triton", lambda: matmul(a, b, programs)),
        # NumPy has no fast product of f16.
        ("numpy", lambda: (wide_a @ wide_b).astype(np.float16)),
    ):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = operations * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GFLOP/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--size", type=int, nargs=3, metavar=("M", "N", "K"))
    words.add_argument("--programs", type=int, default=4)
    words.add_argument("--bench", action="store_true", help="time it, too, by default a larger one")
    options = words.parse_args()
    m, n, k = options.size or ([512, 512, 512] if options.bench else [70, 65, 50])
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    check(a, b, options.programs)
    if options.bench:
        bench(a, b, options.programs)


if __name__ == "__main__":
    main()
