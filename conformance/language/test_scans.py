"""Scans along an axis, in both directions, by sums, products and the user's own functions; histograms."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import FLOATS, INTEGERS, RELEASE, Array, check, error_of_sum, launch, operand, poisoned

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


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize("dtype", ["i32", "i64", "u32", "u64"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
def test_scans_of_integers(op: str, axis: int, reverse: bool, dtype: str) -> None:
    x, out = operand(INTEGERS[dtype], 1, M * N).reshape(M, N), poisoned(M, N, dtype=INTEGERS[dtype])
    launch(scan, (1,), x, out, OP=op, AXIS=axis, REVERSE=reverse, M=M, N=N)
    check(out, reference(x, op, axis, reverse))


@pytest.mark.operation("tl.cumsum")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sums_of_floats(axis: int, reverse: bool, dtype: str) -> None:
    """Sums may be in any order, those of narrow floats in f32."""
    x, out = operand(FLOATS[dtype], 1, M * N, special=False).reshape(M, N), poisoned(M, N, dtype=FLOATS[dtype])
    x[1, 7], x[2, 3], x[2, 9], x[5, 0] = np.inf, np.inf, -np.inf, np.nan
    launch(scan, (1,), x, out, OP="cumsum", AXIS=axis, REVERSE=reverse, M=M, N=N)
    out.check_fences("the output")
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        most, exact = (reference(each, "cumsum", axis, reverse) for each in (np.abs(wide), wide))
        allowed = error_of_sum(FLOATS[dtype], x.shape[axis], most, exact)
        near = np.abs(out.array.astype(np.float64) - exact) <= allowed
    finite = np.isfinite(exact)
    assert near[finite].all()
    check(out.array[~finite], exact[~finite])


@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, out, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, linear, reverse=REVERSE)
    tl.store(out + i, h)


@pytest.mark.operation("tl.associative_scan of pairs", type="i64")
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


@pytest.mark.operation("tl.cumsum")
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16"])
def test_narrow_integers_are_summed_in_32_bits(dtype: str) -> None:
    """Triton 3.2 sums them in their own type."""
    kind = np.dtype(INTEGERS[dtype])
    result = np.dtype(f"{kind.kind}4") if RELEASE > (3, 2) else kind
    x, out = operand(kind, 1, M * N).reshape(M, N), poisoned(M, N, dtype=result)
    launch(scan, (1,), x, out, OP="cumsum", AXIS=1, REVERSE=False, M=M, N=N)
    check(out, np.cumsum(x, 1, dtype=result))


@triton.jit
def affine(a, b):
    # The composition of x -> p x + q and x -> r x + s, modulo 2^16, with p (or r) in the upper half.
    return ((a >> 16) * (b >> 16) << 16) | ((a * (b >> 16) + b) & 0xFFFF)


@triton.jit
def last_odd(a, b):
    # The function of a scan takes scalars, so it may have branches, loops and several returns.
    if b % 2 != 0:
        return b
    for _ in range(2):
        a = -a
    return a


@triton.jit
def scan_box(x, out, AXIS: tl.constexpr, REVERSE: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    at, size = i * (B * C) + j * C + k, A * B * C
    v = tl.load(x + at)
    tl.store(out + at, tl.associative_scan(v, AXIS, affine, reverse=REVERSE))
    tl.store(out + size + at, tl.associative_scan(v, AXIS, last_odd, reverse=REVERSE))


def folded(x: np.ndarray, axis: int, reverse: bool, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Array:
    """Combine the slices of an array along an axis, one after another."""
    rows = np.moveaxis(x, axis, 0)[:: -1 if reverse else 1]
    found = [rows[0]]
    for row in rows[1:]:
        found.append(combine(found[-1], row))
    return np.moveaxis(np.array(found)[:: -1 if reverse else 1], 0, axis)


@pytest.mark.parametrize("shape", [(2, 8, 4), (1, 1, 1), (1, 1, 64), (16, 1, 2)])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_elements_are_combined_in_the_order_of_each_axis(shape: tuple[int, int, int], axis: int, reverse: bool) -> None:
    """The functions are associative, as Triton demands, and do not commute."""
    x = np.random.default_rng(2).integers(-(2**31), 2**31, shape).astype(np.int32)
    out = poisoned(2, *shape, dtype=np.int32)
    launch(scan_box, (1,), x, out, AXIS=axis, REVERSE=reverse, A=shape[0], B=shape[1], C=shape[2])
    with np.errstate(over="ignore"):
        expected = [
            folded(x, axis, reverse, lambda a, b: ((a >> 16) * (b >> 16) << 16) | ((a * (b >> 16) + b) & 0xFFFF)),
            folded(x, axis, reverse, lambda a, b: np.where(b % 2 != 0, b, a)),
        ]
    check(out, np.array(expected))


@triton.jit
def track(low, count, any_nan, last, low2, count2, any_nan2, last2):
    return tl.minimum(low, low2), count + count2, any_nan | any_nan2, last2


@triton.jit
def scan_of_four(x, low, count, flags, last, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    a, b, c, d = tl.associative_scan((v, (v > 0).to(tl.int8), v != v, v.to(tl.float16)), 0, track)
    tl.store(low + i, a)
    tl.store(count + i, b)
    tl.store(flags + i, c.to(tl.int32))
    tl.store(last + i, d)


def test_a_scan_of_operands_of_four_types() -> None:
    x = operand(np.float32, 3, 64, moved=False)
    outs = [poisoned(64, dtype=dtype) for dtype in (np.float32, np.int8, np.int32, np.float16)]
    launch(scan_of_four, (1,), x, *outs, N=64)
    found = outs[0].array
    np.testing.assert_array_equal(found, np.fmin.accumulate(x))
    check(outs[1], np.cumsum(x > 0, dtype=np.int8))
    check(outs[2], np.logical_or.accumulate(np.isnan(x)).astype(np.int32))
    with np.errstate(over="ignore"):
        check(outs[3], x.astype(np.float16))


@triton.jit
def scan_around(x, out, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    total = v
    while rounds > 0:
        if rounds % 2 == 0:
            total = tl.cumsum(total, 0) - v
        else:
            total = tl.cumsum(tl.where(total > 0, total, -total), 0, reverse=True)
        rounds -= 1
    tl.store(x + i, tl.cumsum(tl.load(x + i), 0))
    tl.store(out + i, total + tl.cumsum(total, 0) * tl.sum(total, 0))


def test_scans_in_loops_and_branches_and_in_place() -> None:
    x, out = np.random.default_rng(4).integers(-9, 10, N), poisoned(N, dtype=np.int64)
    total, memory = x, x.copy()
    for rounds in (3, 2, 1):
        total = np.cumsum(total) - x if rounds % 2 == 0 else np.cumsum(np.abs(total)[::-1])[::-1]
    launch(scan_around, (1,), memory, out, 3, N=N)
    check(out, total + np.cumsum(total) * total.sum())
    np.testing.assert_array_equal(memory, np.cumsum(x))


@triton.jit
def histogram(x, out, n, MASKED: tl.constexpr, N: tl.constexpr, BINS: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, BINS)
    if MASKED:
        tl.store(out + j, tl.histogram(tl.load(x + i, mask=i < n), BINS, mask=i < n))
    else:
        tl.store(out + j, tl.histogram(tl.load(x + i), BINS))


@pytest.mark.operation("tl.histogram")
@pytest.mark.parametrize("dtype", ["i32", "u32"])
@pytest.mark.parametrize("size", [(256, 16), (1, 1), (2, 64), (2048, 256)])
@pytest.mark.parametrize("masked", [False, True])
def test_histograms(dtype: str, size: tuple[int, int], masked: bool) -> None:
    if masked and "mask" not in inspect.signature(tl.histogram).parameters:
        pytest.skip("this Triton has no such mask")
    count, bins = size
    x = np.random.default_rng(5).integers(0, bins + 2, count).astype(INTEGERS[dtype])
    x[::7] = np.iinfo(x.dtype).max
    out = poisoned(bins, dtype=np.int32)
    n = count * 2 // 3 if masked else count
    launch(histogram, (1,), x, out, n, MASKED=masked, N=count, BINS=bins)
    check(out, np.bincount(x[:n][x[:n] < bins], minlength=bins))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def differ(a, b):
    return a ^ b


@triton.jit
def scan_by_products(x, out, flags, REVERSE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.associative_scan(v, 0, multiply, reverse=REVERSE))
    tl.store(flags + i, tl.associative_scan(v > 5, 0, differ, reverse=REVERSE))


@pytest.mark.operation("tl.associative_scan by a product")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["i8", "u64"])
def test_a_users_products_wrap_around_in_their_own_type(dtype: str, reverse: bool) -> None:
    x = operand(INTEGERS[dtype], 2, 64) | INTEGERS[dtype](1)
    out, flags = poisoned(64, dtype=x.dtype), poisoned(64, dtype=np.int8)
    launch(scan_by_products, (1,), x, out, flags, REVERSE=reverse, N=64)
    with np.errstate(over="ignore"):
        check(out, folded(x, 0, reverse, np.multiply))
    check(flags, folded(x > 5, 0, reverse, np.logical_xor).astype(np.int8))


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
    launch(loops_between_constants, (1,), x, out, N=128)
    v = np.maximum.accumulate(x[::-1])[::-1]
    for k in (2, 0, -2):
        for j in range(k * k, 0, -3):
            v = np.where(v & 3 == j & 3, v + 4, v ^ j)
    check(out, np.maximum.accumulate(v))


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
    launch(count, (1,), x, y, out, N=n, BINS=bins)

    def counted(numbers: np.ndarray) -> np.ndarray:
        return np.bincount(numbers[(numbers >= 0) & (numbers < bins)], minlength=bins)

    inside = [counted(x), sum(counted(x >> r) for r in range(3)), np.bincount(y, minlength=256)]
    check(out, np.concatenate(inside))
