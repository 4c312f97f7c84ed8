"""Product of two matrices: the kernel of the third tutorial. Sums are in f32."""

from __future__ import annotations

from functools import partial

import clblast
import numpy as np
import torch
import triton
from by_hand import kernel
from matmul import allowed_error, launch
from problem import Problem, Returning, empty, normal, torch_views, unit

# Rows, columns, depth, type.
QUICK = ((512, 512, 512, "f32"), (1024, 1024, 1024, "f32"), (1000, 1001, 999, "f32"), (1024, 1024, 1024, "f16"))
FULL = (
    *QUICK,
    (256, 256, 256, "f32"),
    (2048, 2048, 2048, "f32"),
    (1024, 1024, 1024, "bf16"),
    (512, 512, 512, "f16"),
    (1000, 1001, 999, "f16"),
    (1000, 1001, 999, "bf16"),
)
# Rows, columns and depth of a program's block.
BLOCKS = ((32, 32, 32), (64, 64, 32), (64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64))
GROUP = 8
# Rows of a work-item, as in matmul.cl.
HEIGHT = 96


def problem(m: int, n: int, k: int, kind: str) -> Problem:
    a, b, c = normal((m, k), kind, 0), normal((k, n), kind, 1), empty((m, n), kind)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b
    # In f32; then one rounding to the type.
    allowed = allowed_error(wide_a, wide_b, exact, np.float32)
    if kind != "f32":
        allowed += unit(kind) * (np.abs(exact) + allowed) + 2.0**-25
    x, y, z = torch_views(a, b, c)
    sizes = tuple(map(np.int32, (m, n, k)))
    by_hand = partial(kernel, __file__, "matmul", triton.cdiv(m, HEIGHT) * triton.cdiv(n, 32), a, b, c, *sizes)
    peers = {
        "OpenCL C": {f"{rows} x 32 in registers": by_hand(TYPE=kind, ROWS=rows) for rows in (3, 6, 12)},
    }
    if kind != "f16":
        # torch multiplies f16 on CPUs a hundred times slower.
        peers["torch"] = {"": lambda: torch.mm(x, y, out=z)}
    if kind == "f32":
        peers["CLBlast"] = {"": clblast.sgemm(a, b, c)}
        peers["OpenBLAS"] = {"by NumPy": lambda: np.matmul(a, b, out=c)}
    else:
        # The same product with operands in f32.
        a32, b32, c32 = a.astype(np.float32), b.astype(np.float32), np.full((m, n), np.nan, np.float32)
        peers["Triton in f32"] = {name: Returning(call, lambda _: c32) for name, call in _triton(a32, b32, c32).items()}
        peers["OpenBLAS in f32"] = {"by NumPy": Returning(lambda: np.matmul(a32, b32, out=c32), lambda _: c32)}
    return Problem(
        f"matmul {kind}, {m} x {n} x {k}",
        "GFLOP/s",
        bytes=a.nbytes + b.nbytes + c.nbytes,
        operations=2 * m * n * k,
        output=c,
        exact=exact,
        allowed=allowed,
        ours=_triton(a, b, c),
        peers=peers,
        aim="at least 0.95 of OpenBLAS and OpenCL C" if kind == "f32" else "at least 0.9 of Triton in f32",
    )


def _triton(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> dict[str, partial[None]]:
    return {f"block {'x'.join(map(str, block))}": partial(launch, a, b, c, block, GROUP) for block in BLOCKS}
