"""Attention, forward: softmax(scale * Q K^T) V for each head, without a matrix of all scores."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, Returning, empty, normal, torch_views, unit

# Heads, length, depth, type, causal.
QUICK = ((8, 512, 64, "f32", False), (8, 512, 64, "f16", True))
FULL = (
    *QUICK,
    (8, 512, 64, "f32", True),
    (8, 2048, 64, "f32", False),
    (8, 1024, 128, "f32", False),
    (8, 512, 64, "f16", False),
    (8, 512, 64, "bf16", False),
)
# Queries and keys of a block.
BLOCKS = ((32, 32), (64, 32), (64, 64), (128, 64))


@triton.jit
def _step(
    query, k_ptr, v_ptr, n, rm, highest, weight, total, scale, D: tl.constexpr, BN: tl.constexpr, MASK: tl.constexpr
):
    rn, rd = n + tl.arange(0, BN), tl.arange(0, D)
    key = tl.load(k_ptr + rn[None, :] * D + rd[:, None])
    score = tl.dot(query, key) * scale
    if MASK:
        score = tl.where(rm[:, None] >= rn[None, :], score, -float("inf"))
    most = tl.maximum(highest, tl.max(score, 1))
    power = tl.exp2(score - most[:, None])
    shrink = tl.exp2(highest - most)
    value = tl.load(v_ptr + rn[:, None] * D + rd[None, :])
    total = tl.dot(power.to(value.dtype), value, total * shrink[:, None])
    return most, weight * shrink + tl.sum(power, 1), total


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    LENGTH,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Compute BM queries of a head; LENGTH is a multiple of BM, and BM of BN."""
    start, head = tl.program_id(0) * BM, tl.program_id(1) * LENGTH * D
    rm, rd = start + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q_ptr + head + rm[:, None] * D + rd[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    # Powers of 2 instead of e.
    scale *= 1.44269504
    k_ptr += head
    v_ptr += head
    for n in range(0, start if CAUSAL else LENGTH, BN):
        highest, weight, total = _step(query, k_ptr, v_ptr, n, rm, highest, weight, total, scale, D, BN, False)
    if CAUSAL:
        for n in range(start, start + BM, BN):
            highest, weight, total = _step(query, k_ptr, v_ptr, n, rm, highest, weight, total, scale, D, BN, True)
    tl.store(out_ptr + head + rm[:, None] * D + rd[None, :], (total / weight[:, None]).to(out_ptr.dtype.element_ty))


def problem(heads: int, length: int, depth: int, kind: str, causal: bool) -> Problem:
    shape = (heads, length, depth)
    q, k, v = (normal(shape, kind, seed) for seed in range(3))
    out = empty(shape, kind)
    exact, allowed = reference(q, k, v, kind, causal)
    scale, tensors = depth**-0.5, tuple(map(Tensor, (q, k, v, out)))

    def triton_of(queries: int, keys: int) -> None:
        grid = (length // queries, heads)
        attention_kernel[grid](*tensors, scale, length, D=depth, BM=queries, BN=keys, CAUSAL=causal)

    a, b, c = (each[None] for each in torch_views(q, k, v))
    by_hand = partial(kernel, __file__, "attention", heads * length // 32, q, k, v, out, np.float32(scale))
    constants = {"TYPE": kind, "LENGTH": length, "DEPTH": depth, "CAUSAL": int(causal)}
    return Problem(
        f"attention {kind}, {heads} heads, {length} x {depth}{', causal' if causal else ''}",
        "GFLOP/s",
        bytes=4 * q.nbytes,
        # Two products; a mask leaves half of them.
        operations=4 * heads * length * (length + 1 if causal else 2 * length) // 2 * depth,
        output=out,
        exact=exact,
        allowed=allowed,
        ours={f"block {bm}x{bn}": partial(triton_of, bm, bn) for bm, bn in BLOCKS},
        peers={
            "OpenCL C": {
                f"32 queries a work-item, {rows} in registers": by_hand(**constants, ROWS=rows) for rows in (2, 4, 8)
            },
            "torch": {
                "": Returning(
                    lambda: torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=causal),
                    lambda found: found[0].float().numpy(),
                )
            },
        },
        aim="at least 1.0 of torch, and 0.95 of OpenCL C",
    )


def reference(q: Any, k: Any, v: Any, kind: str, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the result in float64, and the error that is allowed for each element."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    heads, length, depth = q.shape
    exact, allowed = np.empty_like(q), np.empty_like(q)
    f32 = unit("f32")
    for head in range(heads):
        score = q[head] @ k[head].T * depth**-0.5
        # A sum of products rounds `depth` times at most; scaling rounds twice.
        of_score = (depth + 4) * f32 * (np.abs(q[head]) @ np.abs(k[head]).T).max(axis=1, keepdims=True) * depth**-0.5
        if causal:
            score[np.triu_indices(length, 1)] = -np.inf
        power = np.exp(score - score.max(axis=1, keepdims=True))
        weight = power / power.sum(axis=1, keepdims=True)
        exact[head] = weight @ v[head]
        # Of each weight and of their sum: the score, exp2 with 4 ulp, and a rescaling with another for each block of at
        # least 16 keys; both sums round once for each key. A weight and the result are rounded to the type, f16 to a
        # multiple of 2^-24 at least.
        relative = 2 * of_score + (2 * length + 20 * (length // 16 + 1)) * f32 + 2 * unit(kind)
        allowed[head] = relative * (weight @ np.abs(v[head])) + unit(kind) * np.abs(exact[head])
        if kind == "f16":
            allowed[head] += 2.0**-25 * (np.abs(v[head]).sum(axis=0) + 1)
    return exact, allowed
