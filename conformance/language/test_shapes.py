"""Operations that move elements: reshape, transpose, broadcast, join, split, cat, gather, map."""

from __future__ import annotations

import inspect
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, operand, poisoned

rng = np.random.default_rng(0)


@triton.jit
def reshaped(x, out, OP: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    if OP == "reshape":
        tl.store(out + tl.arange(0, 32)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.reshape(v, (32, 4)))
    elif OP == "ravel":
        tl.store(out + tl.arange(0, 128), tl.ravel(v))
    elif OP == "trans":
        tl.store(out + tl.arange(0, 16)[:, None] * 8 + tl.arange(0, 8)[None, :], tl.trans(v))
    else:
        tl.static_assert(OP == "permute")
        r = tl.permute(tl.reshape(v, (2, 4, 16)), (2, 0, 1))
        at = tl.arange(0, 16)[:, None, None] * 8 + tl.arange(0, 2)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :]
        tl.store(out + at, r)


MOVED = {
    "reshape": lambda x: x.reshape(32, 4),
    "ravel": lambda x: x.reshape(-1),
    "trans": lambda x: x.T,
    "permute": lambda x: x.reshape(2, 4, 16).transpose(2, 0, 1),
}


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "i64"])
@pytest.mark.parametrize("op", MOVED)
def test_elements_are_moved(op: str, dtype: str) -> None:
    x = operand(DTYPES[dtype], 1, 128).reshape(8, 16)
    reference = MOVED[op](x)
    out = poisoned(*reference.shape, dtype=DTYPES[dtype])
    launch(reshaped, (1,), x, out, OP=op)
    check(out, reference)


@triton.jit
def broadcast(x, y, out, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M))
    b = tl.load(y + tl.arange(0, N))
    a2, b2 = tl.broadcast(tl.expand_dims(a, 1), tl.expand_dims(b, 0))
    r = tl.where(a2 > b2, a2, b2) + tl.broadcast_to(tl.expand_dims(a, 1), (M, N))
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], r)


@pytest.mark.operation("tl.broadcast", type="")
@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 8), (1, 16), (16, 1), (2, 2), (4, 256)])
def test_broadcast(m: int, n: int) -> None:
    x, y, out = operand(np.int32, 1, m), operand(np.int32, 2, n), poisoned(m, n, dtype=np.int32)
    launch(broadcast, (1,), x, y, out, M=m, N=n)
    with np.errstate(over="ignore"):
        check(out, np.maximum(x[:, None], y) + x[:, None])


