"""Programs as workgroups on an OpenCL device: the Kernel flavour of SPIR-V, with and without subgroups.

The mapping does not rely on PoCL's subgroups, which are wrong in branches of a loop. Kernels without such branches are
tried with them, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.checked.findings import CheckError
from foundry_core.codegen.tools import check_spirv
from foundry_core.mapping.arch import read_arch
from foundry_core.runtime.opencl import DeviceError, MemoryMode, OpenCLDevice
from foundry_core.tensor import Tensor
from ordered import CASES
from results import check_product, poisoned
from shared_kernels import linear, matmul_2d, softmax
from triton_spirv_backend import opencl

pytestmark = pytest.mark.any_release

F32 = float(np.finfo(np.float32).eps)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask, other=7.0), mask=mask)


@triton.jit
def scan_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    a, b = tl.associative_scan((tl.load(a_ptr + at), tl.load(b_ptr + at)), 0, linear)
    turned = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + turned, tl.trans(a * 1000 + b))


@triton.jit
def atomic_kernel(x_ptr, bins_ptr, wide_ptr, sum_ptr, lock_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_add(bins_ptr + tl.arange(0, 8), tl.histogram(x, 8))
    tl.atomic_max(wide_ptr + x, x.to(tl.int64) << 40)
    tl.atomic_add(sum_ptr, tl.sum(x, 0).to(tl.float32))
    tl.atomic_cas(lock_ptr, 0, tl.program_id(0) + 1)


@triton.jit
def steps_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Count the steps of Collatz's rule until all elements are 1, with barriers in a loop and in a branch."""
    at = tl.arange(0, N)
    x, steps = tl.load(x_ptr + at), tl.zeros((N,), tl.int32)
    turns = 0
    while tl.max(x, 0) > 1:
        turns += 1
        steps += (x > 1).to(tl.int32)
        x = tl.where(x <= 1, x, tl.where(x % 2 == 0, x // 2, 3 * x + 1))
        if turns % 2 == 0:
            steps += tl.sum(x, 0) * 0
    tl.store(out_ptr + at, steps)


@triton.jit
def branches_kernel(x_ptr, out_ptr, last_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    for i in range(n):
        x = tl.load(x_ptr + i * N + at)
        if i % 3 == 0:
            tl.store(out_ptr + i * N + at, x + tl.sum(x, 0))
        else:
            tl.store(out_ptr + i * N + at, tl.cumsum(x, 0))
            tl.store(last_ptr + i * N + at, x - tl.max(x, 0))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, m, n, stored, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + column * m + row, mask=(row < m) & (column < n))
    tl.store(out_ptr + row * n + column, x, mask=(row < m) & (column < stored))


@triton.jit
def divide_kernel(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + column * m + row, mask=(row < m) & (column < n), other=0)
    tl.store(out_ptr + row * n + column, 5040 // x, mask=(row < m) & (column < n))


@pytest.fixture
def workgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workgroups execute programs, as a user does."""
    monkeypatch.setenv(opencl.MAPPING_VARIABLE, "simt")


@pytest.fixture(params=[True, False], ids=["subgroups", "workgroup_memory"])
def exchange(workgroups: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with both ways to exchange elements in a subgroup."""
    device = opencl.open_device()
    size, shuffles = device.lanes
    assert device.swaps(size) and not shuffles
    monkeypatch.setitem(device.__dict__, "lanes", (size, request.param))


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> bytes:
    """Launch a kernel, compiled for the present settings; return its SPIR-V, which spirv-val has accepted."""
    passed = [Tensor(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    compiled = triton.jit(kernel.fn)[grid](*passed, **options)
    assert list(compiled.asm)[-2:] == ["ttgir", "spv"]
    binary: bytes = compiled.asm["spv"]
    # Subgroups are newer than OpenCL 2.2, and spirv-val does not know its extension for 64-bit atomics.
    subgroups = binary[5] == 3
    check_spirv(binary, "spv1.3" if subgroups else "spv1.2" if kernel is atomic_kernel else "opencl2.2")
    return binary


@pytest.mark.parametrize("memory", list(MemoryMode))
def test_masked_elements_are_neither_read_nor_written(
    workgroups: None, memory: MemoryMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = OpenCLDevice(opencl.choose_device(), memory)
    monkeypatch.setattr(opencl, "open_device", lambda: device)
    n = 1000
    x, y = (np.random.default_rng(seed).standard_normal(n).astype(np.float32) for seed in (1, 2))
    x[:4] = np.nan, np.inf, -0.0, 1e-45
    y[:4] = 1.0, -np.inf, -0.0, 0.0
    out = poisoned(n + 24)
    launch(add_kernel, (2, 4), x, y, out, n, BLOCK=128)
    assert np.array_equal(out[:n].view(np.int32)[1:], (x + y).view(np.int32)[1:])
    assert np.isnan(out[0]) and np.array_equal(out[n:], poisoned(24))


def test_rows_are_reduced(exchange: None) -> None:
    x = np.random.default_rng(3).standard_normal((3, 100)).astype(np.float16)
    x[1, :2] = 6e4, 6e-8
    out = poisoned(3, 100)
    launch(softmax, (3,), x, out, 100, 100, BLOCK=128)
    wide = x.astype(np.float64)
    weights = np.exp(wide - wide.max(1, keepdims=True))
    # The difference is rounded, and exp magnifies that by its argument; then exp, 128 sums and a quotient.
    error = np.abs(wide - wide.max(1, keepdims=True)) + 2 + 128 + 1
    expected = weights / weights.sum(1, keepdims=True)
    assert (np.abs(out - expected) <= error * F32 * expected + 2.0**-126).all()


def test_products_are_multiplied_and_added(workgroups: None) -> None:
    m, n, k = 17, 30, 21
    a = np.random.default_rng(4).standard_normal((m, k)).astype(np.float32)
    b = np.random.default_rng(5).standard_normal((k, n)).astype(np.float32)
    out = poisoned(m, n)
    launch(matmul_2d, (2, 2), a, b, out, m, n, k, BM=16, BN=16, BK=16)
    check_product(out, a, b)


def test_checked_mode_compares_the_masks_of_a_load_and_a_store_in_two_layouts(workgroups: None) -> None:
    x, out = np.arange(20 * 12, dtype=np.float32).reshape(20, 12), poisoned(12, 20)
    launch(transpose_kernel, (1,), x, out, 12, 20, 20, M=16, N=32, check=True)
    assert np.array_equal(out, x.T)
    with pytest.raises(CheckError) as caught:
        launch(transpose_kernel, (1,), x, out, 12, 20, 21, M=16, N=32, check=True)
    assert (caught.value.kind, caught.value.lane) == ("undefined", (0, 20))


def test_checked_mode_divides_by_zero_only_where_a_store_in_another_layout_uses_it(workgroups: None) -> None:
    x, out = np.arange(1, 241, dtype=np.int32).reshape(20, 12), np.full((12, 20), -1, np.int32)
    launch(divide_kernel, (1,), x, out, 12, 20, M=16, N=32, check=True)
    assert np.array_equal(out, 5040 // x.T)
    x[13, 7] = 0
    with pytest.raises(CheckError) as caught:
        launch(divide_kernel, (1,), x, out, 12, 20, M=16, N=32, check=True)
    assert (caught.value.kind, caught.value.lane) == ("division", (7, 13))


def check_scan(rows: int, columns: int) -> None:
    a, b = (np.random.default_rng(seed).integers(-3, 4, (rows, columns)).astype(np.int32) for seed in (6, 7))
    out = poisoned(columns, rows, dtype=np.int32)
    launch(scan_kernel, (1,), a, b, out, N=rows, M=columns)
    for row in range(1, rows):
        a[row], b[row] = a[row - 1] * a[row], b[row - 1] * a[row] + b[row]
    assert np.array_equal(out, (a * np.int32(1000) + b).T)


def test_scans_keep_the_order_of_the_axis(exchange: None) -> None:
    check_scan(32, 4)


@pytest.mark.parametrize("lanes", [8, 32])
def test_tiles_pass_in_parts_through_less_memory_than_they_take(
    workgroups: None, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(opencl.open_device().simt_target(), workgroup_bytes=1024, warp_size=lanes)
    monkeypatch.setattr(OpenCLDevice, "simt_target", lambda device: known)
    x = np.random.default_rng(10).standard_normal((60, 31)).astype(np.float32)
    out = poisoned(31, 60)
    launch(transpose_kernel, (1,), x, out, 31, 60, 60, M=32, N=64)
    assert np.array_equal(out, x.T)
    check_scan(32, 16)


def test_atomic_operations_of_many_workgroups(workgroups: None) -> None:
    x = np.random.default_rng(8).integers(0, 8, 16 * 64).astype(np.int32)
    bins, wide = np.zeros(8, np.int32), np.full(8, -1, np.int64)
    total, lock = np.zeros(1, np.float32), np.zeros(1, np.int32)
    launch(atomic_kernel, (16,), x, bins, wide, total, lock, N=64)
    assert np.array_equal(bins, np.bincount(x, minlength=8))
    assert np.array_equal(wide, np.arange(8, dtype=np.int64) << 40)
    assert total[0] == x.sum() and 1 <= lock[0] <= 16


def test_invocations_meet_in_loops_and_branches(exchange: None) -> None:
    x = np.arange(1, 33, dtype=np.int32)
    out = np.full(32, -1, np.int32)
    launch(steps_kernel, (1,), x, out, N=32)
    assert out.tolist() == [collatz(number) for number in range(1, 33)]


def collatz(number: int) -> int:
    steps = 0
    while number > 1:
        number, steps = (number // 2 if number % 2 == 0 else 3 * number + 1), steps + 1
    return steps


def test_both_branches_of_a_loop_exchange_elements(workgroups: None) -> None:
    x = np.random.default_rng(9).integers(0, 20, (4, 128)).astype(np.int32)
    out, last = (np.full(x.shape, -99, np.int32) for _ in range(2))
    launch(branches_kernel, (1,), x, out, last, 4, N=128)
    for i, row in enumerate(x):
        assert np.array_equal(out[i], row + row.sum() if i % 3 == 0 else row.cumsum())
        assert np.array_equal(last[i], np.full(128, -99) if i % 3 == 0 else row - row.max())


# PoCL executes the invocations of a workgroup from barrier to barrier, one after the other.
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("name", CASES)
def test_accesses_through_other_offsets_keep_the_order_of_the_lines(workgroups: None, name: str, warps: int) -> None:
    x, out, x_expected, out_expected = CASES[name].arrays(3, 512)
    launch(CASES[name].kernel, (3,), x, out, BLOCK=512, num_warps=warps)
    assert np.array_equal(x, x_expected)
    assert np.array_equal(out, out_expected)


def test_device_of_opencl_is_described_to_triton(workgroups: None) -> None:
    known = opencl.open_device().simt_target()
    assert read_arch(triton.runtime.driver.active.get_current_target().arch) == known
    assert known.flavour == "kernel" and not known.converts_f16


def test_a_mapping_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(opencl.MAPPING_VARIABLE, "warps")
    with pytest.raises(DeviceError, match="FOUNDRY_SPIRV_MAPPING=warps is not a mapping"):
        opencl.is_simt(opencl.choose_device())


def test_too_many_warps_are_refused(workgroups: None) -> None:
    with pytest.raises(Exception, match="Required: 8192"):
        launch(add_kernel, (1,), *(np.zeros(8, np.float32) for _ in range(3)), 8, BLOCK=8, num_warps=1024)
