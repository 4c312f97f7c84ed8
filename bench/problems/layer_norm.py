"""Layer normalisation of each row, forward, with one row a program. Weights and biases are in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from ..problem import Problem, empty, normal, unit
from . import kernels
from .opencl_peers import kernel

EPSILON = 1e-5


def problem(rows: int, columns: int, kind: str, *, roundings: int = 0, checked: Any = ...) -> Problem:
    """Return the problem; a sum of a row rounds `roundings` times at most, by default once for each element."""
    x, y = normal((rows, columns), kind), empty((rows, columns), kind)
    weight, bias = (normal((columns,), "f32", seed) for seed in (1, 2))
    wide = x[checked].astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    factor = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    result = centred * factor
    exact = result * weight + bias
    # To first order, as in the fifth tutorial: an error of the mean reaches every difference, and an error of the
    # factor every result. Then one rounding to the type.
    f32, terms = unit("f32"), roundings or columns
    of_mean = (terms + 1) * f32 * np.abs(wide).mean(axis=1, keepdims=True)
    of_factor = ((terms + 2) * f32 + 2 * of_mean * factor) / 2 + 4 * f32
    of_result = factor * of_mean + np.abs(result) * (of_factor + 3 * f32)
    allowed = (
        of_result * np.abs(weight) + 3 * f32 * (np.abs(result * weight) + np.abs(bias)) + unit(kind) * np.abs(exact)
    )

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        block = triton.next_power_of_2(columns)
        return jit(kernels.layer_norm)[(rows,)](*arrays, columns, EPSILON, BLOCK=block, **options)

    def torch_of(torch: Any, x: Any, weight: Any, bias: Any, y: Any) -> Any:
        if x.is_cuda:
            # There, the form with out= copies its result once more.
            return torch.nn.functional.layer_norm(x, (columns,), weight, bias, EPSILON)
        if not statistics:
            statistics.extend(torch.empty(rows, 1) for _ in range(2))
        return torch.ops.aten.native_layer_norm.out(
            x, (columns,), weight, bias, EPSILON, out0=y, out1=statistics[0], out2=statistics[1]
        )[0]

    statistics: list[Any] = []

    def peers() -> Any:
        arguments = x, weight, bias, y, np.float32(EPSILON)
        by_hand = kernel(__file__, "layer_norm", rows, *arguments, TYPE=kind, COLUMNS=columns)
        return {"OpenCL C": {"a row a work-item": by_hand}}

    return Problem(
        f"layer norm {kind}, {rows} x {columns}",
        "GB/s",
        bytes=x.nbytes + y.nbytes + weight.nbytes + bias.nbytes,
        # Each element: an addition for the mean, three operations for the variance, four for the result.
        operations=8 * x.size,
        inputs=(x, weight, bias),
        output=y,
        exact=exact,
        # Subnormal numbers of f16 have a fixed distance.
        allowed=allowed + 2.0**-25,
        checked=checked,
        launch=launch,
        torch=torch_of,
        peers=peers,
        aim="at least 0.95 of OpenCL C",
    )
