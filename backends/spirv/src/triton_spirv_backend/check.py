"""Runs small kernels on a road's device and compares them with NumPy: what `python -m triton_spirv_backend` does.

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
class CheckResult:
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


# What drivers were found to compute otherwise, because they merge two instructions.


def _round(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, SIZE)
    y = tl.load(y_ptr + i)
    half = (tl.load(x_ptr + i).to(tl.float16) + y.to(tl.float16)).to(tl.float32)
    tl.store(out_ptr + i, half - y.to(tl.int32).to(tl.float32))


def _round_integer(x_ptr, out_ptr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    # The rounded number differs from x by little: f32 has the difference exactly.
    tl.store(out_ptr + i, (x.to(tl.float32).to(tl.int32) - x).to(tl.float32))


def _negate(x_ptr, out_ptr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.maximum(-x, x // 2).to(tl.float32))


def _unsigned(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, SIZE)
    largest = tl.maximum(tl.load(x_ptr + i), tl.load(y_ptr + i))
    tl.store(out_ptr + i, (largest >> 40).to(tl.float32))


def run_checks() -> Iterator[CheckResult]:
    """Run the checks on Triton's active driver; nothing is raised, what goes wrong is in the verdicts."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 1000), np.float32)
    # One addition in f32 rounds once: the error is at most half a unit in the last place.
    exact = x.astype(np.float64) + y
    # Triton keeps what it compiled in the function, by the device's number: each road needs functions of its own.
    add: Any = triton.jit(_add)
    yield _compare("vec_add f32", exact, _ULP * np.abs(exact), add, (4,), (Tensor(x), Tensor(y)), (1000, 256))
    for name, dtype in (("f32", np.float32), ("f16", np.float16)):
        # The least product: software devices compile larger ones for long. GPUs have matrices of this size for f16.
        a, b = random.standard_normal((2, 16, 16)).astype(dtype)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        # 16 products and their sum in f32, in any order: each of at most 16 additions rounds, or cuts off as matrix
        # units may, a part of the magnitude.
        allowed = 2 * 16 * _ULP * (np.abs(wide_a) @ np.abs(wide_b))
        dot: Any = triton.jit(_dot)
        yield _compare(f"dot {name}", wide_a @ wide_b, allowed, dot, (1,), (Tensor(a), Tensor(b)), (16,), num_warps=1)
    yield from _merged(random)


def _merged(random: np.random.Generator) -> Iterator[CheckResult]:
    """Check values that stay in registers between two operations; each result is exact."""
    exactly = np.zeros(256)

    def compare(name: str, expected: npt.NDArray[Any], kernel: Any, *inputs: npt.NDArray[Any]) -> CheckResult:
        tensors = tuple(map(Tensor, inputs))
        return _compare(name, expected.astype(np.float64), exactly, triton.jit(kernel), (1,), tensors, (256,))

    x, y = random.uniform(-9, 9, (2, 256)).astype(np.float32)
    half = (x.astype(np.float16) + y.astype(np.float16)).astype(np.float64)
    yield compare("f32 to f16 and back", half - np.trunc(y), _round, x, y)
    wide = random.integers(-(2**31), 2**31, 256).astype(np.int32)
    # What f32 makes 2^31 has no i32.
    wide[wide > 2**31 - 129] = 0
    yield compare("i32 to f32 and back", wide.astype(np.float32).astype(np.int64) - wide, _round_integer, wide)
    bytes_ = np.arange(-128, 128).astype(np.int8)
    # -(-128) is -128, and less than half of it: found to be taken for 128.
    half_of = np.trunc(bytes_ / 2)
    yield compare("negative i8", np.maximum(-bytes_, half_of), _negate, bytes_)
    u, v = random.integers(0, 2**64, (2, 256), np.uint64)
    yield compare("maximum of u64", np.maximum(u, v) >> np.uint64(40), _unsigned, u, v)


def _compare(
    name: str,
    expected: npt.NDArray[np.float64],
    allowed: npt.NDArray[np.float64],
    kernel: Any,
    grid: tuple[int, ...],
    inputs: tuple[Tensor, ...],
    numbers: tuple[int, ...],
    **options: int,
) -> CheckResult:
    """Launch `kernel` with its inputs, its poisoned result and its numbers; compare the result with `expected`."""
    memory = np.full(expected.size + 2 * _MARGIN, np.nan, np.float32)
    out = memory[_MARGIN:-_MARGIN].reshape(expected.shape)
    try:
        kernel[grid](*inputs, Tensor(out), *numbers, **options)
    except Exception as failure:  # the report goes on with what failed
        return CheckResult(name, float("nan"), f"{type(failure).__name__}: {failure}")
    if not np.isnan(np.concatenate([memory[:_MARGIN], memory[-_MARGIN:]])).all():
        return CheckResult(name, float("nan"), "it wrote outside its result")
    if missing := np.count_nonzero(np.isnan(out)):
        return CheckResult(name, float("nan"), f"{missing} of {out.size} elements are not numbers, or were not written")
    off = np.abs(out - expected)
    if wrong := np.count_nonzero((allowed == 0) & (off > 0)):
        return CheckResult(
            name, float("inf"), f"{wrong} of {out.size} elements are not exact: the driver merges operations"
        )
    error = float(np.max(off / np.where(allowed, allowed, 1)))
    return CheckResult(name, error, "" if error <= 1 else f"the largest error is {error:.3g} times what is allowed")
