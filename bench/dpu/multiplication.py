"""matmul 256^3 in int32 and f32 on 16 DPUs: what share of the multiply-bound limit is reached.

The limit is that of DPUs that do nothing but multiply and add, at one instruction a cycle: see bounds.py.
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
from .kernels import matmul_int_kernel
from .modelled import MEGA, Timed, best, launched, row

SIZE = 256
DPUS = 16
# Rows and columns of a program's block of C, and the depth of a step. 16 DPUs with 16 tasklets want 256 programs.
BLOCKS = ((16, 16, 16), (16, 16, 32), (8, 32, 16), (4, 64, 16), (2, 128, 8), (1, 256, 8), (1, 256, 16))
FLOAT_BLOCKS = ((16, 16, 16), (16, 16, 32), (16, 16, 64), (16, 16, 128))

Matrix = npt.NDArray[Any]


def measure() -> list[Measurement]:
    """A table for each type."""
    return [_measure("i32", BLOCKS, _integers, _multiply_int), _measure("f32", FLOAT_BLOCKS, _floats, _multiply_float)]


def _measure(
    dtype: str,
    blocks: tuple[tuple[int, int, int], ...],
    operands: Callable[[], tuple[Matrix, Matrix]],
    multiply: Callable[[Matrix, Matrix, Matrix, tuple[int, int, int]], None],
) -> Measurement:
    a, b = operands()
    limit = bounds.multiplication(dtype, SIZE, SIZE, SIZE, DPUS)
    candidates: list[Timed] = []
    for block in blocks:
        c = np.full((SIZE, SIZE), -1, a.dtype)
        label = f"Triton, block {'x'.join(map(str, block))}"
        candidates.append(launched(label, lambda c=c, block=block: multiply(a, b, c, block)))
        _compare(a, b, c, label)
    ours = best(candidates)
    cost = " + ".join(f"{bounds.operation(dtype, name):.0f}" for name in ("multiply", "add"))
    return Measurement(
        title=f"matmul {dtype}, {SIZE}^3, {DPUS} DPUs, modelled",
        rows=[row(timed, work=SIZE**3 / MEGA) for timed in candidates],
        unit="M multiply-adds/s",
        ratios={f"share of the limit of {limit:.0f} cycles ({cost} a multiply-add)": limit / ours.cycles},
        aim="the share is reported",
    )


def _integers() -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(SIZE)
    a, b = (random.integers(-(2**31), 2**31, (SIZE, SIZE), np.int32) for _ in range(2))
    return a, b


def _floats() -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(SIZE)
    a, b = (random.uniform(-1, 1, (SIZE, SIZE)).astype(np.float32) for _ in range(2))
    return a, b


def _grid(block: tuple[int, int, int]) -> tuple[int]:
    return (triton.cdiv(SIZE, block[0]) * triton.cdiv(SIZE, block[1]),)


def _multiply_int(a: Matrix, b: Matrix, c: Matrix, block: tuple[int, int, int]) -> None:
    matmul_int_kernel[_grid(block)](
        Tensor(a), Tensor(b), Tensor(c), SIZE, SIZE, SIZE,
        ROWS=block[0], COLUMNS=block[1], DEPTH=block[2], num_dpus=DPUS,
    )  # fmt: skip


def _multiply_float(a: Matrix, b: Matrix, c: Matrix, block: tuple[int, int, int]) -> None:
    matmul_kernel[_grid(block)](
        Tensor(a), Tensor(b), Tensor(c), SIZE, SIZE, SIZE, SIZE, 1, SIZE, 1, SIZE, 1,
        BLOCK_SIZE_M=block[0], BLOCK_SIZE_N=block[1], BLOCK_SIZE_K=block[2], GROUP_SIZE_M=1, num_dpus=DPUS,
    )  # fmt: skip


def _compare(a: Matrix, b: Matrix, c: Matrix, label: str) -> None:
    if a.dtype.kind == "i":
        assert np.array_equal(c, a @ b), f"{label} is wrong"
    else:
        exact = a.astype(np.float64) @ b.astype(np.float64)
        assert (np.abs(c - exact) <= allowed_error(a, b, exact, np.float32)).all(), f"{label} is wrong"
