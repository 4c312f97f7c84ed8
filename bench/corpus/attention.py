"""Attention: forward with other depths than problems/attention.py, decoding over a paged cache, a backward pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language import constexpr

from ..problem import Problem, empty, normal, unit
from ..problems import attention as plain
from .rows import F32, spread


def forward(heads: int, length: int, depth: int, kind: str, causal: bool) -> Problem:
    made = plain.problem(heads, length, depth, kind, causal, checked=[0, heads - 1])
    return replace(made, unit="TFLOP/s", torch=None, peers=dict, aim="")


@triton.jit
def attend(q, k_ptr, v_ptr, at, inside, scale, largest, total, result):
    """Go on with a softmax by some keys: its largest score and sum of exponentials, and the sum of values."""
    k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0)
    scores = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, axis=1))
    weight = tl.exp(scores - new[:, None])
    again = tl.exp(largest - new)
    total = total * again + tl.sum(weight, axis=1)
    v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0)
    result = result * again[:, None] + tl.dot(weight.to(v.dtype), v)
    return new, total, result


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, scale, most,
    GROUP: constexpr, D: constexpr, PAGE: constexpr,
):  # fmt: skip
    """One new token: GROUP heads of queries share a head of keys, whose pages the table names."""
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    query, column, within = tl.arange(0, GROUP), tl.arange(0, D), tl.arange(0, PAGE)
    at = ((sequence * heads + head) * GROUP + query[:, None]) * D + column[None, :]
    q = tl.load(q_ptr + at)
    length = tl.load(length_ptr + sequence)
    largest = tl.full((GROUP,), -float("inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    result = tl.zeros((GROUP, D), tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        block = tl.load(table_ptr + sequence * most + page).to(tl.int64)
        place = ((block * PAGE + within) * heads + head) * D
        inside = page * PAGE + within < length
        largest, total, result = attend(
            q, k_ptr, v_ptr, place[:, None] + column[None, :], inside, scale, largest, total, result
        )
    tl.store(out_ptr + at, (result / total[:, None]).to(out_ptr.dtype.element_ty))


def decode(sequences: int, heads: int, group: int, length: int, depth: int, page: int, kind: str) -> Problem:
    most = -(-length // page)
    q, out = normal((sequences, heads, group, depth), kind), empty((sequences, heads, group, depth), kind)
    k, v = (normal((sequences * most, page, heads, depth), kind, seed) for seed in (1, 2))
    table, lengths = empty((sequences, most), "i32"), empty((sequences,), "i32")
    random = np.random.default_rng(1)
    table[:] = random.permutation(sequences * most).reshape(sequences, most)
    lengths[:] = random.integers(length // 2, length, sequences, endpoint=True)
    checked = spread(sequences, 4)
    exact, allowed = (np.empty((len(checked), heads, group, depth)) for _ in range(2))
    for number, sequence in enumerate(checked):
        keys, values = (
            each[table[sequence]].reshape(-1, heads, depth)[: lengths[sequence]].astype(np.float64) for each in (k, v)
        )
        for head in range(heads):
            exact[number, head], allowed[number, head] = _attended(
                q[sequence, head].astype(np.float64), keys[:, head], values[:, head], kind, page
            )

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        return jit(decode_kernel)[(sequences, heads)](
            *arrays, depth**-0.5, most, GROUP=group, D=depth, PAGE=page, **options
        )

    title = f"decoding {kind}, {sequences} sequences of {length}, {heads} x {group} heads x {depth}, pages of {page}"
    moved = 2 * int(lengths.sum()) * heads * depth * k.itemsize + q.nbytes + out.nbytes
    work, inputs = 4 * int(lengths.sum()) * heads * group * depth, (q, k, v, table, lengths)
    return Problem(title, "GB/s", moved, work, inputs, out, exact, allowed, launch, checked=checked)


@triton.jit
def part_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    length_ptr,
    part_ptr,
    sum_ptr,
    scale,
    most,
    GROUP: constexpr,
    D: constexpr,
    PAGE: constexpr,
    BN: constexpr,
    SPLITS: constexpr,
):
    """One of SPLITS parts of a sequence, each key by the table; few heads of queries share one of keys."""
    sequence, head, split, heads = tl.program_id(0), tl.program_id(1), tl.program_id(2), tl.num_programs(1)
    # tl.dot has 16 rows at least.
    query, column = tl.arange(0, 16), tl.arange(0, D)
    at = (sequence * heads + head) * GROUP + query
    q = tl.load(q_ptr + at[:, None] * D + column[None, :], mask=query[:, None] < GROUP, other=0.0)
    length = tl.load(length_ptr + sequence)
    low = tl.cdiv(tl.cdiv(length, BN), SPLITS) * BN * split
    high = tl.minimum(low + tl.cdiv(tl.cdiv(length, BN), SPLITS) * BN, length)
    largest = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    result = tl.zeros((16, D), tl.float32)
    for start in range(low, high, BN):
        key = start + tl.arange(0, BN)
        inside = key < high
        block = tl.load(table_ptr + sequence * most + key // PAGE, mask=inside, other=0).to(tl.int64)
        place = ((block * PAGE + key % PAGE) * heads + head) * D
        largest, total, result = attend(
            q, k_ptr, v_ptr, place[:, None] + column[None, :], inside, scale, largest, total, result
        )
    # There may be no keys in this part.
    result = result / tl.where(total > 0, total, 1.0)[:, None]
    at = at * SPLITS + split
    tl.store(part_ptr + at[:, None] * D + column[None, :], result, mask=query[:, None] < GROUP)
    tl.store(sum_ptr + at, largest + tl.log(total), mask=query < GROUP)


@triton.jit
def combine_kernel(part_ptr, sum_ptr, out_ptr, D: constexpr, SPLITS: constexpr):
    at, split, column = tl.program_id(0), tl.arange(0, SPLITS), tl.arange(0, D)
    sums = tl.load(sum_ptr + at * SPLITS + split)
    weight = tl.exp(sums - tl.max(sums, axis=0))
    parts = tl.load(part_ptr + (at * SPLITS + split[:, None]) * D + column[None, :])
    result = tl.sum(parts * weight[:, None], axis=0) / tl.sum(weight, axis=0)
    tl.store(out_ptr + at * D + column, result.to(out_ptr.dtype.element_ty))


def decode_split(sequences: int, heads: int, group: int, length: int, depth: int, page: int, kind: str) -> Problem:
    made = decode(sequences, heads, group, length, depth, page, kind)
    rows = sequences * heads * group
    # Of 16 parts at most. That they are combined is one more rescaling of sums, as after each page.
    parts, sums = empty((rows * 16, depth), "f32"), empty((rows * 16,), "f32")

    def launch(jit: Any, *arrays: Any, BN: int, SPLITS: int, **options: Any) -> Any:
        *read, parts, sums, out = arrays
        jit(part_kernel)[(sequences, heads, SPLITS)](
            *read,
            parts,
            sums,
            depth**-0.5,
            -(-length // page),
            GROUP=group,
            D=depth,
            PAGE=page,
            BN=BN,
            SPLITS=SPLITS,
            **options,
        )
        return jit(combine_kernel)[(rows,)](parts, sums, out, D=depth, SPLITS=SPLITS, num_warps=4)

    return replace(made, title=f"{made.title}, in parts", inputs=(*made.inputs, parts, sums), launch=launch)


@triton.jit
def linear_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, length, D: constexpr, CHUNK: constexpr, BV: constexpr):
    """Causal, without softmax: scores within a chunk, and the sum of K^T V for what is before it."""
    head, row, column = tl.program_id(0), tl.arange(0, CHUNK), tl.arange(0, D)
    of_v = tl.program_id(1) * BV + tl.arange(0, BV)
    state = tl.zeros((D, BV), tl.float32)
    for start in range(0, length, CHUNK):
        at = (head * length + start + row[:, None]) * D
        q, k = tl.load(q_ptr + at + column[None, :]), tl.load(k_ptr + at + column[None, :])
        v = tl.load(v_ptr + at + of_v[None, :])
        scores = tl.where(row[:, None] >= row[None, :], tl.dot(q, tl.trans(k)), 0.0)
        result = tl.dot(scores.to(v.dtype), v)
        result = tl.dot(q, state.to(q.dtype), result)
        state = tl.dot(tl.trans(k), v, state)
        tl.store(out_ptr + at + of_v[None, :], (result * scale).to(out_ptr.dtype.element_ty))


def linear(heads: int, length: int, depth: int, chunk: int, kind: str) -> Problem:
    shape, scale = (heads, length, depth), depth**-0.5
    q, k, v = (normal(shape, kind, seed) for seed in range(3))
    out, checked = empty(shape, kind), [0, heads - 1]
    exact, allowed = (np.empty((len(checked), length, depth)) for _ in range(2))
    for number, head in enumerate(checked):
        state, size = np.zeros((depth, depth)), np.zeros((depth, depth))
        for start in range(0, length, chunk):
            rows = slice(start, start + chunk)
            x, y, z = (each[head, rows].astype(np.float64) for each in (q, k, v))
            scores, sizes = np.tril(x @ y.T), np.tril(np.abs(x) @ np.abs(y).T)
            exact[number, rows] = (scores @ z + x @ state) * scale
            # Scores and the state are rounded to the type; a term of the sum is in three products at most.
            rounded = unit(kind) * (np.abs(scores) @ np.abs(z) + np.abs(x) @ np.abs(state))
            rounded += 2.0**-25 * (np.abs(z).sum(axis=0) + np.abs(x).sum(axis=1, keepdims=True))
            summed = 2 * (2 * depth + length + 8) * F32 * (sizes @ np.abs(z) + np.abs(x) @ size)
            allowed[number, rows] = (rounded + summed) * scale
            state, size = state + y.T @ z, size + np.abs(y).T @ np.abs(z)
    allowed += unit(kind) * np.abs(exact) + 2.0**-25

    def launch(jit: Any, *arrays: Any, BV: int, **options: Any) -> Any:
        grid = (heads, depth // BV)
        return jit(linear_kernel)[grid](*arrays, scale, length, D=depth, CHUNK=chunk, BV=BV, **options)

    title = f"linear attention {kind}, {heads} heads, {length} x {depth}, chunks of {chunk}"
    work = heads * length * depth * (4 * chunk + 4 * depth)
    return Problem(title, "TFLOP/s", 4 * q.nbytes, work, (q, k, v), out, exact, allowed, launch, checked=checked)


def _attended(q: Any, k: Any, v: Any, kind: str, block: int) -> tuple[Any, Any]:
    """Return the result for some queries, and its allowed error; see problems/attention.py."""
    length, depth = k.shape
    score = q @ k.T * depth**-0.5
    of_score = (2 * depth + 4) * F32 * (np.abs(q) @ np.abs(k).T).max(axis=1, keepdims=True) * depth**-0.5
    power = np.exp(score - score.max(axis=1, keepdims=True))
    weight = power / power.sum(axis=1, keepdims=True)
    exact = weight @ v
    span = np.abs(score).max()
    relative = 2 * of_score + (3 * length + (20 + 4 * span) * (length // block + 1)) * F32 + 2 * unit(kind)
    allowed = relative * (weight @ np.abs(v)) + unit(kind) * np.abs(exact)
    return exact, allowed + 2.0**-25 * (np.abs(v).sum(axis=0) + 1)


@triton.jit
def backward_queries_kernel(
    q_ptr, k_ptr, v_ptr, g_ptr, top_ptr, delta_ptr, dq_ptr, scale, length,
    D: constexpr, BM: constexpr, BN: constexpr, CAUSAL: constexpr,
):  # fmt: skip
    """The gradient of Q, from the logarithm of each row's sum of exponentials, and the row sums of O * dO."""
    head = tl.program_id(1)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.arange(0, D)
    at = (head * length + row[:, None]) * D + column[None, :]
    q, g = tl.load(q_ptr + at), tl.load(g_ptr + at)
    top, delta = tl.load(top_ptr + head * length + row), tl.load(delta_ptr + head * length + row)
    result = tl.zeros((BM, D), tl.float32)
    end = length
    if CAUSAL:
        end = (tl.program_id(0) + 1) * BM
    for start in range(0, end, BN):
        key = start + tl.arange(0, BN)
        place = (head * length + key[:, None]) * D + column[None, :]
        k, v = tl.load(k_ptr + place), tl.load(v_ptr + place)
        p = tl.exp(tl.dot(q, tl.trans(k)) * scale - top[:, None])
        if CAUSAL:
            p = tl.where(row[:, None] >= key[None, :], p, 0.0)
        ds = p * (tl.dot(g, tl.trans(v)) - delta[:, None])
        result = tl.dot(ds.to(k.dtype), k, result)
    tl.store(dq_ptr + at, (result * scale).to(dq_ptr.dtype.element_ty))


