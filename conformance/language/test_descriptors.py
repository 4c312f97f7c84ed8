"""Tensor descriptors of the host and of kernels: in tuples and functions, padded, gathered, of ranks 1 to 5."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import check, launch
from foundry_core.tensor import Tensor

tools = pytest.importorskip("triton.tools.tensor_descriptor", reason="3.2 has no tensor descriptors")
TensorDescriptor = tools.TensorDescriptor


@triton.jit(noinline=True)
def doubled(descriptor, i, j):
    return descriptor.load([i, j]) * 2


@triton.jit
def copies(a, pair, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M
    out = pair[0]
    for j in range(0, n, N):
        out.store([i, j], doubled(a, i, j) + pair[1][1])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
def test_tiles_reach_over_the_edges_of_descriptors(dtype: Any) -> None:
    x = np.arange(13 * 48, dtype=np.float32).reshape(13, 48).astype(dtype)
    whole = np.full((16, 64), 77).astype(dtype)
    # Descriptors of parts; the type int8 wraps around.
    a = TensorDescriptor(x, [13, 40], [48, 1], [8, 16])
    out = TensorDescriptor.from_tensor(Tensor(whole[1:14, :48]), [8, 16])
    launch(copies, (2,), a, (out, (None, 3)), 48, M=8, N=16)
    expected = np.full((16, 64), 77).astype(dtype)
    expected[1:14, :40] = x[:, :40] * dtype(2) + dtype(3)
    expected[1:14, 40:48] = 3
    check(whole, expected)


@triton.jit
def shifted(a, b, out, RANK: tl.constexpr):
    if RANK == 1:
        out.store([0], a.load([3]) + b.load([-2]))
    elif RANK == 3:
        out.store([0, 0, 0], a.load([1, -1, 3]) + b.load([0, 0, -2]))
    else:
        out.store([0, 0, 0, 0, 0], a.load([0, 1, 0, -1, 3]) + b.load([0, 0, 0, 0, -2]))


@pytest.mark.parametrize("shape", [(16,), (2, 4, 16), (1, 2, 1, 2, 16)])
def test_descriptors_of_every_rank_and_padding(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.full(shape, -77, np.float32)
    a, b = (TensorDescriptor.from_tensor(x, list(shape), padding=padding) for padding in ("nan", "zero"))
    launch(shifted, (1,), a, b, TensorDescriptor.from_tensor(out, list(shape)), RANK=len(shape))
    start = {1: [3], 3: [1, -1, 3], 5: [0, 1, 0, -1, 3]}[len(shape)]

    def tile(start: list[int], other: float) -> np.ndarray:
        found = np.full(shape, other, np.float32)
        for index in np.ndindex(*shape):
            at = tuple(i + s for i, s in zip(index, start, strict=True))
            if all(0 <= i < n for i, n in zip(at, shape, strict=True)):
                found[index] = x[at]
        return found

    check(out, tile(start, np.nan) + tile([0] * (len(shape) - 1) + [-2], 0))


@triton.jit
def described(source, shape, strides, block: tl.constexpr):
    if isinstance(source, tl.tensor_descriptor):
        return source
    else:  # noqa: RET505  as in Triton's tutorials
        return tl.make_tensor_descriptor(source, shape, strides, block)


kept = triton.jit(noinline=True)(described.fn)


@triton.jit
def negated(a, out, m, n, M: tl.constexpr, N: tl.constexpr):
    a = described(a, [m, n], [n, 1], [M, N])
    out = kept(out, [m, n], [n, 1], [M, N])
    for j in range(0, n, N):
        out.store([0, j], -a.load([0, j]))


@pytest.mark.operation("tl.make_tensor_descriptor")
@pytest.mark.parametrize("host", [True, False], ids=["of the host", "of the kernel"])
def test_a_function_returns_a_descriptor(host: bool) -> None:
    # Until Triton 3.6, -x is 0 - x, so there is no 0.
    x, out = np.arange(1, 12 * 40 + 1, dtype=np.float32).reshape(12, 40), np.full((16, 40), np.nan, np.float32)
    passed = [TensorDescriptor.from_tensor(array, [16, 16]) for array in (x, out[:12])] if host else [x, out]
    launch(negated, (1,), *passed, 12, 40, M=16, N=16)
    check(out[:12], -x)
    assert np.isnan(out[12:]).all()


@triton.jit
def rows(x, out, index, n, N: tl.constexpr):
    i = tl.load(index + tl.arange(0, 8))
    out.scatter(x.gather(i, 4), i, n)


def test_rows_are_gathered_and_scattered() -> None:
    x, out = np.arange(16 * 8, dtype=np.int32).reshape(16, 8), np.full((16, 16), -1, np.int32)
    index = np.array([3, 1, 15, 0, 7, 9, 2, 20], np.int32)  # row 20 does not exist
    launch(rows, (1,), *(TensorDescriptor.from_tensor(array, [1, 8]) for array in (x, out)), index, 12, N=8)
    expected = np.full((16, 16), -1, np.int32)
    expected[index[:-1], 12:] = x[index[:-1], 4:]
    check(out, expected)
