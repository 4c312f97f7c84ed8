"""Product of two matrices. Sums are in f32, or of the type if it is of integers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import triton
from matmul import allowed_error, matmul_kernel

from ..devices import Triton
from ..problem import Array, Problem, empty, normal, unit
from ..turns import Candidate
from . import kernels
from .opencl_peers import kernel, sgemm

# Rows of a work-item, as in matmul.cl.
HEIGHT = 96
Sizes = tuple[int, int, int]


def tutorial(sizes: Sizes, jit: Any, *arrays: Any, BM: int, BN: int, BK: int, group: int = 8, **options: Any) -> Any:
    """Launch the kernel of the third tutorial."""
    m, n, k = sizes
    blocks = {"BLOCK_SIZE_M": BM, "BLOCK_SIZE_N": BN, "BLOCK_SIZE_K": BK, "GROUP_SIZE_M": group}
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    return jit(matmul_kernel)[grid](*arrays, m, n, k, k, 1, n, 1, n, 1, **blocks, **options)


def row_major(sizes: Sizes, jit: Any, *arrays: Any, BM: int, BN: int, BK: int, **options: Any) -> Any:
    """Launch the kernel for GPUs."""
    m, n, _ = sizes
    ragged = any(size % block for size, block in zip(sizes, (BM, BN, BK), strict=True))
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    return jit(kernels.matmul)[grid](*arrays, *sizes, BM=BM, BN=BN, BK=BK, RAGGED=ragged, **options)


def by_rows(sizes: Sizes, jit: Any, *arrays: Any, BN: int, BK: int, **options: Any) -> Any:
    """Launch the kernel for DPUs."""
    m, n, k = sizes
    return jit(kernels.matmul_rows)[(m * triton.cdiv(n, BN),)](*arrays, n, k, BN=BN, BK=BK, **options)


def problem(
    m: int,
    n: int,
    k: int,
    kind: str,
    blocks: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    to: str = "",
    units: int = 1,
    checked: Any = ...,
    operands: tuple[Array, Array] | None = None,
) -> Problem:
    """Return the problem.

    Args:
        m, n, k: rows, columns and depth.
        kind: type of A and B, and of C if `to` is empty.
        blocks: launch options of the same product in f32, with which one of smaller types is compared.
        units: units in the last place that an addition loses; tensor cores may cut instead of rounding, which is two.
        operands: A and B; random if None.
    """
    a, b = operands or (normal((m, k), kind, 0), normal((k, n), kind, 1))
    to, sizes = to or kind, (m, n, k)
    c = empty((m, n), to)
    allowed: Any = 0.0
    if kind == "i32":
        exact = a[checked] @ b
    else:
        wide_a, wide_b = a[checked].astype(np.float64), b.astype(np.float64)
        exact = wide_a @ wide_b
        # In f32; then one rounding to the type.
        allowed = units * allowed_error(wide_a, wide_b, exact, np.float32)
        if to != "f32":
            allowed += unit(to) * (np.abs(exact) + allowed) + 2.0**-25

    def torch_of(torch: Any, a: Any, b: Any, c: Any) -> Any:
        # cuBLAS rounds a product of f16 to f16.
        return torch.mm(a, b, out=c) if to == kind else torch.mm(a, b)

    def peers() -> Any:
        items = triton.cdiv(m, HEIGHT) * triton.cdiv(n, 32)
        by_hand = partial(kernel, __file__, "matmul", items, a, b, c, *map(np.int32, sizes), TYPE=kind)
        found = {"OpenCL C": {f"{rows} x 32 in registers": by_hand(ROWS=rows) for rows in (3, 6, 12)}}
        if kind == "f32":
            found["CLBlast"] = {"": Candidate(sgemm(a, b, c))}
            found["OpenBLAS"] = {"by NumPy": Candidate(lambda: np.matmul(a, b, out=c))}
        else:
            # The same product with operands in f32.
            wide = problem(m, n, k, "f32", operands=(a.astype(np.float32), b.astype(np.float32)))
            found["Triton in f32"] = dict(Triton().candidates(wide, blocks or {}))
            multiply = partial(np.matmul, *wide.inputs, out=wide.output)
            found["OpenBLAS in f32"] = {"by NumPy": Candidate(multiply, output=wide.output)}
        return found

    return Problem(
        f"matmul {kind if to == kind else f'{kind} -> {to}'}, {m} x {n} x {k}",
        "GFLOP/s",
        bytes=a.nbytes + b.nbytes + c.nbytes,
        operations=2 * m * n * k,
        inputs=(a, b),
        output=c,
        exact=exact,
        allowed=allowed,
        checked=checked,
        launch=partial(tutorial, sizes),
        # torch multiplies f16 on CPUs a hundred times slower.
        torch=None if to == "f16" else torch_of,
        peers=peers,
        aim="at least 0.95 of OpenBLAS and OpenCL C" if kind == "f32" else "at least 0.9 of Triton in f32",
    )
