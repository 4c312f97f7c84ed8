"""Kernels that choose among the elements of a row: the largest with their places, and one that is drawn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language import constexpr

from ..problem import Problem, empty, normal
from .elements import philox
from .rows import F32, by_row, spread, streamed


@triton.jit
def largest_kernel(x_ptr, y_ptr, columns, K: constexpr, BLOCK: constexpr):
    """Store the K largest elements of a row, and behind them their columns."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
    for k in tl.static_range(K):
        value, place = tl.max(x, axis=0, return_indices=True)
        tl.store(y_ptr + row * (2 * K) + k, value)
        tl.store(y_ptr + row * (2 * K) + K + k, place.to(tl.float32))
        x = tl.where(column == place, -float("inf"), x)


def largest(rows: int, columns: int, k: int, kind: str) -> Problem:
    x, y, checked = normal((rows, columns), kind), empty((rows, 2 * k), "f32"), spread(rows)
    wide = x[checked].astype(np.float32)
    # Of equal ones, of which f16 has many, the first.
    places = np.argsort(-wide, axis=1, kind="stable")[:, :k]
    exact = np.concatenate([np.take_along_axis(wide, places, axis=1), places.astype(np.float32)], axis=1)
    launch = partial(by_row, largest_kernel, rows, columns, K=k)
    title = f"largest {k} with their places {kind}, {rows} x {columns}"
    return streamed(title, (x,), y, exact, 0, launch, checked=checked)


@triton.jit
def sample_kernel(x_ptr, y_ptr, columns, temperature, seed, BLOCK: constexpr):
    """Draw a column from softmax(x / temperature): the one with the largest sum of this and Gumbel's noise."""
    row = tl.program_id(0)
    best = -float("inf")
    chosen = 0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        uniform = tl.maximum(tl.rand(seed, row * columns + column), 1e-7)
        value, place = tl.max(x / temperature - tl.log(-tl.log(uniform)), axis=0, return_indices=True)
        chosen = tl.where(value > best, start + place, chosen)
        best = tl.maximum(best, value)
    tl.store(y_ptr + row, chosen)


def sample(rows: int, columns: int, kind: str) -> Problem:
    x, y, checked = normal((rows, columns), kind), empty((rows,), "i32"), spread(rows, 16)
    seed, temperature = 20261127, 0.5
    bits = philox(seed, (checked[:, None] * columns + np.arange(columns)).ravel()).reshape(len(checked), columns)
    # As Triton makes a number below 1 of 32 bits.
    uniform = np.where(bits < 0, ~bits, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    inner = -np.log(np.maximum(uniform, np.float32(1e-7)).astype(np.float64))
    wide = x[checked].astype(np.float64) / temperature
    score = wide - np.log(inner)
    # Vulkan lets a logarithm between 0.5 and 2 be off by 2^-21, and others by 3 ulp.
    of_inner = 2.0**-21 + 8 * F32 * inner
    error = np.where(inner > 2 * of_inner, 2 * of_inner / inner, np.inf) + 2.0**-21
    error += 8 * F32 * (np.abs(wide) + np.abs(score - wide))
    best = score.argmax(axis=1)
    least = np.take_along_axis(score - error, best[:, None], axis=1)
    others = np.arange(columns) != best[:, None]
    # Where another's sum is as near to the largest as their errors, either is right.
    close = (others & (score + error >= least)).any(axis=1)

    def launch(jit: Any, x: Any, y: Any, **options: Any) -> Any:
        return jit(sample_kernel)[(rows,)](x, y, columns, temperature, seed, **options)

    title = f"sampling by Gumbel's noise {kind}, {rows} x {columns}"
    exact, allowed = best.astype(np.int32), close * float(columns)
    return streamed(title, (x,), y, exact, allowed, launch, checked=checked)
