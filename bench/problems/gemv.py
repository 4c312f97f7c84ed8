"""Product of a matrix and a vector. Sums are in f32, or of the type if it is of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
from matmul import allowed_error

from ..problem import Problem, empty, normal, unit
from ..turns import Candidate
from . import kernels
from .opencl_peers import kernel, sgemv


def problem(m: int, n: int, kind: str) -> Problem:
    a, x, y = normal((m, n), kind, 0), normal((n,), kind, 1), empty((m,), kind)
    if kind == "i32":
        # From -1000 to 999, so that no sum overflows.
        for each in (a, x):
            each %= 2000
            each -= 1000
    wide_a, wide_x = a.astype(np.float64), x.astype(np.float64)
    exact = wide_a @ wide_x
    allowed: Any = 0.0 if kind == "i32" else allowed_error(wide_a, wide_x, exact, np.float32)
    if kind not in ("f32", "i32"):
        allowed += unit(kind) * (np.abs(exact) + allowed) + 2.0**-25

    def launch(jit: Any, a: Any, x: Any, y: Any, *, BM: int, BN: int, even: bool = False, **options: Any) -> Any:
        function = kernels.gemv_even if even else kernels.gemv
        return jit(function)[(triton.cdiv(m, BM),)](a, x, y, m, n, BM=BM, BN=BN, **options)

    def by_hand(rows: int) -> Any:
        sizes = np.int32(m), np.int32(n)
        return kernel(__file__, "gemv", triton.cdiv(m, rows), a, x, y, *sizes, TYPE=kind, ROWS=rows)

    def peers() -> Any:
        found = {"OpenCL C": {f"{rows} rows a work-item": by_hand(rows) for rows in (1, 4, 8)}}
        if kind == "f32":
            # CLBlast multiplies what is in y by 0, so that NaN stays. This number does not.
            other = np.full_like(y, 1e30)
            multiply = sgemv(a, x, other)
            found["CLBlast"] = {"": Candidate(lambda: multiply() or other, returns=True)}
            found["OpenBLAS"] = {"by NumPy": Candidate(lambda: np.matmul(a, x, out=y))}
        return found

    return Problem(
        f"gemv {kind}, {m} x {n}",
        "GB/s",
        bytes=a.nbytes + x.nbytes + y.nbytes,
        operations=2 * m * n,
        inputs=(a, x),
        output=y,
        exact=exact,
        allowed=allowed,
        launch=launch,
        torch=lambda torch, a, x, y: torch.mv(a, x, out=y),
        peers=peers,
        aim="at least 0.95 of OpenCL C",
    )
