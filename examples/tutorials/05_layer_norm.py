"""
Layer normalisation, forward and backward
=========================================

Layer normalisation gives each row the mean 0 and the variance 1, and then scales and shifts its columns by learned
weights. The forward kernel needs a row only. The backward one has two kinds of results: the gradient of the row, and
the gradients of weights and biases, which are sums over all rows.

    ./foundry run spirv examples/tutorials/05_layer_norm.py
    ./foundry run dpu examples/tutorials/05_layer_norm.py --rows 40 --columns 100

It runs on every target. Sums over rows are often made with a lock or with atomic additions. Programs on DPUs share no
memory, so here each program sums the rows that it has into a row of its own, and a second kernel adds these.
"""

import argparse

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor

# %%
# Forward
# -------
#
# The variance is computed from the differences to the mean, in a second pass over registers. The shorter formula, the
# mean of squares minus the square of the mean, loses all digits where the mean is large. Behind the end of the row, a
# load gives 0; but 0 - mean is not 0, so the difference needs the mask, too.


@triton.jit
def forward_kernel(x_ptr, y_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + offsets, mask=mask)
    tl.store(y_ptr + row * columns + offsets, centred * rstd * weight + bias, mask=mask)
    # The backward kernel uses them again.
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


# %%
# Backward
# --------
#
# With h the normalised row and g the incoming gradient times the weights, the gradient of the row is
# (g - mean(g) - h * mean(g * h)) * rstd. The gradient of the weights is the sum over rows of gradient * h, that of the
# biases the sum of the gradients. A program goes through every PARTS-th row.


@triton.jit
def backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dweight_ptr,
    dbias_ptr,
    rows,
    columns,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    part = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for row in range(part, rows, PARTS):
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + row * columns + offsets, mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        h = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        g = dy * weight
        dx = (g - tl.sum(g, axis=0) / columns - h * (tl.sum(g * h, axis=0) / columns)) * rstd
        tl.store(dx_ptr + row * columns + offsets, dx, mask=mask)
        dweight += dy * h
        dbias += dy
    tl.store(dweight_ptr + part * columns + offsets, dweight, mask=mask)
    tl.store(dbias_ptr + part * columns + offsets, dbias, mask=mask)


@triton.jit
def sum_kernel(parts_ptr, sum_ptr, columns, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(PARTS):
        total += tl.load(parts_ptr + part * columns + offsets, mask=mask, other=0.0)
    tl.store(sum_ptr + offsets, total, mask=mask)


# %%
# The launches
# ------------

EPSILON = 1e-5
PARTS = 8


def forward(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the normalised rows, and each row's mean and reciprocal standard deviation."""
    rows, columns = x.shape
    y, mean, rstd = (np.full(shape, np.nan, np.float32) for shape in (x.shape, rows, rows))
    arrays = map(Tensor, (x, y, weight, bias, mean, rstd))
    forward_kernel[(rows,)](*arrays, columns, EPSILON, BLOCK=triton.next_power_of_2(columns))
    return y, mean, rstd


def backward(
    dy: np.ndarray, x: np.ndarray, weight: np.ndarray, mean: np.ndarray, rstd: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of the rows, of the weights and of the biases."""
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    dx = np.full_like(x, np.nan)
    parts = [np.full((PARTS, columns), np.nan, np.float32) for _ in range(2)]
    sums = [np.full(columns, np.nan, np.float32) for _ in range(2)]
    arrays = map(Tensor, (dy, x, weight, mean, rstd, dx, *parts))
    backward_kernel[(PARTS,)](*arrays, rows, columns, PARTS=PARTS, BLOCK=block)
    for part, total in zip(parts, sums, strict=True):
        sum_kernel[(triton.cdiv(columns, 64),)](Tensor(part), Tensor(total), columns, PARTS=PARTS, BLOCK=64)
    return dx, *sums


# %%
# Is it right?
# ------------
#
# The reference is in float64, and beside each result stands how far rounding can take it: to first order, the sum of
# what each step adds. A sum of n terms in any order is off by at most n units of the sum of absolute terms. An error
# of the mean reaches everything, multiplied by rstd.

UNIT = np.finfo(np.float32).eps / 2


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, dy: np.ndarray) -> dict[str, tuple[np.ndarray, ...]]:
    """Return each result in float64, and the error that is allowed for each element."""
    x, weight, bias, dy = (array.astype(np.float64) for array in (x, weight, bias, dy))
    rows, n = x.shape

    def mean(values: np.ndarray) -> np.ndarray:
        return values.mean(axis=1, keepdims=True)

    rstd = 1 / np.sqrt(mean((x - mean(x)) ** 2) + EPSILON)
    h = (x - mean(x)) * rstd
    g = dy * weight
    inner = g - mean(g) - h * mean(g * h)

    of_mean = (n + 1) * UNIT * mean(np.abs(x))
    of_rstd = ((n + 2) * UNIT + 2 * of_mean * rstd) / 2 + 4 * UNIT  # relative
    of_h = rstd * of_mean + np.abs(h) * (of_rstd + 3 * UNIT)
    of_gh = (n + 3) * UNIT * mean(np.abs(g * h)) + mean(np.abs(g) * of_h)
    of_inner = (n + 2) * UNIT * mean(np.abs(g)) + np.abs(h) * of_gh + of_h * np.abs(mean(g * h))
    of_inner += 4 * UNIT * (np.abs(g) + np.abs(mean(g)) + np.abs(h * mean(g * h)))
    return {
        "y": (h * weight + bias, of_h * np.abs(weight) + 3 * UNIT * (np.abs(h * weight) + np.abs(bias))),
        "dx": (inner * rstd, of_inner * rstd + np.abs(inner * rstd) * (of_rstd + 2 * UNIT)),
        "dweight": (
            (dy * h).sum(axis=0),
            (rows + 2) * UNIT * np.abs(dy * h).sum(axis=0) + (np.abs(dy) * of_h).sum(axis=0),
        ),
        "dbias": (dy.sum(axis=0), rows * UNIT * np.abs(dy).sum(axis=0)),
    }


def check(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, dy: np.ndarray) -> None:
    y, mean, rstd = forward(x, weight, bias)
    dx, dweight, dbias = backward(dy, x, weight, mean, rstd)
    found = {"y": y, "dx": dx, "dweight": dweight, "dbias": dbias}
    for name, (exact, allowed) in reference(x, weight, bias, dy).items():
        error = np.abs(found[name] - exact)
        print(f"{name:8} largest error {error.max():.1e}, at most {np.max(error / allowed):.2f} of what is allowed")
        if not np.all(error <= allowed):
            raise SystemExit(f"error: {name} is further from the exact one than rounding explains")


def bench(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> None:
    def by_numpy() -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON) * weight + bias

    for name, function in (("triton", lambda: forward(x, weight, bias)), ("numpy", by_numpy)):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = 2 * x.nbytes * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GB/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rows", type=int)
    words.add_argument("--columns", type=int)
    words.add_argument("--bench", action="store_true", help="time the forward kernel, too, by default on more rows")
    options = words.parse_args()
    rows, columns = (2048, 1024) if options.bench else (50, 300)
    rows, columns = options.rows or rows, options.columns or columns
    random = np.random.default_rng(0)
    x, dy = (random.standard_normal((rows, columns), np.float32) for _ in range(2))
    weight, bias = (random.uniform(0.5, 1.5, columns).astype(np.float32) for _ in range(2))
    check(x + 3, weight, bias, dy)
    if options.bench:
        bench(x, weight, bias)


if __name__ == "__main__":
    main()
