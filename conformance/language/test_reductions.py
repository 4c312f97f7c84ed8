"""Reductions of one axis or of all axes, of every type, with ties and NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, FLOATS, INTEGERS, RELEASE, Array, check, error_of_sum, imported, launch, operand, poisoned
from foundry_core.ops.limits import ULPS
from guarded import Guarded

rng = np.random.default_rng(0)
M, N = 8, 32
# Every type along the rows, and two of the types along the columns.
AXES = [(name, 1) for name in DTYPES] + [("f32", 0), ("i32", 0)]


ROWS = """
import triton
import triton.language as tl

@triton.jit
def reduce_rows(x, out, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    r = tl.OP(tl.load(x + i[:, None] * N + j[None, :]), AXIS)
    tl.store(out + (j if AXIS == 0 else i), r)
"""


def launch_rows(op: str, x: Array, out: Guarded, axis: int) -> None:
    launch(imported(ROWS.replace("OP", op)).reduce_rows, (1,), x, out, AXIS=axis, M=M, N=N)


@pytest.mark.operation("tl.sum")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_floats(dtype: str, axis: int) -> None:
    """Sums may be in any order, those of narrow floats in f32."""
    x, out = operand(FLOATS[dtype], 1, M * N, special=False).reshape(M, N), poisoned((N, M)[axis], dtype=FLOATS[dtype])
    launch_rows("sum", x, out, axis)
    out.check_fences("the output")
    wide = x.astype(np.float64)
    allowed = error_of_sum(FLOATS[dtype], x.shape[axis], np.abs(wide).sum(axis), wide.sum(axis))
    assert np.all(np.abs(out.array.astype(np.float64) - wide.sum(axis)) <= allowed)


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["sum", "xor_sum"])
def test_sums_of_integers_wrap_around(op: str, dtype: str) -> None:
    """Triton sums integers narrower than 32 bits in 32 bits; 3.2 does not."""
    kind = np.dtype(INTEGERS[dtype])
    widens = op == "sum" and kind.itemsize < 4 and RELEASE > (3, 2)
    result = np.dtype(f"{kind.kind}4") if widens else kind
    x, out = operand(kind, 1, M * N).reshape(M, N), poisoned(M, dtype=result)
    launch_rows(op, x, out, 1)
    with np.errstate(over="ignore"):
        reference = np.add.reduce(x, 1, dtype=result) if op == "sum" else np.bitwise_xor.reduce(x, 1)
    check(out, reference)


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize(("dtype", "axis"), AXES)
@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes(op: str, axis: int, dtype: str) -> None:
    """NaN is ignored, as by fmax and fmin."""
    x = operand(DTYPES[dtype], 1, M * N, moved=False).reshape(M, N)
    out = poisoned((N, M)[axis], dtype=DTYPES[dtype])
    if dtype in FLOATS:
        x[x == 0] = 1
    launch_rows(op, x, out, axis)
    wide = x.astype(np.float64) if dtype in FLOATS else x
    reduce = {"max": np.fmax if dtype in FLOATS else np.maximum, "min": np.fmin if dtype in FLOATS else np.minimum}[op]
    check(out, reduce.reduce(wide, axis))


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize(("dtype", "axis"), AXES)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_the_first_of_equal_extremes_is_taken(op: str, axis: int, dtype: str) -> None:
    x = np.random.default_rng(6).integers(0, 4, (M, N)).astype(DTYPES[dtype])
    out = poisoned((N, M)[axis], dtype=np.int32)
    launch_rows(op, x, out, axis)
    check(out, getattr(np, op)(x.astype(np.float64), axis))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def keep_larger(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def extremes_with_places(x, values, places, LEFT: tl.constexpr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    high, at_high = tl.max(v, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    low, at_low = tl.min(v, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    k, SIZE = (j, N) if AXIS == 0 else (i, M)
    tl.store(values + k, high)
    tl.store(values + SIZE + k, low)
    tl.store(places + k, at_high)
    tl.store(places + SIZE + k, at_low)
    tl.store(places + 2 * SIZE + k, tl.argmin(v, AXIS, tie_break_left=LEFT))


@pytest.mark.operation("tl.max and tl.min, return_indices")
@pytest.mark.parametrize(("dtype", "axis"), AXES)
@pytest.mark.parametrize("left", [True, False])
def test_extremes_with_their_places(left: bool, axis: int, dtype: str) -> None:
    """Without tie_break_left, the place may be that of any of the equal elements."""
    x = np.random.default_rng(6).integers(0, 4, (M, N)).astype(DTYPES[dtype])
    size = (N, M)[axis]
    values, places = poisoned(2, size, dtype=DTYPES[dtype]), poisoned(3, size, dtype=np.int32)
    launch(extremes_with_places, (1,), x, values, places, LEFT=left, AXIS=axis, M=M, N=N)
    wide = x.astype(np.float64)
    check(values, np.array([wide.max(axis), wide.min(axis)]))
    if left:
        check(places, np.array([wide.argmax(axis), wide.argmin(axis), wide.argmin(axis)]))
    taken = [np.take_along_axis(wide, np.expand_dims(each, axis), axis) for each in places.array]
    lowest = wide.min(axis)
    np.testing.assert_array_equal(np.array(taken).reshape(3, size), [wide.max(axis), lowest, lowest])


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def last_of(a, b):
    return b


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def reduce_box(x, out, AXIS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, SIZE: tl.constexpr):
    i, j, k = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    at = i * (B * C) + j * C + k
    v, place = tl.load(x + at), tl.arange(0, SIZE)
    tl.store(out + place, tl.reshape(tl.reduce(v, AXIS, either), (SIZE,)))
    tl.store(out + SIZE + place, tl.reshape(tl.reduce(v, AXIS, last_of), (SIZE,)))
    a, b = tl.reduce((v, at.to(v.dtype)), AXIS, compose)
    tl.store(out + 2 * SIZE + place, tl.reshape(a, (SIZE,)))
    tl.store(out + 3 * SIZE + place, tl.reshape(b, (SIZE,)))


@pytest.mark.parametrize("shape", [(2, 4, 32), (1, 1, 1), (8, 1, 2), (1, 64, 1), (1, 2, 256)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_functions_that_do_not_commute_keep_the_order_of_each_axis(shape: tuple[int, int, int], axis: int) -> None:
    x = np.random.default_rng(9).integers(-9, 10, shape)
    size = x.size // shape[axis]
    out = poisoned(4, size, dtype=np.int64)
    launch(reduce_box, (1,), x, out, AXIS=axis, A=shape[0], B=shape[1], C=shape[2], SIZE=size)
    rows = np.moveaxis(x, axis, 0).reshape(shape[axis], size)
    index = np.moveaxis(np.arange(x.size).reshape(shape), axis, 0).reshape(shape[axis], size)
    a, b = rows[0], index[0]
    with np.errstate(over="ignore"):
        for row, place in zip(rows[1:], index[1:], strict=True):
            a, b = a * row, b * row + place
    check(out, np.array([np.bitwise_or.reduce(rows, 0), rows[-1], a, b]))


@triton.jit
def summarize(low1, sum1, nan1, count1, low2, sum2, nan2, count2):
    low = low1
    if low2 < low1:
        low = low2
    return low, sum1 + sum2, nan1 | nan2, count1 + count2


@triton.jit
def reduce_four(x, low, total, flag, number, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    v = tl.load(x + i[:, None] * N + tl.arange(0, N)[None, :])
    one = tl.full((M, N), 1, tl.int8)
    a, b, c, d = tl.reduce((v, v.to(tl.float32), v > 100, one), 1, summarize)
    tl.store(low + i, a)
    tl.store(total + i, b)
    tl.store(flag + i, c.to(tl.int32))
    tl.store(number + i, d)


def test_a_reduction_of_operands_of_four_types_by_a_function_with_a_branch() -> None:
    x = np.random.default_rng(10).integers(-99, 103, (M, N)).astype(np.int16)
    outs = [poisoned(M, dtype=dtype) for dtype in (np.int16, np.float32, np.int32, np.int8)]
    launch(reduce_four, (1,), x, *outs, M=M, N=N)
    for out, expected in zip(outs, (x.min(1), x.sum(1), (x > 100).any(1), np.full(M, N)), strict=True):
        check(out, expected.astype(np.float64) if out.array.dtype == np.float32 else expected)


@triton.jit
def reduce_flags(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N)) > 0
    tl.store(out, tl.xor_sum(v, 0).to(tl.int32))
    tl.store(out + 1, tl.reduce(v, 0, either).to(tl.int32))
    tl.store(out + 2, tl.sum(v.to(tl.int32), 0))
    tl.store(out + 3, tl.argmax(v.to(tl.int32), 0))


@pytest.mark.parametrize("count", [64, 1, 2])
def test_reductions_of_flags(count: int) -> None:
    x, out = np.random.default_rng(11).integers(-2, 3, count).astype(np.int32), poisoned(4, dtype=np.int32)
    launch(reduce_flags, (1,), x, out, N=count)
    v = x > 0
    check(out, np.array([np.logical_xor.reduce(v), v.any(), v.sum(), v.argmax()]).astype(np.int32))


@triton.jit
def reduce_all(x, out, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out, tl.sum(v))
    tl.store(out + 1, tl.max(v))
    kept = tl.sum(v, axis=1, keep_dims=True)
    tl.store(out + 2 + tl.arange(0, M)[:, None], kept)


def test_a_reduction_of_all_axes_and_one_that_keeps_its_axis() -> None:
    x, out = np.random.default_rng(8).integers(-99, 99, (M, N)).astype(np.int32), poisoned(2 + M, dtype=np.int32)
    launch(reduce_all, (1,), x, out, M=M, N=N)
    check(out, np.concatenate([[x.sum(), x.max()], x.sum(1)]))


@triton.jit
def softmax(x, out, n, N: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * n + j, mask=j < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + j, e / tl.sum(e, 0), mask=j < n)


@pytest.mark.operation("softmax", type="f32")
@pytest.mark.parametrize("n", [100, 1, 7, 32, 64, 128])
def test_softmax(n: int) -> None:
    """The bound: those of exp and of the quotient, and n / 2 ulp of the sum of n terms."""
    x, out = operand(np.float32, 1, M * n, special=False).reshape(M, n), poisoned(M, n, dtype=np.float32)
    launch(softmax, (M,), x, out, n, N=128)
    # The rounding error before exp grows with the argument: it is |x - max| halves of an ulp.
    wide = x.astype(np.float64)
    shifted = wide - wide.max(1, keepdims=True)
    e = np.exp(shifted)
    ulp = ULPS["exp"] + n / 2 + ULPS["division"] + float(np.abs(shifted).max())
    check(out, e / e.sum(1, keepdims=True), ulp=2 * ulp)


LOOP = """
import triton
import triton.language as tl

@triton.jit
def update_in_a_loop(x, seen, out, steps, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    total = tl.full((M,), 2.0, tl.float32)
    other = tl.full((M,), 7.0, tl.float32)
    for k in range(steps):
        v = tl.load(x + (k * M + i[:, None]) * N + j[None, :])
        UPDATE
    tl.store(out + i, total + other)
    tl.store(out + M + i, total)
"""
# What a step does, in Triton and in NumPy.
UPDATES: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "total += tl.sum(v, 1)": lambda total, other, v: (total + v.sum(1), other),
    "total = tl.maximum(total, tl.sum(v, 1))": lambda total, other, v: (np.maximum(total, v.sum(1)), other),
    "total += tl.max(v, 1)": lambda total, other, v: (total + v.max(1), other),
    "total = tl.maximum(total, tl.min(v, 1))": lambda total, other, v: (np.maximum(total, v.min(1)), other),
    "total = total - tl.sum(v, 1)": lambda total, other, v: (total - v.sum(1), other),
    "total = tl.sum(v, 1) - total": lambda total, other, v: (v.sum(1) - total, other),
    "total, other = other + tl.sum(v, 1), total": lambda total, other, v: (other + v.sum(1), total),
    "tl.store(seen + k * M + i, total); total += tl.sum(v, 1)": lambda total, other, v: (total + v.sum(1), other),
    "other = tl.maximum(other, total); total += tl.sum(v, 1)": lambda total, other, v: (
        total + v.sum(1),
        np.maximum(other, total),
    ),
}


@pytest.mark.operation("tl.sum, tl.max and tl.min in a loop")
@pytest.mark.parametrize("update", UPDATES)
def test_reduction_in_a_loop_updates_carried_values(update: str) -> None:
    """All numbers are small integers, so every order of a sum gives the same. A row is longer than a warp."""
    steps, n = 3, 256
    x = np.random.default_rng(1).integers(-4, 5, (steps, M, n)).astype(np.float32)
    seen, out = poisoned(steps * M, dtype=np.float32), poisoned(2 * M, dtype=np.float32)
    kernel = imported(LOOP.replace("UPDATE", update)).update_in_a_loop
    launch(kernel, (1,), x, seen, out, steps, M=M, N=n)
    total, other, before = np.full(M, 2.0), np.full(M, 7.0), []
    for v in x.astype(np.float64):
        before.append(total)
        total, other = UPDATES[update](total, other, v)
    check(out, np.concatenate([total + other, total]))
    if "seen" in update:
        check(seen, np.concatenate(before))


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def sum_and_extreme(a, b, c, d):
    # Triton 3.6 returns an f32 for the extreme of two bf16.
    return a + c, tl.maximum(b, d).to(b.dtype)


@triton.jit
def sums(x, y, down, across, whole, scanned, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at, column = i * N + j, tl.arange(0, N)
    v, factors = tl.load(x + at), tl.load(y + at)
    tl.store(down + column, tl.sum(v, 0))
    tl.store(down + N + column, tl.reduce(factors, 0, multiply))
    total, most = tl.reduce((v, v), 0, sum_and_extreme)
    tl.store(down + 2 * N + column, total)
    tl.store(down + 3 * N + column, most)
    parts = tl.sum(tl.reshape(v, (M // 4, 4, N)), 1)
    tl.store(down + 4 * N + column, tl.sum(tl.reshape(parts, (1, M // 4, N)), 1).reshape((N,)))
    turned = tl.load(x + tl.arange(0, N)[:, None] + tl.arange(0, M)[None, :] * N)
    row = tl.arange(0, M)
    tl.store(across + column, tl.reduce(turned, 1, add))
    tl.store(whole, tl.sum(factors))
    # A sum that is repeated, and used twice.
    first = tl.sum(tl.load(y + row * N), 0, keep_dims=True)
    tl.store(whole + 1 + tl.arange(0, 2), tl.broadcast_to(first, (2,)))
    tl.store(whole + 3 + tl.arange(0, 1), first)
    tl.store(scanned + row, tl.cumsum(tl.load(y + row * N), 0))
    tl.store(scanned + M + row, tl.associative_scan(tl.load(x + row * N), 0, add, reverse=True))


@pytest.mark.operation("tl.sum and tl.reduce of long rows")
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_long_sum_or_product_of_narrow_floats_is_rounded_once(dtype: str) -> None:
    rng, m, n, kind = np.random.default_rng(7), 512, 8, FLOATS[dtype]
    finfo = ml_dtypes.finfo(kind)
    x, y = rng.uniform(-1, 2, (m, n)).astype(kind), rng.uniform(0.99, 1.01, (m, n)).astype(kind)
    x[:, 0], y[:, 0] = 1, 1
    x[:, 1] = -0.0
    x[9, 2], x[7, 3], x[300, 3], x[8, 4] = -np.inf, np.inf, -np.inf, np.nan
    x[:, 5] = finfo.smallest_subnormal
    # On the way, a sum of f16 may be beyond the largest number.
    large = float(finfo.max) / (1 if dtype == "f16" else 4)
    x[:, 6] = [large, large, -large, -large, large, *[0] * (m - 5)]
    outs = [poisoned(*shape, dtype=kind) for shape in ((5, n), (n,), (4,), (2, m))]
    launch(sums, (1,), x, y, *outs, M=m, N=n)
    down, across, whole, scanned = (out.array.astype(np.float64) for out in outs)
    with np.errstate(all="ignore"):
        wide, factors = x.astype(np.float64), y.astype(np.float64)
        exact = np.stack([wide.sum(0), factors.prod(0), wide.sum(0), np.fmax.reduce(wide, 0), wide.sum(0)])
        # Each addition in f32 rounds a sum of at most `most`, each product a number near 1; the end rounds once.
        most = np.abs(wide).sum(0)

        def near(found: np.ndarray, expected: np.ndarray, most: Any, steps: int = m) -> None:
            finite = np.isfinite(expected)
            last = float(finfo.eps) / 2 * np.abs(expected) + float(finfo.smallest_subnormal) / 2
            check(found[~finite], expected[~finite])
            assert np.all((np.abs(found - expected) <= steps * 2.0**-24 * most + last)[finite])

        near(down[:4], exact[:4], np.stack([most, exact[1], most, 0 * exact[1]]))
        # Parts of 4 are rounded, too.
        near(down[4], exact[4], most + float(finfo.eps) / 2**-24 * most / m)
        near(across, exact[0], most)
    assert np.all(np.signbit(down[[0, 2, 4], 1])) and down[0, 0] == across[0] == 512
    near(whole[:1], factors.sum().reshape(1), factors.sum(), m * n)
    assert list(whole[1:]) == [512] * 3
    check(scanned[0], np.arange(1, m + 1).astype(kind).astype(np.float64))
    check(scanned[1], np.arange(m, 0, -1).astype(kind).astype(np.float64))


@triton.jit
def welford(mean1, m1, count1, mean2, m2, count2):
    delta, count = mean2 - mean1, count1 + count2
    return (
        mean1 + delta * (count2.to(tl.float32) / count),
        m1 + m2 + delta * delta * (count1.to(tl.float32) * count2 / count),
        count,
    )


@triton.jit
def reduce_by_welford(x, out, count, N: tl.constexpr):
    f = tl.load(x + tl.arange(0, N))
    mean, squares, number = tl.reduce((f, tl.zeros_like(f), tl.full((N,), 1, tl.int16)), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, squares)
    tl.store(count, number)


def test_mean_and_variance_by_welfords_function() -> None:
    """Each of n - 1 steps rounds a few times; all intermediate means are below 4, all sums of squares below 4 n."""
    n, eps = 64, float(np.finfo(np.float32).eps)
    x = np.random.default_rng(4).uniform(-1, 3, n).astype(np.float32)
    out, count = poisoned(2, dtype=np.float32), poisoned(1, dtype=np.int32)
    launch(reduce_by_welford, (1,), x, out, count, N=n)
    check(count, [n])
    assert abs(out.array[0] - x.astype(np.float64).mean()) <= 4 * 4 * n * eps
    assert abs(out.array[1] - x.astype(np.float64).var() * n) <= 8 * 4 * n * n * eps


@triton.jit
def largest_of_equal(x, values, places, N: tl.constexpr):
    total = tl.reduce(tl.load(x + tl.arange(0, N)), 0, add)
    same = tl.broadcast_to(tl.expand_dims(total, 0), (N,))
    value, place = tl.reduce((same, tl.arange(0, N)), 0, keep_larger)
    tl.store(values, value)
    tl.store(places, place)
    value, place = tl.reduce((tl.load(x + tl.arange(0, N)), tl.arange(0, N)), 0, keep_larger)
    tl.store(values + 1, value)
    tl.store(places + 1, place)


@pytest.mark.operation("tl.reduce of pairs")
@pytest.mark.parametrize("dtype", ["i16", "i8", "u16", "i32", "i64", "u64"])
def test_first_place_of_equal_integers_of_each_width(dtype: str) -> None:
    # On an H100, the i16 of a pair was another number, and the place that of another warp.
    random, kind = np.random.default_rng(6), INTEGERS[dtype]
    for x in (random.integers(0, 3, 64).astype(kind), (random.integers(0, 256, 64) - 77).astype(kind)):
        values, places = poisoned(2, dtype=kind), poisoned(2, dtype=np.int32)
        launch(largest_of_equal, (1,), x, values, places, N=64)
        check(values, np.array([x.sum(dtype=kind), x.max()], kind))
        check(places, np.array([0, x.argmax()]))


@triton.jit
def reductions(x, sums, tops, at, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, L: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    i = tl.arange(0, L)
    tl.store(sums + i, tl.sum(v, AXIS))
    tl.store(tops + i, tl.max(v, AXIS))
    tl.store(at + i, tl.argmax(v, AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(16, 64), (64, 16), (4, 2), (1, 32), (32, 1)])
def test_reductions_along_each_axis(m: int, n: int, axis: int) -> None:
    x = rng.integers(-99, 99, (m, n)).astype(np.int32)
    length = x.sum(axis).shape[0]
    sums, tops, at = (poisoned(length, dtype=np.int32) for _ in range(3))
    launch(reductions, (1,), x, sums, tops, at, M=m, N=n, AXIS=axis, L=length)
    check(sums, x.sum(axis))
    check(tops, x.max(axis))
    check(at, x.argmax(axis))


@triton.jit
def rows_of_any_length(x, sums, most, places, n, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(sums + row, tl.sum(tl.load(x + row * n + offsets, mask=mask, other=0.0), 0))
    v = tl.load(x + row * n + offsets, mask=mask, other=-float("inf"))
    largest, place = tl.max(v, 0, return_indices=True)
    tl.store(most + row, largest)
    tl.store(places + row, place)


@pytest.mark.every_cpu
@pytest.mark.parametrize("n", [250, 1, 15, 16, 17, 63, 64, 65, 80, 511, 512])
def test_rows_of_any_length_are_reduced(n: int) -> None:
    x = rng.integers(-5, 6, (4, n)).astype("f")
    # Zeros of both signs are equal: the first one is the largest.
    x[1] = np.where(np.arange(n) % 2 == 0, np.float32(-0.0), np.float32(0.0))
    x[2, n // 2] = np.inf
    x[3] = -np.inf
    x[3, -1] = 7
    sums, most, places = (poisoned(4, dtype=dtype) for dtype in (np.float32, np.float32, np.int32))
    launch(rows_of_any_length, (4,), x, sums, most, places, n, BLOCK=512)
    check(places, x.argmax(1))
    check(most, x[np.arange(4), x.argmax(1)])
    check(sums, x.sum(1))
