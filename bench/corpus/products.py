"""Matrix products in the forms that people write them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language import constexpr

from ..problem import Array, Problem, empty, normal, unit
from ..problems import matmul as plain
from .elements import zero
from .rows import F32, spread

# A tensor core may cut instead of rounding.
UNITS = 2


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def swizzled(m, n, BM: constexpr, BN: constexpr, GROUP: constexpr):
    """Return the block's row and column, with GROUP rows of blocks after each other."""
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    program = tl.program_id(0)
    first = program // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    within = program % (GROUP * columns)
    return first + within % height, within // height


@triton.jit
def modulo_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, sam, sak, sbk, sbn, scm, scn,
    BM: constexpr, BN: constexpr, BK: constexpr, GROUP: constexpr, LEAKY: constexpr,
):  # fmt: skip
    """Indices modulo M and N, masks along K, any strides, as in Triton's tutorial."""
    row, column = swizzled(m, n, BM, BN, GROUP)
    at_m = (row * BM + tl.arange(0, BM)) % m
    at_n = (column * BN + tl.arange(0, BN)) % n
    at_k = tl.arange(0, BK)
    a = a_ptr + at_m[:, None] * sam + at_k[None, :] * sak
    b = b_ptr + at_k[:, None] * sbk + at_n[None, :] * sbn
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(k, BK)):
        left = k - step * BK
        x = tl.load(a, mask=at_k[None, :] < left, other=0.0)
        y = tl.load(b, mask=at_k[:, None] < left, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        a += BK * sak
        b += BK * sbk
    if LEAKY:
        total = leaky_relu(total)
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    c = c_ptr + at_m[:, None] * scm + at_n[None, :] * scn
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=(at_m[:, None] < m) & (at_n[None, :] < n))


