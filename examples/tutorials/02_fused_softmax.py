"""
Fused softmax
=============

Softmax turns each row of a matrix into weights: exp(x - max) / sum(exp(x - max)). Written with an array library, this
reads and writes the matrix five times. One kernel reads it once and writes it once, and everything between stays in
registers or local memory.

    ./foundry run spirv examples/tutorials/02_fused_softmax.py
    ./foundry run dpu examples/tutorials/02_fused_softmax.py --rows 64 --columns 300

It runs on every target. On DPUs, a row and what is computed from it must fit in the 64 KB of a DPU's working memory.
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
# A program computes one row. `tl.arange` makes blocks of a power of two of elements, but rows have any length: the
# mask is false behind the end of the row. There, `other` says what a load gives. It must be minus infinity: any finite
# number could be the largest of the row, and exp(-inf) = 0 adds nothing to the sum.


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf"))
    # The largest exponent becomes 0, so that no exp overflows.
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * y_stride + offsets, y, mask=mask)


# %%
# The launch
# ----------
#
# The strides are arguments, so that a view of every second row works, too. `BLOCK` is a constant of the compilation:
# another length of row that has the same next power of two uses the same compiled kernel.


def softmax(x: np.ndarray) -> np.ndarray:
    rows, columns = x.shape
    # NaN shows an element that the kernel did not write.
    y = np.full_like(x, np.nan)
    strides = (array.strides[0] // array.itemsize for array in (x, y))
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](Tensor(x), Tensor(y), columns, *strides, BLOCK=block)
    return y


# %%
# Is it right?
# ------------
#
# The reference is computed in float64. The allowed error follows from the arithmetic: a sum of n terms rounds at most
# n times, exp is within 4 units in the last place, and the subtraction and the division round once each. The rounding
# of x - max is an absolute error of the exponent, so it grows with its size.


def check(x: np.ndarray) -> None:
    wide = x.astype(np.float64)
    exponent = wide - wide.max(axis=1, keepdims=True)
    exact = np.exp(exponent)
    exact /= exact.sum(axis=1, keepdims=True)
    unit = np.finfo(np.float32).eps / 2
    allowed = exact * (x.shape[1] + 12 + 2 * np.abs(exponent).max()) * unit + np.finfo(np.float32).smallest_normal
    error = np.abs(softmax(x) - exact)
    print(f"softmax of {x.shape[0]} rows of {x.shape[1]}: largest error {error.max():.2e}")
    if not np.all(error <= allowed):
        raise SystemExit("error: a result is further from the exact one than rounding explains")


# %%
# How fast is it?
# ---------------


def bench(x: np.ndarray) -> None:
    def by_numpy() -> None:
        weights = np.exp(x - x.max(axis=1, keepdims=True))
        np.divide(weights, weights.sum(axis=1, keepdims=True), out=weights)

    for name, function in (("triton", lambda: softmax(x)), ("numpy", by_numpy)):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = 2 * x.nbytes * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GB/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rows", type=int)
    words.add_argument("--columns", type=int)
    words.add_argument("--bench", action="store_true", help="time it, too, by default a larger one")
    options = words.parse_args()
    rows, columns = (2048, 1024) if options.bench else (128, 781)
    shape = options.rows or rows, options.columns or columns
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    check(x)
    check(x[::2])
    if options.bench:
        bench(x)


if __name__ == "__main__":
    main()
