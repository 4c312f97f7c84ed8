"""Reductions of one axis or of all axes, of every type, with ties and NaN."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, FLOATS, INTEGERS, RELEASE, check, error_of_sum, launch, operand, poisoned
from foundry_core.ops.limits import ULPS

M, N = 8, 32
# Every type along the rows, and two of the types along the columns.
AXES = [(name, 1) for name in DTYPES] + [("f32", 0), ("i32", 0)]


@triton.jit
def reduce_rows(x, out, OP: tl.constexpr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    if OP == "sum":
        r = tl.sum(v, AXIS)
    elif OP == "max":
        r = tl.max(v, AXIS)
    elif OP == "min":
        r = tl.min(v, AXIS)
    elif OP == "argmax":
        r = tl.argmax(v, AXIS)
    elif OP == "argmin":
        r = tl.argmin(v, AXIS)
    else:
        tl.static_assert(OP == "xor_sum")
        r = tl.xor_sum(v, AXIS)
    if AXIS == 0:
        tl.store(out + j, r)
    else:
        tl.store(out + i, r)


@pytest.mark.operation("tl.sum")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_floats(dtype: str, axis: int) -> None:
    """Sums may be in any order, those of narrow floats in f32."""
    x, out = operand(FLOATS[dtype], 1, M * N, special=False).reshape(M, N), poisoned((N, M)[axis], dtype=FLOATS[dtype])
    launch(reduce_rows, (1,), x, out, OP="sum", AXIS=axis, M=M, N=N)
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
    launch(reduce_rows, (1,), x, out, OP=op, AXIS=1, M=M, N=N)
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
    launch(reduce_rows, (1,), x, out, OP=op, AXIS=axis, M=M, N=N)
    wide = x.astype(np.float64) if dtype in FLOATS else x
    reduce = {"max": np.fmax if dtype in FLOATS else np.maximum, "min": np.fmin if dtype in FLOATS else np.minimum}[op]
    check(out, reduce.reduce(wide, axis))


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize(("dtype", "axis"), AXES)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_the_first_of_equal_extremes_is_taken(op: str, axis: int, dtype: str) -> None:
    x = np.random.default_rng(6).integers(0, 4, (M, N)).astype(DTYPES[dtype])
    out = poisoned((N, M)[axis], dtype=np.int32)
    launch(reduce_rows, (1,), x, out, OP=op, AXIS=axis, M=M, N=N)
    check(out, getattr(np, op)(x.astype(np.float64), axis))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def keep_larger(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def reduce_by_functions(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    value, index = tl.reduce((v, i), 0, keep_larger)
    tl.store(out, tl.reduce(v, 0, multiply))
    tl.store(out + 1, value)
    tl.store(out + 2, index)


def test_a_reduction_by_the_users_own_functions() -> None:
    x, out = np.random.default_rng(7).integers(1, 9, 16), poisoned(3, dtype=np.int64)
    launch(reduce_by_functions, (1,), x, out, N=16)
    check(out, np.array([np.prod(x), x.max(), x.argmax()]))


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


@pytest.mark.operation("tl.max and tl.min, return_indices")
@pytest.mark.parametrize(("dtype", "axis"), AXES)
@pytest.mark.parametrize("left", [True, False])
def test_extremes_with_their_places(left: bool, axis: int, dtype: str) -> None:
    """Without tie_break_left, the place may be that of any of the equal elements."""
    x = np.random.default_rng(6).integers(0, 4, (M, N)).astype(DTYPES[dtype])
    size = (N, M)[axis]
    values, places = poisoned(2, size, dtype=DTYPES[dtype]), poisoned(2, size, dtype=np.int32)
    launch(extremes_with_places, (1,), x, values, places, LEFT=left, AXIS=axis, M=M, N=N)
    wide = x.astype(np.float64)
    check(values, np.array([wide.max(axis), wide.min(axis)]))
    if left:
        check(places, np.array([wide.argmax(axis), wide.argmin(axis)]))
    taken = [np.take_along_axis(wide, np.expand_dims(each, axis), axis) for each in places.array]
    np.testing.assert_array_equal(np.array(taken).reshape(2, size), [wide.max(axis), wide.min(axis)])


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


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 4, 32), (8, 1, 2), (1, 64, 1), (1, 2, 256)])
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


@pytest.mark.parametrize("count", [1, 2, 64])
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
def softmax(x, out, N: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * N + j)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * N + j, e / tl.sum(e, 0))


@pytest.mark.operation("softmax", type="f32")
def test_softmax() -> None:
    """The bound: those of exp and of the quotient, and n / 2 ulp of the sum of n terms."""
    x, out = operand(np.float32, 1, M * N, special=False).reshape(M, N), poisoned(M, N, dtype=np.float32)
    launch(softmax, (M,), x, out, N=N)
    # The rounding error before exp grows with the argument: it is |x - max| halves of an ulp.
    wide = x.astype(np.float64)
    shifted = wide - wide.max(1, keepdims=True)
    e = np.exp(shifted)
    ulp = ULPS["exp"] + N / 2 + ULPS["division"] + float(np.abs(shifted).max())
    check(out, e / e.sum(1, keepdims=True), ulp=2 * ulp)


@triton.jit
def update_in_a_loop(x, seen, out, steps, KIND: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    total = tl.full((M,), 2.0, tl.float32)
    other = tl.full((M,), 7.0, tl.float32)
    for k in range(steps):
        v = tl.load(x + (k * M + i[:, None]) * N + j[None, :])
        if KIND == "sum, then maximum":
            total = tl.maximum(total, tl.sum(v, 1))
        elif KIND == "maximum, then sum":
            total += tl.max(v, 1)
        elif KIND == "minimum, then maximum":
            total = tl.maximum(total, tl.min(v, 1))
        elif KIND == "difference":
            total = total - tl.sum(v, 1)
        elif KIND == "difference, turned around":
            total = tl.sum(v, 1) - total
        elif KIND == "other variable":
            before = total
            total = other + tl.sum(v, 1)
            other = before
        elif KIND == "read before":
            tl.store(seen + k * M + i, total)
            total += tl.sum(v, 1)
        elif KIND == "used twice":
            other = tl.maximum(other, total)
            total += tl.sum(v, 1)
        else:
            tl.static_assert(KIND == "sum")
            total += tl.sum(v, 1)
    tl.store(out + i, total + other)
    tl.store(out + M + i, total)


UPDATES = {
    "sum, then maximum": lambda total, other, v: (np.maximum(total, v.sum(1)), other),
    "maximum, then sum": lambda total, other, v: (total + v.max(1), other),
    "minimum, then maximum": lambda total, other, v: (np.maximum(total, v.min(1)), other),
    "difference": lambda total, other, v: (total - v.sum(1), other),
    "difference, turned around": lambda total, other, v: (v.sum(1) - total, other),
    "other variable": lambda total, other, v: (other + v.sum(1), total),
    "read before": lambda total, other, v: (total + v.sum(1), other),
    "used twice": lambda total, other, v: (total + v.sum(1), np.maximum(other, total)),
    "sum": lambda total, other, v: (total + v.sum(1), other),
}


@pytest.mark.operation("tl.sum")
@pytest.mark.operation("tl.max")
@pytest.mark.operation("tl.min")
@pytest.mark.parametrize("kind", UPDATES)
def test_reduction_in_a_loop_updates_carried_values(kind: str) -> None:
    """All numbers are small integers, so every order of a sum gives the same. A row is longer than a warp."""
    steps, n = 3, 256
    x = np.random.default_rng(1).integers(-4, 5, (steps, M, n)).astype(np.float32)
    seen, out = poisoned(steps * M, dtype=np.float32), poisoned(2 * M, dtype=np.float32)
    launch(update_in_a_loop, (1,), x, seen, out, steps, KIND=kind, M=M, N=n)
    total, other, before = np.full(M, 2.0), np.full(M, 7.0), []
    for v in x.astype(np.float64):
        before.append(total)
        total, other = UPDATES[kind](total, other, v)
    check(out, np.concatenate([total + other, total]))
    if kind == "read before":
        check(seen, np.concatenate(before))
