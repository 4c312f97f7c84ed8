"""Launches: valid arguments of a kernel, with both ways to access the caller's memory."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.runtime.opencl import DeviceError, MemoryMode, OpenCLDevice
from foundry_core.tensor import Tensor
from shared_kernels import place_kernel, scale_kernel, tuple_kernel
from triton_spirv_backend import opencl

BLOCK = 256
IS_3_2 = triton.__version__.startswith("3.2.")


@triton.jit
def scalars_kernel(
    out_ptr, flag: tl.int1, a: tl.int8, b: tl.int16, c, d: tl.int64, e: tl.float16, f: tl.bfloat16, g, h: tl.float64
):
    tl.store(out_ptr + 0, flag.to(tl.float64))
    tl.store(out_ptr + 1, a.to(tl.float64))
    tl.store(out_ptr + 2, b.to(tl.float64))
    tl.store(out_ptr + 3, c.to(tl.float64))
    tl.store(out_ptr + 4, d.to(tl.float64))
    tl.store(out_ptr + 5, e.to(tl.float64))
    tl.store(out_ptr + 6, f.to(tl.float64))
    tl.store(out_ptr + 7, g.to(tl.float64))
    tl.store(out_ptr + 8, h)


@pytest.fixture(params=list(MemoryMode))
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryMode]:
    """Run a test in both memory modes: its launches use a device that was opened in that mode."""
    device = OpenCLDevice(opencl.choose_device(), request.param)
    monkeypatch.setattr(opencl, "open_device", lambda: device)
    kernels = (scale_kernel, scalars_kernel, place_kernel, tuple_kernel)
    for kernel in kernels:
        forget(kernel)
    yield request.param
    for kernel in kernels:
        forget(kernel)


def forget(kernel: Any) -> None:
    """Make the next launch load the kernel again."""
    (kernel.device_caches if hasattr(kernel, "device_caches") else kernel.cache).clear()  # the latter on 3.2


def scale(x: Any, y: Any, n: int, factor: float = 3.0) -> None:
    scale_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, factor, BLOCK=BLOCK)


def test_stores_land_in_the_callers_array(memory: MemoryMode) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.full(1000, np.nan, np.float32)
    scale(Tensor(x), Tensor(y), 1000)
    assert np.array_equal(y, 3 * x)


def test_an_array_may_be_input_and_output(memory: MemoryMode) -> None:
    x = np.arange(1000, dtype=np.float32)
    scale(Tensor(x), Tensor(x), 1000)
    assert np.array_equal(x, 3 * np.arange(1000))


def test_two_views_of_an_array_keep_what_lies_between_them(memory: MemoryMode) -> None:
    base = np.arange(4096, dtype=np.float32)
    scale(Tensor(base[:1000]), Tensor(base[2048:3048]), 1000)
    expected = np.arange(4096, dtype=np.float32)
    expected[2048:3048] = 3 * expected[:1000]
    assert np.array_equal(base, expected)


def test_a_view_that_starts_at_any_element_is_taken(memory: MemoryMode) -> None:
    x, y = np.arange(1001, dtype=np.float32), np.zeros(1003, np.float32)
    scale(Tensor(x[1:]), Tensor(y[2:1002]), 1000)
    assert np.array_equal(y, [0, 0, *(3 * x[1:]), 0])


def test_views_that_buffers_cannot_express_are_refused_not_miscomputed() -> None:
    device = OpenCLDevice(opencl.choose_device(), MemoryMode.BUFFER)
    launcher = device.launcher(device.build(_scale_spirv()), "scale_kernel", ["*fp32", "*fp32", "i32", "fp32"])
    base = np.arange(4096, dtype=np.float32)
    with pytest.raises(DeviceError, match="pass a copy"):
        launcher((1, 1, 1), [Tensor(base[:100]), Tensor(base[1001:]), 100, 3.0])
    assert np.array_equal(base, np.arange(4096))


def _scale_spirv() -> bytes:
    array = Tensor(np.zeros(16, np.float32))
    kernel = scale_kernel.warmup(array, array, 100, 3.0, BLOCK=BLOCK, grid=(1,))
    return bytes(kernel.asm["spv"])


def test_every_scalar_type_arrives(memory: MemoryMode) -> None:
    out = np.full(9, np.nan)
    # Triton 3.2 supports annotations of integers only: a float is an f32.
    wide = 1e30 if IS_3_2 else 1e300
    values = [True, -7, -30000, 123456789, -(2**40), 1.5, -2.25, 0.1, wide]
    scalars_kernel[(1,)](Tensor(out), *values)
    wide = float(np.float32(wide)) if IS_3_2 else wide
    assert out.tolist() == [1, -7, -30000, 123456789, -(2**40), 1.5, -2.25, float(np.float32(0.1)), wide]


@pytest.mark.skipif(IS_3_2, reason="Triton 3.2 passes every float as f32")
def test_sixteen_bit_scalars_are_rounded_to_nearest(memory: MemoryMode) -> None:
    out = np.full(9, np.nan)
    scalars_kernel[(1,)](Tensor(out), False, 0, 0, 5, 5, 1.0004, 1.005, 0.0, 0.0)
    assert out[5] == np.float16(1.0004)
    assert out[6] == 1.0078125


def test_a_grid_of_three_dimensions(memory: MemoryMode) -> None:
    out = np.full((4, 3, 2), -1, np.int32)
    place_kernel[(2, 3, 4)](Tensor(out))
    z, y, x = np.indices(out.shape)
    assert np.array_equal(out, x + 10 * y + 100 * z)


def test_an_empty_grid_launches_nothing(memory: MemoryMode) -> None:
    out = np.full(4, -1, np.int32)
    place_kernel[(0,)](Tensor(out))
    place_kernel[(2, 0)](Tensor(out))
    assert out.tolist() == [-1] * 4


@pytest.mark.skipif(IS_3_2, reason="Triton 3.2 takes no tuples")
def test_tensors_inside_a_tuple(memory: MemoryMode) -> None:
    x, y = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
    tuple_kernel[(1,)]((Tensor(x), Tensor(y)), 10, BLOCK=16)
    assert np.array_equal(y, x + 1)


class Foreign:
    """A tensor of another library: only the methods that a launch needs."""

    def __init__(self, array: np.ndarray) -> None:
        self._tensor = Tensor(array)
        self.dtype = array.dtype

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()

    def untyped_storage(self) -> Any:
        return self._tensor.untyped_storage()


def test_a_foreign_tensor_is_taken(memory: MemoryMode) -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    scale(Foreign(x), Foreign(y), 100)
    assert np.array_equal(y, 3 * x)


def test_threads_may_launch_the_same_kernel(memory: MemoryMode) -> None:
    arrays = [(np.full(5000, index, np.float32), np.zeros(5000, np.float32)) for index in range(8)]
    x, y = arrays[0]
    scale(Tensor(x), Tensor(y), 5000)  # compiled once, before the race

    def work(x: np.ndarray, y: np.ndarray) -> None:
        for _ in range(50):
            y.fill(0)
            scale(Tensor(x), Tensor(y), 5000)
            assert (y == 3 * x).all()

    failures: list[BaseException] = []

    def guarded(pair: tuple[np.ndarray, np.ndarray]) -> None:
        try:
            work(*pair)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(pair,)) for pair in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Three arrays that end where the next page is not accessible.
_AT_THE_EDGE = """
import sys
from foundry_core.tensor import Tensor
from results import before_a_closed_page
sys.path.insert(0, {folder!r})
from test_launch import scale

for n in (1, 7, 100, 255, 257, 1000):
    x, y = before_a_closed_page(n), before_a_closed_page(n)
    x[:] = 2
    scale(Tensor(x), Tensor(y), n)
    assert (y == 6).all()
"""


def test_masked_lanes_touch_no_memory() -> None:
    """Use a separate process, because a kernel that reads or writes past the mask is killed."""
    script = _AT_THE_EDGE.format(folder=str(__file__).rpartition("/")[0])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
