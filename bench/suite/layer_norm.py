"""Layer normalisation of each row, forward, with one row a program. Weights and biases are in f32."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, empty, normal, torch_views, unit

QUICK = ((4096, 1024, "f32"), (4096, 1000, "f16"))
FULL = (*QUICK, (8192, 4096, "f32"), (256, 1024, "f32"), (32768, 128, "f32"), (4096, 1024, "bf16"))
EPSILON = 1e-5


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + offsets, mask=mask)
    tl.store(y_ptr + row * columns + offsets, centred * factor * weight + bias, mask=mask)


def problem(rows: int, columns: int, kind: str) -> Problem:
    x, y = normal((rows, columns), kind), empty((rows, columns), kind)
    weight, bias = (normal((columns,), "f32", seed) for seed in (1, 2))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    factor = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    result = centred * factor
    exact = result * weight + bias
    # To first order, as in the fifth tutorial: a sum of n terms rounds n times at most, an error of the mean reaches
    # every difference, and an error of the factor every result. Then one rounding to the type.
    f32 = unit("f32")
    of_mean = (columns + 1) * f32 * np.abs(wide).mean(axis=1, keepdims=True)
    of_factor = ((columns + 2) * f32 + 2 * of_mean * factor) / 2 + 4 * f32
    of_result = factor * of_mean + np.abs(result) * (of_factor + 3 * f32)
    allowed = (
        of_result * np.abs(weight) + 3 * f32 * (np.abs(result * weight) + np.abs(bias)) + unit(kind) * np.abs(exact)
    )
    # Subnormal numbers of f16 have a fixed distance.
    allowed += 2.0**-25
    tensors, block = tuple(map(Tensor, (x, weight, bias, y))), triton.next_power_of_2(columns)
    views = torch_views(x, y)
    weights = torch_views(weight, bias)
    statistics = [torch.empty(rows, 1) for _ in range(2)]
    return Problem(
        f"layer norm {kind}, {rows} x {columns}",
        "GB/s",
        bytes=x.nbytes + y.nbytes + weight.nbytes + bias.nbytes,
        # Each element: an addition for the mean, three operations for the variance, four for the result.
        operations=8 * x.size,
        output=y,
        exact=exact,
        allowed=allowed,
        ours={"a row a program": lambda: layer_norm_kernel[(rows,)](*tensors, columns, EPSILON, BLOCK=block)},
        peers={
            "OpenCL C": {
                "a row a work-item": kernel(
                    __file__, "layer_norm", rows, x, weight, bias, y, np.float32(EPSILON), TYPE=kind, COLUMNS=columns
                )
            },
            "torch": {
                "": lambda: torch.ops.aten.native_layer_norm.out(
                    views[0],
                    (columns,),
                    *weights,
                    EPSILON,
                    out0=views[1],
                    out1=statistics[0],
                    out2=statistics[1],
                )
            },
        },
        aim="at least 0.95 of OpenCL C",
    )
