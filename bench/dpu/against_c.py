"""Compare Triton's GEMV and reduction, in PrIM's shapes for one rank, with hand-written C on the same DPUs."""

from __future__ import annotations

import numpy as np
import triton
from foundry_core.tensor import Tensor
from measurement import Measurement

from . import peers
from .kernels import gemv_kernel, sum_blocks_kernel, sum_kernel
from .modelled import MEGA, Timed, best, launched, row

DPUS = 64
# PrIM's strong scaling on one rank (table 3 of arXiv 2105.03814): 8192 x 1024 elements, and 6.3 M of 8 bytes.
ROWS, COLUMNS = 8192, 1024
ELEMENTS = 6_291_456
# Rows of a program and columns of a step. 8192 rows are 8 rows for each of 1024 tasklets.
GEMV_BLOCKS = ((2, 256), (4, 128), (4, 256), (8, 64), (8, 128))
# Elements of a step. A program takes the share of one of 1024 tasklets, which is 6144 elements.
SUM_BLOCKS = (32, 64, 128, 256)
TASKLETS = 16


def gemv() -> Measurement:
    """Measure y = A x in int32."""
    random = np.random.default_rng(ROWS)
    a = random.integers(-1000, 1000, (ROWS, COLUMNS), np.int32)
    x = random.integers(-1000, 1000, COLUMNS, np.int32)
    exact = a @ x
    candidates: list[Timed] = []
    for rows, columns in GEMV_BLOCKS:
        y = np.full(ROWS, -1, np.int32)

        def call(y: np.ndarray = y, rows: int = rows, columns: int = columns) -> None:
            gemv_kernel[(triton.cdiv(ROWS, rows),)](
                Tensor(a), Tensor(x), Tensor(y), COLUMNS, ROWS=rows, COLUMNS=columns, num_dpus=DPUS
            )
            assert np.array_equal(y, exact), f"gemv in blocks of {rows} x {columns} is wrong"

        candidates.append(launched(f"Triton, {rows} rows a program, {columns} columns a step", call))
    by_hand = Timed("C, as PrIM's GEMV", peers.cycles("gemv", f"{ROWS}x{COLUMNS}", DPUS))
    return _compared(f"gemv i32, {ROWS} x {COLUMNS}", candidates, by_hand, ROWS * COLUMNS, "M multiply-adds/s")


def reduction() -> Measurement:
    """Measure the sum of int64; the host adds the programs' sums, as it adds the DPUs' sums in PrIM."""
    values = np.random.default_rng(ELEMENTS).integers(-(2**40), 2**40, ELEMENTS, np.int64)
    chunk = ELEMENTS // (DPUS * TASKLETS)
    candidates: list[Timed] = []
    for kernel, how in ((sum_kernel, "a vector of sums"), (sum_blocks_kernel, "one sum")):
        for block in SUM_BLOCKS:
            partial = np.full(DPUS * TASKLETS, -1, np.int64)

            def call(kernel: triton.JITFunction = kernel, partial: np.ndarray = partial, block: int = block) -> None:
                kernel[partial.shape](Tensor(values), Tensor(partial), CHUNK=chunk, BLOCK=block, num_dpus=DPUS)
                assert partial.sum() == values.sum(), f"the sum in blocks of {block} is wrong"

            candidates.append(launched(f"Triton, {how}, {block} elements a step", call))
    by_hand = Timed("C, as PrIM's RED", peers.cycles("red", str(ELEMENTS), DPUS))
    return _compared(f"sum of i64, n = {ELEMENTS}", candidates, by_hand, ELEMENTS, "M elements/s")


def _compared(title: str, candidates: list[Timed], by_hand: Timed, work: int, unit: str) -> Measurement:
    return Measurement(
        title=f"{title}, {DPUS} DPUs, modelled",
        rows=[row(timed, work=work / MEGA) for timed in (*candidates, by_hand)],
        unit=unit,
        ratios={"Triton over C": by_hand.cycles / best(candidates).cycles},
        aim="at least 1.0",
    )
