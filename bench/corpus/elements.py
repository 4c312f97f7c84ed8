"""Kernels that work on elements, or move them: activations, rotation, an optimiser's step, transpositions, gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language import constexpr

from ..problem import Array, Problem, empty, normal, unit
from .rows import F32, spread, streamed


@triton.jit
def gated_kernel(a_ptr, b_ptr, y_ptr, columns, TANH: constexpr, BLOCK: constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    a = tl.load(a_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    if TANH:
        inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
        a = 0.5 * a * (2.0 - 2.0 / (1.0 + tl.exp(2.0 * inner)))
    else:
        a = a * tl.sigmoid(a)
    tl.store(y_ptr + row * columns + column, (a * b).to(y_ptr.dtype.element_ty), mask=mask)


def gated(rows: int, columns: int, kind: str, tanh: bool) -> Problem:
    a, b, y = normal((rows, columns), kind), normal((rows, columns), kind, 1), empty((rows, columns), kind)
    checked = spread(rows)
    x, gate = a[checked].astype(np.float64), b[checked].astype(np.float64)
    inner = 0.7978845608028654 * (x + 0.044715 * x**3) if tanh else x / 2
    exact = 0.5 * x * (1 + np.tanh(inner)) * gate

    def launch(jit: Any, *arrays: Any, BLOCK: int, **options: Any) -> Any:
        grid = (rows, triton.cdiv(columns, BLOCK))
        return jit(gated_kernel)[grid](*arrays, columns, TANH=tanh, BLOCK=BLOCK, **options)

    # exp(2z) has 4 ulp, and 8 |z| of them from z, which rounds four times; 2 / (1 + exp) is at most 2.
    allowed = np.abs(x * gate) * (16 + 10 * np.abs(inner)) * F32 + unit(kind) * np.abs(exact) + 2.0**-25
    title = f"{'geglu' if tanh else 'swiglu'} {kind}, {rows} x {columns}"
    return streamed(title, (a, b), y, exact, allowed, launch, checked=checked)


@triton.jit
def gated_gradient_kernel(g_ptr, a_ptr, b_ptr, out_ptr, n, BLOCK: constexpr):
    """The gradients of a and b in silu(a) * b, one array after the other."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    g = tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32)
    a = tl.load(a_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0.0).to(tl.float32)
    part = tl.sigmoid(a)
    da = g * b * part * (1.0 + a * (1.0 - part))
    tl.store(out_ptr + at, da.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + n + at, (g * a * part).to(out_ptr.dtype.element_ty), mask=mask)


def gated_gradient(rows: int, columns: int, kind: str) -> Problem:
    g, a, b = (normal((rows, columns), kind, seed) for seed in range(3))
    out, checked = empty((2, rows, columns), kind), spread(rows)
    dy, x, gate = (each[checked].astype(np.float64) for each in (g, a, b))
    part = 1 / (1 + np.exp(-x))
    exact = np.stack([dy * gate * part * (1 + x * (1 - part)), dy * x * part])
    # As in `gated`; 1 - part has the absolute error of part, and cancels at most what 1 + |x| has.
    size = np.stack([np.abs(dy * gate) * part * (1 + np.abs(x)), np.abs(exact[1])])
    allowed = size * (24 + 10 * np.abs(x)) * F32 + unit(kind) * np.abs(exact) + 2.0**-25

    def launch(jit: Any, *arrays: Any, BLOCK: int, **options: Any) -> Any:
        grid = (triton.cdiv(rows * columns, BLOCK),)
        return jit(gated_gradient_kernel)[grid](*arrays, rows * columns, BLOCK=BLOCK, **options)

    index, title = (slice(None), checked), f"swiglu, gradients {kind}, {rows} x {columns}"
    return streamed(title, (g, a, b), out, exact, allowed, launch, checked=index)


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, heads, HALF: constexpr, BH: constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1) * BH + tl.arange(0, BH)
    column = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + column)[None, :].to(tl.float32)
    sin = tl.load(sin_ptr + token * HALF + column)[None, :].to(tl.float32)
    at = (token * heads + head[:, None]) * (2 * HALF) + column[None, :]
    mask = head[:, None] < heads
    first = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + at + HALF, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (first * cos - second * sin).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_ptr + at + HALF, (second * cos + first * sin).to(y_ptr.dtype.element_ty), mask=mask)