@triton.jit
def masked_kernel(
    a_ptr, b_ptr, bias_ptr, more_ptr, c_ptr, m, n, k, sam, sak, sbk, sbn,
    BM: constexpr, BN: constexpr, BK: constexpr, BIAS: constexpr,
):  # fmt: skip
    """Masks along M, N and K; one block a program of a grid of two dimensions; a bias and a residual."""
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at_k = start + tl.arange(0, BK)
        mask = (at_m[:, None] < m) & (at_k[None, :] < k)
        x = tl.load(a_ptr + at_m[:, None] * sam + at_k[None, :] * sak, mask=mask, other=0.0)
        mask = (at_k[:, None] < k) & (at_n[None, :] < n)
        y = tl.load(b_ptr + at_k[:, None] * sbk + at_n[None, :] * sbn, mask=mask, other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    inside = (at_m[:, None] < m) & (at_n[None, :] < n)
    at = at_m[:, None] * n + at_n[None, :]
    if BIAS:
        total += tl.load(bias_ptr + at_n, mask=at_n < n, other=0.0)[None, :].to(tl.float32)
        total += tl.load(more_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(c_ptr + at, total.to(c_ptr.dtype.element_ty), mask=inside)


def _product(m: int, n: int, k: int, kind: str, to: str, operands: tuple[Array, Array] | None = None) -> Problem:
    made = plain.problem(m, n, k, kind, to=to, units=UNITS, checked=spread(m, 48), operands=operands)
    return replace(made, unit="TFLOP/s", torch=None, peers=dict, aim="")


def modulo(m: int, n: int, k: int, kind: str, to: str, leaky: bool) -> Problem:
    made = _product(m, n, k, kind, to)

    def launch(jit: Any, *arrays: Any, BM: int, BN: int, **options: Any) -> Any:
        grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
        strides = (k, 1, n, 1, n, 1)
        return jit(modulo_kernel)[grid](*arrays, m, n, k, *strides, BM=BM, BN=BN, GROUP=8, LEAKY=leaky, **options)

    exact = np.where(made.exact >= 0, made.exact, 0.01 * made.exact) if leaky else made.exact
    title = f"{made.title}, modulo{', leaky' if leaky else ''}"
    # The constant 0.01 rounds.
    return replace(made, title=title, exact=exact, allowed=made.allowed + 2 * F32 * np.abs(exact), launch=launch)


def masked(m: int, n: int, k: int, kind: str, to: str, form: str) -> Problem:
    """Return a product with masks; `form` is "", "transposed" (A is stored by columns) or "bias"."""
    made = _product(m, n, k, kind, to)
    a, b = made.inputs
    bias, more = normal((n,), to, 3), normal((m, n), to, 4)
    strides = (1, m, n, 1) if form == "transposed" else (k, 1, n, 1)
    exact, allowed = made.exact, made.allowed
    if form == "transposed":
        stored = empty((k, m), kind)
        stored[:] = a.T
        a = stored
    if form == "bias":
        added = (bias.astype(np.float64), more[made.checked].astype(np.float64))
        size = np.abs(exact) + sum(map(np.abs, added))
        exact, allowed = exact + sum(added), made.allowed + 3 * F32 * size + unit(to) * size

    def launch(jit: Any, a: Any, b: Any, bias: Any, more: Any, c: Any, BM: int, BN: int, **options: Any) -> Any:
        grid = (triton.cdiv(m, BM), triton.cdiv(n, BN))
        return jit(masked_kernel)[grid](
            a, b, bias, more, c, m, n, k, *strides, BM=BM, BN=BN, BIAS=form == "bias", **options
        )

    title = f"{made.title}, masks{form and f', {form}'}"
    return replace(made, title=title, inputs=(a, b, bias, more), exact=exact, allowed=allowed, launch=launch)


@triton.jit
def split_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BM: constexpr, BN: constexpr, BK: constexpr, SPLIT: constexpr):
    """Each program has a part of K, and adds its result by atomic operations."""
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * BK, k, BK * SPLIT):
        at_k = start + tl.arange(0, BK)
        mask = (at_m[:, None] < m) & (at_k[None, :] < k)
        x = tl.load(a_ptr + at_m[:, None] * k + at_k[None, :], mask=mask, other=0.0)
        mask = (at_k[:, None] < k) & (at_n[None, :] < n)
        y = tl.load(b_ptr + at_k[:, None] * n + at_n[None, :], mask=mask, other=0.0)
        total = tl.dot(x, y, total)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.atomic_add(c_ptr + at_m[:, None] * n + at_n[None, :], total, mask=mask, sem="relaxed")


def split(m: int, n: int, k: int, kind: str) -> Problem:
    made = _product(m, n, k, kind, "f32")

    def launch(jit: Any, a: Any, b: Any, c: Any, BM: int, BN: int, SPLIT: int, **options: Any) -> Any:
        zero(jit, c, m * n)
        grid = (triton.cdiv(m, BM), triton.cdiv(n, BN), SPLIT)
        return jit(split_kernel)[grid](a, b, c, m, n, k, BM=BM, BN=BN, SPLIT=SPLIT, **options)

    return replace(made, title=f"{made.title}, K split", launch=launch)


