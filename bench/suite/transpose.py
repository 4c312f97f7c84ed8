"""Transposition of a matrix: a block is loaded by rows and stored by columns."""

from __future__ import annotations

from functools import partial

import numpy as np
import triton
import triton.language as tl
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, empty, normal, torch_views

QUICK = ((2048, 2048, "f32"), (1000, 1001, "f32"), (2048, 2048, "f16"))
FULL = (*QUICK, (512, 512, "f32"), (4096, 4096, "f32"), (65536, 64, "f32"), (2048, 2048, "f64"), (4096, 4096, "i8"))
BLOCKS = ((16, 16), (32, 32), (64, 64), (16, 64), (64, 16))


@triton.jit
def transpose_kernel(x_ptr, y_ptr, ROWS, COLUMNS, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows < ROWS)[:, None] & (columns < COLUMNS)[None, :]
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :], mask=mask)
    tl.store(y_ptr + columns[:, None] * ROWS + rows[None, :], tl.trans(x), mask=tl.trans(mask))


def problem(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((columns, rows), kind)
    tensors = Tensor(x), Tensor(y)

    def triton_of(bm: int, bn: int) -> None:
        transpose_kernel[(triton.cdiv(rows, bm), triton.cdiv(columns, bn))](*tensors, rows, columns, BM=bm, BN=bn)

    def by_hand(side: int) -> object:
        items = triton.cdiv(rows, side) * triton.cdiv(columns, side)
        sizes = np.int32(rows), np.int32(columns)
        # Elements move as they are.
        return kernel(__file__, "transpose", items, x, y, *sizes, TYPE={"f16": "i16"}.get(kind, kind), SIDE=side)

    a, b = torch_views(x, y)
    return Problem(
        f"transpose {kind}, {rows} x {columns}",
        "GB/s",
        bytes=2 * x.nbytes,
        operations=0,
        output=y,
        exact=x.T.astype(np.float64),
        allowed=0.0,
        ours={f"block {bm}x{bn}": partial(triton_of, bm, bn) for bm, bn in BLOCKS},
        peers={
            "OpenCL C": {f"a square of {side} a work-item": by_hand(side) for side in (16, 64, 256)},
            "torch": {"": lambda: b.copy_(a.T)},
        },
        others={"NumPy, one thread": lambda: np.copyto(y, x.T)},
        aim="at least 0.95 of OpenCL C",
    )
