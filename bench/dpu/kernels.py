"""Triton kernels in the style that suits a DPU: a program is the work of one tasklet, and its blocks are DMA transfers.

Blocks of a few hundred bytes make DMA efficient, and all tiles of all tasklets share 64 KiB. PrIM's shapes are
multiples of the blocks, so no element needs a mask. The kernels are independent of the backend.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, partial_ptr, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one partial sum per program, over CHUNK elements, in steps of BLOCK elements."""
    pid = tl.program_id(0)
    start = pid * CHUNK
    total = tl.zeros((BLOCK,), dtype=tl.int64)
    for offset in range(0, CHUNK, BLOCK):
        offsets = start + offset + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets)
    tl.store(partial_ptr + pid, tl.sum(total))


@triton.jit
def sum_blocks_kernel(x_ptr, partial_ptr, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the same partial sums with a scalar accumulator: each block is reduced when it is loaded."""
    pid = tl.program_id(0)
    start = pid * CHUNK
    total = tl.zeros((), dtype=tl.int64)
    for offset in range(0, CHUNK, BLOCK):
        offsets = start + offset + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + offsets))
    tl.store(partial_ptr + pid, total)


@triton.jit
def gemv_kernel(a_ptr, x_ptr, y_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Compute ROWS elements of y = A x per program; all rows use the same block of x. The blocks divide A evenly."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS,), dtype=y_ptr.dtype.element_ty)
    for start in range(0, columns, COLUMNS):
        x = tl.load(x_ptr + start + column)
        a = tl.load(a_ptr + row[:, None] * columns + (start + column)[None, :])
        total += tl.sum(a * x[None, :], axis=1)
    tl.store(y_ptr + row, total)


@triton.jit
def matmul_rows_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    N: tl.constexpr,
    K: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Compute COLUMNS elements of a row of C = A B per program. It supports int32, which tl.dot does not.

    A step reads DEPTH pieces of rows of B and DEPTH elements of A. COLUMNS divides N, and DEPTH divides K. With N and K
    known, no address takes a multiplication.
    """
    blocks = N // COLUMNS
    row = tl.program_id(0) // blocks
    column = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=c_ptr.dtype.element_ty)
    for start in range(0, K, DEPTH):
        products = tl.zeros((COLUMNS,), dtype=c_ptr.dtype.element_ty)
        for step in tl.static_range(DEPTH):
            products += tl.load(a_ptr + row * K + start + step) * tl.load(b_ptr + (start + step) * N + column)
        total += products
    tl.store(c_ptr + row * N + column, total)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, epsilon, COLUMNS: tl.constexpr):
    """Normalise a row per program, and scale and shift its columns."""
    column = tl.arange(0, COLUMNS)
    inside = column < columns
    x = tl.load(x_ptr + tl.program_id(0) * columns + column, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight, bias = tl.load(weight_ptr + column, mask=inside), tl.load(bias_ptr + column, mask=inside)
    tl.store(out_ptr + tl.program_id(0) * columns + column, centred * scale * weight + bias, mask=inside)


@triton.jit
def row_sums_kernel(x_ptr, out_ptr, columns, COLUMNS: tl.constexpr):
    """Sum a row per program."""
    column = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + tl.program_id(0) * columns + column, mask=column < columns, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Write ROWS rows of x as columns."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x), mask=tl.trans(inside))


@triton.jit
def take_rows_kernel(table_ptr, index_ptr, out_ptr, columns, COLUMNS: tl.constexpr):
    """Copy a row of a table per program."""
    column = tl.arange(0, COLUMNS)
    source = tl.load(index_ptr + tl.program_id(0)) * columns + column
    values = tl.load(table_ptr + source, mask=column < columns)
    tl.store(out_ptr + tl.program_id(0) * columns + column, values, mask=column < columns)


@triton.jit
def take_kernel(table_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Copy elements of a table from anywhere."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + place, mask=place < n, other=0)
    tl.store(out_ptr + place, tl.load(table_ptr + index, mask=place < n), mask=place < n)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, LENGTH, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    """Compute QUERIES rows of a head of softmax(Q K^T) V; both blocks divide LENGTH. `scale` is for powers of two."""
    start, head = tl.program_id(0) * QUERIES, tl.program_id(1) * LENGTH * D
    query, depth = start + tl.arange(0, QUERIES), tl.arange(0, D)
    q = tl.load(q_ptr + head + query[:, None] * D + depth[None, :])
    largest = tl.full((QUERIES,), -float("inf"), tl.float32)
    weights = tl.zeros((QUERIES,), tl.float32)
    total = tl.zeros((QUERIES, D), tl.float32)
    for first in range(0, LENGTH, KEYS):
        key = first + tl.arange(0, KEYS)
        k = tl.load(k_ptr + head + key[None, :] * D + depth[:, None])
        score = tl.dot(q, k, input_precision="ieee") * scale
        now = tl.maximum(largest, tl.max(score, axis=1))
        power, shrink = tl.exp2(score - now[:, None]), tl.exp2(largest - now)
        v = tl.load(v_ptr + head + key[:, None] * D + depth[None, :])
        total = tl.dot(power, v, total * shrink[:, None], input_precision="ieee")
        largest, weights = now, weights * shrink + tl.sum(power, axis=1)
    # A division takes as long as 6 products.
    tl.store(out_ptr + head + query[:, None] * D + depth[None, :], total * (1 / weights)[:, None])
