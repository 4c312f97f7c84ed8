"""Causal attention in one kernel, without the matrix of scores in memory: `python attention.py --length 64`.

The same on OpenCL and on Vulkan: FOUNDRY_SPIRV_API chooses. A GPU wants --length 2048 --heads 128 --block 64.
"""

import argparse

import numpy as np
import triton
import triton.language as tl
from foundry_core import Tensor


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, length, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """One program has a block of queries of one head; `length` is a multiple of BLOCK."""
    head = tl.program_id(1) * length * DEPTH
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    place = head + rows[:, None] * DEPTH + depth[None, :]
    q = tl.load(q_ptr + place)
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, DEPTH), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + head + keys[None, :] * DEPTH + depth[:, None])
        scores = tl.dot(q, k, input_precision="ieee") * scale
        scores = tl.where(rows[:, None] >= keys[None, :], scores, -float("inf"))
        # What was summed up so far was relative to the highest score so far.
        above = tl.maximum(highest, tl.max(scores, 1))
        powers = tl.exp(scores - above[:, None])
        shrink = tl.exp(highest - above)
        weight = weight * shrink + tl.sum(powers, 1)
        v = tl.load(v_ptr + head + keys[:, None] * DEPTH + depth[None, :])
        total = tl.dot(powers.to(v.dtype), v, total * shrink[:, None], input_precision="ieee")
        highest = above
    tl.store(out_ptr + place, (total / weight[:, None]).to(out_ptr.dtype.element_ty))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, block: int) -> np.ndarray:
    """Causal attention of arrays of heads x length x depth."""
    heads, length, depth = q.shape
    out = np.full_like(q, np.nan)
    grid = (length // block, heads)
    attention_kernel[grid](
        Tensor(q), Tensor(k), Tensor(v), Tensor(out), depth**-0.5, length, DEPTH=depth, BLOCK=block, num_warps=4
    )
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=64, help="of the sequence, a multiple of the block")
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--depth", type=int, default=16, help="of a head, a power of 2")
    parser.add_argument("--block", type=int, default=16, help="queries of a program, a power of 2")
    parser.add_argument("--type", choices=("float16", "float32"), default="float16")
    words = parser.parse_args()
    shape = (words.heads, words.length, words.depth)
    q, k, v = np.random.default_rng(0).standard_normal((3, *shape), np.float32).astype(words.type)
    found = attention(q, k, v, words.block)
    # In float64, for some heads: all scores are in memory here.
    worst = 0.0
    for head in range(min(words.heads, 4)):
        queries, keys, values = (each[head].astype(np.float64) for each in (q, k, v))
        scores = queries @ keys.T * words.depth**-0.5
        scores[np.triu_indices(words.length, 1)] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        # The weights and the result are rounded to the type; what is in f32 rounds each of `length` additions.
        unit = {"float16": 2.0**-11, "float32": 2.0**-24}[words.type]
        allowed = (4 * unit + 2 * words.length * 2.0**-24) * (weights @ np.abs(values))
        worst = max(worst, (np.abs(found[head] - weights @ values) / allowed).max())
    print(triton.runtime.driver.active.device_report())
    print("largest error, as a part of what the type allows:", worst)
