"""Kernels of backends/core/tests/texts, with arguments and what NumPy says that they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .memory import Array
from .roads import Kernel

TEXTS = Path(__file__).parents[1] / "tests" / "texts"
I32, F32 = np.int32, np.float32


@dataclass(frozen=True)
class Case:
    """A launch.

    Attributes:
        arguments: arrays and numbers, in the order of the kernel's parameters.
        expected: of each array, what it must be afterwards.
        error: the relative error that is allowed.
    """

    name: str
    grid: tuple[int, int, int]
    arguments: Sequence[Any]
    expected: Sequence[Array]
    error: float = 0.0

    def kernel(self, lanes: int) -> Kernel:
        """Return the kernel's texts, for subgroups of 8, 16, 32 or 64 invocations."""
        ttir, ttgir = ((TEXTS / f"{self.name}{suffix}").read_text() for suffix in (".ttir", f".{lanes}.ttgir"))
        return Kernel(ttir, ttgir)


def limits() -> Case:
    size, n, lo, block = 128, 100, 5, 64
    x, offs = np.random.default_rng(4).integers(-200, 200, size), np.arange(size)
    mask = (offs <= n) & (offs > lo)
    v, r = np.where(mask, x, -7), offs % block
    b = (v > 3).astype(int) < (v > 100).astype(int)
    c = (v > 3).astype(int) <= ((v & 1) == 1).astype(int)
    wide = (r + r * 33554432 + 1500000000).astype(I32).astype(np.int64)
    out = np.full(size, -1, np.int64)
    expected = np.where(mask, v + b * 1000 + c * 100000 + wide, out)
    return Case("limits", (2, 1, 1), [x, out, I32(n), I32(lo)], [x, expected])


def softmax() -> Case:
    rows, n, stride = 3, 77, 80
    x = np.random.default_rng(1).standard_normal((rows, stride)).astype(F32) * 4
    out = np.full((rows, stride), np.nan, F32)
    e = np.exp(x[:, :n].astype(np.float64) - x[:, :n].max(1, keepdims=True))
    expected = out.copy()
    expected[:, :n] = e / e.sum(1, keepdims=True)
    return Case("softmax", (rows, 1, 1), [x, out, I32(stride), I32(n)], [x, expected], 5e-6)


def matmul() -> Case:
    random = np.random.default_rng(2)
    m, n, k = 27, 21, 40
    a, b = (random.integers(-8, 8, shape).astype(F32) for shape in ((m, k), (k, n)))
    arguments = [a, b, np.full((m, n), np.nan, F32), *map(I32, (m, n, k, k, n, n))]
    return Case("matmul", (2, 2, 1), arguments, [a, b, a @ b])


def activated() -> Case:
    random, (m, n, k) = np.random.default_rng(17), (45, 51, 32)
    a, b = ((random.integers(-8, 9, shape) / 4).astype(np.float16) for shape in ((m, k), (k, n)))
    a[3, 5], a[40, 2] = np.inf, np.nan
    row, column = (random.integers(-8, 9, size).astype(F32) / 8 for size in (n, m))
    row[7], column[9], column[11] = -np.inf, 0.0, 2.0**15
    out = np.full((m + 1, n), 77, np.float16)
    with np.errstate(all="ignore"):
        x = a.astype(F32) @ b.astype(F32) * column[:, None] + row
        wanted = np.concatenate([np.where(x > 0, x, x * F32(0.25)).astype(np.float16), out[m:]])
    return Case("activated", (2, 2, 1), [a, b, row, column, out, *map(I32, (m, n, k))], [a, b, row, column, wanted])


def attended() -> Case:
    random, (length, depth) = np.random.default_rng(18), (128, 16)
    q, k = random.standard_normal((2, length, depth)).astype(np.float16)
    v, scale = random.uniform(0.5, 1.5, (length, depth)).astype(np.float16), F32(0.5)
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    scores[np.triu_indices(length, 1)] = -np.inf
    powers = np.exp2(scores - scores.max(1, keepdims=True))
    wanted = (powers / powers.sum(1, keepdims=True) @ v.astype(np.float64)).astype(np.float16)
    arguments = [q, k, v, np.full_like(q, np.nan), scale, I32(length)]
    # Powers and the result are rounded to f16.
    return Case("attended", (2, 1, 1), arguments, [q, k, v, wanted], 2.0**-9)


def histogram() -> Case:
    n, bins, block = 150, 8, 64
    x = np.random.default_rng(3).integers(0, 1000, n).astype(I32)
    parts = [x[at : at + block] for at in range(0, n, block)]
    counts = np.append(np.bincount(x & (bins - 1), minlength=bins), x.max()).astype(I32)
    sums = np.concatenate([np.cumsum(part, dtype=I32) for part in parts])
    return Case("histogram", (3, 1, 1), [x, np.zeros(bins + 1, I32), np.full(n, -1, I32), I32(n)], [x, counts, sums])