@triton.jit
def batched_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BM: constexpr, BN: constexpr, BK: constexpr):
    batch = tl.program_id(2).to(tl.int64)
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    at_k = tl.arange(0, BK)
    a = a_ptr + batch * m * k + at_m[:, None] * k + at_k[None, :]
    b = b_ptr + batch * k * n + at_k[:, None] * n + at_n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a, mask=(at_m[:, None] < m) & (start + at_k[None, :] < k), other=0.0)
        y = tl.load(b, mask=(start + at_k[:, None] < k) & (at_n[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
        a += BK
        b += BK * n
    c = c_ptr + batch * m * n + at_m[:, None] * n + at_n[None, :]
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=(at_m[:, None] < m) & (at_n[None, :] < n))


def _bound(a: Array, b: Array, exact: Array, to: str) -> Array:
    """Return the error of a sum of products in f32, rounded once to a type."""
    depth = a.shape[-1]
    allowed: Array = UNITS * (depth + 1) * F32 * (np.abs(a) @ np.abs(b))
    if to != "f32":
        allowed = allowed + unit(to) * (np.abs(exact) + allowed) + 2.0**-25
    return allowed


def batched(count: int, m: int, n: int, k: int, kind: str) -> Problem:
    a, b, c = normal((count, m, k), kind), normal((count, k, n), kind, 1), empty((count, m, n), kind)
    checked = spread(count, 4)
    x, y = a[checked].astype(np.float64), b[checked].astype(np.float64)
    exact = x @ y

    def launch(jit: Any, *arrays: Any, BM: int, BN: int, **options: Any) -> Any:
        grid = (triton.cdiv(m, BM), triton.cdiv(n, BN), count)
        return jit(batched_kernel)[grid](*arrays, m, n, k, BM=BM, BN=BN, **options)

    title, moved = f"batch of {count} products {kind}, {m} x {n} x {k}", a.nbytes + b.nbytes + c.nbytes
    bound = _bound(x, y, exact, kind)
    return Problem(title, "TFLOP/s", moved, 2 * count * m * n * k, (a, b), c, exact, bound, launch, checked=checked)


@triton.jit
def integer_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BM: constexpr, BN: constexpr, BK: constexpr):
    row, column = swizzled(m, n, BM, BN, 8)
    at_m = (row * BM + tl.arange(0, BM)) % m
    at_n = (column * BN + tl.arange(0, BN)) % n
    at_k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32)
    for start in range(0, k, BK):
        x = tl.load(a_ptr + at_m[:, None] * k + (start + at_k)[None, :], mask=start + at_k[None, :] < k, other=0)
        y = tl.load(b_ptr + (start + at_k)[:, None] * n + at_n[None, :], mask=start + at_k[:, None] < k, other=0)
        total = tl.dot(x, y, total, out_dtype=tl.int32)
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total, mask=mask)


def _tiled(kernel: Any, m: int, n: int, k: int, jit: Any, *arrays: Any, BM: int, BN: int, **options: Any) -> Any:
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    return jit(kernel)[grid](*arrays, m, n, k, BM=BM, BN=BN, **options)


def integer(m: int, n: int, k: int) -> Problem:
    a, b, c = normal((m, k), "i8"), normal((k, n), "i8", 1), empty((m, n), "i32")
    checked = spread(m, 48)
    # Exact in float64: less than 2^53.
    exact = (a[checked].astype(np.float64) @ b.astype(np.float64)).astype(np.int32)
    launch, moved = partial(_tiled, integer_kernel, m, n, k), a.nbytes + b.nbytes + c.nbytes
    title = f"matmul i8 -> i32, {m} x {n} x {k}, modulo"
    return Problem(title, "TFLOP/s", moved, 2 * m * n * k, (a, b), c, exact, 0, launch, checked=checked)


