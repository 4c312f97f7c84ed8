"""Kernels whose accesses meet at one element through different offsets, and what they do in the order of their lines.

Each program has a row of `x` and of `out` for itself; both have `BLOCK` integers of 32 bits a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

Array = Any


@triton.jit
def one_hot(x, out, BLOCK: tl.constexpr):
    """A row of zeros, and then a one in it."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + i, tl.zeros((BLOCK,), tl.int32))
    tl.store(out + row + tl.load(x + row) % BLOCK, 1)


def _one_hot(x: Array, out: Array) -> None:
    out[:] = 0
    out[x[0] % len(x)] = 1


@triton.jit
def stored_then_added(x, out, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + i, i)
    tl.atomic_add(out + row + BLOCK - 1 - i, tl.load(x + row + i))


def _stored_then_added(x: Array, out: Array) -> None:
    out[:] = np.arange(len(x)) + x[::-1]


@triton.jit
def stored_in_both_orders(x, out, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    value = tl.load(x + row + i)
    tl.store(out + row + i, value)
    tl.store(out + row + BLOCK - 1 - i, value)


def _stored_in_both_orders(x: Array, out: Array) -> None:
    out[:] = x[::-1]


@triton.jit
def reversed_in_place(x, out, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + i, tl.load(x + row + i))
    tl.store(x + row + BLOCK - 1 - i, tl.load(x + row + i))


def _reversed_in_place(x: Array, out: Array) -> None:
    out[:] = x
    x[:] = x[::-1].copy()


@triton.jit
def shifted_in_place(x, out, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + i, -1)
    tl.store(x + row + i + 1, tl.load(x + row + i), mask=i + 1 < BLOCK)


def _shifted_in_place(x: Array, out: Array) -> None:
    out[:] = -1
    x[1:] = x[:-1].copy()


@triton.jit
def rotated_in_a_loop(x, out, BLOCK: tl.constexpr):
    """What the end of an iteration stores, the next one loads."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for turn in range(tl.load(x + row) % 3 + 4):
        value = tl.load(x + row + i)
        total += value
        tl.store(x + row + (i + 7) % BLOCK, value + turn)
    tl.store(out + row + i, total)


def _rotated_in_a_loop(x: Array, out: Array) -> None:
    out[:] = 0
    for turn in range(x[0] % 3 + 4):
        out += x
        x[:] = np.roll(x, 7) + turn


@triton.jit
def prefix_in_branches(x, out, BLOCK: tl.constexpr):
    """A scan by doubling distances, half of whose steps are in the other branch."""
    row, i, distance = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK), 1
    tl.store(out + row + i, tl.load(x + row + i))
    while distance < BLOCK:
        if distance % 3 == 1:
            part = tl.load(out + row + i - distance, mask=i >= distance, other=0)
            tl.store(out + row + i, tl.load(out + row + i) + part)
        else:
            sum = tl.load(out + row + i) + tl.load(out + row + i - distance, mask=i >= distance, other=0)
            tl.store(out + row + i, sum)
        distance *= 2


def _prefix_in_branches(x: Array, out: Array) -> None:
    out[:] = np.cumsum(x, dtype=np.int32)


@triton.jit(noinline=True)
def mirror(to, source, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(to + i, tl.load(source + BLOCK - 1 - i))


@triton.jit
def called_twice(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    mirror(out + row, x + row, BLOCK)
    mirror(x + row, out + row, BLOCK)
    mirror(out + row, x + row, BLOCK)


def _called_twice(x: Array, out: Array) -> None:
    out[:] = x[::-1]


@triton.jit
def counted_scalars(x, out, BLOCK: tl.constexpr):
    """A scalar that is loaded, stored and loaded again, next to a tile of it."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + i, tl.load(x + row + i))
    for turn in range(5):
        value = tl.load(out + row + turn)
        tl.store(out + row + turn + 1, value + 3)
        tl.store(out + row + BLOCK - 1 - turn, value)


def _counted_scalars(x: Array, out: Array) -> None:
    out[:] = x
    for turn in range(5):
        value = out[turn]
        out[turn + 1] = value + 3
        out[len(x) - 1 - turn] = value


@triton.jit
def repeated_tile(x, out, BLOCK: tl.constexpr):
    """Tiles of 16 elements, each of which several invocations hold: all of them must see the old one."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, 16)
    value = tl.load(x + row + i)
    tl.store(x + row + i, value + 1)
    tl.store(out + row + tl.arange(0, BLOCK), tl.sum(value) + tl.load(x + row + tl.arange(0, BLOCK) % 16))


def _repeated_tile(x: Array, out: Array) -> None:
    total = x[:16].sum()
    x[:16] += 1
    out[:] = total + x[np.arange(len(x)) % 16]


@triton.jit
def equal_indices(x, out, BLOCK: tl.constexpr):
    """Indices from memory, some of them equal: all that load one element see it as it was."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    tl.store(out + row + i, i)
    at = out + row + (tl.load(x + row + i) & 7)
    tl.store(at, tl.load(at) + 1)


def _equal_indices(x: Array, out: Array) -> None:
    out[:] = np.arange(len(x))
    at = x & 7
    out[at] = out[at] + 1


@triton.jit
def rows_turned_in_place(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    r, c = tl.arange(0, BLOCK // 16)[:, None], tl.arange(0, 16)[None, :]
    value = tl.load(x + row + r * 16 + c)
    tl.store(x + row + (BLOCK // 16 - 1 - r) * 16 + c, value)
    tl.store(out + row + r * 16 + c, value)


def _rows_turned_in_place(x: Array, out: Array) -> None:
    out[:] = x
    x[:] = x.reshape(-1, 16)[::-1].ravel().copy()


@triton.jit
def chosen_arrays(x, out, BLOCK: tl.constexpr):
    """Pointers that a loop exchanges: each iteration stores where the next one loads."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    p, q = x + row, out + row
    for _ in range(3):
        tl.store(q + i, tl.load(p + BLOCK - 1 - i) + 1)
        p, q = q, p


def _chosen_arrays(x: Array, out: Array) -> None:
    p, q = x, out
    for _ in range(3):
        q[:] = p[::-1] + 1
        p, q = q, p


@triton.jit
def exchanged_after_a_store(x, out, BLOCK: tl.constexpr):
    """Atomic operations of different kinds: the second sees what the first one left."""
    row, i = tl.program_id(0) * BLOCK, tl.arange(0, BLOCK)
    value = tl.load(x + row + i)
    tl.store(out + row + i, value)
    tl.atomic_max(out + row + BLOCK - 1 - i, value)
    old = tl.atomic_xchg(out + row + (i + 5) % BLOCK, i)
    tl.atomic_add(out + row + (i + 9) % BLOCK, old)


def _exchanged_after_a_store(x: Array, out: Array) -> None:
    out[:] = np.maximum(x, x[::-1])
    i = np.arange(len(x))
    old = out[(i + 5) % len(x)]
    out[(i + 5) % len(x)] = i
    out[(i + 9) % len(x)] += old


class Case(NamedTuple):
    """A kernel, and what it does to one row, in NumPy."""

    kernel: Any
    model: Callable[[Array, Array], None]

    def arrays(self, rows: int, block: int) -> tuple[Array, Array, Array, Array]:
        """Return `x`, a poisoned `out`, and both as they must be afterwards."""
        x = np.random.default_rng(rows).integers(0, 1000, (rows, block)).astype(np.int32)
        out = np.full((rows, block), -(2**31), np.int32)
        expected = x.copy(), out.copy()
        for row in range(rows):
            self.model(expected[0][row], expected[1][row])
        return x, out, *expected


CASES = {
    model.__name__[1:]: Case(kernel, model)
    for kernel, model in (
        (one_hot, _one_hot),
        (stored_then_added, _stored_then_added),
        (stored_in_both_orders, _stored_in_both_orders),
        (reversed_in_place, _reversed_in_place),
        (shifted_in_place, _shifted_in_place),
        (rotated_in_a_loop, _rotated_in_a_loop),
        (prefix_in_branches, _prefix_in_branches),
        (called_twice, _called_twice),
        (counted_scalars, _counted_scalars),
        (repeated_tile, _repeated_tile),
        (equal_indices, _equal_indices),
        (rows_turned_in_place, _rows_turned_in_place),
        (chosen_arrays, _chosen_arrays),
        (exchanged_after_a_store, _exchanged_after_a_store),
    )
}
