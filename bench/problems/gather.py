"""Gather: rows of a table, as an embedding does, and single elements, by an index in i32."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from ..problem import Problem, empty, normal
from ..turns import Candidate
from . import kernels
from .opencl_peers import kernel


def problem(rows: int, columns: int, count: int, kind: str, blocks: tuple[int, ...] = ()) -> Problem:
    """Return the problem.

    Args:
        rows, columns: of the table; 0 columns for single elements.
        count: how many rows or elements are taken.
        blocks: of single elements, of work-items in OpenCL C.
    """
    table = normal((rows, columns) if columns else (rows,), kind)
    out = empty((count, columns) if columns else (count,), kind)
    index = normal((count,), "i32")
    index %= rows

    def launch(jit: Any, table: Any, index: Any, out: Any, *, BLOCK: int = 0, **options: Any) -> Any:
        if columns:
            block = triton.next_power_of_2(columns)
            return jit(kernels.take_rows)[(count,)](table, index, out, columns, BLOCK=block, **options)
        return jit(kernels.take)[(triton.cdiv(count, BLOCK),)](table, index, out, count, BLOCK=BLOCK, **options)

    def peers() -> Any:
        # Elements move as they are.
        constants: dict[str, Any] = {"TYPE": {"f16": "i16"}.get(kind, kind), "COLUMNS": columns}
        arrays = table, index, out
        if columns:
            by_hand = {"a row a work-item": kernel(__file__, "rows", count, *arrays, BLOCK=1, **constants)}
        else:
            by_hand = {
                f"{block} elements a work-item": kernel(
                    __file__, "elements", triton.cdiv(count, block), *arrays, np.int32(count), BLOCK=block, **constants
                )
                for block in blocks
            }
        return {"OpenCL C": by_hand}

    return Problem(
        f"gather {kind}, {count} {f'rows of {columns}' if columns else 'elements'} of {rows}",
        "GB/s",
        # What is taken is read and written; where several lines of the cache are read for it, that counts once.
        bytes=2 * out.nbytes + index.nbytes,
        operations=0,
        inputs=(table, index),
        output=out,
        exact=table[index],
        allowed=0.0,
        launch=launch,
        torch=lambda torch, table, index, out: torch.index_select(table, 0, index, out=out),
        peers=peers,
        others={"NumPy, one thread": Candidate(lambda: np.take(table, index, axis=0, out=out, mode="clip"))},
        aim="at least 0.95 of OpenCL C",
    )