def transposes() -> Case:
    x, steps = np.random.default_rng(5).integers(-9, 9, (16, 8)).astype(I32), 3
    found = x
    for _ in range(steps):
        found = found * 2 + found.max(1)[:, None] + found.sum(0)[None, :]
        found = found.T.reshape(16, 8).astype(I32)
    return Case("transposes", (1, 1, 1), [x, np.full_like(x, 77), I32(steps)], [x, found])


def exchanged() -> Case:
    c, n = np.arange(16).astype(I32) * 3, 5
    a, b = (np.full(80, -1, I32) for _ in range(2))
    wanted = [a.copy(), b.copy()]
    for k in range(n):
        wanted[k % 2][k * 16 : k * 16 + 16] = c + k
    return Case("exchanged", (1, 1, 1), [a, b, c, I32(n), I32(1)], [*wanted, c])


def strided() -> Case:
    x, n, stride = np.arange(16).astype(I32) * 5, 4, 20
    out = np.full(80, -1, I32)
    wanted = out.copy()
    for k in range(n):
        wanted[stride * k : stride * k + 16] = x + k
    return Case("strided", (1, 1, 1), [x, out, I32(n), I32(stride)], [x, wanted])


def gathered() -> Case:
    random, n = np.random.default_rng(6), 75
    x = random.standard_normal(50).astype(F32)
    index = random.integers(-3, 50, n).astype(I32)
    expected = np.where(index >= 0, x[index], F32(-1))[::-1] * 2
    return Case("gathered", (3, 1, 1), [x, index, np.full(n, np.nan, F32), I32(n)], [x, index, expected])


def largest() -> Case:
    rows, columns = 7, 29
    x = np.random.default_rng(7).integers(-5, 5, (rows, columns)).astype(F32)
    x[2] = -np.inf
    blank = [np.full(rows, np.nan, F32), np.full(rows, -1, I32)]
    expected = [x, x.max(1), x.argmax(1).astype(I32)]
    return Case("largest", (2, 1, 1), [x, *blank, I32(rows), I32(columns)], expected)


def moved() -> Case:
    n, steps, block = 83, 4, 32
    x = np.random.default_rng(8).integers(-99, 99, n).astype(F32)
    wide = np.full(steps * block, 3, F32)
    wide[:n] = x
    expected = sum((part * F32(0.5**k) for k, part in enumerate(wide.reshape(steps, block))), np.zeros(block, F32))
    return Case("moved", (1, 1, 1), [x, np.full(block, np.nan, F32), I32(n), I32(steps)], [x, expected])


def in_place() -> Case:
    x, n = np.random.default_rng(9).integers(-99, 99, 32).astype(I32), 4
    found = x.copy()
    for k in range(n):
        found = found + found[np.arange(32) ^ 1] + I32(k)
    return Case("in_place", (1, 1, 1), [x, I32(n)], [found])