@triton.jit
def weights8_kernel(a_ptr, b_ptr, scale_ptr, c_ptr, m, n, k, BM: constexpr, BN: constexpr, BK: constexpr):
    row, column = swizzled(m, n, BM, BN, 8)
    at_m = (row * BM + tl.arange(0, BM)) % m
    at_n = (column * BN + tl.arange(0, BN)) % n
    at_k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a_ptr + at_m[:, None] * k + (start + at_k)[None, :])
        y = tl.load(b_ptr + (start + at_k)[:, None] * n + at_n[None, :]).to(x.dtype)
        total = tl.dot(x, y, total)
    total = total * tl.load(scale_ptr + at_n)[None, :]
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def weights4_kernel(a_ptr, b_ptr, scale_ptr, c_ptr, m, n, k, BM: constexpr, BN: constexpr, BK: constexpr):
    """Two weights a byte, from -8 to 7: rows 2i and 2i + 1 of B."""
    row, column = swizzled(m, n, BM, BN, 8)
    at_m = (row * BM + tl.arange(0, BM)) % m
    at_n = (column * BN + tl.arange(0, BN)) % n
    at_k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a_ptr + at_m[:, None] * k + (start + at_k)[None, :])
        packed = tl.load(b_ptr + ((start + at_k) // 2)[:, None] * n + at_n[None, :]).to(tl.int32)
        shift = (at_k % 2 * 4)[:, None]
        y = (((packed >> shift) & 15) - 8).to(x.dtype)
        total = tl.dot(x, y, total)
    total = total * tl.load(scale_ptr + at_n)[None, :]
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total.to(c_ptr.dtype.element_ty), mask=mask)


def weights(m: int, n: int, k: int, kind: str, bits: int) -> Problem:
    a, scales, c = normal((m, k), kind), normal((n,), "f32", 2), empty((m, n), kind)
    b = normal((k * bits // 8, n), "i8", 1)
    checked, y = spread(m, 48), b.astype(np.float64)
    if bits == 4:
        both = b.view(np.uint8)
        y = np.stack([both & 15, both >> 4], axis=1).reshape(k, n).astype(np.float64) - 8
    # Small, so that no result is beyond f16.
    scales /= np.float32(k)
    x, by = a[checked].astype(np.float64), scales.astype(np.float64)
    exact = (x @ y) * by
    # The product in f32 rounds once more than the sum.
    allowed = _bound(x, y, x @ y, "f32") * np.abs(by) + 2 * F32 * np.abs(exact) + unit(kind) * np.abs(exact) + 2.0**-25
    kernel = weights4_kernel if bits == 4 else weights8_kernel
    launch, moved = partial(_tiled, kernel, m, n, k), a.nbytes + b.nbytes + c.nbytes
    title = f"matmul {kind} x {bits} bits, {m} x {n} x {k}"
    return Problem(title, "TFLOP/s", moved, 2 * m * n * k, (a, b, scales), c, exact, allowed, launch, checked=checked)


@triton.jit
def packed_kernel(
    a_ptr,
    b_ptr,
    scale_ptr,
    zero_ptr,
    c_ptr,
    m,
    n,
    k,
    GROUP: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
):
    """Eight weights of 4 bits a word along K; GROUP rows share scales and zeros, of which a word has eight along N."""
    row, column = swizzled(m, n, BM, BN, 8)
    at_m = (row * BM + tl.arange(0, BM)) % m
    at_n = (column * BN + tl.arange(0, BN)) % n
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at_k = start + tl.arange(0, BK)
        group = (at_k // GROUP)[:, None]
        x = tl.load(a_ptr + at_m[:, None] * k + at_k[None, :])
        words = tl.load(b_ptr + (at_k // 8)[:, None] * n + at_n[None, :])
        scales = tl.load(scale_ptr + group * n + at_n[None, :])
        zeros = tl.load(zero_ptr + group * (n // 8) + (at_n // 8)[None, :])
        zeros = (zeros >> (at_n % 8 * 4)[None, :]) & 15
        weights = (words >> (at_k % 8 * 4)[:, None]) & 15
        total = tl.dot(x, (weights - zeros).to(scales.dtype) * scales, total)
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total.to(c_ptr.dtype.element_ty), mask=mask)


def packed(m: int, n: int, k: int, kind: str, group: int) -> Problem:
    a, c = normal((m, k), kind), empty((m, n), kind)
    b, zeros = normal((k // 8, n), "i32", 1), normal((k // group, n // 8), "i32", 2)
    scales, checked = normal((k // group, n), kind, 3), spread(m, 48)
    # No weight is subnormal, and no result beyond f16.
    scales[:] = 0.01 * (1 + np.abs(scales))
    shift = 4 * np.arange(8)
    whole = (b[:, None, :] >> shift[:, None] & 15).reshape(k, n)
    zero = (zeros[:, :, None] >> shift & 15).reshape(k // group, n)
    x = a[checked].astype(np.float64)
    y = (whole - np.repeat(zero, group, axis=0)) * np.repeat(scales.astype(np.float64), group, axis=0)
    exact = x @ y

    def launch(jit: Any, *arrays: Any, **options: Any) -> Any:
        return _tiled(packed_kernel, m, n, k, jit, *arrays, GROUP=group, **options)

    # A weight is rounded to the type once.
    allowed = _bound(x, y, exact, kind) + unit(kind) * (np.abs(x) @ np.abs(y))
    inputs = (a, b, scales, zeros)
    title, moved = f"matmul {kind} x 4 bits in groups of {group}, {m} x {n} x {k}", sum(e.nbytes for e in (*inputs, c))
    return Problem(title, "TFLOP/s", moved, 2 * m * n * k, inputs, c, exact, allowed, launch, checked=checked)


@triton.jit
def scaled_kernel(a_ptr, sa_ptr, b_ptr, sb_ptr, c_ptr, m, n, k, BM: constexpr, BN: constexpr, BK: constexpr):
    """A and B have a scale for each row or column and BK elements along K."""
    row, column = swizzled(m, n, BM, BN, 8)
    at_m = (row * BM + tl.arange(0, BM)) % m
    at_n = (column * BN + tl.arange(0, BN)) % n
    at_k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(k // BK):
        x = tl.load(a_ptr + at_m[:, None] * k + (step * BK + at_k)[None, :])
        y = tl.load(b_ptr + (step * BK + at_k)[:, None] * n + at_n[None, :])
        sa = tl.load(sa_ptr + at_m * (k // BK) + step)
        sb = tl.load(sb_ptr + step * n + at_n)
        total += tl.dot(x, y).to(tl.float32) * sa[:, None] * sb[None, :]
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total, mask=mask)


def scaled(m: int, n: int, k: int, kind: str, block: int) -> Problem:
    a, b, c = normal((m, k), kind), normal((k, n), kind, 1), empty((m, n), "f32")
    sa, sb = normal((m, k // block), "f32", 2), normal((k // block, n), "f32", 3)
    checked = spread(m, 48)
    x = a[checked].astype(np.float64) * np.repeat(sa[checked].astype(np.float64), block, axis=1)
    y = b.astype(np.float64) * np.repeat(sb.astype(np.float64), block, axis=0)
    exact = x @ y

    def launch(jit: Any, a: Any, sa: Any, b: Any, sb: Any, c: Any, **options: Any) -> Any:
        return _tiled(scaled_kernel, m, n, k, jit, a, sa, b, sb, c, BK=block, **options)

    title, moved = f"matmul {kind}, {m} x {n} x {k}, scales of {block}", a.nbytes + b.nbytes + c.nbytes
    allowed = _bound(x, y, exact, "f32") * (k + 3) / k
    inputs = (a, sa, b, sb)
    return Problem(title, "TFLOP/s", moved, 2 * m * n * k, inputs, c, exact, allowed, launch, checked=checked)


@triton.jit
def grouped_kernel(
    a_ptr, b_ptr, c_ptr, starts_ptr, groups, n, k, BM: constexpr, BN: constexpr, BK: constexpr, PROGRAMS: constexpr
):
    """Rows starts[g] to starts[g + 1] of A times B[g]; a fixed number of programs takes all blocks in turns."""
    across = tl.cdiv(n, BN)
    tile = tl.program_id(0)
    before = 0
    for group in range(groups):
        low, high = tl.load(starts_ptr + group), tl.load(starts_ptr + group + 1)
        tiles = tl.cdiv(high - low, BM) * across
        while tile < before + tiles:
            at_m = low + (tile - before) // across * BM + tl.arange(0, BM)
            at_n = (tile - before) % across * BN + tl.arange(0, BN)
            at_k = tl.arange(0, BK)
            total = tl.zeros((BM, BN), tl.float32)
            for start in range(0, k, BK):
                x = tl.load(a_ptr + at_m[:, None] * k + (start + at_k)[None, :], mask=at_m[:, None] < high, other=0.0)
                y = tl.load(
                    b_ptr + (group * k + start + at_k)[:, None] * n + at_n[None, :], mask=at_n[None, :] < n, other=0.0
                )
                total = tl.dot(x, y, total)
            mask = (at_m[:, None] < high) & (at_n[None, :] < n)
            tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total.to(c_ptr.dtype.element_ty), mask=mask)
            tile += PROGRAMS
        before += tiles


def grouped(groups: int, rows: int, n: int, k: int, kind: str) -> Problem:
    a, b, c = normal((rows, k), kind), normal((groups, k, n), kind, 1), empty((rows, n), kind)
    starts = empty((groups + 1,), "i32")
    starts[1:-1] = np.sort(np.random.default_rng(1).integers(0, rows, groups - 1))
    starts[0], starts[-1] = 0, rows
    checked = spread(rows, 16)
    of = np.searchsorted(starts[1:], checked, side="right")
    pairs = [(a[[row]].astype(np.float64), b[group].astype(np.float64)) for row, group in zip(checked, of, strict=True)]
    exact = np.concatenate([x @ y for x, y in pairs])
    allowed = np.concatenate([_bound(x, y, x @ y, kind) for x, y in pairs])

    def launch(jit: Any, a: Any, b: Any, starts: Any, c: Any, programs: int, **options: Any) -> Any:
        return jit(grouped_kernel)[(programs,)](a, b, c, starts, groups, n, k, PROGRAMS=programs, **options)

    title, moved = f"products of {groups} groups {kind}, {rows} x {n} x {k}", a.nbytes + b.nbytes + c.nbytes
    inputs = (a, b, starts)
    return Problem(title, "TFLOP/s", moved, 2 * rows * n * k, inputs, c, exact, allowed, launch, checked=checked)


@triton.jit
def vector_kernel(a_ptr, x_ptr, y_ptr, rows, columns, BR: constexpr, BC: constexpr):
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(0, columns, BC):
        column = start + tl.arange(0, BC)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        a = tl.load(a_ptr + row[:, None] * columns + column[None, :], mask=mask, other=0.0).to(tl.float32)
        total += a * tl.load(x_ptr + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    tl.store(y_ptr + row, tl.sum(total, axis=1), mask=row < rows)


def vector(rows: int, columns: int, kind: str) -> Problem:
    a, x, y = normal((rows, columns), kind), normal((columns,), kind, 1), empty((rows,), "f32")
    checked = spread(rows, 1024)
    wide, by = a[checked].astype(np.float64), x.astype(np.float64)

    def launch(jit: Any, *arrays: Any, BR: int, **options: Any) -> Any:
        return jit(vector_kernel)[(triton.cdiv(rows, BR),)](*arrays, rows, columns, BR=BR, **options)

    title, moved = f"matrix times vector {kind}, {rows} x {columns}", a.nbytes + x.nbytes + y.nbytes
    allowed = (columns + 2) * F32 * (np.abs(wide) @ np.abs(by))
    return Problem(title, "GB/s", moved, 2 * a.size, (a, x), y, wide @ by, allowed, launch, checked=checked)


@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, y_ptr, height, width, C: constexpr, OUT: constexpr, BM: constexpr, BN: constexpr, BK: constexpr
):
    """3 x 3, channels last, as a product: rows are the output's places, and the depth is 9 * C."""
    place = tl.program_id(0) * BM + tl.arange(0, BM)
    line, column = place // width, place % width
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(9 * C // BK):
        tap = step * BK // C
        at_c = step * BK % C + tl.arange(0, BK)
        y, x = line + tap // 3 - 1, column + tap % 3 - 1
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        a = tl.load(x_ptr + (y * width + x)[:, None] * C + at_c[None, :], mask=inside[:, None], other=0.0)
        b = tl.load(w_ptr + (tap * C + at_c)[:, None] * OUT + at_n[None, :])
        total = tl.dot(a, b, total)
    mask = (place < height * width)[:, None]
    tl.store(y_ptr + place[:, None] * OUT + at_n[None, :], total.to(y_ptr.dtype.element_ty), mask=mask)


def convolution(height: int, width: int, channels: int, out: int, kind: str) -> Problem:
    x, w = normal((height, width, channels), kind), normal((9 * channels, out), kind, 1)
    y = empty((height * width, out), kind)
    checked = spread(height * width, 64)
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    a = np.stack([padded[p // width : p // width + 3, p % width : p % width + 3].reshape(-1) for p in checked])
    b = w.astype(np.float64)

    def launch(jit: Any, *arrays: Any, BM: int, BN: int, **options: Any) -> Any:
        grid = (triton.cdiv(height * width, BM), out // BN)
        return jit(convolution_kernel)[grid](*arrays, height, width, C=channels, OUT=out, BM=BM, BN=BN, **options)

    title, moved = f"convolution 3 x 3 {kind}, {height} x {width} x {channels} -> {out}", x.nbytes + w.nbytes + y.nbytes
    work, allowed = 18 * y.size * channels, _bound(a, b, a @ b, kind)
    return Problem(title, "TFLOP/s", moved, work, (x, w), y, a @ b, allowed, launch, checked=checked)


@triton.jit
def strided_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    images,
    channels,
    out,
    height,
    width,
    lines,
    columns,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
):
    """3 x 3 with a stride of 2 in the order of PyTorch, channels first, as a product of any sizes."""
    place = tl.program_id(0) * BM + tl.arange(0, BM)
    column, line, image = place % columns, place // columns % lines, place // (columns * lines)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = channels * 9
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, depth, BK):
        at_k = start + tl.arange(0, BK)
        y = (line * 2 - 1)[:, None] + (at_k % 9 // 3)[None, :]
        x = (column * 2 - 1)[:, None] + (at_k % 3)[None, :]
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        inside = inside & (image[:, None] < images) & (at_k[None, :] < depth)
        plane = image[:, None] * channels + (at_k // 9)[None, :]
        a = tl.load(x_ptr + (plane * height + y) * width + x, mask=inside, other=0.0)
        mask = (at_k[:, None] < depth) & (at_n[None, :] < out)
        b = tl.load(w_ptr + at_n[None, :] * depth + at_k[:, None], mask=mask, other=0.0)
        total = tl.dot(a, b, total)
    at = (image[:, None] * out + at_n[None, :]) * (lines * columns) + (line * columns + column)[:, None]
    mask = (image[:, None] < images) & (at_n[None, :] < out)
    tl.store(y_ptr + at, total.to(y_ptr.dtype.element_ty), mask=mask)


def strided(images: int, channels: int, out: int, height: int, width: int, kind: str) -> Problem:
    lines, columns = (height + 1) // 2, (width + 1) // 2
    x, w = normal((images, channels, height, width), kind), normal((out, 9 * channels), kind, 1)
    y = empty((images, out, lines, columns), kind)
    image, line, column = np.unravel_index(spread(images * lines * columns), (images, lines, columns))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [padded[i, :, 2 * j : 2 * j + 3, 2 * k : 2 * k + 3] for i, j, k in zip(image, line, column, strict=True)]
    a, b = np.stack(parts).reshape(len(parts), -1), w.astype(np.float64).T
    sizes = (images, channels, out, height, width, lines, columns)

    def launch(jit: Any, *arrays: Any, BM: int, BN: int, **options: Any) -> Any:
        grid = (triton.cdiv(images * lines * columns, BM), triton.cdiv(out, BN))
        return jit(strided_kernel)[grid](*arrays, *sizes, BM=BM, BN=BN, **options)

    title = f"convolution 3 x 3, stride 2 {kind}, {images} x {channels} x {height} x {width} -> {out}"
    moved, index = x.nbytes + w.nbytes + y.nbytes, (image, slice(None), line, column)
    work, allowed = 18 * y.size * channels, _bound(a, b, a @ b, kind)
    return Problem(title, "TFLOP/s", moved, work, (x, w), y, a @ b, allowed, launch, checked=index)
