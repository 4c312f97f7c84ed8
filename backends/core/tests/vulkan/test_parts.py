"""Tiles that do not fit into workgroup memory: what invocations exchange passes through it in parts.

The device is given less memory than it has, so that small tiles have many parts; one test takes a tile that is larger
than the memory of the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.log import DeviceAssertionError
from foundry_core.tensor import Tensor
from foundry_core.vulkan.device import MATRICES_VARIABLE, opened
from results import check_same, poisoned
from shared_kernels import linear
from triton.runtime.errors import OutOfResources

Memory = Callable[[int], None]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Return a function that gives the device so many bytes of workgroup memory."""

    def limit(size: int) -> None:
        monkeypatch.setattr(opened().properties, "workgroup_bytes", size)
        # Triton asks once in a process.
        monkeypatch.setattr("triton.compiler.compiler.max_shared_mem", lambda device: size)

    return limit


def launch(kernel: Any, *arrays: np.ndarray, **constants: Any) -> int:
    """Launch one program, compiled for the present limit; return how much workgroup memory it uses."""
    # A kernel remembers the device that it was compiled for.
    compiled = triton.jit(kernel.fn)[(1,)](*map(Tensor, arrays), **constants)
    return int(compiled.metadata.shared)


@triton.jit
def transposed(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + j * M + i, tl.load(x + i * N + j))


