"""Triton's kernels that are timed, each once for all devices. Those of the first and the third tutorial are in e2e/.

On a DPU, a program is the work of one tasklet, and its blocks are DMA transfers: blocks of a few hundred bytes make DMA
efficient, and all tiles of all tasklets share 64 KiB. Where the blocks divide the sizes, its kernels need no masks.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr


@triton.jit
def nothing(x_ptr):
    pass


@triton.jit
def nothing_of_eight(a, b, c, d, n, m, k, s):
    tl.store(d + n, s)


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: constexpr):
    """The kernel of Triton's second tutorial, for one row a program."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y_ptr + row * columns + column, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, y_ptr, columns, epsilon, BLOCK: constexpr):
    """Normalise a row a program, and scale and shift its columns."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / columns, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + column, mask=inside)
    bias = tl.load(bias_ptr + column, mask=inside)
    tl.store(y_ptr + row * columns + column, centred * factor * weight + bias, mask=inside)


@triton.jit
def sum_rows(x_ptr, y_ptr, columns, BLOCK: constexpr):
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + column, mask=column < columns, other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.sum(x.to(tl.float32), 0))


@triton.jit
def argmax_rows(x_ptr, y_ptr, columns, BLOCK: constexpr):
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(y_ptr + tl.program_id(0), tl.argmax(x, 0))


@triton.jit
def sum_columns(x_ptr, y_ptr, rows, columns, BLOCK: constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
    tl.store(y_ptr + column, total, mask=inside)


@triton.jit
def sum_parts(x_ptr, y_ptr, n, PART: constexpr, BLOCK: constexpr, EVEN: constexpr, SCALAR: constexpr):
    """Sum PART consecutive elements a program, in steps of BLOCK, which divides PART; EVEN if PART divides n.

    The sum so far is a vector, or a number (SCALAR): then each block is reduced when it is loaded.
    """
    start = tl.program_id(0) * PART
    total = tl.zeros((), y_ptr.dtype.element_ty) if SCALAR else tl.zeros((BLOCK,), y_ptr.dtype.element_ty)
    for first in range(0, PART, BLOCK):
        place = start + first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + place) if EVEN else tl.load(x_ptr + place, mask=place < n, other=0.0)
        total += tl.sum(x, 0) if SCALAR else x
    tl.store(y_ptr + tl.program_id(0), total if SCALAR else tl.sum(total, 0))


@triton.jit
def sum_strided(x_ptr, y_ptr, n, BLOCK: constexpr, LOOP: constexpr):
    """Sum one block a program, or every num_programs-th block (LOOP): programs at the same time read what is near."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + place, mask=place < n, other=0.0)
    if LOOP:
        for first in range(tl.num_programs(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            total += tl.load(x_ptr + first + place, mask=first + place < n, other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def gemv(a_ptr, x_ptr, y_ptr, M, N, BM: constexpr, BN: constexpr):
    """Compute BM elements of y = A x a program. Sums are in f32, one for each element of the block."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, N, BN):
        inside = first + columns < N
        mask = (rows < M)[:, None] & inside[None, :]
        a = tl.load(a_ptr + rows[:, None] * N + first + columns[None, :], mask=mask, other=0.0)
        x = tl.load(x_ptr + first + columns, mask=inside, other=0.0)
        total += a.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(y_ptr + rows, tl.sum(total, 1), mask=rows < M)


@triton.jit
def gemv_even(a_ptr, x_ptr, y_ptr, M, N, BM: constexpr, BN: constexpr):
    """Compute the same, with one sum a row, of y's type, and no masks: both blocks divide A. It is for DPUs."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    total = tl.zeros((BM,), y_ptr.dtype.element_ty)
    for first in range(0, N, BN):
        x = tl.load(x_ptr + first + columns)
        a = tl.load(a_ptr + rows[:, None] * N + (first + columns)[None, :])
        total += tl.sum(a * x[None, :], 1)
    tl.store(y_ptr + rows, total)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: constexpr, BN: constexpr, BK: constexpr, RAGGED: constexpr):
    """C = A B in row-major order, for GPUs: without masks unless RAGGED.

    Sums are in f32. Groups of 8 rows of blocks share what is cached of B.
    """
    program = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = program // (8 * columns) * 8
    height = min(rows - first, 8)
    row = first + program % (8 * columns) % height
    column = program % (8 * columns) // height
    rm, rn, rk = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    # What is beyond an edge is loaded from inside, and not stored.
    am, bn = (rm % M, rn % N) if RAGGED else (rm, rn)
    x, y = a_ptr + am[:, None] * K + rk[None, :], b_ptr + rk[:, None] * N + bn[None, :]
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
    to = c_ptr + rm[:, None] * N + rn[None, :]
    if RAGGED:
        tl.store(to, total, mask=(rm[:, None] < M) & (rn[None, :] < N))
    else:
        tl.store(to, total)


@triton.jit
def matmul_rows(a_ptr, b_ptr, c_ptr, N: constexpr, K: constexpr, BN: constexpr, BK: constexpr):
    """Compute BN elements of a row of C = A B a program. It supports int32, which tl.dot does not. It is for DPUs.

    A step reads BK pieces of rows of B and BK elements of A. BN divides N, and BK divides K. With N and K known, no
    address takes a multiplication.
    """
    blocks = N // BN
    row = tl.program_id(0) // blocks
    column = tl.program_id(0) % blocks * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), c_ptr.dtype.element_ty)
    for start in range(0, K, BK):
        products = tl.zeros((BN,), c_ptr.dtype.element_ty)
        for step in tl.static_range(BK):
            products += tl.load(a_ptr + row * K + start + step) * tl.load(b_ptr + (start + step) * N + column)
        total += products
    tl.store(c_ptr + row * N + column, total)