def branches() -> Case:
    x, n, block = np.array([6, 1, -4, 0, 27, 7], I32), 5, 16
    out = np.full((6, block), -77, I32)
    expected = out.copy()
    for pid, first in enumerate(x[:n].tolist()):
        steps, value = 0, first
        while value > 1:
            value, steps = (value // 2 if value % 2 == 0 else value * 3 + 1), steps + 1
        expected[pid] = np.arange(block) * steps if steps % 2 else np.arange(block) + steps + np.sign(first)
    return Case("branches", (6, 1, 1), [x, out, I32(n)], [x, expected])


def sums() -> Case:
    rows, columns = 11, 37
    x = np.random.default_rng(10).integers(-128, 128, (rows, columns)).astype(np.int8)
    arguments = [x, np.full(rows, 77, I32), I32(rows), I32(columns)]
    return Case("sums", (2, 1, 1), arguments, [x, x.sum(1, dtype=I32)])


def halves() -> Case:
    random, n = np.random.default_rng(11), 50
    x = (random.integers(-64, 64, n) / 8).astype(np.float16)
    y = random.integers(-16, 16, n).astype(F32)
    bits = (y.view(np.uint32) >> 16).astype(np.uint16)
    # The product of f16 and bf16 is one of f32 in Triton; all numbers are exact in both.
    s = x.astype(F32) * y + x.astype(F32)
    blank = np.full(n, np.nan, F32)
    return Case("halves", (2, 1, 1), [x, bits, blank, blank.copy(), I32(n)], [x, bits, s, s + y])


def diagonal() -> Case:
    n = 13
    x = np.random.default_rng(12).integers(-99, 99, (n, n)).astype(F32)
    low = np.tril(x)
    return Case("diagonal", (1, 1, 1), [x, np.full_like(x, np.nan), I32(n)], [x, low + low.T * 2])


def joined() -> Case:
    x = np.random.default_rng(13).integers(-9, 9, 32).astype(I32)
    both = np.cumsum(np.stack([x, x * x], 1), 0, dtype=I32)[::-1]
    return Case("joined", (1, 1, 1), [x, np.full(64, 77, I32)], [x, both.reshape(-1)])


def chosen() -> Case:
    a, b, n = np.arange(16).astype(I32), np.arange(16).astype(I32) + 100, 11
    expected = np.where(np.arange(16) < n, b, 0).astype(I32)
    return Case("chosen", (1, 1, 1), [a, b, np.full(16, 77, I32), I32(n), I32(0)], [a, b, expected])


def picked() -> Case:
    n = 4000
    x = np.random.default_rng(14).integers(-900, 900, n).astype(F32)
    # The places of equal elements are found from the left.
    places = np.argsort(-x, kind="stable")[:8].astype(I32)
    blank = [np.full(8, np.nan, F32), np.full(8, -1, I32)]
    return Case("picked", (1, 1, 1), [x, *blank, I32(n)], [x, x[places], places])


def sampled() -> Case:
    random, n = np.random.default_rng(15), 4000
    logits, uniform = random.standard_normal(n).astype(F32), random.uniform(0.01, 0.99, n).astype(F32)
    uniform[1234] = 1 - 2e-6
    exact = logits - np.log(-np.log(uniform.astype(np.float64)))
    arguments = [logits, uniform, np.full(1, -1, I32), I32(n)]
    return Case("sampled", (1, 1, 1), arguments, [logits, uniform, np.array([exact.argmax()], I32)])


def top() -> Case:
    x, n = np.random.default_rng(16).integers(-99, 99, 120).astype(I32), 120
    return Case("top", (1, 1, 1), [x, np.full(8, 77, I32), I32(n)], [x, np.sort(x)[:-9:-1]])


def linear(name: str = "linear", n: int = 128, depth: int = 64, wide: int = 64) -> Case:
    random, chunk = np.random.default_rng(17), 64
    q, k, v = (random.integers(-2, 3, (n, columns)).astype(np.float16) for columns in (depth, depth, wide))
    # What is infinite in the first chunk is in the sums of the second one.
    q[3, 5], q[70, 1], k[100, 7], v[20, 9], v[21, 9], v[90, 14] = np.nan, np.inf, -np.inf, np.inf, -np.inf, -np.inf
    q[4], v[:, 2] = 0, -0.0
    expected, state = np.full((n, wide), np.nan), np.zeros((depth, wide))
    with np.errstate(invalid="ignore"):
        for rows in (slice(at, at + chunk) for at in range(0, n, chunk)):
            x, y, z = (each[rows].astype(np.float64) for each in (q, k, v))
            # Scores and sums are rounded to f16, which has these integers.
            scores = np.where(np.tri(chunk, dtype=bool), x @ y.T, 0)
            expected[rows] = scores @ z + x @ state
            state = state + y.T @ z
    out = np.full((n, wide), 77, F32)
    return Case(name, (1, 1, 1), [q, k, v, out, I32(n)], [q, k, v, expected.astype(F32)])


def narrow() -> Case:
    return linear("narrow", 192, 32, 32)


def decoded() -> Case:
    random, n, depth, page = np.random.default_rng(18), 75, 32, 16
    pages = -(-n // page)
    table = random.permutation(pages).astype(I32)
    q = (random.standard_normal((16, depth)) / 4).astype(np.float16)
    k = random.standard_normal((pages * page, depth)).astype(np.float16)
    v = random.uniform(0.5, 2, (pages * page, depth)).astype(np.float16)
    q[2], q[5, 1], v[table[0] * page + 3, 7] = 0, np.nan, np.inf
    keys, values = (
        each.reshape(pages, page, depth)[table].reshape(-1, depth)[:n].astype(np.float64) for each in (k, v)
    )
    scores = q.astype(np.float64) @ keys.T
    weight = np.exp(scores - scores.max(1, keepdims=True))
    with np.errstate(invalid="ignore"):
        expected = weight @ values / weight.sum(1, keepdims=True)
    out = np.full((16, depth), 77, F32)
    case = [q, k, v, table, out, I32(n)]
    return Case("decoded", (1, 1, 1), case, [q, k, v, table, expected.astype(F32)], 2e-3)


CASES: dict[str, Callable[[], Case]] = {
    function.__name__: function
    for function in (
        *(limits, softmax, matmul, activated, attended, histogram, transposes, exchanged, strided, gathered, largest),
        *(moved, in_place, branches, sums, halves, diagonal, joined, chosen, picked, sampled, top, narrow, decoded),
    )
}


def check(case: Case, arrays: Sequence[Array]) -> None:
    """Compare arrays with what NumPy says."""
    for number, (found, wanted) in enumerate(zip(arrays, case.expected, strict=True)):
        if case.error:
            np.testing.assert_allclose(found, wanted, case.error, err_msg=f"array {number}")
        else:
            np.testing.assert_array_equal(found, wanted, f"array {number}")
