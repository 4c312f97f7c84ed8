"""Triton kernels as one writes them for a DPU: a program is one tasklet's work, its blocks are DMA transfers.

Blocks of 1 to 2 KiB make DMA efficient, and all tiles of all tasklets share 64 KiB. Nothing here is of one backend.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, partial_ptr, n, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """One partial sum a program, over CHUNK elements."""
    pid = tl.program_id(0)
    start = pid * CHUNK
    total = tl.zeros((BLOCK,), dtype=tl.int64)
    for offset in range(0, CHUNK, BLOCK):
        offsets = start + offset + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(partial_ptr + pid, tl.sum(total))


@triton.jit
def sum_blocks_kernel(x_ptr, partial_ptr, n, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """The same with a scalar accumulator: each block is summed as it comes."""
    pid = tl.program_id(0)
    start = pid * CHUNK
    total = tl.zeros((), dtype=tl.int64)
    for offset in range(0, CHUNK, BLOCK):
        offsets = start + offset + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0))
    tl.store(partial_ptr + pid, total)


@triton.jit
def gemv_kernel(a_ptr, x_ptr, y_ptr, rows, columns, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """ROWS elements of y = A x a program; a block of x serves all of its rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS,), dtype=tl.int32)
    for start in range(0, columns, COLUMNS):
        inside = start + column < columns
        x = tl.load(x_ptr + start + column, mask=inside, other=0)
        a = tl.load(
            a_ptr + row[:, None] * stride + (start + column)[None, :],
            mask=(row < rows)[:, None] & inside[None, :],
            other=0,
        )
        total += tl.sum(a * x[None, :], axis=1)
    tl.store(y_ptr + row, total, mask=row < rows)


@triton.jit
def matmul_int_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A block of C = A B in int32, which tl.dot does not take: products and their sum, written out."""
    blocks = tl.cdiv(N, COLUMNS)
    row = tl.program_id(0) // blocks * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.int32)
    for start in range(0, K, DEPTH):
        inside = start + depth < K
        a = tl.load(
            a_ptr + row[:, None] * K + (start + depth)[None, :], mask=(row < M)[:, None] & inside[None, :], other=0
        )
        b = tl.load(
            b_ptr + (start + depth)[:, None] * N + column[None, :],
            mask=inside[:, None] & (column < N)[None, :],
            other=0,
        )
        total += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    tl.store(c_ptr + row[:, None] * N + column[None, :], total, mask=(row < M)[:, None] & (column < N)[None, :])