@triton.jit
def _attend(q, k_ptr, v_ptr, n, rm, highest, weight, total, scale, BN: constexpr, MASK: constexpr, TRANS: constexpr):
    D: constexpr = q.shape[1]
    rn, rd = n + tl.arange(0, BN), tl.arange(0, D)
    if TRANS:
        key = tl.trans(tl.load(k_ptr + rn[:, None] * D + rd[None, :]))
    else:
        key = tl.load(k_ptr + rn[None, :] * D + rd[:, None])
    score = tl.dot(q, key, input_precision="ieee")
    if MASK:
        score = tl.where(rm[:, None] >= rn[None, :], score, -float("inf"))
    most = tl.maximum(highest, tl.max(score, 1) * scale)
    power = tl.exp2(score * scale - most[:, None])
    shrink = tl.exp2(highest - most)
    value = tl.load(v_ptr + rn[:, None] * D + rd[None, :])
    total = tl.dot(power.to(value.dtype), value, total * shrink[:, None], input_precision="ieee")
    return most, weight * shrink + tl.sum(power, 1), total


@triton.jit
def attention(
    q, k, v, y, scale, LENGTH, D: constexpr, BM: constexpr, BN: constexpr, CAUSAL: constexpr, TRANS: constexpr
):
    """Compute BM queries of a head a program; BM divides LENGTH, and BN divides BM. `scale` is for powers of two.

    A block of keys is transposed after it was loaded (TRANS), or loaded in columns.
    """
    start, head = tl.program_id(0) * BM, tl.program_id(1) * LENGTH * D
    rm, rd = start + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + head + rm[:, None] * D + rd[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    k += head
    v += head
    # Blocks before the diagonal need no mask.
    for n in range(0, start if CAUSAL else LENGTH, BN):
        highest, weight, total = _attend(query, k, v, n, rm, highest, weight, total, scale, BN, False, TRANS)
    if CAUSAL:
        for n in range(start, start + BM, BN):
            highest, weight, total = _attend(query, k, v, n, rm, highest, weight, total, scale, BN, True, TRANS)
    # On a DPU, a division takes as long as 6 products.
    result = total * (1 / weight)[:, None]
    tl.store(y + head + rm[:, None] * D + rd[None, :], result.to(y.dtype.element_ty))


@triton.jit
def transpose(x_ptr, y_ptr, ROWS, COLUMNS, BM: constexpr, BN: constexpr):
    """Load a block by rows, and store it by columns."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (row < ROWS)[:, None] & (column < COLUMNS)[None, :]
    x = tl.load(x_ptr + row[:, None] * COLUMNS + column[None, :], mask=inside)
    tl.store(y_ptr + column[:, None] * ROWS + row[None, :], tl.trans(x), mask=tl.trans(inside))


@triton.jit
def take_rows(table_ptr, index_ptr, out_ptr, columns, BLOCK: constexpr):
    """Copy a row of a table of less than 2^31 elements a program."""
    column = tl.arange(0, BLOCK)
    source = tl.load(index_ptr + tl.program_id(0)) * columns + column
    values = tl.load(table_ptr + source, mask=column < columns)
    tl.store(out_ptr + tl.program_id(0) * columns + column, values, mask=column < columns)


@triton.jit
def take(table_ptr, index_ptr, out_ptr, n, BLOCK: constexpr):
    """Copy elements of a table from anywhere."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + place, mask=place < n, other=0)
    tl.store(out_ptr + place, tl.load(table_ptr + index, mask=place < n), mask=place < n)
