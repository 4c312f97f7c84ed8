"""Reductions: the sum of each row, of each column and of everything; the place of the largest element of each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import triton
import triton.language as tl
from by_hand import kernel
from foundry_core.tensor import Tensor
from problem import Problem, Returning, empty, normal, torch_views, unit

# What, rows, columns, type. A sum of everything has one row.
QUICK = (
    ("sum-rows", 4096, 4096, "f32"),
    ("sum-columns", 4096, 4096, "f32"),
    ("sum", 1, 2**24, "f32"),
    ("argmax-rows", 4096, 4096, "f32"),
)
FULL = (
    *QUICK,
    ("sum-rows", 65536, 250, "f32"),
    ("sum-rows", 4096, 4096, "f16"),
    ("sum-rows", 4096, 4096, "bf16"),
    ("sum-columns", 1000, 1001, "f32"),
    ("sum-columns", 4096, 4096, "f16"),
    ("sum", 1, 2**16, "f32"),
    ("argmax-rows", 65536, 250, "f32"),
)
COLUMNS = (64, 256, 1024)
# A sum of everything: programs, and elements of a step.
PARTS = ((8, 4096), (64, 128), (64, 256), (64, 1024))


@triton.jit
def sum_rows_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.sum(x.to(tl.float32), 0))


@triton.jit
def sum_columns_kernel(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + offsets, total, mask=mask)


@triton.jit
def sum_kernel(x_ptr, y_ptr, n, PART, BLOCK: tl.constexpr):
    """Store the sum of PART elements; PART is a multiple of BLOCK."""
    start = tl.program_id(0) * PART
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(start, start + PART, BLOCK):
        offsets = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def argmax_rows_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + offsets, mask=offsets < columns, other=-float("inf"))
    tl.store(y_ptr + tl.program_id(0), tl.argmax(x, 0))


def problem(what: str, rows: int, columns: int, kind: str) -> Problem:
    x = normal((rows, columns), kind)
    axis = 0 if what == "sum-columns" else 1
    y = empty((x.shape[1 - axis],), "i32" if what == "argmax-rows" else kind)
    wide = x.astype(np.float64)
    if what == "argmax-rows":
        exact, allowed = wide.argmax(axis=1).astype(np.float64), 0.0
    else:
        exact = wide.sum(axis=axis)
        # n terms round n times at most; then one rounding to the type.
        allowed = x.shape[axis] * unit("f32") * np.abs(wide).sum(axis=axis) + unit(kind) * np.abs(exact) + 2.0**-25
    ours, by_hand = _makers(what, x, y, kind)
    a, b = torch_views(x, y)
    return Problem(
        f"{what} {kind}, {x.size if what == 'sum' else f'{rows} x {columns}'}",
        "GB/s",
        bytes=x.nbytes + y.nbytes,
        operations=x.size,
        output=y,
        exact=exact,
        allowed=allowed,
        ours=ours,
        peers={"OpenCL C": by_hand, "torch": {"": _torch(what, a, b, axis)}},
        aim="at least 0.95 of OpenCL C",
    )


Candidates = dict[str, Callable[[], object]]


def _makers(what: str, x: np.ndarray, y: np.ndarray, kind: str) -> tuple[Candidates, Candidates]:
    """Return Triton's candidates, and those in OpenCL C."""
    rows, columns = x.shape
    tensors, sizes = (Tensor(x), Tensor(y)), (np.int32(rows), np.int32(columns))
    by_hand = partial(kernel, __file__, TYPE=kind)
    if what == "sum-columns":

        def columns_of(block: int) -> None:
            sum_columns_kernel[(triton.cdiv(columns, block),)](*tensors, rows, columns, BLOCK=block)

        ours = {f"block {block}": partial(columns_of, block) for block in COLUMNS}
        return ours, {"64 columns a work-item": by_hand("sum_columns", triton.cdiv(columns, 64), x, y, *sizes)}
    if what == "sum":
        return (
            {f"{parts} programs, block {block}": _sum(x, y, parts, block) for parts, block in PARTS},
            {f"{parts} work-items": _sum_by_hand(x, y, parts, kind) for parts in (8, 64, 256)},
        )
    launched = {"sum-rows": sum_rows_kernel, "argmax-rows": argmax_rows_kernel}[what]
    block = triton.next_power_of_2(columns)
    ours = {"a row a program": lambda: launched[(rows,)](*tensors, columns, BLOCK=block)}
    return ours, {"a row a work-item": by_hand(what.replace("-", "_"), rows, x, y, sizes[1])}


def _sum(x: np.ndarray, y: np.ndarray, parts: int, block: int) -> Callable[[], object]:
    """Return a callable that sums parts in f32, and then these."""
    partial_sums = empty((parts,), "f32")
    a, b, c = Tensor(x), Tensor(partial_sums), Tensor(y)
    part = triton.cdiv(triton.cdiv(x.size, parts), block) * block

    def run() -> None:
        sum_kernel[(parts,)](a, b, x.size, part, BLOCK=block)
        sum_kernel[(1,)](b, c, parts, parts, BLOCK=parts)

    return run


def _sum_by_hand(x: np.ndarray, y: np.ndarray, parts: int, kind: str) -> Callable[[], object]:
    assert x.size % parts == 0
    partial_sums = empty((parts,), "f32")
    first = kernel(__file__, "sum_rows", parts, x, partial_sums, np.int32(x.size // parts), TYPE=kind)
    last = kernel(__file__, "sum_rows", 1, partial_sums, y, np.int32(parts), TYPE="f32")

    def run() -> None:
        first()
        last()

    return run


def _torch(what: str, a: torch.Tensor, b: torch.Tensor, axis: int) -> Callable[[], object]:
    if what == "argmax-rows":
        # torch's indices are of 64 bits.
        found = torch.empty(a.shape[0], dtype=torch.int64)
        return Returning(lambda: torch.argmax(a, 1, out=found), lambda _: found.numpy())
    if what == "sum":
        return lambda: torch.sum(a, (0, 1), out=b[0])
    return lambda: torch.sum(a, axis, out=b)
