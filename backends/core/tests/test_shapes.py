"""Operations that join, split, gather and map tiles, and products of batches, each compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.errors import UnsupportedOperation
from foundry_core.tensor import Tensor
from results import check_same, poisoned

rng = np.random.default_rng(0)


def bits(count: int, dtype: Any) -> np.ndarray:
    """Return numbers of random bits, among them NaN, infinities, both zeros and subnormals."""
    found = rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    if found.dtype.kind == "f":
        special = [np.nan, -0.0, np.inf, np.finfo(dtype).smallest_subnormal, -np.inf, 0.0]
        found[:6] = special[:count]
    return found


@triton.jit
def halves(x, y, joined, interleaved, chained, left, right, swapped, N: tl.constexpr):
    i = tl.arange(0, N)
    two = tl.arange(0, 2)
    a, b = tl.load(x + i), tl.load(y + i)
    pairs = tl.join(a, b)
    tl.store(joined + i[:, None] * 2 + two[None, :], pairs)
    tl.store(interleaved + tl.arange(0, 2 * N), tl.interleave(a, b))
    tl.store(chained + tl.arange(0, 2 * N), tl.cat(a, b, can_reorder=True))
    # One of two pairs of halves, chosen at run time: the halves of a tile of rank 4 leave a branch.
    cube = tl.reshape(tl.load(x + tl.arange(0, N)), (2, 1, N // 4, 2))
    u, v = tl.split(cube)
    if tl.program_id(0) == 0:
        u, v = v, u
    at = tl.arange(0, N // 2)
    tl.store(left + at, tl.reshape(u, (N // 2,)))
    tl.store(right + at, tl.reshape(v, (N // 2,)))
    # In place, over the elements that the other half still has to be read from.
    first, second = tl.split(tl.reshape(tl.load(swapped + i), (N // 2, 2)))
    tl.store(swapped + i, tl.interleave(second, first))


@pytest.mark.parametrize(("n", "dtype"), [(64, np.float32), (4, np.float16), (32, bool)])
def test_tiles_are_joined_and_split(n: int, dtype: Any) -> None:
    x, y, z = (bits(n, np.uint8) > 99 if dtype is bool else bits(n, dtype) for _ in range(3))
    joined, interleaved, chained, halves_of_x = (poisoned(2 * n, dtype=dtype) for _ in range(4))
    swapped, left, right = z.copy(), halves_of_x[: n // 2], halves_of_x[n : n + n // 2]
    halves[(1,)](*map(Tensor, (x, y, joined, interleaved, chained, left, right, swapped)), N=n)
    check_same(joined, np.stack([x, y], 1).ravel())
    check_same(interleaved, np.stack([x, y], 1).ravel())
    check_same(chained, np.concatenate([x, y]))
    check_same(left, x[1::2])
    check_same(right, x[::2])
    check_same(swapped, z.reshape(-1, 2)[:, ::-1].ravel())


@triton.jit
def of_one_element(x, out, n):
    # Scalars are joined and split as tiles of one element.
    u, v = tl.split(tl.join(n, tl.load(x)))
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out, u - v)
    tl.store(out + 1 + tl.arange(0, 2), tl.cat(one, one + 1, can_reorder=True))
    tl.store(out + 3 + tl.arange(0, 2), tl.ravel(tl.join(tl.reshape(one, (1, 1, 1, 1)), n)))
    tl.store(out + 5 + tl.arange(0, 1), tl.gather(one, one, 0))


def test_scalars_and_tiles_of_one_element() -> None:
    out = poisoned(6, dtype=np.int32)
    of_one_element[(1,)](Tensor(np.array([5], np.int32)), Tensor(out), 12)
    assert out.tolist() == [7, 5, 6, 5, 12, 5]


@triton.jit
def gathers(x, index, out, AXIS: tl.constexpr, L: tl.constexpr, M: tl.constexpr, N: tl.constexpr, P: tl.constexpr):
    # The gathered tile has P elements along the axis; the extents of the others are L, M, N.
    A: tl.constexpr = P if AXIS == 0 else L
    B: tl.constexpr = P if AXIS == 1 else M
    C: tl.constexpr = P if AXIS == 2 else N
    h, i, j = tl.arange(0, L)[:, None, None], tl.arange(0, M)[None, :, None], tl.arange(0, N)[None, None, :]
    at = tl.reshape(tl.arange(0, A * B * C), (A, B, C))
    v = tl.load(x + h * M * N + i * N + j)
    found = tl.gather(v * 2, tl.load(index + at), AXIS)
    # A tile that a loop changes is gathered from itself, in reverse order.
    extent: tl.constexpr = v.shape[AXIS]
    last = (h + i + j) * 0 + (extent - 1)
    for _ in range(2):
        v = tl.gather(v, last - (h if AXIS == 0 else (i if AXIS == 1 else j)), AXIS)
    tl.store(out + at, found)
    tl.store(x + h * M * N + i * N + j, v + 1)


@pytest.mark.parametrize(
    ("axis", "dtype", "kind"), [(0, np.float32, np.int32), (1, np.int64, np.uint8), (2, np.float16, np.int64)]
)
def test_gather_along_each_axis(axis: int, dtype: Any, kind: Any) -> None:
    shape, count = (4, 2, 8), 16
    x = rng.integers(-100, 100, shape).astype(dtype)
    wanted = (*shape[:axis], count, *shape[axis + 1 :])
    index = rng.integers(0, shape[axis], wanted).astype(kind)
    out, before = poisoned(*wanted, dtype=dtype), x.copy()
    gathers[(1,)](Tensor(x), Tensor(index), Tensor(out), axis, *shape, count)
    np.testing.assert_array_equal(out, np.take_along_axis(before * 2, index.astype(np.int64), axis))
    np.testing.assert_array_equal(x, before + 1)


@triton.jit
def gathers_anywhere(x, index, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.exp(tl.load(x + i)), tl.load(index + i), 0))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_an_index_outside_the_tile_takes_an_element_of_the_tile(kind: Any) -> None:
    """Triton leaves the result undefined. Nothing else may be read."""
    x, out = rng.uniform(-1, 1, 64).astype("f"), poisoned(64)
    index = bits(64, kind)
    gathers_anywhere[(1,)](Tensor(x), Tensor(index), Tensor(out), N=64)
    np.testing.assert_allclose(out, np.exp(x.astype("d"))[index & 63], rtol=4 * 2.0**-23)


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


@pytest.mark.parametrize(("m", "n"), [(4, 16), (16, 1), (1, 2)])
@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this release of Triton has no tl.map_elementwise")
def test_a_function_of_scalars_takes_its_own_way_for_each_element(m: int, n: int) -> None:
    x, y = (rng.integers(0, 500, (m, n)).astype(np.int32) for _ in range(2))
    y[:, ::3] = 0
    out, steps, larger = (poisoned(m, n, dtype=np.int32) for _ in range(3))
    mean = poisoned(m, n)
    maps[(2,)](*map(Tensor, (x, y, out, steps, larger, mean)), M=m, N=n, SCALE=6)

    def divisions(a: int, b: int) -> int:
        return -1 if b == 0 else 1 if a % b == 0 else 1 + divisions(b, a % b)

    np.testing.assert_array_equal(out, np.gcd(x, y) * 6)
    np.testing.assert_array_equal(mean, np.where(x < y, 1, -1) * (x * 0.5 + y))
    pairs = x.reshape(-1, 2)
    exchanged = pairs[:, :1] < pairs[:, 1:]
    np.testing.assert_array_equal(larger, np.where(exchanged, pairs[:, ::-1], pairs).reshape(m, n))
    count = np.vectorize(divisions)(x, y).sum(1, keepdims=True).repeat(n, 1).reshape(-1, 2)
    np.testing.assert_array_equal(steps, np.where(exchanged, count[:, ::-1] + 1, count).reshape(m, n))


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
    x, out = rng.standard_normal((4, 16)).astype("f"), poisoned(4)
    reduces[(1,)](Tensor(x), Tensor(out), M=4, N=16)
    np.testing.assert_array_equal(out, x.max(1))


@triton.jit
def maps_pairs(x, BLOCK: tl.constexpr):
    a = tl.load(x + tl.arange(0, BLOCK))
    tl.store(x + tl.arange(0, BLOCK), tl.map_elementwise(larger_first, a, a, pack=2)[0])


@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this release of Triton has no tl.map_elementwise")
def test_a_pack_of_more_elements_than_there_are_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="of 2 elements at a time of a tensor with 1"):
        maps_pairs[(1,)](Tensor(np.zeros(1, np.int32)), BLOCK=1)


@triton.jit
def batches(a, b, c, out, turns, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    h = tl.arange(0, B)[:, None, None]
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    at = h * M * N + i[None, :, None] * N + j[None, None, :]
    x = tl.load(a + h * M * K + i[None, :, None] * K + k[None, None, :])
    # b is stored with its dimensions in another order.
    y = tl.permute(
        tl.load(b + j[:, None, None] * B * K + tl.arange(0, B)[None, :, None] * K + k[None, None, :]), 1, 2, 0
    )
    z = tl.load(c + at)
    for _ in range(turns):
        z = tl.dot(x, y, z, out_dtype=z.dtype, input_precision="tf32x3")
    tl.store(out + at, tl.dot(x, y, out_dtype=z.dtype))
    tl.store(c + at, z)


@pytest.mark.parametrize(
    ("b", "m", "n", "k", "types"),
    [
        (4, 8, 16, 2, "ff"),
        (1, 2, 1, 4, "ff"),
        (2, 1, 8, 16, "ef"),
        (8, 4, 4, 1, "ee"),
        (2, 8, 4, 8, "dd"),
        (2, 4, 8, 16, "bi"),
    ],
)
def test_a_batch_of_products(b: int, m: int, n: int, k: int, types: str) -> None:
    x, y = rng.integers(-4, 4, (b, m, k)).astype(types[0]), rng.integers(-4, 4, (b, k, n)).astype(types[0])
    z, out = rng.integers(-4, 4, (b, m, n)).astype(types[1]), poisoned(b, m, n, dtype=types[1])
    product, start = x.astype("d") @ y.astype("d"), z.astype("d")
    stored = np.ascontiguousarray(y.transpose(2, 0, 1))
    batches[(1,)](Tensor(x), Tensor(stored), Tensor(z), Tensor(out), 2, B=b, M=m, N=n, K=k)
    # All numbers are small integers: every sum is exact.
    np.testing.assert_array_equal(out, product)
    np.testing.assert_array_equal(z, start + 2 * product)


@triton.jit
def large_batch(a, b, out, B: tl.constexpr, S: tl.constexpr):
    at = tl.arange(0, B)[:, None, None] * S * S + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_a_batch_takes_memory_for_its_results_and_for_one_product() -> None:
    """The operands have 64 KiB, all the WRAM of a DPU."""
    a, b, out = (rng.integers(-4, 4, (32, 16, 16)).astype("f") for _ in range(3))
    out[:] = np.nan
    large_batch[(1,)](Tensor(a), Tensor(b), Tensor(out), B=32, S=16)
    np.testing.assert_array_equal(out, a @ b)


@triton.jit
def hinted(out, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = i * 0
    for k in tl.range(0, n, disable_licm=True):
        total += k ^ (m * 77)
    for k in tl.range(0, n, disable_licm=True, loop_unroll_factor=2):
        total += k * k
    while tl.condition(n > 0, disable_licm=True):
        total += n
        n -= 1
    tl.store(out + i, total)


@pytest.mark.skipif(not hasattr(tl, "condition"), reason="this release of Triton has no tl.condition")
def test_nothing_is_hoisted_out_of_a_loop_with_the_hint() -> None:
    out = poisoned(16, dtype=np.int32)
    compiled = hinted[(1,)](Tensor(out), 7, 3, BLOCK=16)
    assert out.tolist() == [sum(k ^ 231 for k in range(7)) + 91 + 28] * 16
    # Other roads write SPIR-V, which has no such hint.
    if "llir" in compiled.asm:
        llvm = compiled.asm["llir"]
        assert "llvm.licm.disable" in llvm
        assert llvm.index(" phi ") < llvm.index(", 77")
