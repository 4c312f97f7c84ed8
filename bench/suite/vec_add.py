"""Addition of two vectors: the kernel of the first tutorial."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
import triton
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, empty, normal, torch_views, unit
from vec_add import add_kernel

QUICK = ((2**24, "f32"), (2**16, "f32"))
FULL = (
    *QUICK,
    (2**25, "f32"),
    (2**12, "f32"),
    (2**20, "f32"),
    (98432, "f32"),
    (2**22, "f16"),
    (2**22, "bf16"),
    (2**22, "f64"),
    (2**22, "i32"),
)
BLOCKS = (1024, 4096, 16384)


def problem(n: int, kind: str) -> Problem:
    x, y, total = normal((n,), kind, 0), normal((n,), kind, 1), empty((n,), kind)
    if total.dtype.kind == "i":
        # Of half the range, so that no sum overflows.
        x >>= 1
        y >>= 1
    exact = x.astype(np.float64) + y.astype(np.float64)
    tensors = Tensor(x), Tensor(y), Tensor(total)

    def triton_of(block: int) -> None:
        add_kernel[(triton.cdiv(n, block),)](*tensors, n, BLOCK_SIZE=block)

    def by_hand(name: str, items: int, block: int, group: int | None) -> object:
        return kernel(__file__, name, items, x, y, total, np.int32(n), group=group, TYPE=kind, BLOCK=block)

    a, b, c = torch_views(x, y, total)
    return Problem(
        f"vec_add {kind}, {n}",
        "GB/s",
        bytes=3 * x.nbytes,
        operations=n,
        output=total,
        exact=exact,
        # One rounding; NumPy's own of f64.
        allowed=0.0 if kind == "i32" else unit(kind) * np.abs(exact),
        ours={f"block {block}": partial(triton_of, block) for block in BLOCKS},
        peers={
            "OpenCL C": {
                "an element a work-item": by_hand("add_each", n, 1, None),
                **{
                    f"{block} elements a work-item": by_hand("add", triton.cdiv(n, block), block, 1) for block in BLOCKS
                },
            },
            "torch": {"": lambda: torch.add(a, b, out=c)},
        },
        others={} if kind == "bf16" else {"NumPy, one thread": lambda: np.add(x, y, out=total)},
        aim="at least 0.95 of OpenCL C",
    )
