"""Programs in slices: which kernels are split, what a slice computes, how many slices and tasklets a launch uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import triton
import triton.language as tl
import triton_dpu_backend
from foundry_core.tensor import Tensor
from shared_kernels import vec_add
from triton_dpu_backend import slices

rng = np.random.default_rng(0)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        depth = start + tl.arange(0, BK)
        a = tl.load(a_ptr + (row % M)[:, None] * K + depth[None, :], mask=depth[None, :] < K, other=0.0)
        b = tl.load(b_ptr + depth[:, None] * N + (column % N)[None, :], mask=depth[:, None] < K, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c_ptr + row[:, None] * N + column[None, :], total, mask=inside)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=-float("inf"))
    largest = tl.max(x, axis=1)
    power = tl.exp(x - largest[:, None])
    tl.store(out_ptr + row[:, None] * columns + column[None, :], power / tl.sum(power, axis=1)[:, None], mask=inside)


@triton.jit
def triangle_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Gather rows; keep what is below the diagonal, which depends on two ranges of the same length."""
    row, column = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    source = tl.load(index_ptr + row)
    x = tl.load(x_ptr + source[:, None] * n + column[None, :], mask=column[None, :] < n, other=0)
    kept = tl.where(column[None, :] <= row[:, None], x, row[:, None] * 1000)
    tl.store(out_ptr + row[:, None] * n + column[None, :], kept, mask=(row[:, None] < n) & (column[None, :] < n))


@triton.jit
def centre_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mean = tl.sum(tl.load(x_ptr + at), axis=0) // BLOCK
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) - mean, mask=at < n)


@triton.jit
def reversed_kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + BLOCK - 1 - at))


