"""Gather: rows of a table, as an embedding does, and single elements, by an index in i32."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
import triton
import triton.language as tl
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, empty, normal, torch_views

# Rows of the table, columns (0 for single elements), how many are taken, type.
QUICK = ((2**15, 512, 8192, "f32"), (2**20, 0, 2**20, "f32"))
FULL = (
    *QUICK,
    (2**15, 512, 8192, "f16"),
    (2**15, 100, 8192, "f32"),
    (2**12, 0, 2**20, "f32"),
    (2**24, 0, 2**20, "f32"),
)
BLOCKS = (256, 1024, 4096)


@triton.jit
def rows_kernel(table_ptr, index_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(table_ptr + tl.load(index_ptr + row).to(tl.int64) * columns + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, values, mask=mask)


@triton.jit
def elements_kernel(table_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, tl.load(table_ptr + index, mask=mask), mask=mask)


def problem(rows: int, columns: int, count: int, kind: str) -> Problem:
    table = normal((rows, columns) if columns else (rows,), kind)
    out = empty((count, columns) if columns else (count,), kind)
    index = normal((count,), "i32")
    index %= rows
    exact = table[index].astype(np.float64)
    tensors = Tensor(table), Tensor(index), Tensor(out)
    # Elements move as they are.
    constants = {"TYPE": {"f16": "i16"}.get(kind, kind), "COLUMNS": columns}

    def by_hand(name: str, items: int, *more: np.generic, block: int = 1) -> object:
        return kernel(__file__, name, items, table, index, out, *more, BLOCK=block, **constants)

    def rows_of(block: int) -> None:
        rows_kernel[(count,)](*tensors, columns, BLOCK=block)

    def elements_of(block: int) -> None:
        elements_kernel[(triton.cdiv(count, block),)](*tensors, count, BLOCK=block)

    a, i, b = torch_views(table, index, out)
    if columns:
        ours = {"a row a program": partial(rows_of, triton.next_power_of_2(columns))}
        peer = {"a row a work-item": by_hand("rows", count)}
    else:
        ours = {f"block {block}": partial(elements_of, block) for block in BLOCKS}
        peer = {
            f"{block} elements a work-item": by_hand(
                "elements", triton.cdiv(count, block), np.int32(count), block=block
            )
            for block in BLOCKS
        }
    return Problem(
        f"gather {kind}, {count} {f'rows of {columns}' if columns else 'elements'} of {rows}",
        "GB/s",
        # What is taken is read and written; where several lines of the cache are read for it, that counts once.
        bytes=2 * out.nbytes + index.nbytes,
        operations=0,
        output=out,
        exact=exact,
        allowed=0.0,
        ours=ours,
        peers={"OpenCL C": peer, "torch": {"": lambda: torch.index_select(a, 0, i, out=b)}},
        others={"NumPy, one thread": lambda: np.take(table, index, axis=0, out=out, mode="clip")},
        aim="at least 0.95 of OpenCL C",
    )
