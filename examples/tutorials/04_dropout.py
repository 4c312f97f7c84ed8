"""
Low-memory dropout
==================

Dropout sets elements to zero at random and scales the others, so that the expected value stays. Stored, the choice
costs as much memory as the data, and it is needed again for the gradient. With a counter-based generator it need not be
stored: the number for an element is a function of a seed and of the element's index, and can be computed again.

    ./foundry run spirv examples/tutorials/04_dropout.py
    ./foundry run vsi examples/tutorials/04_dropout.py --size 10000 --probability 0.9

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
# `tl.rand(seed, offsets)` gives numbers in [0, 1) by Philox, ten rounds of 32-bit multiplications: each number depends
# on nothing but the seed and the offset. So every target draws the same numbers, whatever the grid.


@triton.jit
def dropout_kernel(x_ptr, y_ptr, n, probability, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    kept = tl.rand(seed, offsets) >= probability
    tl.store(y_ptr + offsets, tl.where(kept, x / (1 - probability), 0.0), mask=mask)


def dropout(x: np.ndarray, probability: float, seed: int, block: int = 256) -> np.ndarray:
    y = np.full_like(x, np.nan)
    grid = (triton.cdiv(x.size, block),)
    dropout_kernel[grid](Tensor(x), Tensor(y), x.size, probability, seed, BLOCK=block)
    return y


# %%
# Is it right?
# ------------
#
# Three properties can be checked without knowing the numbers. An element is either zero or the scaled one: a rounding
# of 1 - p and a division, which OpenCL allows 2.5 units, are the only errors. The same seed gives the same choice with
# another size of block, another seed gives another. And the number of kept elements is binomial: it is further than six
# standard deviations from its mean once in 500 million runs, and a fixed seed makes this no lottery.


def check(x: np.ndarray, probability: float) -> None:
    y = dropout(x, probability, seed=123)
    kept = y != 0
    exact = x.astype(np.float64) / (1 - float(np.float32(probability)))
    allowed = 4 * np.finfo(np.float32).eps * np.abs(exact)
    print(f"{kept.sum()} of {x.size} elements are kept, {(1 - probability) * x.size:.0f} are expected")
    if not np.all(np.abs(y - exact)[kept] <= allowed[kept]) or np.isnan(y).any():
        raise SystemExit("error: a kept element is not the scaled one")
    if not np.array_equal(y, dropout(x, probability, seed=123, block=64)):
        raise SystemExit("error: the choice depends on the size of the block")
    if np.array_equal(y, dropout(x, probability, seed=124)):
        raise SystemExit("error: two seeds give the same choice")
    deviation = np.sqrt(x.size * probability * (1 - probability))
    if abs(kept.sum() - (1 - probability) * x.size) > 6 * deviation:
        raise SystemExit("error: the number of kept elements is not what chance gives")


def bench(x: np.ndarray, probability: float) -> None:
    random = np.random.default_rng(0)

    def by_numpy() -> np.ndarray:
        return np.where(random.random(x.size, np.float32) >= probability, x / (1 - probability), 0)

    for name, function in (("triton", lambda: dropout(x, probability, 123)), ("numpy", by_numpy)):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = 2 * x.nbytes * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GB/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--size", type=int)
    words.add_argument("--probability", type=float, default=0.5)
    words.add_argument("--bench", action="store_true", help="time it, too, by default a larger one")
    options = words.parse_args()
    size = options.size or (1 << 22 if options.bench else 4000)
    # No element is zero, so that a zero in the result means a dropped one.
    x = np.random.default_rng(0).uniform(1, 2, size).astype(np.float32)
    check(x, options.probability)
    if options.bench:
        bench(x, options.probability)


if __name__ == "__main__":
    main()
