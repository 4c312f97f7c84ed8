"""Rotary embedding of the queries and keys of a packed array, whose three parts get arrays of their own."""
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from ..corpus.rows import F32, spread
from ..problem import Problem, empty, normal, unit


@triton.jit
def rope_split_kernel(
    qkv_ptr, cos_ptr, sin_ptr, out_ptr, tokens, heads, HALF: tl.constexpr, BH: tl.constexpr, REVERSED: tl.constexpr
):  # fmt: skip
    """Turn the queries and keys of a token, and copy its values; each of the three gets an array of its own."""
    token, part = tl.program_id(0), tl.program_id(2)
    if REVERSED:
        token, part = tokens - 1 - token, 2 - part
    head, column = tl.program_id(1) * BH + tl.arange(0, BH), tl.arange(0, HALF)
    at = (token * 3 + part) * heads * 2 * HALF + head[:, None] * 2 * HALF + column[None, :]
    to = (part * tokens + token) * heads * 2 * HALF + head[:, None] * 2 * HALF + column[None, :]
    mask = head[:, None] < heads
    first, second = tl.load(qkv_ptr + at, mask=mask), tl.load(qkv_ptr + at + HALF, mask=mask)
    if part == 2:
        tl.store(out_ptr + to, first, mask=mask)
        tl.store(out_ptr + to + HALF, second, mask=mask)
    else:
        cos = tl.load(cos_ptr + token * HALF + column)[None, :].to(tl.float32)
        sin = tl.load(sin_ptr + token * HALF + column)[None, :].to(tl.float32)
        x, y = first.to(tl.float32), second.to(tl.float32)
        tl.store(out_ptr + to, (x * cos - y * sin).to(out_ptr.dtype.element_ty), mask=mask)
        tl.store(out_ptr + to + HALF, (y * cos + x * sin).to(out_ptr.dtype.element_ty), mask=mask)


def problem(tokens: int, heads: int, depth: int, *, reverse: bool = False) -> Problem:
    """Return the problem in f16; its programs are in reversed order, if that is wanted."""
    half = depth // 2
    qkv, out = normal((tokens, 3, heads, depth), "f16"), empty((3, tokens, heads, depth), "f16")
    cos, sin = empty((tokens, half), "f16"), empty((tokens, half), "f16")
    angle = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(half) / half)
    cos[:], sin[:] = np.cos(angle), np.sin(angle)
    checked = spread(tokens)
    wide = qkv[checked].astype(np.float64).swapaxes(0, 1)
    c, s = (each[checked][:, None].astype(np.float64) for each in (cos, sin))
    exact, allowed = wide.copy(), np.zeros_like(wide)
    one, two = wide[:2, ..., :half], wide[:2, ..., half:]
    exact[:2] = np.concatenate([one * c - two * s, two * c + one * s], axis=3)
    size = np.concatenate([abs(one * c) + abs(two * s), abs(two * c) + abs(one * s)], axis=3)
    allowed[:2] = 2 * F32 * size + unit("f16") * abs(exact[:2]) + 2.0**-25

    def launch(jit: Any, *arrays: Any, BH: int, **options: Any) -> Any:
        grid = (tokens, triton.cdiv(heads, BH), 3)
        return jit(rope_split_kernel)[grid](*arrays, tokens, heads, HALF=half, BH=BH, REVERSED=reverse, **options)

    title = f"rotary embedding and a split of q, k and v, f16, {tokens} x {heads} x {depth}"
    index = (slice(None), checked)
    return Problem(
        title, "GB/s", 2 * qkv.nbytes, size.size, (qkv, cos, sin), out, exact, allowed, launch, checked=index
    )
