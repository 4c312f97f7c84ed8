"""
Fused attention
===============

Attention computes softmax(Q K^T / sqrt(d)) V. The matrix of weights has a row and a column for each position, so it
outgrows everything else. The kernel never has all of it: a program takes a block of queries, goes through the keys in
blocks, and keeps a running maximum, a running sum and a running result. When a block brings a larger maximum, what was
summed so far is scaled down to it.

    ./foundry run spirv examples/tutorials/06_fused_attention.py
    ./foundry run dpu examples/tutorials/06_fused_attention.py --length 48 --heads 1

It runs on every target.
"""

import argparse
import math

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor

# %%
# The kernel
# ----------
#
# Powers of two are cheaper than powers of e, so the scale has a factor log2(e). A key behind the end, or behind the
# query if attention is causal, gets minus infinity. Every query sees at least one key in the first block, so the
# running maximum is finite from there on, and no difference is inf - inf.


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, length, scale, CAUSAL: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    block, head = tl.program_id(0), tl.program_id(1)
    start = head * length * D
    queries, depth = block * M + tl.arange(0, M), tl.arange(0, D)
    at = queries[:, None] * D + depth[None, :]
    inside = queries[:, None] < length
    q = tl.load(q_ptr + start + at, mask=inside, other=0.0)

    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    # With causal attention, the keys behind the block's last query are not needed.
    end = min(length, (block + 1) * M) if CAUSAL else length
    for first in range(0, end, N):
        keys = first + tl.arange(0, N)
        there = keys[:, None] < length
        k = tl.load(k_ptr + start + keys[:, None] * D + depth[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + start + keys[:, None] * D + depth[None, :], mask=there, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = keys[None, :] < length
        if CAUSAL:
            seen = seen & (keys[None, :] <= queries[:, None])
        score = tl.where(seen, score, -float("inf"))
        now = tl.maximum(largest, tl.max(score, axis=1))
        weight = tl.exp2(score - now[:, None])
        shrink = tl.exp2(largest - now)
        total = total * shrink + tl.sum(weight, axis=1)
        result = tl.dot(weight.to(v.dtype), v, result * shrink[:, None], input_precision="ieee")
        largest = now
    tl.store(o_ptr + start + at, (result / total[:, None]).to(o_ptr.dtype.element_ty), mask=inside)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool, block: int = 16) -> np.ndarray:
    """Return the attention of arrays of the shape (heads, length, depth)."""
    heads, length, depth = q.shape
    o = np.full_like(q, np.nan)
    grid = (triton.cdiv(length, block), heads)
    scale = math.log2(math.e) / math.sqrt(depth)
    arrays = map(Tensor, (q, k, v, o))
    attention_kernel[grid](*arrays, length, scale, CAUSAL=causal, D=depth, M=block, N=block)
    return o


# %%
# Is it right?
# ------------
#
# An error e of a score changes its weight by a factor of exp(e), so to first order the result by e times its largest
# element. A score is a sum of d products; then there are length additions in the sum and in the product with V.


def check(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> None:
    wide_q, wide_k, wide_v = (array.astype(np.float64) for array in (q, k, v))
    length, depth = q.shape[1:]
    score = wide_q @ wide_k.swapaxes(1, 2) / math.sqrt(depth)
    magnitude = (np.abs(wide_q) @ np.abs(wide_k).swapaxes(1, 2) / math.sqrt(depth)).max()
    if causal:
        score[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    weight = np.exp(score - score.max(axis=2, keepdims=True))
    exact = weight / weight.sum(axis=2, keepdims=True) @ wide_v
    unit = np.finfo(np.float32).eps / 2
    # Twice, as the scores enter both the weights and their sum.
    allowed = 2 * ((depth + 6) * magnitude + 2 * length + 8) * unit * np.abs(wide_v).max()
    if q.dtype == np.float16:
        # The weights and the result are rounded to f16.
        allowed += 2 * np.finfo(np.float16).eps * np.abs(wide_v).max()
    error = np.abs(attention(q, k, v, causal=causal) - exact).max()
    print(f"{q.dtype} {q.shape}, {'causal' if causal else 'all keys'}: error {error:.1e}, allowed {allowed:.1e}")
    if not error <= allowed:
        raise SystemExit("error: a result is further from the exact one than rounding explains")


def bench(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    def by_numpy() -> np.ndarray:
        score = q @ k.swapaxes(1, 2) / np.float32(math.sqrt(q.shape[2]))
        weight = np.exp(score - score.max(axis=2, keepdims=True))
        return weight / weight.sum(axis=2, keepdims=True) @ v

    heads, length, depth = q.shape
    operations = 4 * heads * length * length * depth
    for name, function in (("triton", lambda: attention(q, k, v, causal=False)), ("numpy", by_numpy)):
        taken = triton.testing.do_bench(function, warmup=5, rep=200, return_mode="all")
        rate, runs = operations * 1e-6 / np.median(taken), len(taken)
        print(f"{name:8}{np.median(taken):10.3f} ms, least {min(taken):.3f} of {runs} runs {rate:10.2f} GFLOP/s")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--heads", type=int)
    words.add_argument("--length", type=int)
    words.add_argument("--depth", type=int, help="a power of two, at least 16")
    words.add_argument("--bench", action="store_true", help="time it, too, by default a larger one")
    options = words.parse_args()
    heads, length, depth = (4, 512, 64) if options.bench else (2, 72, 32)
    random = np.random.default_rng(0)
    shape = (options.heads or heads, options.length or length, options.depth or depth)
    arrays = [random.standard_normal(shape, np.float32) for _ in range(3)]
    check(*arrays, causal=False)
    check(*arrays, causal=True)
    check(*(array.astype(np.float16) for array in arrays), causal=True)
    if options.bench:
        bench(*arrays)


if __name__ == "__main__":
    main()
