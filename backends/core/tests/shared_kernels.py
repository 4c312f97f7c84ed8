"""Kernels that the tests of several files launch, and kernels that are made of text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import triton
import triton.language as tl


@triton.jit
def vec_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def scale_kernel(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def place_kernel(out):
    """Each program stores its place in the grid."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x + 10 * y + 100 * z)


@triton.jit
def tuple_kernel(pair, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(pair[1] + i, tl.load(pair[0] + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def softmax(x, out, n, stride, BLOCK: tl.constexpr):
    """Each program computes a row."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def product(a, b, c, N: tl.constexpr):
    """One program multiplies two square matrices."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(c + i * N + j, tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j)))


@triton.jit
def matmul(a, b, c, M, N, K, am, bk, cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """The programs of GROUP rows of blocks follow each other, as in Triton's tutorial."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = pid // in_group * GROUP
    size = min(rows - first, GROUP)
    i = first + (pid % in_group) % size
    j = (pid % in_group) // size
    at_m, at_n, at_k = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_at = a + (at_m % M)[:, None] * am + at_k[None, :]
    b_at = b + at_k[:, None] * bk + (at_n % N)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(a_at, mask=at_k[None, :] < K - k * BK, other=0.0)
        y = tl.load(b_at, mask=at_k[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        a_at += BK
        b_at += BK * bk
    tl.store(c + cm * at_m[:, None] + at_n[None, :], total, mask=(at_m[:, None] < M) & (at_n[None, :] < N))


@triton.jit
def matmul_2d(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each program computes a block, at its place in a grid of two dimensions."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM)[:, None], tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        along, down = start + tl.arange(0, BK)[None, :], start + tl.arange(0, BK)[:, None]
        x = tl.load(a + rows * K + along, mask=(rows < M) & (along < K), other=0.0)
        y = tl.load(b + down * N + columns, mask=(down < K) & (columns < N), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + rows * N + columns, total, mask=(rows < M) & (columns < N))


@triton.jit
def linear(a1, b1, a2, b2):
    """Apply x -> a1 x + b1, then x -> a2 x + b2: the order matters."""
    return a1 * a2, b1 * a2 + b2


def imported(path: Path, text: str) -> Any:
    """Import a module of this text from a file, because Triton reads a kernel's source from its file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
