"""Measures the roofs of a device with kernels: the memory's by a triad, the processor's by fused multiply-adds."""
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ..tensor import Tensor

_ROUNDS = 9
_BLOCKS = (1024, 4096)
# Multiply-adds that do not wait for each other: enough for a latency of 4 cycles and 2 instructions a cycle. With two
# operands that all of them share, they fit the 16 registers of AVX2.
_CHAINS = 10
_STEPS = 4096
_PROGRAMS = 256


@triton.jit
def triad(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(a + i, tl.load(b + i, mask=mask) * 3.0 + tl.load(c + i, mask=mask), mask=mask)


@triton.jit
def multiply_add(out, steps, LANES: tl.constexpr):
    i = tl.program_id(0) * LANES + tl.arange(0, LANES)
    x = tl.load(out + i)
    y = x * 0.5
    a, b, c, d, e = x, x + 1, x + 2, x + 3, x + 4
    f, g, h, k, m = x + 5, x + 6, x + 7, x + 8, x + 9
    for _ in range(steps):
        a = tl.fma(a, x, y)
        b = tl.fma(b, x, y)
        c = tl.fma(c, x, y)
        d = tl.fma(d, x, y)
        e = tl.fma(e, x, y)
        f = tl.fma(f, x, y)
        g = tl.fma(g, x, y)
        h = tl.fma(h, x, y)
        k = tl.fma(k, x, y)
        m = tl.fma(m, x, y)
    tl.store(out + i, a + b + c + d + e + f + g + h + k + m)


class Roofs:
    """The roofs of the device of one of Triton's drivers, each measured when it is asked for."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        # Triton keeps what it compiled by the device's number, which the devices of several drivers share.
        self._triad, self._multiply_add = triton.jit(triad.fn), triton.jit(multiply_add.fn)
        self._put: Callable[[np.ndarray], Any] = Tensor
        self._wait: Callable[[], object] = lambda: None
        self._device = driver.device() if hasattr(driver, "device") else None
        if self._device is None and driver.get_current_target().backend == "spirv":
            from ..vulkan.array import DeviceTensor

            self._put, self._wait = DeviceTensor.from_numpy, driver.get_device_interface().synchronize
        self.memory, self.processor = functools.cache(self._memory), functools.cache(self._processor)

    def _launch(self, kernel: Any, programs: int, *arguments: Any, **constants: int) -> None:
        kernel[(programs,)](*arguments, **constants)
        self._wait()

    def _memory(self, bytes: int) -> float:
        """Return the bytes a second of a triad on as many bytes, of three arrays."""
        triton.runtime.driver.set_active(self._driver)
        count = max(bytes // 12, 1)
        a, b, c = (np.ones(count, np.float32) for _ in range(3))
        arrays = [self._put(each) for each in (a, b, c)]
        seconds = min(
            _least(functools.partial(self._launch, self._triad, triton.cdiv(count, block), *arrays, count, BLOCK=block))
            for block in _BLOCKS
        )
        assert (np.asarray(arrays[0].numpy()) == 4).all(), "the triad is wrong"
        return 12 * count / seconds

    @functools.cached_property
    def launch(self) -> float:
        """The seconds of a launch whose one program does nothing."""
        triton.runtime.driver.set_active(self._driver)
        arrays = [self._put(np.zeros(1, np.float32)) for _ in range(3)]
        start = functools.partial(self._launch, self._triad, 1, *arrays, 0, BLOCK=_BLOCKS[0])
        # It is so short that other work on the machine spoils most of a few rounds.
        return min(_least(start) for _ in range(_ROUNDS))

    def _processor(self, bits: int) -> float:
        """Return the operations a second of fused multiply-adds, each two, on floats of 32 or 64 bits."""
        triton.runtime.driver.set_active(self._driver)
        # On a CPU device it is OpenCL C: with Triton, the sums of a loop may be in memory.
        if self._device is not None:
            starts = [_opencl(self._device, bits, lanes) for lanes in (4, 8, 16)]
        else:
            starts = [(self._triton(bits, lanes), lanes) for lanes in (128, 256)]
        best = 0.0
        for start, lanes in starts:
            # The difference of two launches is without their cost.
            seconds = _least(functools.partial(start, _STEPS)) - _least(functools.partial(start, _STEPS // 8))
            operations = 2 * _CHAINS * _PROGRAMS * lanes * (_STEPS - _STEPS // 8)
            if seconds > 0:
                best = max(best, operations / seconds)
        return best

    def _triton(self, bits: int, lanes: int) -> Callable[[int], object]:
        out = self._put(np.full(_PROGRAMS * lanes, 0.25, np.float32 if bits == 32 else np.float64))
        return lambda steps: self._launch(self._multiply_add, _PROGRAMS, out, steps, LANES=lanes)


@functools.cache
def of(driver: Any) -> Roofs:
    """Return the roofs of a driver's device; they are measured once in a process."""
    return Roofs(driver)


def _opencl(device: Any, bits: int, lanes: int) -> tuple[Callable[[int], object], int]:
    import pyopencl as cl

    vector = f"{'float' if bits == 32 else 'double'}{lanes}"
    sums = [f"s{number}" for number in range(_CHAINS)]
    source = f"""
        kernel void multiply_add(global {vector} *out, int steps) {{
            {vector} x = out[get_global_id(0)], y = x * {"0.5f" if bits == 32 else "0.5"};
            {vector} {", ".join(f"{name} = x + {number}" for number, name in enumerate(sums))};
            for (int i = 0; i < steps; i++) {{ {" ".join(f"{name} = fma({name}, x, y);" for name in sums)} }}
            out[get_global_id(0)] = {" + ".join(sums)};
        }}"""
    kernel = cl.Kernel(cl.Program(device.context, source).build(), "multiply_add")
    start = np.full(_PROGRAMS * lanes, 0.25, f"f{bits // 8}")
    buffer = cl.Buffer(device.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=start)
    return lambda steps: kernel(device.queue, (_PROGRAMS,), (1,), buffer, np.int32(steps)).wait(), lanes


def _least(launch: Callable[[], object]) -> float:
    launch()
    found = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        launch()
        found.append(time.perf_counter() - began)
    return min(found)
