"""Softmax of each row: the kernel of the second tutorial, with one row a program."""

from __future__ import annotations

import numpy as np
import torch
import triton
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, empty, normal, torch_views, unit
from softmax import softmax_kernel

QUICK = ((4096, 1024, "f32"), (4096, 1000, "f16"))
FULL = (*QUICK, (8192, 4096, "f32"), (256, 1024, "f32"), (128, 781, "f32"), (32768, 128, "f32"), (4096, 1024, "bf16"))


def problem(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((rows, columns), kind)
    wide = x.astype(np.float64)
    exponent = wide - wide.max(axis=1, keepdims=True)
    exact = np.exp(exponent)
    exact /= exact.sum(axis=1, keepdims=True)
    # In f32: the sum of n terms rounds n times at most, exp has 4 ulp, the difference, the reciprocal and the product
    # round once each. Then one rounding to the type.
    relative = (columns + 14 + 2 * np.abs(exponent).max()) * unit("f32") + unit(kind)
    smallest = 2.0**-24 if kind == "f16" else float(np.finfo(np.float32).smallest_normal)
    tensors, block = (Tensor(y), Tensor(x)), triton.next_power_of_2(columns)
    a, b = torch_views(x, y)
    return Problem(
        f"softmax {kind}, {rows} x {columns}",
        "GB/s",
        bytes=x.nbytes + y.nbytes,
        # Each element: a comparison, a difference, exp, an addition, a product.
        operations=5 * x.size,
        output=y,
        exact=exact,
        allowed=exact * relative + smallest,
        ours={"a row a program": lambda: softmax_kernel[(rows,)](*tensors, columns, columns, BLOCK=block)},
        peers={
            "OpenCL C": {"a row a work-item": kernel(__file__, "softmax", rows, x, y, TYPE=kind, COLUMNS=columns)},
            "torch": {"": lambda: torch.softmax(a, 1, out=b)},
        },
        aim="at least 0.95 of OpenCL C",
    )
