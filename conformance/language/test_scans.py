"""Scans along an axis, in both directions, by sums, products and the user's own functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import FLOATS, INTEGERS, check, launch, operand, poisoned

M, N = 8, 32


@triton.jit
def scan(x, out, OP: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    if OP == "cumsum":
        r = tl.cumsum(v, AXIS, reverse=REVERSE)
    else:
        tl.static_assert(OP == "cumprod")
        r = tl.cumprod(v, AXIS, reverse=REVERSE)
    tl.store(out + at, r)


def reference(x: np.ndarray, op: str, axis: int, reverse: bool) -> np.ndarray:
    turned = np.flip(x, axis) if reverse else x
    with np.errstate(over="ignore"):
        found = (np.cumsum if op == "cumsum" else np.cumprod)(turned, axis, dtype=x.dtype)
    return np.flip(found, axis) if reverse else found


@pytest.mark.parametrize("dtype", ["i32", "i64", "u32", "u64"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
def test_scans_of_integers(op: str, axis: int, reverse: bool, dtype: str) -> None:
    x, out = operand(INTEGERS[dtype], 1, M * N).reshape(M, N), poisoned(M, N, dtype=INTEGERS[dtype])
    launch(scan, (1,), x, out, OP=op, AXIS=axis, REVERSE=reverse, M=M, N=N)
    check(out, reference(x, op, axis, reverse))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sums_of_floats(axis: int, reverse: bool, dtype: str) -> None:
    """Sums may be in any order: each addition adds half an ulp of the sum of magnitudes so far."""
    x, out = operand(FLOATS[dtype], 1, M * N, special=False).reshape(M, N), poisoned(M, N, dtype=FLOATS[dtype])
    launch(scan, (1,), x, out, OP="cumsum", AXIS=axis, REVERSE=reverse, M=M, N=N)
    out.check_fences("the output")
    wide = x.astype(np.float64)
    allowed = x.shape[axis] * float(ml_dtypes.finfo(FLOATS[dtype]).eps)
    allowed = allowed * reference(np.abs(wide), "cumsum", axis, reverse)
    assert np.all(np.abs(out.array.astype(np.float64) - reference(wide, "cumsum", axis, reverse)) <= allowed)


@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, out, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, linear, reverse=REVERSE)
    tl.store(out + i, h)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_linear_recurrence_as_a_scan_of_pairs(reverse: bool) -> None:
    random = np.random.default_rng(9)
    a, b = random.integers(-2, 3, N, np.int64), random.integers(-9, 9, N, np.int64)
    out = poisoned(N, dtype=np.int64)
    launch(recurrence, (1,), a, b, out, N=N, REVERSE=reverse)
    expected, h = np.empty(N, np.int64), 0
    for i in reversed(range(N)) if reverse else range(N):
        h = int(a[i]) * h + int(b[i])
        expected[i] = h
    check(out, expected)
