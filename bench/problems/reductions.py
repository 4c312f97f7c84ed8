"""Reductions: the sum of each row, of each column and of everything; the place of the largest element of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from ..problem import Problem, empty, normal, unit
from ..turns import Candidate
from . import kernels
from .opencl_peers import kernel

# The most parts whose sums are added by a second launch.
_PARTS = 1 << 15


def problem(what: str, rows: int, columns: int, kind: str, *, roundings: int = 0) -> Problem:
    """Return the problem.

    Args:
        what: sum-rows, sum-columns, argmax-rows, or sum, which has one row.
        roundings: how often a sum rounds at most; by default once for each term.
    """
    x = normal((rows, columns), kind)
    axis = 0 if what == "sum-columns" else 1
    y = empty((x.shape[1 - axis],), "i32" if what == "argmax-rows" else kind)
    allowed: Any = 0.0
    if what == "argmax-rows":
        exact = x.astype(np.float64).argmax(axis=1)
    elif x.dtype.kind == "i":
        exact = x.sum(axis=axis, dtype=x.dtype)
    else:
        exact = x.sum(axis=axis, dtype=np.float64)
        sums = np.abs(x).sum(axis=axis, dtype=np.float64)
        # Then one rounding to the type.
        allowed = (roundings or x.shape[axis]) * unit("f32") * sums + unit(kind) * np.abs(exact) + 2.0**-25
    name = what.replace("-", "_")
    scratch = [empty((_PARTS,), "f32")] if what == "sum" else []

    def peers() -> Any:
        def by_hand(name: str, items: int, *arguments: Any, kind: str = kind) -> Any:
            return kernel(__file__, name, items, *arguments, TYPE=kind)

        if what == "sum-columns":
            sizes = np.int32(rows), np.int32(columns)
            return {"OpenCL C": {"64 columns a work-item": by_hand(name, triton.cdiv(columns, 64), x, y, *sizes)}}
        if what != "sum":
            return {"OpenCL C": {"a row a work-item": by_hand(name, rows, x, y, np.int32(columns))}}

        def parted(parts: int) -> Any:
            assert x.size % parts == 0
            sums = empty((parts,), "f32")
            first = by_hand("sum_rows", parts, x, sums, np.int32(x.size // parts))
            last = by_hand("sum_rows", 1, sums, y, np.int32(parts), kind="f32")
            return Candidate(lambda: (first.call(), last.call()))

        return {"OpenCL C": {f"{parts} work-items": parted(parts) for parts in (8, 64, 256)}}

    return Problem(
        f"{what} {kind}, {x.size if what == 'sum' else f'{rows} x {columns}'}",
        "GB/s",
        bytes=x.nbytes + y.nbytes,
        operations=x.size,
        inputs=(x, *scratch),
        output=y,
        exact=exact,
        allowed=allowed,
        launch=_launch(what, rows, columns),
        torch=_torch(what),
        peers=peers,
        aim="at least 0.95 of OpenCL C",
    )


def _launch(what: str, rows: int, columns: int) -> Any:
    def columns_of(jit: Any, x: Any, y: Any, *, BLOCK: int, **options: Any) -> Any:
        grid = (triton.cdiv(columns, BLOCK),)
        return jit(kernels.sum_columns)[grid](x, y, rows, columns, BLOCK=BLOCK, **options)

    def rows_of(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        block = triton.next_power_of_2(columns)
        return jit(getattr(kernels, what.replace("-", "_")))[(rows,)](x, y, columns, BLOCK=block, **options)

    def everything(jit: Any, x: Any, sums: Any, y: Any, *, parts: int, BLOCK: int) -> Any:
        part = triton.cdiv(triton.cdiv(columns, parts), BLOCK) * BLOCK
        jit(kernels.sum_parts)[(parts,)](x, sums, columns, PART=part, BLOCK=BLOCK, EVEN=False, SCALAR=False)
        jit(kernels.sum_parts)[(1,)](sums, y, parts, PART=parts, BLOCK=parts, EVEN=False, SCALAR=False)

    return {"sum-columns": columns_of, "sum": everything}.get(what, rows_of)


def strided(n: int, jit: Any, x: Any, sums: Any, y: Any, *, BLOCK: int, num_warps: int, programs: int) -> Any:
    """Launch the sum of everything for GPUs; 0 programs for one a block."""
    add, loop = jit(kernels.sum_strided), programs > 0
    programs = programs or n // BLOCK
    returned = add[(programs,)](x, sums, n, BLOCK=BLOCK, num_warps=num_warps, LOOP=loop)
    block = triton.next_power_of_2(programs)
    add[(1,)](sums, y, programs, BLOCK=block, num_warps=16 if block > 4096 else 4, LOOP=False)
    return returned


def _torch(what: str) -> Any:
    if what == "argmax-rows":
        found: list[Any] = []

        def largest(torch: Any, x: Any, _: Any) -> Any:
            if not found:
                # torch's indices are of 64 bits.
                found.append(torch.empty(x.shape[0], dtype=torch.int64))
            return torch.argmax(x, 1, out=found[0])

        return largest
    if what == "sum":
        return lambda torch, x, _, y: torch.sum(x, (0, 1), out=y[0])
    return lambda torch, x, y: torch.sum(x, 0 if what == "sum-columns" else 1, out=y)
