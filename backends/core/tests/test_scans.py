"""Scans, reductions of several operands and histograms, compared with NumPy on the active driver's device."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from results import poisoned
from shared_kernels import linear

HAS_F64 = triton.runtime.driver.active.get_current_target().backend != "vsi"


def run(kernel: Any, *arrays: np.ndarray, **constants: Any) -> None:
    kernel[(1,)](*map(Tensor, arrays), **constants)


@triton.jit
def twice_less(a, b):
    return a * 2 - b


@triton.jit
def approach(a, b):
    if a > b:
        r = a - b
    else:
        b += a
        r = b
    return r


@triton.jit
def larger(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def scan_box(x, out, AXIS: tl.constexpr, REVERSE: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    at, size = i * (B * C) + j * C + k, A * B * C
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, AXIS, reverse=REVERSE))
    tl.store(out + size + at, tl.associative_scan(v, AXIS, twice_less, reverse=REVERSE))
    tl.store(out + 2 * size + at, tl.associative_scan(v, AXIS, approach, reverse=REVERSE))
    value, place = tl.associative_scan((v, at.to(tl.int16)), AXIS, larger, reverse=REVERSE)
    tl.store(out + 3 * size + at, value * 1000 + place)


def folded(x: np.ndarray, axis: int, reverse: bool, combine: Callable[[Any, Any], Any]) -> np.ndarray:
    """Combine the slices of an array along an axis, one after another."""
    rows = np.moveaxis(x, axis, 0)[:: -1 if reverse else 1]
    found = [rows[0]]
    for row in rows[1:]:
        found.append(combine(found[-1], row))
    return np.moveaxis(np.array(found)[:: -1 if reverse else 1], 0, axis)


@pytest.mark.parametrize(
    ("shape", "axis", "reverse"), [((2, 4, 16), 2, True), ((4, 2, 16), 0, False), ((1, 1, 1), 0, False)]
)
def test_scan_by_several_functions_along_each_axis(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    x = np.random.default_rng(1).integers(-9, 10, shape).astype(np.int32)
    out = poisoned(4, *shape, dtype=np.int32)
    run(scan_box, x, out, AXIS=axis, REVERSE=reverse, A=shape[0], B=shape[1], C=shape[2])
    np.testing.assert_array_equal(out[0], folded(x, axis, reverse, np.add))
    np.testing.assert_array_equal(out[1], folded(x, axis, reverse, lambda a, b: a * 2 - b))
    np.testing.assert_array_equal(out[2], folded(x, axis, reverse, lambda a, b: np.where(a > b, a - b, a + b)))
    # Distinct keys: the larger value, then the smaller index.
    index = np.arange(x.size).reshape(shape)
    best = folded(x * 1000 - index, axis, reverse, np.maximum)
    np.testing.assert_array_equal(out[3], x.reshape(-1)[-best % 1000] * 1000 + -best % 1000)


@triton.jit
def scan_types(a, b, c, d, e, out_a, out_b, out_c, out_d, out_e, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_a + i, tl.associative_scan(tl.load(a + i), 0, multiply))
    tl.store(out_b + i, tl.associative_scan(tl.load(b + i), 0, multiply, reverse=True))
    tl.store(out_c + i, tl.associative_scan(tl.load(c + i), 0, add))
    tl.store(out_d + i, tl.associative_scan(tl.load(d + i), 0, add, reverse=True))
    tl.store(out_e + i, tl.associative_scan(tl.load(e + i) > 100, 0, differ))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def differ(a, b):
    return a ^ b


def test_scan_of_each_type_wraps_around_or_is_rounded_from_f32() -> None:
    rng, n = np.random.default_rng(2), 64
    wide = np.float64 if HAS_F64 else np.float32
    a = rng.integers(-128, 128, n).astype(np.int8)
    b = (rng.integers(0, 1 << 63, n) * 2 + 1).astype(np.uint64)
    c, d, e = (rng.uniform(-2, 2, n).astype(kind) for kind in (np.float16, ml_dtypes.bfloat16, wide))
    a[:3], c[40], d[5] = [1, 3, 5], np.inf, np.nan
    e = np.abs(e * 200).astype(np.uint8)
    outs = [poisoned(n, dtype=x.dtype) for x in (a, b, c, d)] + [poisoned(n, dtype=np.bool_)]
    run(scan_types, a, b, c, d, e, *outs, N=n)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(outs[0], folded(a, 0, False, np.multiply))
        np.testing.assert_array_equal(outs[1], folded(b, 0, True, np.multiply))
        for x, out, reverse in ((c, outs[2], False), (d, outs[3], True)):
            sums = folded(x.astype(np.float32), 0, reverse, np.add).astype(x.dtype)
            np.testing.assert_array_equal(out.astype(np.float32), sums.astype(np.float32))
    np.testing.assert_array_equal(outs[4], np.logical_xor.accumulate(e > 100))


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


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_long_sum_or_product_of_narrow_floats_is_rounded_once(dtype: Any) -> None:
    rng, m, n = np.random.default_rng(7), 512, 8
    finfo = ml_dtypes.finfo(dtype)
    x, y = rng.uniform(-1, 2, (m, n)).astype(dtype), rng.uniform(0.99, 1.01, (m, n)).astype(dtype)
    x[:, 0], y[:, 0] = 1, 1
    x[:, 1] = -0.0
    x[9, 2], x[7, 3], x[300, 3], x[8, 4] = -np.inf, np.inf, -np.inf, np.nan
    x[:, 5] = finfo.smallest_subnormal
    # On the way, a sum of f16 may be beyond the largest number.
    large = float(finfo.max) / (1 if dtype is np.float16 else 4)
    x[:, 6] = [large, large, -large, -large, large, *[0] * (m - 5)]
    outs = [poisoned(*shape, dtype=dtype) for shape in ((5, n), (n,), (4,), (2, m))]
    run(sums, x, y, *outs, M=m, N=n)
    down, across, whole, scanned = (out.astype(np.float64) for out in outs)
    with np.errstate(all="ignore"):
        wide, factors = x.astype(np.float64), y.astype(np.float64)
        exact = np.stack([wide.sum(0), factors.prod(0), wide.sum(0), np.fmax.reduce(wide, 0), wide.sum(0)])
        # Each addition in f32 rounds a sum of at most `most`, each product a number near 1; the end rounds once.
        most = np.abs(wide).sum(0)

        def near(found: np.ndarray, expected: np.ndarray, most: Any, steps: int = m) -> None:
            finite = np.isfinite(expected)
            last = float(finfo.eps) / 2 * np.abs(expected) + float(finfo.smallest_subnormal) / 2
            np.testing.assert_array_equal(found[~finite], expected[~finite])
            assert np.all((np.abs(found - expected) <= steps * 2.0**-24 * most + last)[finite])

        near(down[:4], exact[:4], np.stack([most, exact[1], most, 0 * exact[1]]))
        # Parts of 4 are rounded, too.
        near(down[4], exact[4], most + float(finfo.eps) / 2**-24 * most / m)
        near(across, exact[0], most)
    assert np.all(np.signbit(down[[0, 2, 4], 1])) and down[0, 0] == across[0] == 512
    near(whole[:1], factors.sum().reshape(1), factors.sum(), m * n)
    assert list(whole[1:]) == [512] * 3
    np.testing.assert_array_equal(scanned[0], np.arange(1, m + 1).astype(dtype).astype(np.float64))
    np.testing.assert_array_equal(scanned[1], np.arange(m, 0, -1).astype(dtype).astype(np.float64))


@triton.jit
def scan_again(x, out, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    once = tl.cumsum(v, 0)
    total, kept = v, v
    for r in range(rounds):
        if r % 2 == 0:
            total, kept = kept + r, tl.cumsum(total, 0, reverse=True)
        else:
            total = tl.cumsum(total, 0)
    tl.store(x + i, tl.cumsum(once, 0) + once)
    tl.store(out + i, total)
    tl.store(out + N + i, kept)
    a, b = tl.associative_scan((v, v), 0, linear)
    tl.store(out + 2 * N + i, a + 3 * b)


def test_scan_in_a_loop_of_a_result_that_is_used_again_and_in_place() -> None:
    n = 64
    x = np.random.default_rng(3).integers(-3, 4, n)
    memory, out = x.copy(), poisoned(3, n, dtype=np.int64)
    rounds = 4
    scan_again[(1,)](Tensor(memory), Tensor(out), rounds, N=n)
    np.testing.assert_array_equal(memory, np.cumsum(np.cumsum(x)) + np.cumsum(x))
    total = kept = x
    for r in range(rounds):
        if r % 2 == 0:
            total, kept = kept + r, np.cumsum(total[::-1])[::-1]
        else:
            total = np.cumsum(total)
    np.testing.assert_array_equal(out[0], total)
    np.testing.assert_array_equal(out[1], kept)
    a, b = int(x[0]), int(x[0])
    found: list[int] = []
    for number in x:
        if found:
            a, b = a * int(number), b * int(number) + int(number)
        found.append(a + 3 * b)
    np.testing.assert_array_equal(out[2], found)


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def last(a, b):
    return b


@triton.jit
def welford(mean1, m1, count1, mean2, m2, count2):
    delta, count = mean2 - mean1, count1 + count2
    return (
        mean1 + delta * (count2.to(tl.float32) / count),
        m1 + m2 + delta * delta * (count1.to(tl.float32) * count2 / count),
        count,
    )


@triton.jit
def reduce_pairs(x, y, out, places, N: tl.constexpr):
    i, r = tl.arange(0, N), tl.arange(0, 4)
    v = tl.load(x + i)
    tl.store(places, tl.argmax(v, 0))
    tl.store(places + 1, tl.argmin(v, 0))
    value, place = tl.max(v, 0, return_indices=True)
    tl.store(out, value)
    tl.store(places + 2, place)
    tl.store(places + 3, tl.argmin(v, 0, tie_break_left=False))
    value, place = tl.min(v, 0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(out + 1, value)
    tl.store(places + 4, tl.reduce(i, 0, last))
    tl.store(places + 5, tl.reduce(v.to(tl.int32), 0, approach))
    f = tl.load(y + i)
    mean, squares, count = tl.reduce((f, tl.zeros_like(f), tl.full((N,), 1, tl.int16)), 0, welford)
    tl.store(out + 2, mean)
    tl.store(out + 3, squares)
    tl.store(places + 6, count)
    tl.store(places + 7, tl.xor_sum(v.to(tl.int32) + i, 0))
    rows = tl.load(x + r[:, None] * (N // 4) + tl.arange(0, N // 4)[None, :])
    tl.store(places + 8 + r, tl.argmax(rows, 1))
    tl.store(places + 12 + tl.arange(0, N // 4), tl.argmin(rows, 0))
    tl.store(places + 12 + N // 4, tl.reduce(v.to(tl.int32), 0, either))


def test_reduce_several_operands_in_the_order_of_the_elements() -> None:
    rng, n = np.random.default_rng(4), 64
    x, y = rng.integers(1, 5, n).astype(np.float32), rng.uniform(-1, 3, n).astype(np.float32)
    out, places = poisoned(4, dtype=np.float32), poisoned(13 + n // 4, dtype=np.int32)
    run(reduce_pairs, x, y, out, places, N=n)
    assert list(places[:3]) == [x.argmax(), x.argmin(), x.argmax()]
    # Any of the equal elements.
    assert x[places[3]] == x.min() and list(out[:2]) == [x.max(), x.min()]
    assert places[4] == n - 1
    assert places[5] == folded(x.astype(np.int32), 0, False, lambda a, b: a - b if a > b else a + b)[-1]
    # Each of n - 1 steps rounds a few times; all intermediate means are below 4, all sums of squares below 4 n.
    eps = float(np.finfo(np.float32).eps)
    assert abs(out[2] - y.astype(np.float64).mean()) <= 4 * 4 * n * eps
    assert abs(out[3] - y.astype(np.float64).var() * n) <= 8 * 4 * n * n * eps
    assert places[6] == n
    assert places[7] == np.bitwise_xor.reduce(x.astype(np.int32) + np.arange(n, dtype=np.int32))
    rows = x.reshape(4, n // 4)
    np.testing.assert_array_equal(places[8:12], rows.argmax(1))
    np.testing.assert_array_equal(places[12 : 12 + n // 4], rows.argmin(0))
    assert places[12 + n // 4] == np.bitwise_or.reduce(x.astype(np.int32))


@triton.jit
def largest_of_equal(x, values, places, N: tl.constexpr):
    total = tl.reduce(tl.load(x + tl.arange(0, N)), 0, plus)
    same = tl.broadcast_to(tl.expand_dims(total, 0), (N,))
    value, place = tl.reduce((same, tl.arange(0, N)), 0, larger)
    tl.store(values, value)
    tl.store(places, place)
    value, place = tl.reduce((tl.load(x + tl.arange(0, N)), tl.arange(0, N)), 0, larger)
    tl.store(values + 1, value)
    tl.store(places + 1, place)


@triton.jit
def plus(a, b):
    return a + b


def test_first_place_of_equal_integers_of_each_width() -> None:
    # On an H100, the i16 of a pair was another number, and the place that of another warp.
    random = np.random.default_rng(6)
    for dtype in (np.int8, np.int16, np.uint16, np.int32, np.int64, np.uint64):
        for x in (random.integers(0, 3, 64).astype(dtype), (random.integers(0, 256, 64) - 77).astype(dtype)):
            values, places = poisoned(2, dtype=dtype), poisoned(2, dtype=np.int32)
            run(largest_of_equal, x, values, places, N=64)
            np.testing.assert_array_equal(values, [x.sum(dtype=dtype), x.max()])
            np.testing.assert_array_equal(places, [0, x.argmax()])


@triton.jit
def loops_between_constants(x, out, N: tl.constexpr):
    v = tl.associative_scan(tl.load(x + tl.arange(0, N)), 0, most, reverse=True)
    for k in range(2, -3, -2):
        j = k * k
        while j > 0:
            v = tl.where((v & 3) == (j & 3), v + 4, v ^ j)
            j = j - 3
    tl.store(out + tl.arange(0, N), tl.associative_scan(v, 0, most))


@triton.jit
def most(a, b):
    return tl.maximum(a, b)


def test_scan_behind_a_loop_between_constants_around_another() -> None:
    # On an H100, the last of the three iterations was left out.
    x = np.random.default_rng(6).integers(-(2**63), 2**63, 128, np.int64)
    out = poisoned(128, dtype=np.int64)
    run(loops_between_constants, x, out, N=128)
    v = np.maximum.accumulate(x[::-1])[::-1]
    for k in (2, 0, -2):
        for j in range(k * k, 0, -3):
            v = np.where(v & 3 == j & 3, v + 4, v ^ j)
    np.testing.assert_array_equal(out, np.maximum.accumulate(v))


@triton.jit
def count(x, y, out, N: tl.constexpr, BINS: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, BINS)
    v = tl.load(x + i)
    tl.store(out + j, tl.histogram(v, BINS))
    total = tl.zeros((BINS,), tl.int32)
    for r in range(3):
        total += tl.histogram(v >> r, BINS)
    tl.store(out + BINS + j, total)
    tl.store(out + 2 * BINS + tl.arange(0, 256), tl.histogram(tl.load(y + i).to(tl.uint32), 256))


def test_histogram_of_the_elements_that_have_a_bin() -> None:
    n, bins = 512, 16
    rng = np.random.default_rng(5)
    x = rng.integers(-3, bins + 3, n).astype(np.int32)
    x[:4] = [bins, bins - 1, 0, -(1 << 31)]
    y = rng.integers(0, 256, n).astype(np.uint8)
    out = poisoned(2 * bins + 256, dtype=np.int32)
    run(count, x, y, out, N=n, BINS=bins)

    def counted(numbers: np.ndarray) -> np.ndarray:
        return np.bincount(numbers[(numbers >= 0) & (numbers < bins)], minlength=bins)

    np.testing.assert_array_equal(out[:bins], counted(x))
    np.testing.assert_array_equal(out[bins : 2 * bins], sum(counted(x >> r) for r in range(3)))
    np.testing.assert_array_equal(out[2 * bins :], np.bincount(y, minlength=256))


@triton.jit
def count_masked(x, out, n, N: tl.constexpr, BINS: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, BINS)
    tl.store(out + j, tl.histogram(tl.load(x + i, mask=i < n), BINS, mask=i < n))


@pytest.mark.skipif("mask" not in inspect.signature(tl.histogram).parameters, reason="this Triton has no such mask")
def test_histogram_with_a_mask() -> None:
    x, out = np.random.default_rng(6).integers(0, 8, 64).astype(np.int32), poisoned(8, dtype=np.int32)
    count_masked[(1,)](Tensor(x), Tensor(out), 50, N=64, BINS=8)
    np.testing.assert_array_equal(out, np.bincount(x[:50], minlength=8))
