"""Measure kernels against the bound of the model, DMA or arithmetic, and from 1 to 64 DPUs.

The bound of the arithmetic counts the operations of the kernel's formulas, each with what PrIM's throughput says. An
exponential is the operations of foundry_core.functions: the SDK has none. Everything else that a program does, such as
addresses, loops, loads and stores in WRAM, and what is done for each row, is above the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
from foundry_core.tensor import Tensor
from measurement import Measurement
from softmax import softmax_kernel

from . import bounds, kernels
from .modelled import MEGA, Timed, best, launched, row

DPUS = (1, 64)
# No power of two: 64 DPUs get 15 or 16 rows each.
ROWS, COLUMNS = 1000, 256
SIDE = 1024
TABLE, TAKEN = 2**20, 2**18
HEADS, LENGTH, DEPTH = 16, 64, 32
# Operations of exp and exp2 in f32 (foundry_core/functions/exponential.py).
EXP = Counter(multiply=12, add=8, subtract=3, compare=2)
EXP2 = Counter(multiply=8, add=7, subtract=2, compare=2)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Work:
    """A kernel and its data.

    Attributes:
        title: what is computed, with type and sizes.
        elements: what the rate counts.
        bound: cycles of one DPU.
        transfers: cycles of its DMA engine for the transfers that the kernel needs, where they are shorter or more than
            those of the bound.
        out, exact, allowed: the result, what it should be in float64, and how far it may be from that.
        launch: launches on a number of DPUs with a block.
        blocks: the blocks to try; the best on each number of DPUs is compared.
    """

    title: str
    elements: int
    bound: float
    out: Array
    exact: Array
    allowed: float
    launch: Callable[..., object]
    blocks: Sequence[tuple[int, ...]]
    transfers: float | None = None


def measure() -> list[Measurement]:
    """Return a table for each kernel."""
    return [
        _measured(make()) for make in (_softmax, _layer_norm, _row_sums, _transpose, _rows, _take, _gemv, _attention)
    ]


def _measured(work: Work) -> Measurement:
    found = [_best(work, dpus) for dpus in DPUS]
    one, many = found
    ratios = {f"share of the bound of {work.bound:.0f} cycles, 1 DPU": work.bound / one.cycles}
    if work.transfers is not None:
        ratios[f"share of {work.transfers:.0f} cycles, which its own transfers take, 1 DPU"] = (
            work.transfers / one.cycles
        )
    ratios[f"share of linear, {DPUS[1]} DPUs"] = one.cycles / DPUS[1] / many.cycles
    return Measurement(
        title=f"{work.title}, {DPUS[0]} and {DPUS[1]} DPUs, modelled",
        rows=[row(timed, work=work.elements / MEGA) for timed in found],
        unit="M elements/s",
        ratios=ratios,
        aim="0.95 of both",
    )


def _best(work: Work, dpus: int) -> Timed:
    return best([_timed(work, dpus, block) for block in work.blocks])


def _timed(work: Work, dpus: int, block: tuple[int, ...]) -> Timed:
    work.out.fill(-1 if work.out.dtype.kind == "i" else np.nan)
    many = "s" * (dpus > 1)
    timed = launched(f"Triton, block {'x'.join(map(str, block))}, {dpus} DPU{many}", lambda: work.launch(dpus, *block))
    # NaN is not within any bound.
    assert (np.abs(work.out - work.exact) <= work.allowed).all(), f"{work.title}, {timed.label} is wrong"
    return timed


def _floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def _cycles(each: Counter[str], elements: int) -> float:
    return elements * bounds.computed("f32", each)


def _softmax() -> Work:
    x, out = _floats(ROWS, COLUMNS), np.empty((ROWS, COLUMNS), np.float32)
    power = np.exp(x.astype(np.float64))
    each = EXP + Counter(compare=1, subtract=1, add=1, divide=1)

    def launch(dpus: int, columns: int) -> None:
        softmax_kernel[(ROWS,)](Tensor(out), Tensor(x), COLUMNS, COLUMNS, BLOCK=columns, num_dpus=dpus)

    exact = power / power.sum(axis=1, keepdims=True)
    title = f"softmax f32, {ROWS} x {COLUMNS}"
    # A sum of n positive numbers in any order, and a few roundings more.
    allowed = float((COLUMNS + 8) * np.finfo(np.float32).eps * exact.max())
    return Work(title, x.size, _cycles(each, x.size), out, exact, allowed, launch, [(COLUMNS,)])


def _layer_norm() -> Work:
    x, weight, bias = _floats(ROWS, COLUMNS), _floats(COLUMNS), _floats(COLUMNS + 1)[1:]
    out = np.empty_like(x)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * weight + bias
    each = Counter(add=3, subtract=1, multiply=3)

    def launch(dpus: int, columns: int) -> None:
        kernels.layer_norm_kernel[(ROWS,)](
            *map(Tensor, (x, weight, bias, out)), COLUMNS, 1e-5, COLUMNS=columns, num_dpus=dpus
        )

    title = f"layer norm f32, {ROWS} x {COLUMNS}"
    allowed = float((2 * COLUMNS + 16) * np.finfo(np.float32).eps)
    return Work(title, x.size, _cycles(each, x.size), out, exact, allowed, launch, [(COLUMNS,)])


def _row_sums() -> Work:
    x, out = _floats(ROWS, COLUMNS), np.empty(ROWS, np.float32)

    def launch(dpus: int, columns: int) -> None:
        kernels.row_sums_kernel[(ROWS,)](Tensor(x), Tensor(out), COLUMNS, COLUMNS=columns, num_dpus=dpus)

    title = f"sums of rows f32, {ROWS} x {COLUMNS}"
    allowed = COLUMNS * COLUMNS * float(np.finfo(np.float32).eps)
    exact = x.astype(np.float64).sum(axis=1)
    return Work(title, x.size, _cycles(Counter(add=1), x.size), out, exact, allowed, launch, [(COLUMNS,)])


def _transpose() -> Work:
    x, out = _floats(SIDE, SIDE), np.empty((SIDE, SIDE), np.float32)

    def launch(dpus: int, rows: int, columns: int) -> None:
        grid = (SIDE // rows, SIDE // columns)
        kernels.transpose_kernel[grid](Tensor(x), Tensor(out), SIDE, SIDE, ROWS=rows, COLUMNS=columns, num_dpus=dpus)

    blocks = [(16, 16), (64, 16), (32, 32)]
    bound = bounds.moved(x.nbytes, x.nbytes)
    # Tiles of 32 x 32, of which WRAM holds one for each of 11 tasklets.
    transfers = bounds.moved(x.nbytes, x.nbytes, 128)
    title, exact = f"transposition f32, {SIDE} x {SIDE}", x.T.astype(np.float64)
    return Work(title, x.size, bound, out, exact, 0.0, launch, blocks, transfers)


def _rows() -> Work:
    table, out = _floats(TABLE // COLUMNS, COLUMNS), np.empty((ROWS, COLUMNS), np.float32)
    index = np.random.default_rng(0).integers(0, len(table), ROWS, np.int32)

    def launch(dpus: int, columns: int) -> None:
        kernels.take_rows_kernel[(ROWS,)](*map(Tensor, (table, index, out)), COLUMNS, COLUMNS=columns, num_dpus=dpus)

    # A row is the longest run of bytes that there is.
    bound = bounds.moved(out.nbytes, out.nbytes, 4 * COLUMNS)
    title = f"gather f32, {ROWS} rows of {COLUMNS}"
    # Each program reads its index, a word of 8 bytes.
    transfers = bound + bounds.moved(8 * ROWS, 0, 8)
    return Work(title, out.size, bound, out, table[index].astype(np.float64), 0.0, launch, [(COLUMNS,)], transfers)


def _take() -> Work:
    table, out = _floats(TABLE), np.empty(TAKEN, np.float32)
    index = np.random.default_rng(0).integers(0, TABLE, TAKEN, np.int32)

    def launch(dpus: int, block: int) -> None:
        grid = (triton.cdiv(TAKEN, block),)
        kernels.take_kernel[grid](*map(Tensor, (table, index, out)), TAKEN, BLOCK=block, num_dpus=dpus)

    # Each element is a transfer of 8 bytes.
    bound = bounds.moved(8 * TAKEN, 0, 8) + bounds.moved(index.nbytes, out.nbytes)
    title = f"gather f32, 2^{TAKEN.bit_length() - 1} single elements"
    return Work(title, TAKEN, bound, out, table[index].astype(np.float64), 0.0, launch, [(128,), (256,)])


def _gemv() -> Work:
    a, x, y = _floats(SIDE, SIDE), _floats(SIDE), np.empty(SIDE, np.float32)

    def launch(dpus: int, rows: int, columns: int) -> None:
        kernels.gemv_kernel[(SIDE // rows,)](*map(Tensor, (a, x, y)), SIDE, ROWS=rows, COLUMNS=columns, num_dpus=dpus)

    exact = a.astype(np.float64) @ x
    allowed = SIDE * SIDE * float(np.finfo(np.float32).eps)
    bound = _cycles(Counter(multiply=1, add=1), a.size)
    return Work(f"gemv f32, {SIDE} x {SIDE}", a.size, bound, y, exact, allowed, launch, [(1, 256), (4, 64)])


def _attention() -> Work:
    shape = (HEADS, LENGTH, DEPTH)
    q, k, v = (np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32) for seed in range(3))
    out = np.empty_like(q)
    weight = np.exp(q.astype(np.float64) @ k.swapaxes(1, 2) / np.sqrt(DEPTH))
    exact = weight / weight.sum(axis=2, keepdims=True) @ v
    scores = HEADS * LENGTH * LENGTH

    def launch(dpus: int, queries: int, keys: int) -> None:
        kernels.attention_kernel[(LENGTH // queries, HEADS)](
            *map(Tensor, (q, k, v, out)),
            float(np.log2(np.e) / np.sqrt(DEPTH)),
            LENGTH,
            D=DEPTH,
            QUERIES=queries,
            KEYS=keys,
            num_dpus=dpus,
        )

    products = Counter(multiply=2 * DEPTH, add=2 * DEPTH)
    each = products + EXP2 + Counter(multiply=1, compare=1, subtract=1, add=1)
    title = f"attention f32, {HEADS} heads of {LENGTH} x {DEPTH}"
    # Scores are sums of DEPTH products, and the result a mean of values.
    allowed = float(2 * (3 * DEPTH + 2 * LENGTH + 8) * np.finfo(np.float32).eps)
    return Work(title, scores, _cycles(each, scores), out, exact, allowed, launch, [(16, 16)])
