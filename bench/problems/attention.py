"""Attention, forward: softmax(scale * Q K^T) V for each head, without a matrix of all scores."""

from __future__ import annotations

from functools import partial
from math import e, log2
from typing import Any

import numpy as np

from ..problem import Array, Problem, empty, normal, unit
from . import kernels
from .opencl_peers import kernel


def problem(heads: int, length: int, depth: int, kind: str, causal: bool, *, checked: Any = ...) -> Problem:
    """Return the problem; `checked` are heads."""
    shape = (1, heads, length, depth)
    q, k, v = (normal(shape, kind, seed) for seed in range(3))
    out = empty(shape, kind)
    index = (0, checked)
    exact, allowed = reference(q[index], k[index], v[index], kind, causal)

    def launch(jit: Any, *arrays: Any, BM: int, BN: int, TRANS: bool = False, **options: Any) -> Any:
        return jit(kernels.attention)[(length // BM, heads)](
            *arrays, depth**-0.5 * log2(e), length, D=depth, BM=BM, BN=BN, CAUSAL=causal, TRANS=TRANS, **options
        )

    def torch_of(torch: Any, q: Any, k: Any, v: Any, _: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def peers() -> Any:
        scale = np.float32(depth**-0.5)
        by_hand = partial(kernel, __file__, "attention", heads * length // 32, q, k, v, out, scale)
        constants: dict[str, Any] = {"TYPE": kind, "LENGTH": length, "DEPTH": depth, "CAUSAL": int(causal)}
        rows = {f"32 queries a work-item, {rows} in registers": by_hand(**constants, ROWS=rows) for rows in (2, 4, 8)}
        return {"OpenCL C": rows}

    return Problem(
        f"attention {kind}, {heads} heads, {length} x {depth}{', causal' if causal else ''}",
        "GFLOP/s",
        bytes=4 * q.nbytes,
        # Two products; a mask leaves half of them.
        operations=4 * heads * length * (length + 1 if causal else 2 * length) // 2 * depth,
        inputs=(q, k, v),
        output=out,
        exact=exact,
        allowed=allowed,
        checked=index,
        launch=launch,
        torch=torch_of,
        peers=peers,
        aim="at least 1.0 of torch, and 0.95 of OpenCL C",
    )


def reference(q: Array, k: Array, v: Array, kind: str, causal: bool) -> tuple[Array, Array]:
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