def backward(heads: int, length: int, depth: int, kind: str, causal: bool) -> Problem:
    shape, scale = (heads, length, depth), depth**-0.5
    q, k, v, g = (normal(shape, kind, seed) for seed in range(4))
    dq, top, delta = empty(shape, kind), empty((heads, length), "f32"), empty((heads, length), "f32")
    checked = [0, heads - 1]
    exact, allowed = (np.empty((len(checked), length, depth)) for _ in range(2))
    for head in range(heads):
        x, y, z, u = (each[head].astype(np.float64) for each in (q, k, v, g))
        score = x @ y.T * scale
        if causal:
            score[np.triu_indices(length, 1)] = -np.inf
        largest = score.max(axis=1)
        top[head] = largest + np.log(np.exp(score - largest[:, None]).sum(axis=1))
        p = np.exp(score - top[head].astype(np.float64)[:, None])
        dp = u @ z.T
        delta[head] = (p * dp).sum(axis=1)
        if head in checked:
            ds = p * (dp - delta[head].astype(np.float64)[:, None])
            size = np.abs(u) @ np.abs(z).T + np.abs(delta[head])[:, None]
            # Of p: the score and its exponential; of dp and its difference; ds is rounded to the type.
            of_p = (2 * depth + 4) * F32 * scale * (np.abs(x) @ np.abs(y).T).max(axis=1, keepdims=True) + 20 * F32
            of_p += 4 * F32 * np.abs(top[head]).max()
            of_ds = p * ((2 * depth + 4) * F32 + of_p) * size + unit(kind) * np.abs(ds) + 2.0**-25
            number = checked.index(head)
            exact[number] = ds @ y * scale
            allowed[number] = scale * ((of_ds + 2 * (length + 2) * F32 * np.abs(ds)) @ np.abs(y))
            allowed[number] += 2 * unit(kind) * np.abs(exact[number]) + 2.0**-25

    def launch(jit: Any, *arrays: Any, BM: int, **options: Any) -> Any:
        return jit(backward_queries_kernel)[(length // BM, heads)](
            *arrays, scale, length, D=depth, BM=BM, CAUSAL=causal, **options
        )

    title = f"attention, gradient of Q {kind}, {heads} heads, {length} x {depth}{', causal' if causal else ''}"
    work = 6 * heads * length * (length + 1 if causal else 2 * length) // 2 * depth
    inputs = (q, k, v, g, top, delta)
    return Problem(title, "TFLOP/s", 5 * q.nbytes, work, inputs, dq, exact, allowed, launch, checked=checked)
