"""Product of a matrix and a vector. Sums are in f32."""

from __future__ import annotations

from functools import partial

import clblast
import numpy as np
import torch
import triton
import triton.language as tl
from by_hand import kernel
from foundry_core.tensor import Tensor
from matmul import allowed_error
from problem import Problem, Returning, empty, normal, torch_views, unit

# Rows, columns, type.
QUICK = ((4096, 4096, "f32"), (1000, 1001, "f32"), (4096, 4096, "f16"))
FULL = (*QUICK, (512, 512, "f32"), (65536, 256, "f32"), (256, 65536, "f32"), (4096, 4096, "bf16"))
# Rows of a program, and columns of a step.
BLOCKS = ((1, 64), (1, 128), (1, 1024), (4, 16), (4, 32), (8, 16), (8, 32))


@triton.jit
def gemv_kernel(a_ptr, x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
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


def problem(m: int, n: int, kind: str) -> Problem:
    a, x, y = normal((m, n), kind, 0), normal((n,), kind, 1), empty((m,), kind)
    wide_a, wide_x = a.astype(np.float64), x.astype(np.float64)
    exact = wide_a @ wide_x
    allowed = allowed_error(wide_a, wide_x, exact, np.float32)
    if kind != "f32":
        allowed += unit(kind) * (np.abs(exact) + allowed) + 2.0**-25
    tensors = Tensor(a), Tensor(x), Tensor(y)

    def triton_of(bm: int, bn: int) -> None:
        gemv_kernel[(triton.cdiv(m, bm),)](*tensors, m, n, BM=bm, BN=bn)

    def by_hand(rows: int) -> object:
        items = triton.cdiv(m, rows)
        return kernel(__file__, "gemv", items, a, x, y, np.int32(m), np.int32(n), TYPE=kind, ROWS=rows)

    p, q, r = torch_views(a, x, y)
    peers = {
        "OpenCL C": {f"{rows} rows a work-item": by_hand(rows) for rows in (1, 4, 8)},
        "torch": {"": lambda: torch.mv(p, q, out=r)},
    }
    if kind == "f32":
        # CLBlast multiplies what is in y by 0, so that NaN stays. This number does not.
        other = np.full_like(y, 1e30)
        peers["CLBlast"] = {"": Returning(clblast.sgemv(a, x, other), lambda _: other)}
        peers["OpenBLAS"] = {"by NumPy": lambda: np.matmul(a, x, out=y)}
    return Problem(
        f"gemv {kind}, {m} x {n}",
        "GB/s",
        bytes=a.nbytes + x.nbytes + y.nbytes,
        operations=2 * m * n,
        output=y,
        exact=exact,
        allowed=allowed,
        ours={f"block {bm}x{bn}": partial(triton_of, bm, bn) for bm, bn in BLOCKS},
        peers=peers,
        aim="at least 0.95 of OpenCL C",
    )