def rotary(tokens: int, heads: int, depth: int, kind: str) -> Problem:
    half, shape = depth // 2, (tokens, heads, depth)
    x, y = normal(shape, kind), empty(shape, kind)
    cos, sin = empty((tokens, half), kind), empty((tokens, half), kind)
    angle = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(half) / half)
    cos[:], sin[:] = np.cos(angle), np.sin(angle)
    checked = spread(tokens)
    wide, c, s = (each[checked].astype(np.float64) for each in (x, cos[:, None], sin[:, None]))
    one, two = wide[..., :half], wide[..., half:]
    exact = np.concatenate([one * c - two * s, two * c + one * s], axis=2)
    size = np.concatenate([np.abs(one * c) + np.abs(two * s), np.abs(two * c) + np.abs(one * s)], axis=2)

    def launch(jit: Any, *arrays: Any, BH: int, **options: Any) -> Any:
        grid = (tokens, triton.cdiv(heads, BH))
        return jit(rotary_kernel)[grid](*arrays, heads, HALF=half, BH=BH, **options)

    allowed = 2 * F32 * size + unit(kind) * np.abs(exact) + 2.0**-25
    title = f"rotary embedding {kind}, {tokens} x {heads} x {depth}"
    return streamed(title, (x, cos, sin), y, exact, allowed, launch, checked=checked)


@triton.jit
def rotary_split_kernel(
    qkv_ptr, cos_ptr, sin_ptr, out_ptr, tokens, heads, HALF: constexpr, BH: constexpr, REVERSED: constexpr
):
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


def rotary_split(tokens: int, heads: int, depth: int, *, reverse: bool = False) -> Problem:
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
        return jit(rotary_split_kernel)[grid](*arrays, tokens, heads, HALF=half, BH=BH, REVERSED=reverse, **options)

    title = f"rotary embedding and a split of q, k and v, f16, {tokens} x {heads} x {depth}"
    index = (slice(None), checked)
    return Problem(
        title, "GB/s", 2 * qkv.nbytes, size.size, (qkv, cos, sin), out, exact, allowed, launch, checked=index
    )


@triton.jit
def adamw_kernel(p_ptr, g_ptr, m_ptr, v_ptr, out_ptr, n, rate, decay, BLOCK: constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p, g = tl.load(p_ptr + at, mask=mask), tl.load(g_ptr + at, mask=mask)
    m = 0.9 * tl.load(m_ptr + at, mask=mask) + 0.1 * g
    v = 0.999 * tl.load(v_ptr + at, mask=mask) + 0.001 * g * g
    p = p - rate * (m / (tl.sqrt(v) + 1e-8) + decay * p)
    tl.store(out_ptr + at, p, mask=mask)
    tl.store(out_ptr + n + at, m, mask=mask)
    tl.store(out_ptr + 2 * n + at, v, mask=mask)


def adamw(n: int) -> Problem:
    p, g, m, v = (normal((n,), "f32", seed) for seed in range(4))
    v[:] = np.abs(v) + np.float32(0.01)
    out, checked = empty((3, n), "f32"), spread(n, 1 << 16)
    wide = [each[checked].astype(np.float64) for each in (p, g, m, v)]
    first, second = 0.9 * wide[2] + 0.1 * wide[1], 0.999 * wide[3] + 0.001 * wide[1] ** 2
    step = first / (np.sqrt(second) + 1e-8)
    exact = np.stack([wide[0] - 1e-3 * (step + 0.01 * wide[0]), first, second])
    size = 0.9 * np.abs(wide[2]) + 0.1 * np.abs(wide[1])
    # Constants round, too.
    moved = 1e-3 * (14 * size / np.sqrt(second) + np.abs(wide[0]))
    allowed = F32 * np.stack([2 * np.abs(wide[0]) + moved, 4 * size, 6 * second])

    def launch(jit: Any, *arrays: Any, BLOCK: int, **options: Any) -> Any:
        return jit(adamw_kernel)[(triton.cdiv(n, BLOCK),)](*arrays, n, 1e-3, 0.01, BLOCK=BLOCK, **options)

    index = (slice(None), checked)
    return streamed(f"step of AdamW f32, {n}", (p, g, m, v), out, exact, allowed, launch, checked=index)


@triton.jit
def random_kernel(y_ptr, n, seed, BLOCK: constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.randint(seed, at), mask=at < n)


def philox(seed: int, offset: Array) -> Array:
    """Return the first word of Philox 4x32 with 10 rounds, as its paper defines it (Salmon and others, 2011)."""
    c0, c1, c2, c3 = offset.astype(np.uint64), *(np.zeros(len(offset), np.uint64) for _ in range(3))
    k0, k1, low = seed & 0xFFFFFFFF, seed >> 32, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        one, two = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        high_one, high_two = one >> np.uint64(32), two >> np.uint64(32)
        c0, c1, c2, c3 = high_two ^ c1 ^ np.uint64(k0), two & low, high_one ^ c3 ^ np.uint64(k1), one & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0.astype(np.uint32).view(np.int32)


def random(n: int) -> Problem:
    y, checked = empty((n,), "i32"), spread(n, 4096)

    def launch(jit: Any, y: Any, BLOCK: int, **options: Any) -> Any:
        return jit(random_kernel)[(triton.cdiv(n, BLOCK),)](y, n, 20261124, BLOCK=BLOCK, **options)

    return streamed(f"random integers, {n}", (), y, philox(20261124, checked), 0, launch, checked=checked)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, columns, sx, sy, BR: constexpr, BC: constexpr):
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * sx + column[None, :], mask=mask)
    mask = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(y_ptr + column[:, None] * sy + row[None, :], tl.trans(x), mask=mask)