def extremes(dtype: Any, count: int) -> np.ndarray:
    """Return numbers of a type, with all that is special to it."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return np.random.default_rng(1).integers(0, 2, count).astype(bool)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        found = np.random.default_rng(2).integers(limits.min, limits.max, count, kind, endpoint=True)
        found[:3] = limits.min, limits.max, 0
        return found
    info = ml_dtypes.finfo(dtype)
    found = np.random.default_rng(3).standard_normal(count).astype(dtype)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.max, info.min, info.smallest_subnormal]
    found[:: count // len(special)] = np.array(special).astype(dtype)
    return found


# Where an element is in two layouts decides how parts are told apart: by registers of both, of one, or of none.
@pytest.mark.parametrize(
    ("shape", "warps", "dtype"),
    [
        ((32, 64), 4, "float32"),
        ((64, 32), 1, "int32"),
        ((16, 16), 8, "float64"),
        ((8, 128), 2, "int64"),
        ((128, 8), 4, "float16"),
        ((32, 32), 8, "int16"),
        ((64, 64), 4, "int8"),
        ((32, 64), 2, "bool"),
        ((16, 128), 4, "bfloat16"),
    ],
)
def test_a_tile_of_each_type_is_transposed(memory: Memory, shape: tuple[int, int], warps: int, dtype: str) -> None:
    m, n = shape
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x, out = extremes(kind, m * n).reshape(shape), poisoned(n, m, dtype=kind)
    memory(x.nbytes // 8)
    assert 0 < launch(transposed, x, out, M=m, N=n, num_warps=warps) <= x.nbytes // 8
    check_same(out, np.ascontiguousarray(x.T))


def test_a_tile_is_transposed_that_is_larger_than_the_devices_own_memory() -> None:
    limit = opened().properties.workgroup_bytes
    m, n = 64, 1 << (limit // (64 * 8)).bit_length()
    x, out = extremes(np.int64, m * n).reshape(m, n), poisoned(n, m, dtype=np.int64)
    assert x.nbytes > limit
    assert launch(transposed, x, out, M=m, N=n, num_warps=8) <= limit
    check_same(out, np.ascontiguousarray(x.T))


def test_a_tile_that_would_have_too_many_parts_is_refused_with_its_size(memory: Memory) -> None:
    x = np.zeros((64, 64), np.float32)
    memory(128)
    with pytest.raises(
        OutOfResources, match=r"test_parts\.py:\d+ .*keeps 256 bytes .* the device has 128; .*64x64xf32"
    ):
        launch(transposed, x, x, M=64, N=64)


@triton.jit
def gathered(x, at, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if AXIS == 0:
        place = tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    else:
        place = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out + place, tl.gather(v, tl.load(at + place), AXIS))


@pytest.mark.parametrize(
    ("axis", "dtype", "index"), [(0, np.int64, np.int32), (1, np.float32, np.int64), (1, np.int8, np.int8)]
)
def test_elements_are_looked_up_in_a_tile(memory: Memory, axis: int, dtype: Any, index: Any) -> None:
    m, n, k = 32, 64, 16
    x = extremes(dtype, m * n).reshape(m, n)
    shape = (k, n) if axis == 0 else (m, k)
    at, out = np.random.default_rng(4).integers(0, (m, n)[axis], shape).astype(index), poisoned(*shape, dtype=dtype)
    memory(x.nbytes // 4)
    assert launch(gathered, x, at, out, M=m, N=n, K=k, AXIS=axis) <= x.nbytes // 4
    check_same(out, np.take_along_axis(x, at.astype(np.int64), axis))


@triton.jit
def scanned(a, b, out, AXIS: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.associative_scan((tl.load(a + at), tl.load(b + at)), AXIS, linear, reverse=REVERSE)
    tl.store(out + at, x)
    tl.store(out + M * N + at, y)


@pytest.mark.parametrize(("axis", "reverse", "m", "n"), [(0, False, 64, 16), (1, True, 4, 256)])
def test_a_scan_keeps_the_order_of_its_axis(memory: Memory, axis: int, reverse: bool, m: int, n: int) -> None:
    # Products of odd numbers never become 0.
    a, b = (np.random.default_rng(seed).integers(-50, 50, (m, n)) * 2 + 1 for seed in (5, 6))
    out = poisoned(2, m, n, dtype=np.int64)
    memory(256)
    assert launch(scanned, a, b, out, AXIS=axis, REVERSE=reverse, M=m, N=n) <= 256
    x, y = (np.moveaxis(each, axis, 0)[:: -1 if reverse else 1].copy() for each in (a, b))
    for row in range(1, len(x)):
        x[row], y[row] = x[row - 1] * x[row], y[row - 1] * x[row] + y[row]
    for found, expected in zip(out, (x, y), strict=True):
        np.testing.assert_array_equal(np.moveaxis(found, axis, 0)[:: -1 if reverse else 1], expected)


@triton.jit
def reduced(x, highest, places, first, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    value, place = tl.max(v, 0, return_indices=True)
    tl.store(highest + tl.arange(0, N), value)
    tl.store(places + tl.arange(0, N), place)
    tl.store(first + tl.arange(0, M), tl.sum(v, 1))


def test_partial_results_of_more_columns_than_fit_are_combined(memory: Memory) -> None:
    m, n = 32, 128
    x = np.random.default_rng(7).integers(-1000, 1000, (m, n)).astype(np.int32)
    x[3], x[9] = 2000, 2000
    x[5, 1::2] = 3000
    highest, places, sums = (poisoned(k, dtype=np.int32) for k in (n, n, m))
    memory(256)
    assert launch(reduced, x, highest, places, sums, M=m, N=n, num_warps=4) <= 256
    for found, expected in ((highest, x.max(0)), (places, x.argmax(0)), (sums, x.sum(1))):
        np.testing.assert_array_equal(found, expected)


@triton.jit
def rearranged(x, y, sorted, joined, odd, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(sorted + at, tl.sort(a))
    both = tl.permute(tl.reshape(tl.join(a, b), (N, M, 2)), 2, 1, 0)
    tl.store(joined + tl.arange(0, 2 * M * N), tl.reshape(both, (2 * M * N,)))
    _, second = tl.split(tl.reshape(a, (M, N // 2, 2)))
    tl.store(odd + tl.arange(0, N // 2)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(second))


def test_tiles_are_sorted_joined_split_reshaped_and_permuted(memory: Memory) -> None:
    m, n = 16, 32
    x, y = (np.random.default_rng(seed).standard_normal((m, n)).astype(np.float32) for seed in (8, 9))
    arrays = poisoned(m, n, dtype="f"), poisoned(2, m, n, dtype="f"), poisoned(n // 2, m, dtype="f")
    memory(256)
    assert launch(rearranged, x, y, *arrays, M=m, N=n) <= 256
    np.testing.assert_array_equal(arrays[0], np.sort(x))
    np.testing.assert_array_equal(arrays[1].ravel(), np.stack([x, y], -1).reshape(n, m, 2).transpose(2, 1, 0).ravel())
    np.testing.assert_array_equal(arrays[2], x[:, 1::2].T)


@triton.jit
def counted(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


def test_numbers_are_counted_in_more_bins_than_fit(memory: Memory) -> None:
    bins = 512
    x = np.random.default_rng(10).integers(0, bins, 256).astype(np.int32)
    # What is in no bin is not counted.
    x[:4] = -1, -(2**31), 2**31 - 1, bins
    out = poisoned(bins, dtype=np.int32)
    memory(512)
    assert launch(counted, x, out, N=256, BINS=bins) <= 512
    np.testing.assert_array_equal(out, np.bincount(x[4:], minlength=bins))


@triton.jit
def drawn(counter, out, N: tl.constexpr):
    i = tl.arange(0, N)
    old = tl.atomic_add(counter + i, i + 1)
    # The same numbers in a layout in which several invocations have each.
    tl.store(out + i[:, None] * 16 + tl.arange(0, 16)[None, :], old[:, None] + tl.zeros((N, 16), tl.int64))


def test_invocations_are_told_what_another_one_exchanged(memory: Memory) -> None:
    counter, out = np.arange(32, dtype=np.int64) << 40, poisoned(32, 16, dtype=np.int64)
    expected = counter.copy()
    memory(64)
    assert 0 < launch(drawn, counter, out, N=32) <= 64
    np.testing.assert_array_equal(out, np.broadcast_to(expected[:, None], out.shape))
    np.testing.assert_array_equal(counter, expected + np.arange(1, 33))


@triton.jit
def asserted(x, N: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, N)) < 100, "too large")


def test_assertions_of_all_parts_fail_in_the_order_of_the_elements(memory: Memory) -> None:
    x = np.zeros(256, np.int32)
    x[[3, 64, 130]] = 100
    memory(32)
    with pytest.raises(DeviceAssertionError) as failed:
        launch(asserted, x, N=256, debug=True)
    assert re.findall(r"index \((\d+)\)", str(failed.value)) == ["3", "64", "130"]


@triton.jit
def multiplied(a, b, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    product = tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j))
    tl.store(out + i * N + j, product - tl.max(product, 1)[:, None])


def test_matrices_pass_in_parts_of_whole_fragments(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MATRICES_VARIABLE, "1")
    size = 16
    a, b = (np.random.default_rng(seed).integers(-1, 2, (size, size)).astype(np.int8) for seed in (11, 12))
    out = poisoned(size, size, dtype=np.int32)
    # Both factors fit, in rows that are 16 bytes longer; their product does not.
    memory(2 * size * (size + 16))
    assert launch(multiplied, a, b, out, N=size, num_warps=1, num_stages=1) <= 2 * size * (size + 16)
    product = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(out, product - product.max(1)[:, None])
