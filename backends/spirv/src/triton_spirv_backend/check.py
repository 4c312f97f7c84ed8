"""Runs two small kernels on a road's device and compares them with NumPy: what `python -m triton_spirv_backend` does.

The results are poisoned with NaN before, and their neighbours in memory are looked at after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
import triton.language as tl
from foundry_core.tensor import Tensor

# Elements around a result that no kernel may write to.
_MARGIN = 64
_ULP = 2.0**-24  # half a unit in the last place of f32, relative


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        name: of the check.
        error: the largest error, in units of what is allowed; NaN if there is none because it failed before.
        problem: what is wrong; "" if nothing.
    """

    name: str
    error: float
    problem: str = ""


# Triton would look the names of types up in annotations.
def _add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def _dot(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    rows, columns = tl.arange(0, SIZE)[:, None] * SIZE, tl.arange(0, SIZE)[None, :]
    product = tl.dot(tl.load(x_ptr + rows + columns), tl.load(y_ptr + rows + columns), input_precision="ieee")
    tl.store(out_ptr + rows + columns, product)


def check() -> Iterator[Verdict]:
    """Run the checks on Triton's active driver; nothing is raised, what goes wrong is in the verdicts."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 1000), np.float32)
    # One addition in f32 rounds once: the error is at most half a unit in the last place.
    exact = x.astype(np.float64) + y
    # Triton keeps what it compiled in the function, by the device's number: each road needs functions of its own.
    add: Any = triton.jit(_add)
    yield _verdict("vec_add f32", exact, _ULP * np.abs(exact), add, (4,), (Tensor(x), Tensor(y)), (1000, 256))
    for name, dtype in (("f32", np.float32), ("f16", np.float16)):
        # The least product: software devices compile larger ones for long. GPUs have matrices of this size for f16.
        a, b = random.standard_normal((2, 16, 16)).astype(dtype)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        # 16 products and their sum in f32, in any order: each of at most 16 additions rounds, or cuts off as matrix
        # units may, a part of the magnitude.
        allowed = 2 * 16 * _ULP * (np.abs(wide_a) @ np.abs(wide_b))
        dot: Any = triton.jit(_dot)
        yield _verdict(f"dot {name}", wide_a @ wide_b, allowed, dot, (1,), (Tensor(a), Tensor(b)), (16,), num_warps=1)


def _verdict(
    name: str,
    expected: npt.NDArray[np.float64],
    allowed: npt.NDArray[np.float64],
    kernel: Any,
    grid: tuple[int, ...],
    inputs: tuple[Tensor, ...],
    numbers: tuple[int, ...],
    **options: int,
) -> Verdict:
    """Launch `kernel` with its inputs, its poisoned result and its numbers; compare the result with `expected`."""
    memory = np.full(expected.size + 2 * _MARGIN, np.nan, np.float32)
    out = memory[_MARGIN:-_MARGIN].reshape(expected.shape)
    try:
        kernel[grid](*inputs, Tensor(out), *numbers, **options)
    except Exception as failure:  # the report goes on with what failed
        return Verdict(name, float("nan"), f"{type(failure).__name__}: {failure}")
    if not np.isnan(np.concatenate([memory[:_MARGIN], memory[-_MARGIN:]])).all():
        return Verdict(name, float("nan"), "it wrote outside its result")
    if missing := np.count_nonzero(np.isnan(out)):
        return Verdict(name, float("nan"), f"{missing} of {out.size} elements are not numbers, or were not written")
    error = float(np.max(np.abs(out - expected) / allowed))
    return Verdict(name, error, "" if error <= 1 else f"the largest error is {error:.3g} times what is allowed")
