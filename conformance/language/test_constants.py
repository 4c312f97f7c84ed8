"""Constants keep every bit on the way from Triton's IR to the device."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from checking import FLOATS, RELEASE, check, launch, poisoned

# Before 3.9, Triton's own IR has +0 for -0.0.
NEGATIVE_ZERO = -0.0 if RELEASE >= (3, 9) else 0.0


@triton.jit
def floats(x, chosen, out, TINY: tl.constexpr):
    i = tl.arange(0, 8)
    of: tl.constexpr = out.dtype.element_ty
    NAN: tl.constexpr = float("nan")
    INF: tl.constexpr = float("inf")
    there = tl.load(chosen + i) > 0
    v = tl.load(x + i)
    tl.store(out + i, tl.where(there, v, NAN))
    tl.store(out + 8 + i, tl.load(x + i, mask=there, other=NAN))
    tl.store(out + 16 + i, tl.load(x + i, mask=there, other=-0.0))
    tl.store(out + 24 + i, tl.full((8,), NAN, of))
    tl.store(out + 32 + i, tl.full((8,), INF, of))
    tl.store(out + 40 + i, tl.full((8,), -INF, of))
    tl.store(out + 48 + i, tl.full((8,), -0.0, of))
    tl.store(out + 56 + i, tl.full((8,), 0.3, of))
    tl.store(out + 64 + i, tl.full((8,), TINY, of))
    # Arithmetic shows whether a constant was rounded to its type, as 0.3 must be.
    tl.store(out + 72 + i, v * 0.0 + 0.3)
    tl.store(out + 80 + i, tl.zeros((8,), of) + tl.max(tl.load(x + i, mask=i < 0, other=-INF)))
    tl.store(out + 88, NAN)
    tl.store(out + 89, -INF)
    tl.store(out + 90, 0.3)
    tl.store(out + 91, -0.0)


@pytest.mark.operation("constants")
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_arrive_bit_for_bit(dtype: str) -> None:
    kind: Any = FLOATS[dtype]
    # In Triton 3.9, tl.full of a bf16 goes through an f16: smaller numbers are zero in Triton's own IR.
    tiny = 2.0**-14 if dtype == "bf16" else float(ml_dtypes.finfo(kind).smallest_subnormal)
    x, chosen = np.linspace(1, 8, 8).astype(kind), np.array([1, 0, 0, 1, 1, 0, 1, 0], np.int32)
    out = poisoned(92, dtype=kind)
    launch(floats, (1,), x, chosen, out, TINY=tiny)
    # In Triton, a scalar is an f32 until it is stored.
    scalar = np.float32(0.3).astype(kind)
    third = np.float64(0.3) if dtype == "f64" else scalar
    rows = [
        *(np.where(chosen > 0, x, np.asarray(other, kind)) for other in (np.nan, np.nan, NEGATIVE_ZERO)),
        *(np.full(8, value, kind) for value in (np.nan, np.inf, -np.inf, NEGATIVE_ZERO, third, tiny, third, -np.inf)),
        np.array([np.nan, -np.inf, scalar, NEGATIVE_ZERO], kind),
    ]
    bits = f"u{x.itemsize}"
    check(out.array.view(bits), np.concatenate(rows).astype(kind).view(bits))
    out.check_fences("the output")


@triton.jit
def integers(out8, out16, out32, out64, wide, flags):
    i = tl.arange(0, 8)
    tl.store(out8 + i, tl.full((8,), -128, tl.int8))
    tl.store(out16 + i, tl.full((8,), -32768, tl.int16))
    tl.store(out32 + i, tl.full((8,), -2147483648, tl.int32))
    tl.store(out64 + i, tl.full((8,), -9223372036854775808, tl.int64))
    tl.store(wide + i, tl.full((8,), 18446744073709551615, tl.uint64))
    tl.store(flags + i, tl.where(i < 4, tl.full((8,), True, tl.int1), tl.full((8,), False, tl.int1)))


def test_integers_arrive_bit_for_bit() -> None:
    outs = [poisoned(8, dtype=dtype) for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint64, np.int8)]
    launch(integers, (1,), *outs)
    for out in outs[:4]:
        check(out, np.iinfo(out.dtype).min)
    check(outs[4], np.iinfo(np.uint64).max)
    check(outs[5], [1, 1, 1, 1, 0, 0, 0, 0])
