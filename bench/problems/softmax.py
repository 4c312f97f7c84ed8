"""Softmax of each row, with one row a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from ..problem import Problem, empty, normal, unit
from . import kernels
from .opencl_peers import kernel


def problem(rows: int, columns: int, kind: str, *, roundings: int = 0, checked: Any = ...) -> Problem:
    """Return the problem; a sum of a row rounds `roundings` times at most, by default once for each element."""
    x, y = normal((rows, columns), kind), empty((rows, columns), kind)
    wide = x[checked].astype(np.float64)
    exponent = wide - wide.max(axis=1, keepdims=True)
    exact = np.exp(exponent)
    exact /= exact.sum(axis=1, keepdims=True)
    # In f32: exp has 4 ulp, the difference, the reciprocal and the product round once each. Then one rounding to the
    # type.
    relative = ((roundings or columns) + 14 + 2 * np.abs(exponent).max()) * unit("f32") + unit(kind)
    smallest = 2.0**-24 if kind == "f16" else float(np.finfo(np.float32).smallest_normal)

    def launch(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        return jit(kernels.softmax)[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns), **options)

    return Problem(
        f"softmax {kind}, {rows} x {columns}",
        "GB/s",
        bytes=x.nbytes + y.nbytes,
        # Each element: a comparison, a difference, exp, an addition, a product.
        operations=5 * x.size,
        inputs=(x,),
        output=y,
        exact=exact,
        allowed=exact * relative + smallest,
        checked=checked,
        launch=launch,
        torch=lambda torch, x, y: torch.softmax(x, 1, out=y),
        peers=lambda: {
            "OpenCL C": {"a row a work-item": kernel(__file__, "softmax", rows, x, y, TYPE=kind, COLUMNS=columns)}
        },
        aim="at least 0.95 of OpenCL C",
    )
