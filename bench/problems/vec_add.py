"""Addition of two vectors: the kernel of the first tutorial."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
from vec_add import add_kernel

from ..problem import Problem, empty, normal
from ..turns import Candidate
from .opencl_peers import kernel


def problem(n: int, kind: str, blocks: tuple[int, ...] = ()) -> Problem:
    """Return the problem; `blocks` are those of work-items in OpenCL C."""
    x, y, total = normal((n,), kind, 0), normal((n,), kind, 1), empty((n,), kind)

    def launch(jit: Any, x: Any, y: Any, total: Any, *, BLOCK: int, **options: Any) -> Any:
        return jit(add_kernel)[(triton.cdiv(n, BLOCK),)](x, y, total, n, BLOCK_SIZE=BLOCK, **options)

    def by_hand(name: str, items: int, block: int, group: int | None) -> Any:
        return kernel(__file__, name, items, x, y, total, np.int32(n), group=group, TYPE=kind, BLOCK=block)

    return Problem(
        f"vec_add {kind}, {n}",
        "GB/s",
        bytes=3 * x.nbytes,
        operations=n,
        inputs=(x, y),
        output=total,
        # One rounding, which IEEE 754 defines; integers wrap around.
        exact=x + y,
        allowed=0.0,
        launch=launch,
        torch=lambda torch, x, y, total: torch.add(x, y, out=total),
        peers=lambda: {
            "OpenCL C": {
                "an element a work-item": by_hand("add_each", n, 1, None),
                **{f"{each} elements a work-item": by_hand("add", triton.cdiv(n, each), each, 1) for each in blocks},
            }
        },
        others={} if kind == "bf16" else {"NumPy, one thread": Candidate(lambda: np.add(x, y, out=total))},
        aim="at least 0.95 of OpenCL C",
    )
