"""Sorts, the largest elements, merges and flips, of every type, along the last axis of tiles of rank 1 to 3.

References take Triton's steps one by one (standard.py), so they hold for NaN and zeros of both signs, too: an element
is compared with its partner by `>`, which is false for NaN, and one of two equal elements may be taken twice.
"""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, FLOATS, RELEASE, check, launch, operand, poisoned

SHAPES = [(4, 2, 8), (1, 1, 1), (1, 1, 2), (2, 1, 4), (1, 1, 64), (1, 16, 16)]
topk = getattr(tl, "topk", tl.sort)
bitonic_merge = getattr(tl, "bitonic_merge", tl.sort)


def steps(x: np.ndarray, stage: int, flip: np.ndarray) -> np.ndarray:
    """Run the steps of one stage along the last axis; `flip` says which elements are sorted downwards."""
    at = np.arange(x.shape[-1])
    for bit in reversed(range(stage)):
        y, is_right = x[..., at ^ (1 << bit)], (at >> bit & 1).astype(bool)
        x = np.where((x > y) != (flip ^ is_right), y, x)
    return x


def ordered(x: np.ndarray, *, descending: bool = False, first: int = 1) -> np.ndarray:
    """Sort, or only take the stages from `first` on."""
    at, stages = np.arange(x.shape[-1]), x.shape[-1].bit_length() - 1
    for stage in range(first, stages + 1):
        x = steps(x, stage, (at >> stage & 1).astype(bool) if stage < stages else np.full(at.shape, descending))
    return x


def check_bits(found: np.ndarray, expected: np.ndarray) -> None:
    expected = np.ascontiguousarray(expected.astype(found.dtype))
    np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{found.itemsize}"))


def wide(x: np.ndarray) -> np.ndarray:
    """Return bf16, which NumPy cannot compare, as f32."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


@triton.jit
def sort(x, out, DOWN: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    at = i * (B * C) + j * C + k
    tl.store(out + at, tl.sort(tl.load(x + at), descending=DOWN))


def special(dtype: str) -> bool:
    # Triton 3.2 multiplies by 0 and adds, which changes infinities, NaN and negative zeros.
    return dtype not in FLOATS or RELEASE > (3, 2)


@pytest.mark.operation("tl.sort")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("down", [False, True])
def test_sorts_of_each_type(dtype: str, down: bool) -> None:
    x = operand(DTYPES[dtype], 1, 4 * 64, special=special(dtype), moved=False).reshape(1, 4, 64)
    out = poisoned(*x.shape, dtype=DTYPES[dtype])
    launch(sort, (1,), x, out, DOWN=down, A=1, B=4, C=64)
    out.check_fences("the output")
    check_bits(out.array, ordered(wide(x), descending=down))


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_sorts_of_each_shape(shape: tuple[int, int, int], down: bool) -> None:
    x = np.random.default_rng(2).integers(-99, 99, shape).astype(np.int32)
    out = poisoned(*shape, dtype=np.int32)
    launch(sort, (1,), x, out, DOWN=down, A=shape[0], B=shape[1], C=shape[2])
    check(out, np.sort(x, -1)[..., :: -1 if down else 1])


@triton.jit
def largest(x, out, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :], topk(v, K))


@pytest.mark.operation("tl.topk")
@pytest.mark.skipif(not hasattr(tl, "topk"), reason="this Triton has no tl.topk")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [2, 1, 8])
def test_largest_elements(k: int, dtype: str) -> None:
    if k == 1 and RELEASE < (3, 7):
        pytest.skip("this Triton fails to build a tile of rank 0")
    x = operand(DTYPES[dtype], 3, 4 * 16, special=False).reshape(4, 16)
    x[1] = x[1, 0]
    out = poisoned(4, k, dtype=DTYPES[dtype])
    launch(largest, (1,), x, out, K=k, M=4, N=16)
    out.check_fences("the output")
    expected = np.sort(wide(x), 1)[:, ::-1][:, :k]
    np.testing.assert_array_equal(wide(out.array), expected)


@triton.jit
def merge(x, out, DOWN: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, bitonic_merge(tl.load(x + at), descending=DOWN))


@pytest.mark.operation("tl.bitonic_merge")
@pytest.mark.skipif(not hasattr(tl, "bitonic_merge"), reason="this Triton has no tl.bitonic_merge")
@pytest.mark.parametrize("dtype", ["f16", "f32", "i64", "u8"])
@pytest.mark.parametrize("down", [False, True])
def test_merges_of_rows_that_rise_and_fall(dtype: str, down: bool) -> None:
    x = operand(DTYPES[dtype], 4, 32, moved=False)
    x[x != x] = 3
    out = poisoned(1, 32, dtype=DTYPES[dtype])
    x = np.concatenate([np.sort(x[:20]), np.sort(x[20:])[::-1]]).reshape(1, 32)
    launch(merge, (1,), x, out, DOWN=down, M=1, N=32)
    out.check_fences("the output")
    check_bits(out.array, ordered(x, descending=down, first=5))
    np.testing.assert_array_equal(out.array, np.sort(x)[:, :: -1 if down else 1])


@triton.jit
def turn(x, out, DIM: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    at = i * (B * C) + j * C + k
    tl.store(out + at, tl.flip(tl.load(x + at), DIM))


@pytest.mark.operation("tl.flip")
@pytest.mark.parametrize(("dtype", "dim"), [*((name, 2) for name in DTYPES), ("i8", 0), ("f32", 1)])
def test_flips(dtype: str, dim: int) -> None:
    if RELEASE < (3, 6) and dim != 2:
        pytest.skip("this Triton flips the last dimension only")
    x = operand(DTYPES[dtype], 5, 4 * 2 * 16, special=special(dtype)).reshape(4, 2, 16)
    if not special(dtype):
        x = np.abs(x)
    out = poisoned(4, 2, 16, dtype=DTYPES[dtype])
    launch(turn, (1,), x, out, DIM=dim, A=4, B=2, C=16)
    out.check_fences("the output")
    check_bits(out.array, np.flip(x, dim))


@triton.jit
def sort_under_a_condition(x, out, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for r in range(rounds):
        if r % 2 == 0:
            v = tl.sort(v, descending=True) + i
        else:
            w = tl.sort(v)
            v = tl.cumsum(w, 0) - tl.flip(w, 0)
    best, place = tl.max(tl.sort(v), 0, return_indices=True)
    tl.store(out + i, v)
    tl.store(out + N, best + place)


def test_sorts_in_loops_and_branches() -> None:
    x, out = np.random.default_rng(7).integers(-50, 50, 32).astype(np.int32), poisoned(33, dtype=np.int32)
    launch(sort_under_a_condition, (1,), x, out, 3, N=32)
    v = x
    for r in range(3):
        v = np.sort(v)[::-1] + np.arange(32) if r % 2 == 0 else np.cumsum(np.sort(v)) - np.sort(v)[::-1]
    out.check_fences("the output")
    np.testing.assert_array_equal(out.array, [*v, v.max() + np.sort(v).argmax()])