def transpose(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((columns, rows), kind)

    def launch(jit: Any, x: Any, y: Any, BR: int, BC: int, **options: Any) -> Any:
        grid = (triton.cdiv(rows, BR), triton.cdiv(columns, BC))
        return jit(transpose_kernel)[grid](x, y, rows, columns, columns, rows, BR=BR, BC=BC, **options)

    exact = np.ascontiguousarray(x.T)
    return streamed(f"transposition {kind}, {rows} x {columns}", (x,), y, exact, 0, launch)


@triton.jit
def permute_kernel(x_ptr, y_ptr, a, b, c, BA: constexpr, BC: constexpr):
    """Write x[i, j, k] to y[k, j, i]."""
    j = tl.program_id(2)
    i = tl.program_id(0) * BA + tl.arange(0, BA)
    k = tl.program_id(1) * BC + tl.arange(0, BC)
    mask = (i[:, None] < a) & (k[None, :] < c)
    x = tl.load(x_ptr + (i[:, None] * b + j) * c + k[None, :], mask=mask)
    tl.store(y_ptr + (k[None, :] * b + j) * a + i[:, None], x, mask=mask)


def permute(a: int, b: int, c: int, kind: str) -> Problem:
    x, y = normal((a, b, c), kind), empty((c, b, a), kind)

    def launch(jit: Any, x: Any, y: Any, BA: int, BC: int, **options: Any) -> Any:
        grid = (triton.cdiv(a, BA), triton.cdiv(c, BC), b)
        return jit(permute_kernel)[grid](x, y, a, b, c, BA=BA, BC=BC, **options)

    exact = np.ascontiguousarray(x.transpose(2, 1, 0))
    return streamed(f"permutation of 3 dimensions {kind}, {a} x {b} x {c}", (x,), y, exact, 0, launch)


@triton.jit
def gather_kernel(x_ptr, index_ptr, y_ptr, columns, wide, BLOCK: constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    index = tl.load(index_ptr + row * columns + column, mask=mask, other=0)
    tl.store(y_ptr + row * columns + column, tl.load(x_ptr + row * wide + index, mask=mask), mask=mask)


def gather(rows: int, columns: int, wide: int, kind: str) -> Problem:
    x, index, y = normal((rows, wide), kind), empty((rows, columns), "i32"), empty((rows, columns), kind)
    index[:] = np.random.default_rng(1).integers(0, wide, (rows, columns))

    def launch(jit: Any, *arrays: Any, BLOCK: int, **options: Any) -> Any:
        return jit(gather_kernel)[(rows, triton.cdiv(columns, BLOCK))](*arrays, columns, wide, BLOCK=BLOCK, **options)

    exact = np.take_along_axis(x, index, axis=1)
    return streamed(f"gather along rows {kind}, {rows} x {columns}", (x, index), y, exact, 0, launch)


@triton.jit
def embedding_kernel(table_ptr, index_ptr, y_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    mask = column < columns
    token = tl.load(index_ptr + row)
    tl.store(y_ptr + row * columns + column, tl.load(table_ptr + token * columns + column, mask=mask), mask=mask)


@triton.jit
def embedding_gradient_kernel(index_ptr, g_ptr, table_ptr, columns, BLOCK: constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    mask = column < columns
    token = tl.load(index_ptr + row)
    g = tl.load(g_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(table_ptr + token * columns + column, g, mask=mask, sem="relaxed")


@triton.jit
def zero_kernel(y_ptr, n, BLOCK: constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.zeros((BLOCK,), y_ptr.dtype.element_ty), mask=at < n)


def zero(jit: Any, y: Any, n: int) -> None:
    """Launch what fills the output of atomic operations with zeros; its time counts."""
    jit(zero_kernel)[(triton.cdiv(n, 4096),)](y, n, BLOCK=4096, num_warps=8)


def embedding(tokens: int, words: int, columns: int, kind: str) -> Problem:
    table, index, y = normal((words, columns), kind), empty((tokens,), "i64"), empty((tokens, columns), kind)
    index[:] = np.random.default_rng(1).integers(0, words, tokens)

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        return jit(embedding_kernel)[(tokens,)](*arrays, columns, BLOCK=triton.next_power_of_2(columns), **options)

    title = f"embedding {kind}, {tokens} of {words} x {columns}"
    # Each row that is read counts once for each token.
    return Problem(title, "GB/s", 2 * y.nbytes + index.nbytes, y.size, (table, index), y, table[index], 0, launch)


def embedding_gradient(tokens: int, words: int, columns: int, kind: str) -> Problem:
    index, g, table = empty((tokens,), "i64"), normal((tokens, columns), kind), empty((words, columns), "f32")
    index[:] = np.random.default_rng(1).integers(0, words, tokens)
    exact, size = (np.zeros((words, columns)) for _ in range(2))
    np.add.at(exact, index, g.astype(np.float64))
    np.add.at(size, index, np.abs(g.astype(np.float64)))
    count = np.bincount(index, minlength=words)[:, None]

    def launch(jit: Any, index: Any, g: Any, table: Any, **options: Any) -> Any:
        zero(jit, table, words * columns)
        return jit(embedding_gradient_kernel)[(tokens,)](
            index, g, table, columns, BLOCK=triton.next_power_of_2(columns), **options
        )

    title = f"embedding, gradient {kind}, {tokens} of {words} x {columns}"
    moved = index.nbytes + g.nbytes + 2 * table.nbytes
    return Problem(title, "GB/s", moved, g.size, (index, g), table, exact, count * F32 * size, launch)


@triton.jit
def histogram_kernel(x_ptr, y_ptr, n, BINS: constexpr, BLOCK: constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0)
    counts = tl.histogram(x, BINS, mask=mask)
    tl.atomic_add(y_ptr + tl.arange(0, BINS), counts, sem="relaxed")


def histogram(n: int, bins: int) -> Problem:
    x, y = empty((n,), "i32"), empty((bins,), "i32")
    x[:] = np.random.default_rng(1).integers(0, bins, n)

    def launch(jit: Any, x: Any, y: Any, BLOCK: int, **options: Any) -> Any:
        zero(jit, y, bins)
        return jit(histogram_kernel)[(triton.cdiv(n, BLOCK),)](x, y, n, BINS=bins, BLOCK=BLOCK, **options)

    exact = np.bincount(x, minlength=bins).astype(np.int32)
    return streamed(f"histogram of {bins}, {n}", (x,), y, exact, 0, launch)


@triton.jit
def depthwise_kernel(x_ptr, w_ptr, y_ptr, height, width, BLOCK: constexpr):
    """Convolve each plane with its own 3 x 3 weights; there are zeros around a plane."""
    plane, line = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            y, x = line + i - 1, column + j - 1
            mask = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            value = tl.load(x_ptr + (plane * height + y) * width + x, mask=mask, other=0.0)
            total += value * tl.load(w_ptr + plane * 9 + i * 3 + j)
    tl.store(y_ptr + (plane * height + line) * width + column, total, mask=column < width)


def depthwise(planes: int, height: int, width: int) -> Problem:
    x, w = normal((planes, height, width), "f32"), normal((planes, 3, 3), "f32", 1)
    y, checked = empty((planes, height, width), "f32"), spread(planes, 16)
    wide = np.pad(x[checked].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    exact, size = (np.zeros((len(checked), height, width)) for _ in range(2))
    for i in range(3):
        for j in range(3):
            part = wide[:, i : i + height, j : j + width] * w[checked, i, j, None, None]
            exact, size = exact + part, size + np.abs(part)

    def launch(jit: Any, *arrays: Any, BLOCK: int, **options: Any) -> Any:
        grid = (planes, height, triton.cdiv(width, BLOCK))
        return jit(depthwise_kernel)[grid](*arrays, height, width, BLOCK=BLOCK, **options)

    title = f"convolution of planes 3 x 3 f32, {planes} x {height} x {width}"
    return streamed(title, (x, w), y, exact, 10 * F32 * size, launch, checked=checked)


@triton.jit
def stencil_kernel(x_ptr, y_ptr, height, width, part, BH: constexpr, BW: constexpr):
    """One step of heat in a box, whose faces stay as they are."""
    plane, last = tl.program_id(2), tl.num_programs(2) - 1
    line = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    column = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    mask = (line < height) & (column < width)
    inner = (line > 0) & (line < height - 1) & (column > 0) & (column < width - 1) & (plane > 0) & (plane < last)
    at = x_ptr + (plane * height + line) * width + column
    x = tl.load(at, mask=mask, other=0.0)
    near = tl.load(at - 1, mask=inner, other=0.0) + tl.load(at + 1, mask=inner, other=0.0)
    near += tl.load(at - width, mask=inner, other=0.0) + tl.load(at + width, mask=inner, other=0.0)
    near += tl.load(at - height * width, mask=inner, other=0.0) + tl.load(at + height * width, mask=inner, other=0.0)
    y = tl.where(inner, x + part * (near - 6.0 * x), x)
    tl.store(y_ptr + (plane * height + line) * width + column, y, mask=mask)


def stencil(depth: int, height: int, width: int) -> Problem:
    x, y = normal((depth, height, width), "f32"), empty((depth, height, width), "f32")
    checked, part = spread(depth, 16), 0.125
    exact, allowed = x[checked].astype(np.float64), np.zeros((len(checked), height, width))
    for number, plane in enumerate(checked):
        if 0 < plane < depth - 1:
            box = x[plane - 1 : plane + 2].astype(np.float64)
            own = box[1, 1:-1, 1:-1]
            near = [box[0, 1:-1, 1:-1], box[2, 1:-1, 1:-1], box[1, :-2, 1:-1], box[1, 2:, 1:-1]]
            near += [box[1, 1:-1, :-2], box[1, 1:-1, 2:]]
            exact[number, 1:-1, 1:-1] = own + part * (sum(near) - 6 * own)
            size = np.abs(own) + part * (sum(map(np.abs, near)) + 6 * np.abs(own))
            allowed[number, 1:-1, 1:-1] = 9 * F32 * size

    def launch(jit: Any, x: Any, y: Any, BH: int, BW: int, **options: Any) -> Any:
        grid = (triton.cdiv(width, BW), triton.cdiv(height, BH), depth)
        return jit(stencil_kernel)[grid](x, y, height, width, part, BH=BH, BW=BW, **options)

    return streamed(
        f"stencil of 7 points f32, {depth} x {height} x {width}", (x,), y, exact, allowed, launch, checked=checked
    )