@triton.jit
def pairs(x, y, out, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    if OP == "join":
        tl.store(out + i[:, None] * 2 + tl.arange(0, 2)[None, :], tl.join(a, b))
    elif OP == "interleave":
        tl.store(out + tl.arange(0, 2 * N), tl.interleave(a, b))
    elif OP == "cat":
        tl.store(out + tl.arange(0, 2 * N), tl.cat(a, b, can_reorder=True))
    else:
        tl.static_assert(OP == "split")
        first, second = tl.split(tl.reshape(a, (N // 2, 2)))
        half = tl.arange(0, N // 2)
        tl.store(out + half, first)
        tl.store(out + N // 2 + half, second)


@pytest.mark.operation("tl.{op}")
@pytest.mark.parametrize(("dtype", "n"), [("f32", 64), ("i8", 32), ("i64", 32), ("f16", 4), ("i1", 32)])
@pytest.mark.parametrize("op", ["join", "interleave", "cat", "split"])
def test_tiles_are_joined_and_split(op: str, dtype: str, n: int) -> None:
    x, y = (operand(DTYPES.get(dtype, np.int8), seed, n) for seed in (1, 2))
    if dtype == "i1":
        x, y = x > 0, y > 0
    out = poisoned(n if op == "split" else 2 * n, dtype=x.dtype)
    launch(pairs, (1,), x, y, out, OP=op, N=n)
    if op == "cat":
        # With can_reorder, the elements may be in any order.
        out.check_fences("the output")
        bits = np.dtype(f"u{x.itemsize}")
        both = np.concatenate([x, y]).view(bits)
        np.testing.assert_array_equal(np.sort(out.array.view(bits)), np.sort(both))
        return
    interleaved = np.stack([x, y], 1).reshape(-1)
    check(out, np.concatenate([x[::2], x[1::2]]) if op == "split" else interleaved)


@triton.jit
def of_rank_5(x, y, joined, first, second, turned):
    at = tl.reshape(tl.arange(0, 64), (2, 1, 4, 2, 4))
    a, b = tl.load(x + at), tl.load(y + at)
    pairs = tl.join(a, b)
    tl.store(joined + tl.reshape(tl.arange(0, 128), (2, 1, 4, 2, 4, 2)), pairs)
    u, v = tl.split(tl.permute(pairs, 5, 0, 4, 1, 2, 3))
    part = tl.reshape(tl.arange(0, 64), (2, 2, 4, 1, 4))
    tl.store(first + part, u)
    tl.store(second + part, v)
    tl.store(turned + tl.reshape(tl.arange(0, 64), (4, 2, 4, 1, 2)), tl.trans(a, 4, 3, 2, 1, 0))


@pytest.mark.parametrize("dtype", ["f64", "bf16", "u8", "i16"])
def test_tiles_of_rank_5_are_joined_split_and_permuted(dtype: str) -> None:
    x, y = (operand(DTYPES[dtype], seed, 64).reshape(2, 1, 4, 2, 4) for seed in (1, 2))
    pairs = np.stack([x, y], -1)
    moved = pairs.transpose(5, 0, 4, 1, 2, 3)
    references = [pairs, moved[..., 0], moved[..., 1], x.transpose(4, 3, 2, 1, 0)]
    outs = [poisoned(*reference.shape, dtype=DTYPES[dtype]) for reference in references]
    launch(of_rank_5, (1,), x, y, *outs)
    for out, reference in zip(outs, references, strict=True):
        check(out, reference)


@triton.jit
def in_a_loop(x, out, turns, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for _ in range(turns):
        first, second = tl.split(tl.reshape(v, (N // 2, 2)))
        if tl.sum(first, 0) > tl.sum(second, 0):
            first, second = second, first + 1
        # One round of a perfect shuffle, from a tile into itself.
        v = tl.reshape(tl.trans(tl.join(first, second)), (N,))
    tl.store(out + i, v)


@pytest.mark.parametrize("turns", [5, 0, 1])
def test_a_loop_splits_and_joins_the_tile_that_it_carries(turns: int) -> None:
    x = np.random.default_rng(14).integers(-50, 50, 64).astype(np.int32)
    v, out = x.copy(), poisoned(64, dtype=np.int32)
    launch(in_a_loop, (1,), x, out, turns, N=64)
    for _ in range(turns):
        first, second = v[::2], v[1::2]
        if first.sum() > second.sum():
            first, second = second, first + 1
        v = np.concatenate([first, second])
    check(out, v)


@triton.jit
def catenated(x, y, out, DIM: tl.constexpr):
    at = tl.reshape(tl.arange(0, 32), (2, 4, 4))
    r = tl.cat(tl.load(x + at), tl.load(y + at), dim=DIM)
    tl.store(out + tl.arange(0, 64), tl.ravel(r))


@pytest.mark.operation("tl.cat, dim")
@pytest.mark.skipif("dim" not in inspect.signature(tl.cat).parameters, reason="tl.cat of this release has no dim")
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_tiles_follow_each_other_along_a_dimension(dim: int) -> None:
    x, y = (operand(np.float32, seed, 32).reshape(2, 4, 4) for seed in (1, 2))
    out = poisoned(64, dtype=np.float32)
    launch(catenated, (1,), x, y, out, DIM=dim)
    check(out, np.concatenate([x, y], dim).ravel())


@triton.jit
def exchanged(a0, a1, a2, a3):
    return a3, a2, a1, a0


@triton.jit
def packed(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.map_elementwise(exchanged, tl.load(x + i), pack=4)[0])


@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this release of Triton has no map_elementwise")
def test_a_mapped_function_may_take_neighbours_together() -> None:
    x, out = operand(np.float32, 1, 64), poisoned(64, dtype=np.float32)
    launch(packed, (1,), x, out, N=64)
    check(out, x.reshape(-1, 4)[:, ::-1].ravel())


@triton.jit
def gathered(x, index, out, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v, i = tl.load(x + at), tl.load(index + at)
    for _ in range(2):
        # The carried tile from itself.
        v = tl.gather(v, i, AXIS)
    tl.store(out + at, v)


@pytest.mark.operation("tl.gather", type="")
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i64", "i8"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.skipif(not hasattr(tl, "gather"), reason="this release of Triton has no tl.gather")
def test_gather_moves_elements_of_each_size_with_all_their_bits(axis: int, dtype: str) -> None:
    x = operand(DTYPES[dtype], 1, 128).reshape(8, 16)
    index = np.random.default_rng(12).integers(0, x.shape[axis], (8, 16)).astype(np.int32)
    out = poisoned(8, 16, dtype=x.dtype)
    launch(gathered, (1,), x, index, out, AXIS=axis, M=8, N=16)
    for _ in range(2):
        x = np.take_along_axis(x, index, axis)
    check(out, x)


@triton.jit
def gathered_of_rank_3(x, index, out, AXIS: tl.constexpr, P: tl.constexpr):
    i = tl.reshape(tl.arange(0, 128), (4, 2, 16))
    A: tl.constexpr = P if AXIS % 3 == 0 else 4
    B: tl.constexpr = P if AXIS % 3 == 1 else 2
    C: tl.constexpr = P if AXIS % 3 == 2 else 16
    at = tl.reshape(tl.arange(0, A * B * C), (A, B, C))
    # A tile that is computed, and used otherwise, too.
    v = tl.load(x + i) * 2
    tl.store(out + at, tl.gather(v, tl.load(index + at), AXIS) + tl.max(tl.ravel(v), 0))


@pytest.mark.operation("tl.gather", type="{kind}")
@pytest.mark.parametrize("kind", ["u8", "i16", "u32", "i64"])
@pytest.mark.parametrize(("axis", "count"), [(0, 1), (1, 8), (2, 4), (-1, 32)])
@pytest.mark.skipif(not hasattr(tl, "gather"), reason="this release of Triton has no tl.gather")
def test_gather_more_or_fewer_elements_than_there_are(axis: int, count: int, kind: str) -> None:
    x = operand(np.int32, 1, 128, special=False).reshape(4, 2, 16) % 1000
    shape = list(x.shape)
    shape[axis] = count
    index = np.random.default_rng(16).integers(0, x.shape[axis], shape).astype(DTYPES[kind])
    out = poisoned(*shape, dtype=np.int32)
    launch(gathered_of_rank_3, (1,), x, index, out, AXIS=axis, P=count)
    check(out, np.take_along_axis(x * 2, index.astype(np.int64), axis) + (x * 2).max())


@triton.jit
def of_one_element(x, out, n):
    # Scalars are joined and split as tiles of one element.
    u, v = tl.split(tl.join(n, tl.load(x)))
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out, u - v)
    tl.store(out + 1 + tl.arange(0, 2), tl.cat(one, one + 1, can_reorder=True))
    tl.store(out + 3 + tl.arange(0, 2), tl.ravel(tl.join(tl.reshape(one, (1, 1, 1, 1)), n)))
    tl.store(out + 5 + tl.arange(0, 1), tl.gather(one, one, 0))


@pytest.mark.skipif(not hasattr(tl, "gather"), reason="this release of Triton has no tl.gather")
def test_scalars_and_tiles_of_one_element() -> None:
    out = poisoned(6, dtype=np.int32)
    launch(of_one_element, (1,), np.array([5], np.int32), out, 12)
    check(out, [7, 5, 6, 5, 12, 5])


@triton.jit
def gathers_anywhere(x, index, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.exp(tl.load(x + i)), tl.load(index + i), 0))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
@pytest.mark.skipif(not hasattr(tl, "gather"), reason="this release of Triton has no tl.gather")
def test_an_index_outside_the_tile_takes_an_element_of_the_tile(kind: Any) -> None:
    """Triton leaves the result undefined. Nothing else may be read."""
    x, out = rng.uniform(-1, 1, 64).astype("f"), poisoned(64, dtype=np.float32)
    index = rng.integers(0, 256, 64 * np.dtype(kind).itemsize, np.uint8).view(kind)
    launch(gathers_anywhere, (1,), x, index, out, N=64)
    np.testing.assert_allclose(out.array, np.exp(x.astype("d"))[index & 63], rtol=4 * 2.0**-23)


@triton.jit
def gcd(x, y):
    """The greatest common divisor and the number of divisions; -1 without any."""
    n = 0
    if y == 0:
        return x, n - 1
    while y != 0:
        x, y = y, x % y
        n += 1
    return x, n


@triton.jit
def larger_first(x0, x1, y0, y1):
    if x0 < x1:
        return x1, x0, y1 + 1, y0 + 1
    return x0, x1, y0, y1


@triton.jit
def straight(x, y):
    return x * 0.5 + y, x < y


@triton.jit
def maps(x, y, out, steps, larger, mean, M: tl.constexpr, N: tl.constexpr, SCALE: tl.constexpr):
    if tl.program_id(0) > 0:
        return
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(x + at), tl.load(y + at)
    divisor, count = tl.map_elementwise(gcd, a * SCALE, b * SCALE)
    tl.store(out + at, divisor)
    first, second = tl.map_elementwise(larger_first, a, tl.sum(count, 1, keep_dims=True), pack=2)
    tl.store(larger + at, first)
    tl.store(steps + at, second)
    # Without branches, a function takes vectors.
    half, less = tl.map_elementwise(straight, a.to(tl.float32), b.to(tl.float32))
    tl.store(mean + at, tl.where(less, half, -half))


@pytest.mark.operation("tl.map_elementwise")
@pytest.mark.parametrize(("m", "n"), [(4, 16), (16, 1), (1, 2)])
@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this release of Triton has no tl.map_elementwise")
def test_a_function_of_scalars_takes_its_own_way_for_each_element(m: int, n: int) -> None:
    x, y = (rng.integers(0, 500, (m, n)).astype(np.int32) for _ in range(2))
    y[:, ::3] = 0
    out, steps, larger = (poisoned(m, n, dtype=np.int32) for _ in range(3))
    mean = poisoned(m, n, dtype=np.float32)
    launch(maps, (2,), x, y, out, steps, larger, mean, M=m, N=n, SCALE=6)

    def divisions(a: int, b: int) -> int:
        return -1 if b == 0 else 1 if a % b == 0 else 1 + divisions(b, a % b)

    check(out, np.gcd(x, y) * 6)
    check(mean, np.where(x < y, 1, -1) * (x * 0.5 + y))
    pairs = x.reshape(-1, 2)
    exchanged = pairs[:, :1] < pairs[:, 1:]
    check(larger, np.where(exchanged, pairs[:, ::-1], pairs).reshape(m, n))
    count = np.vectorize(divisions)(x, y).sum(1, keepdims=True).repeat(n, 1).reshape(-1, 2)
    check(steps, np.where(exchanged, count[:, ::-1] + 1, count).reshape(m, n))


@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def reduces(x, out, M: tl.constexpr, N: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M), tl.reduce(tile, 1, larger))


def test_a_combining_function_may_return_early() -> None:
    x, out = rng.standard_normal((4, 16)).astype("f"), poisoned(4, dtype=np.float32)
    launch(reduces, (1,), x, out, M=4, N=16)
    check(out, x.max(1))


@triton.jit
def turned_and_reshaped(x, turned, flat, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + j * M + i)
    tl.store(turned + i * N + j, tile)
    tl.store(flat + tl.arange(0, M * N), tl.reshape(tile, (M * N,)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_tile_that_is_turned_is_also_stored_in_another_shape(dtype: Any) -> None:
    x = rng.integers(0, 256, (32, 8 * np.dtype(dtype).itemsize), np.uint8).view(dtype)
    turned, flat = poisoned(8, 32, dtype=dtype), poisoned(8 * 32, dtype=dtype)
    launch(turned_and_reshaped, (1,), x, turned, flat, M=8, N=32)
    assert turned.array.tobytes() == flat.array.tobytes() == x.T.tobytes()
