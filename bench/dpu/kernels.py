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
    total = tl.zeros((ROWS,), dtype=tl.int32)
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
    N,
    K,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Compute COLUMNS elements of a row of C = A B per program. It supports int32, which tl.dot does not.

    A step reads DEPTH pieces of rows of B and DEPTH elements of A. COLUMNS divides N, and DEPTH divides K.
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
