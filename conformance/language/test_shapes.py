"""Operations that move elements: reshape, transpose, broadcast, join, split, cat, flip, gather, histogram, sort."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from checking import DTYPES, check, launch, operand, poisoned


@triton.jit
def reshaped(x, out, OP: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    if OP == "reshape":
        tl.store(out + tl.arange(0, 32)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.reshape(v, (32, 4)))
    elif OP == "ravel":
        tl.store(out + tl.arange(0, 128), tl.ravel(v))
    elif OP == "trans":
        tl.store(out + tl.arange(0, 16)[:, None] * 8 + tl.arange(0, 8)[None, :], tl.trans(v))
    elif OP == "permute":
        r = tl.permute(tl.reshape(v, (2, 4, 16)), (2, 0, 1))
        at = tl.arange(0, 16)[:, None, None] * 8 + tl.arange(0, 2)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :]
        tl.store(out + at, r)
    elif OP == "flip":
        tl.store(out + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], tl.flip(v, 1))
    else:
        tl.static_assert(OP == "sort")
        tl.store(out + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], tl.sort(v, 1))


MOVED = {
    "reshape": lambda x: x.reshape(32, 4),
    "ravel": lambda x: x.reshape(-1),
    "trans": lambda x: x.T,
    "permute": lambda x: x.reshape(2, 4, 16).transpose(2, 0, 1),
    "flip": lambda x: x[:, ::-1],
    "sort": lambda x: np.sort(x, 1),
}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "i64"])
@pytest.mark.parametrize("op", MOVED)
def test_elements_are_moved(op: str, dtype: str) -> None:
    x = operand(DTYPES[dtype], 1, 128, special=op != "sort").reshape(8, 16)
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


@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 8), (1, 16), (16, 1)])
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


@pytest.mark.parametrize("dtype", ["f32", "i8", "i64"])
@pytest.mark.parametrize("op", ["join", "interleave", "cat", "split"])
def test_tiles_are_joined_and_split(op: str, dtype: str) -> None:
    x, y = operand(DTYPES[dtype], 1, 32), operand(DTYPES[dtype], 2, 32)
    size = 32 if op == "split" else 64
    out = poisoned(size, dtype=DTYPES[dtype])
    launch(pairs, (1,), x, y, out, OP=op, N=32)
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
def counted(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@pytest.mark.parametrize("bins", [2, 16, 64])
def test_histogram(bins: int) -> None:
    x, out = np.random.default_rng(11).integers(0, bins, 256).astype(np.int32), poisoned(bins, dtype=np.int32)
    launch(counted, (1,), x, out, N=256, BINS=bins)
    check(out, np.bincount(x, minlength=bins))


@triton.jit
def gathered(x, index, out, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), AXIS))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_along_an_axis(axis: int) -> None:
    x = operand(np.float32, 1, 128).reshape(8, 16)
    index = np.random.default_rng(12).integers(0, x.shape[axis], (8, 16)).astype(np.int32)
    out = poisoned(8, 16, dtype=np.float32)
    launch(gathered, (1,), x, index, out, AXIS=axis, M=8, N=16)
    check(out, np.take_along_axis(x, index, axis))


@triton.jit
def largest(x, out, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :], tl.topk(v, K, dim=1))


@pytest.mark.skipif(not hasattr(tl, "topk"), reason="this release of Triton has no topk")
@pytest.mark.parametrize("k", [1, 4, 16])
def test_topk(k: int) -> None:
    x = np.random.default_rng(13).permutation(128).astype(np.int32).reshape(8, 16)
    out = poisoned(8, k, dtype=np.int32)
    launch(largest, (1,), x, out, K=k, M=8, N=16)
    check(out, -np.sort(-x, 1)[:, :k])


@triton.jit
def sorted_descending(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sort(tl.load(x + i), descending=True))


@pytest.mark.parametrize("n", [1, 2, 64])
def test_sort_in_descending_order(n: int) -> None:
    x, out = operand(np.int32, 1, n), poisoned(n, dtype=np.int32)
    launch(sorted_descending, (1,), x, out, N=n)
    check(out, np.sort(x)[::-1])
