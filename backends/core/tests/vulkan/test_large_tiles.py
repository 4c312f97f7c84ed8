"""Tiles of many elements: the code for them stays short, since the compiler of a CPU device is slow for long code."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from results import poisoned


@triton.jit
def reductions(x, y, total, most, place, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(total, tl.sum(tl.load(y + i), 0))
    tl.store(most, tl.max(v, 0))
    tl.store(place, tl.argmax(v, 0))


def test_large_tile_is_reduced_by_a_short_module() -> None:
    random = np.random.default_rng(5)
    x = random.standard_normal(1 << 16).astype(np.float32)
    # The largest number is there twice, in different subgroups; the first place counts.
    x[[40_001, 59_999]] = 1e30
    x[:3] = -np.inf, -0.0, np.finfo(np.float32).smallest_subnormal
    y = random.integers(-(1 << 31), 1 << 31, x.size).astype(np.int32)
    total, most, place = (poisoned(1, dtype=dtype) for dtype in (np.int32, np.float32, np.int32))
    kernel = reductions[(1,)](Tensor(x), Tensor(y), Tensor(total), Tensor(most), Tensor(place), N=x.size)
    # With num_warps subgroups of 8 invocations, it has 1,560,136 bytes.
    assert len(kernel.asm["spv"]) < 1 << 18
    assert (total[0], most[0], place[0]) == (y.sum(dtype=np.int32), np.float32(1e30), 40_001)
