"""Transposition of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from ..problem import Problem, empty, normal
from ..turns import Candidate
from . import kernels
from .opencl_peers import kernel


def problem(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((columns, rows), kind)

    def launch(jit: Any, x: Any, y: Any, *, BM: int, BN: int, **options: Any) -> Any:
        grid = (triton.cdiv(rows, BM), triton.cdiv(columns, BN))
        return jit(kernels.transpose)[grid](x, y, rows, columns, BM=BM, BN=BN, **options)

    def by_hand(side: int) -> Any:
        items = triton.cdiv(rows, side) * triton.cdiv(columns, side)
        sizes = np.int32(rows), np.int32(columns)
        # Elements move as they are.
        return kernel(__file__, "transpose", items, x, y, *sizes, TYPE={"f16": "i16"}.get(kind, kind), SIDE=side)

    return Problem(
        f"transpose {kind}, {rows} x {columns}",
        "GB/s",
        bytes=2 * x.nbytes,
        operations=0,
        inputs=(x,),
        output=y,
        exact=x.T,
        allowed=0.0,
        launch=launch,
        torch=lambda torch, x, y: y.copy_(x.T),
        peers=lambda: {"OpenCL C": {f"a square of {side} a work-item": by_hand(side) for side in (16, 64, 256)}},
        others={"NumPy, one thread": Candidate(lambda: np.copyto(y, x.T))},
        aim="at least 0.95 of OpenCL C",
    )
