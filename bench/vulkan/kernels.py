"""The kernels that are timed. Each backend gets its own triton.jit of the same function: see devices.Backend.jit."""

import triton.language as tl


def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + row * n + i, mask=m, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + i, e / tl.sum(e, 0), mask=m)


def layer_norm(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + row * n + i, mask=m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(out + row * n + i, d * scale * tl.load(weight + i, mask=m) + tl.load(bias + i, mask=m), mask=m)


def partial_sums(x, out, n, BLOCK: tl.constexpr, LOOP: tl.constexpr):
    """One sum a program: of one block, or of every num_programs-th block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + at, mask=at < n, other=0.0)
    if LOOP:
        for first in range(tl.num_programs(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            i = first + at
            total += tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    RAGGED: tl.constexpr,
):
    """c = a @ b in row-major order, in f32; groups of 8 rows of blocks share what is cached of b."""
    program = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = program // (8 * columns) * 8
    height = min(rows - first, 8)
    row = first + program % (8 * columns) % height
    column = program % (8 * columns) // height
    rm, rn, rk = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    # What is beyond an edge is loaded from inside, and not stored.
    am, bn = (rm % M, rn % N) if RAGGED else (rm, rn)
    x, y = a + am[:, None] * K + rk[None, :], b + rk[:, None] * N + bn[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        if RAGGED:
            left = tl.load(x, mask=rk[None, :] < K - k * BK, other=0.0)
            right = tl.load(y, mask=rk[:, None] < K - k * BK, other=0.0)
        else:
            left, right = tl.load(x), tl.load(y)
        total = tl.dot(left, right, total, input_precision="ieee")
        x += BK
        y += BK * N
    to = c + rm[:, None] * N + rn[None, :]
    if RAGGED:
        tl.store(to, total, mask=(rm[:, None] < M) & (rn[None, :] < N))
    else:
        tl.store(to, total)


def attention(q, k, v, out, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, TRANS: tl.constexpr):
    """Causal attention of one head a row of the grid; T is a multiple of BM, and BM of BN.

    A block of keys is transposed after it was loaded (TRANS), or loaded in columns.
    """
    start, head = tl.program_id(0) * BM, tl.program_id(1) * T * D
    rm, rn, rd = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + head + rm[:, None] * D + rd[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    scale *= 1.44269504  # powers of 2 instead of e
    # Blocks before the diagonal need no mask.
    for n in range(0, start, BN):
        if TRANS:
            key = tl.trans(tl.load(k + head + (n + rn)[:, None] * D + rd[None, :]))
        else:
            key = tl.load(k + head + (n + rn)[None, :] * D + rd[:, None])
        score = tl.dot(query, key)
        above = tl.maximum(highest, tl.max(score, 1) * scale)
        p = tl.exp2(score * scale - above[:, None])
        shrink = tl.exp2(highest - above)
        weight = weight * shrink + tl.sum(p, 1)
        value = tl.load(v + head + (n + rn)[:, None] * D + rd[None, :])
        total = tl.dot(p.to(value.dtype), value, total * shrink[:, None])
        highest = above
    for n in range(start, start + BM, BN):
        if TRANS:
            key = tl.trans(tl.load(k + head + (n + rn)[:, None] * D + rd[None, :]))
        else:
            key = tl.load(k + head + (n + rn)[None, :] * D + rd[:, None])
        score = tl.where(rm[:, None] >= (n + rn)[None, :], tl.dot(query, key) * scale, -float("inf"))
        above = tl.maximum(highest, tl.max(score, 1))
        p = tl.exp2(score - above[:, None])
        shrink = tl.exp2(highest - above)
        weight = weight * shrink + tl.sum(p, 1)
        value = tl.load(v + head + (n + rn)[:, None] * D + rd[None, :])
        total = tl.dot(p.to(value.dtype), value, total * shrink[:, None])
        highest = above
    tl.store(out + head + rm[:, None] * D + rd[None, :], (total / weight[:, None]).to(out.dtype.element_ty))


def nothing(x):
    pass
