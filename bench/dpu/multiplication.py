"""Measure matmul 256^3 in int32 and f32 on 16 DPUs, as a share of the limit set by multiplication.

The limit assumes DPUs that only multiply and add, at one instruction a cycle: see bounds.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
from foundry_core.tensor import Tensor
from matmul import allowed_error, matmul_kernel
from measurement import Measurement

from . import bounds
from .kernels import matmul_rows_kernel
from .modelled import MEGA, Timed, best, launched, row

SIZE = 256
DPUS = 16
# The block of a program. matmul_rows_kernel: columns of a row, and depth of a step. e2e's kernel, which uses tl.dot:
# rows, columns and depth.
ROW_BLOCKS = ((256, 1), (256, 2), (128, 2), (128, 4), (64, 8), (128, 8))
DOT_BLOCKS = ((16, 16, 16), (16, 16, 32), (16, 16, 64), (16, 16, 128))

Matrix = npt.NDArray[Any]


def measure() -> list[Measurement]:
    """Return a table for each type."""
    return [_measure("i32", *_integers(), dot=False), _measure("f32", *_floats(), dot=True)]


def _measure(dtype: str, a: Matrix, b: Matrix, *, dot: bool) -> Measurement:
    limit = bounds.multiplication(dtype, SIZE, SIZE, SIZE, DPUS)
    candidates = [_candidate(a, b, block, _multiply_rows) for block in ROW_BLOCKS]
    if dot:
        candidates += [_candidate(a, b, block, _multiply_dot) for block in DOT_BLOCKS]
    cost = " + ".join(f"{bounds.operation(dtype, name):.0f}" for name in ("multiply", "add"))
    return Measurement(
        title=f"matmul {dtype}, {SIZE}^3, {DPUS} DPUs, modelled",
        rows=[row(timed, work=SIZE**3 / MEGA) for timed in candidates],
        unit="M multiply-adds/s",
        ratios={f"share of the limit of {limit:.0f} cycles ({cost} a multiply-add)": limit / best(candidates).cycles},
        aim="the share is reported",
    )


def _candidate(a: Matrix, b: Matrix, block: tuple[int, ...], multiply: Callable[..., None]) -> Timed:
    c = np.full((SIZE, SIZE), -1, a.dtype)
    how = "tl.dot, block" if multiply is _multiply_dot else "columns of a row and depth"
    timed = launched(f"Triton, {how} {'x'.join(map(str, block))}", lambda: multiply(a, b, c, *block))
    _compare(a, b, c, timed.label)
    return timed


def _integers() -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(SIZE)
    a, b = (random.integers(-(2**31), 2**31, (SIZE, SIZE), np.int32) for _ in range(2))
    return a, b


def _floats() -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(SIZE)
    a, b = (random.uniform(-1, 1, (SIZE, SIZE)).astype(np.float32) for _ in range(2))
    return a, b


def _multiply_rows(a: Matrix, b: Matrix, c: Matrix, columns: int, depth: int) -> None:
    grid = (SIZE * triton.cdiv(SIZE, columns),)
    matmul_rows_kernel[grid](Tensor(a), Tensor(b), Tensor(c), SIZE, SIZE, COLUMNS=columns, DEPTH=depth, num_dpus=DPUS)


def _multiply_dot(a: Matrix, b: Matrix, c: Matrix, rows: int, columns: int, depth: int) -> None:
    grid = (triton.cdiv(SIZE, rows) * triton.cdiv(SIZE, columns),)
    matmul_kernel[grid](
        Tensor(a),
        Tensor(b),
        Tensor(c),
        SIZE,
        SIZE,
        SIZE,
        SIZE,
        1,
        SIZE,
        1,
        SIZE,
        1,
        BLOCK_SIZE_M=rows,
        BLOCK_SIZE_N=columns,
        BLOCK_SIZE_K=depth,
        GROUP_SIZE_M=1,
        num_dpus=DPUS,
    )


def _compare(a: Matrix, b: Matrix, c: Matrix, label: str) -> None:
    if a.dtype.kind == "i":
        assert np.array_equal(c, a @ b), f"{label} is wrong"
    else:
        exact = a.astype(np.float64) @ b.astype(np.float64)
        assert (np.abs(c - exact) <= allowed_error(a, b, exact, np.float32)).all(), f"{label} is wrong"