@triton.jit
def running_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> triton_dpu_backend.LaunchCost:
    """Launch on one DPU and return what it cost. Arrays are passed as tensors."""
    with triton_dpu_backend.profile() as launches:
        passed = [Tensor(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
        kernel[grid](*passed, num_dpus=1, **options)
    (cost,) = launches
    return cost


def floats(*shape: int) -> npt.NDArray[np.float32]:
    return rng.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("m", "n", "k", "block"),
    [(13, 17, 9, (16, 16, 16)), (40, 8, 70, (32, 16, 64)), (1, 30, 5, (16, 32, 16))],
)
def test_rows_of_a_product_are_spread_over_tasklets(m: int, n: int, k: int, block: tuple[int, int, int]) -> None:
    a, b, c = floats(m, k), floats(k, n), np.full((m, n), np.nan, np.float32)
    a[0, 0], b[0, n - 1] = np.inf, -0.0
    bm, bn, bk = block
    cost = launch(product_kernel, (-(-m // bm), -(-n // bn)), a, b, c, m, n, k, BM=bm, BN=bn, BK=bk)
    wide = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = wide[0] @ wide[1]
        allowed = (k + 2) * np.finfo(np.float32).eps * (np.abs(wide[0]) @ np.abs(wide[1]))
    finite = np.isfinite(exact)
    assert np.array_equal(np.isnan(c), np.isnan(exact))
    assert np.array_equal(c[~finite], exact[~finite].astype(np.float32), equal_nan=True)
    assert (np.abs(c[finite] - exact[finite]) <= allowed[finite]).all()
    assert cost.parts >= 4
    assert cost.tasklets >= 8


@pytest.mark.parametrize(("rows", "columns"), [(32, 20), (19, 33)])
def test_rows_that_are_reduced_are_split_between_rows(rows: int, columns: int) -> None:
    x, out = floats(rows, columns), np.full((rows, columns), np.nan, np.float32)
    cost = launch(softmax_kernel, (-(-rows // 32),), x, out, rows, columns, ROWS=32, COLUMNS=64)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    assert np.abs(out - exact).max() <= (columns + 8) * np.finfo(np.float32).eps
    assert cost.parts >= 8
    assert cost.tasklets >= 11


def test_two_dimensions_of_one_range_are_told_apart() -> None:
    n = 30
    x, index = rng.integers(-99, 99, (n, n)).astype(np.int32), rng.integers(0, n, 32).astype(np.int32)
    out = np.full((n, n), -1, np.int32)
    cost = launch(triangle_kernel, (1,), x, index, out, n, BLOCK=32)
    row, column = np.indices((n, n))
    assert np.array_equal(out, np.where(column <= row, x[index[:n]], row * 1000))
    assert cost.parts == 16


@pytest.mark.parametrize("n", [1, 1023, 3000])
def test_elements_are_split_into_runs(n: int) -> None:
    x, y = (rng.integers(-(2**31), 2**31, n, np.int32) for _ in range(2))
    memory = np.full(n + 64, 0x5A5A5A5A, np.int32)
    cost = launch(vec_add, (-(-n // 1024),), x, y, memory[32 : 32 + n], n, BLOCK=1024)
    assert np.array_equal(memory[32 : 32 + n], x + y)
    assert (memory[:32] == 0x5A5A5A5A).all()
    assert (memory[32 + n :] == 0x5A5A5A5A).all()
    assert cost.parts > 1


def test_operation_on_the_whole_tile_is_not_split() -> None:
    x = rng.integers(-1000, 1000, 256).astype(np.int32)
    out = np.full_like(x, -1)
    assert launch(running_kernel, (1,), x, out, BLOCK=256).parts == 1
    assert np.array_equal(out, np.cumsum(x))
    turned = x.copy()
    assert launch(reversed_kernel, (1,), turned, BLOCK=256).parts == 1
    assert np.array_equal(turned, x[::-1])


def test_arguments_that_share_memory_are_not_split() -> None:
    """Each slice needs the sum of all elements: in place, one would read what another has already written."""
    x = rng.integers(0, 1000, 1024).astype(np.int32)
    exact, out = x - x.sum() // 1024, np.full_like(x, -1)
    assert launch(centre_kernel, (1,), x, out, 1024, BLOCK=1024).parts > 1
    assert np.array_equal(out, exact)
    assert launch(centre_kernel, (1,), x, x, 1024, BLOCK=1024).parts == 1
    assert np.array_equal(x, exact)


@pytest.mark.parametrize(
    ("number", "most", "best"), [(16, 14, 8), (16, 16, 16), (32, 14, 11), (33, 14, 11), (28, 14, 14), (3, 14, 3)]
)
def test_all_tasklets_end_together(number: int, most: int, best: int) -> None:
    assert slices.tasklet_count(number, most) == best


@pytest.mark.parametrize(
    ("programs", "compiled", "most_parts", "tasklets", "computes", "best", "asked"),
    [
        pytest.param(16, 1, 16, {1: 14, 2: 14}, False, 2, [1, 2], id="as far as it gains"),
        pytest.param(1, 1, 64, {1: 16, 16: 16}, False, 16, [1, 16], id="what cannot be enough is not compiled"),
        pytest.param(1, 1, 4, {1: 16, 4: 16}, False, 4, [1, 4], id="as far as the kernel allows, the best first"),
        pytest.param(176, 1, 16, {1: 16}, False, 1, [1], id="it is enough as it is"),
        pytest.param(100, 8, 16, {8: 11}, False, 8, [8], id="it is enough as it was compiled"),
        pytest.param(64, 4, 16, {4: 11, 8: 14, 16: 16}, True, 8, [4, 8], id="a kernel that computes: a small gain"),
        pytest.param(64, 4, 16, {4: 11, 8: 14, 16: 16}, False, 4, [4], id="a kernel that does not"),
        pytest.param(1, 8, 16, {8: 11, 16: 16}, False, 16, [8, 16], id="there is room"),
        pytest.param(1, 8, 16, {8: 11, 16: 12}, False, 8, [8, 16], id="there is no room for all"),
    ],
)
def test_program_is_split_as_far_as_it_gains(
    programs: int, compiled: int, most_parts: int, tasklets: dict[int, int], computes: bool, best: int, asked: list[int]
) -> None:
    seen = []

    def room(parts: int) -> int:
        seen.append(parts)
        return tasklets[parts]

    number = slices.slice_count(programs, room, compiled, most_parts, most_tasklets=16, computes=computes)
    assert (number, seen) == (best, asked)
