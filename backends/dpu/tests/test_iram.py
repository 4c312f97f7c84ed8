"""Kernels whose code is long: they are lowered to shorter programs until one fits into a DPU's IRAM."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.tensor import Tensor
from results import poisoned

SIZE = 200


@triton.jit
def random_kernel(out_ptr, seed, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(out_ptr + i, a, mask=i < size)
    tl.store(out_ptr + size + i, b, mask=i < size)
    tl.store(out_ptr + 2 * size + i, c, mask=i < size)
    tl.store(out_ptr + 3 * size + i, d, mask=i < size)


@triton.jit
def products_kernel(x_ptr, out_ptr, size, PRODUCTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size)
    for _ in tl.static_range(PRODUCTS):
        x = tl.umulhi(x, 0xD2511F53) + i
    tl.store(out_ptr + i, x, mask=i < size)


@triton.jit
def mixed(x, mode):
    if mode == 0:
        return tl.umulhi(x, 0xD2511F53)
    if mode == 1:
        return tl.umulhi(x, 0xCD9E8D57)
    if mode == 2:
        return tl.umulhi(x, 0xB5297A4D) ^ (x >> 3)
    return x * 0x68E31DA4


@triton.jit
def returns_kernel(x_ptr, out_ptr, mode, size, CALLS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size)
    for _ in tl.static_range(CALLS):
        x = mixed(x + 1, mode)
    tl.store(out_ptr + i, x, mask=i < size)


def philox(seed: int, at: np.ndarray) -> list[np.ndarray]:
    """Return the four 32-bit words of Philox-4x32-10 (Salmon et al., 2011) for a counter in its first word."""
    low = np.uint64(0xFFFFFFFF)
    words = [at.astype(np.uint64), *(np.zeros(at.shape, np.uint64) for _ in range(3))]
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]
        half = np.uint64(32)
        words = [
            (second >> half) ^ words[1] ^ np.uint64(keys[0]),
            second & low,
            (first >> half) ^ words[3] ^ np.uint64(keys[1]),
            first & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return [word.astype(np.uint32) for word in words]


@pytest.mark.parametrize("block", [16, 256])
def test_four_random_words_fit_and_are_those_of_philox(block: int) -> None:
    out = poisoned(4 * SIZE, dtype=np.uint32)
    random_kernel[(triton.cdiv(SIZE, block),)](Tensor(out), 1 << 40 | 0xDEADBEEF, SIZE, BLOCK=block)
    np.testing.assert_array_equal(out, np.concatenate(philox(1 << 40 | 0xDEADBEEF, np.arange(SIZE))))


def numbers() -> np.ndarray:
    x = np.random.default_rng(0).integers(0, 2**32, SIZE, np.uint32)
    x[:5] = 0, 1, 2**31 - 1, 2**31, 2**32 - 1
    return x


def upper_half(x: np.ndarray, factor: int) -> np.ndarray:
    return (x.astype(np.uint64) * np.uint64(factor) >> np.uint64(32)).astype(np.uint32)


# 16 fit if the loop is not unrolled; 90 need a function for their products.
@pytest.mark.parametrize("products", [16, 90])
def test_a_long_chain_of_upper_halves_of_products_fits(products: int) -> None:
    x, out = numbers(), poisoned(SIZE, dtype=np.uint32)
    products_kernel[(4,)](Tensor(x), Tensor(out), SIZE, PRODUCTS=products, BLOCK=64)
    for _ in range(products):
        x = upper_half(x, 0xD2511F53) + np.arange(SIZE, dtype=np.uint32)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("calls", [4, 5, 8, 20])
def test_a_function_with_several_returns_fits_for_any_number_of_calls(calls: int) -> None:
    x, out = numbers(), poisoned(SIZE, dtype=np.uint32)
    returns_kernel[(4,)](Tensor(x), Tensor(out), 2, SIZE, CALLS=calls, BLOCK=64)
    for _ in range(calls):
        x = x + np.uint32(1)
        x = upper_half(x, 0xB5297A4D) ^ (x >> np.uint32(3))
    np.testing.assert_array_equal(out, x)
