"""Measures the roofs of a device with kernels: of memory by a triad, of arithmetic by multiply-adds and products."""
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ..emit.mlir import WIDTHS
from ..runtime.device_report import Kind
from ..tensor import Tensor

_ROUNDS = 9
_BLOCKS = (1024, 4096)
# Multiply-adds that do not wait for each other: enough for a latency of 4 cycles and 2 instructions a cycle. With two
# operands that all of them share, they fit the 16 registers of AVX2.
_CHAINS = 10
# Steps that are written out, so that the loop costs little.
_UNROLLED = 8
# Launches between two times of the device.
_LAUNCHES = 8
# Subgroups of a program, as Triton has by default.
_WARPS = 4
# Programs on a CPU; on a GPU, which has thousands of invocations at a time.
_PROGRAMS = 256, 4096
# Seconds that a launch should take, and the most steps.
_ENOUGH = 5e-3
_STEPS = 1 << 16
# Seconds of work before what counts: a GPU raises its clocks under load only.
_WARM = 0, 0.3
# The extents and the depths of blocks that cooperative matrices multiply.
_SIDES, _DEPTHS = (32, 128), (16, 32)
# The factors of cooperative matrices.
FACTORS = {"f16": tl.float16, "bf16": tl.bfloat16, "i8": tl.int8}


@triton.jit
def triad(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(a + i, tl.load(b + i, mask=mask) * 3.0 + tl.load(c + i, mask=mask), mask=mask)


@triton.jit
def step(a, x, y, FUSED: tl.constexpr):
    return tl.fma(a, x, y) if FUSED else a * x + y


@triton.jit
def multiply_add(out, steps, LANES: tl.constexpr, FUSED: tl.constexpr, UNROLLED: tl.constexpr):
    i = tl.program_id(0) * LANES + tl.arange(0, LANES)
    x = tl.load(out + i)
    y = x * 0.5
    a, b, c, d, e = x, x + 1, x + 2, x + 3, x + 4
    f, g, h, k, m = x + 5, x + 6, x + 7, x + 8, x + 9
    for _ in range(steps):
        for _ in tl.static_range(UNROLLED):
            a = step(a, x, y, FUSED)
            b = step(b, x, y, FUSED)
            c = step(c, x, y, FUSED)
            d = step(d, x, y, FUSED)
            e = step(e, x, y, FUSED)
            f = step(f, x, y, FUSED)
            g = step(g, x, y, FUSED)
            h = step(h, x, y, FUSED)
            k = step(k, x, y, FUSED)
            m = step(m, x, y, FUSED)
    tl.store(out + i, a + b + c + d + e + f + g + h + k + m)


@triton.jit
def multiply(a, b, out, steps, SIDE: tl.constexpr, DEPTH: tl.constexpr, FACTOR: tl.constexpr):
    i, j, k = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :], tl.arange(0, DEPTH)
    x = tl.load(a + i * DEPTH + k[None, :]).to(FACTOR)
    y = tl.load(b + k[:, None] * SIDE + j).to(FACTOR)
    total = tl.zeros((SIDE, SIDE), out.dtype.element_ty)
    for _ in range(steps):
        total = tl.dot(x, y, total, out_dtype=total.dtype)
    tl.store(out + i * SIDE + j, total)


class Roofs:
    """The roofs of the device of one of Triton's drivers, each measured when it is asked for.

    Args:
        by_device: take the time by the device's clock, of launches that do not wait for each other; only on Vulkan.
    """

    def __init__(self, driver: Any, by_device: bool = False) -> None:
        self._driver, self._by_device = driver, by_device
        # Triton keeps what it compiled by the device's number, which the devices of several drivers share.
        self._triad, self._multiply_add, self._multiply = map(triton.jit, (triad.fn, multiply_add.fn, multiply.fn))
        self._put: Callable[[np.ndarray], Any] = Tensor
        self._wait: Callable[[], object] = lambda: None
        self._device = driver.device() if hasattr(driver, "device") else None
        self._fuses: tuple[int, ...] = (32, 64)
        self._is_gpu = driver.device_report().kind is Kind.HARDWARE
        if self._device is None and driver.get_current_target().backend == "spirv":
            from ..vulkan.array import DeviceTensor
            from ..vulkan.device import opened

            # Elsewhere tl.fma is many instructions, or is refused.
            self._fuses = opened().target().fuses
            self._put = DeviceTensor.from_numpy
            if not by_device:
                self._wait = driver.get_device_interface().synchronize
        self.memory, self.arithmetic = functools.cache(self._memory), functools.cache(self._arithmetic)

    def _launch(self, kernel: Any, programs: int, *arguments: Any, **constants: Any) -> Any:
        compiled = kernel[(programs,)](*arguments, **constants)
        self._wait()
        return compiled

    def _least(self, launch: Callable[[], object]) -> float:
        """Return the seconds of the fastest launch of some, after those that do not count."""
        launch()
        end = time.perf_counter() + _WARM[self._is_gpu]
        while time.perf_counter() < end:
            self._seconds(launch)
        return min(self._seconds(launch) for _ in range(_ROUNDS))

    def _seconds(self, launch: Callable[[], object]) -> float:
        if not self._by_device:
            began = time.perf_counter()
            launch()
            return time.perf_counter() - began
        interface = self._driver.get_device_interface()
        first, last = (interface.Event(enable_timing=True) for _ in range(2))
        launch()
        first.record()
        for _ in range(_LAUNCHES):
            launch()
        last.record()
        return float(first.elapsed_time(last)) * 1e-3 / _LAUNCHES

    def _rate(self, start: Callable[[int], object], operations: float) -> float | None:
        """Return the operations a second of a kernel that takes the number of its steps; None if they take no time.

        Args:
            operations: in a step.
        """
        start(1)
        steps = 8
        while steps < _STEPS and self._seconds(functools.partial(start, steps)) < _ENOUGH:
            steps *= 2
        # The difference of two launches is without their cost.
        fewer = steps // 8
        seconds = self._least(functools.partial(start, steps)) - self._least(functools.partial(start, fewer))
        return operations * (steps - fewer) / seconds if seconds > 0 else None

    def _memory(self, bytes: int) -> float:
        """Return the bytes a second of a triad on as many bytes, of three arrays."""
        triton.runtime.driver.set_active(self._driver)
        count = max(bytes // 12, 1)
        a, b, c = (np.ones(count, np.float32) for _ in range(3))
        arrays = [self._put(each) for each in (a, b, c)]
        seconds = min(
            self._least(
                functools.partial(self._launch, self._triad, triton.cdiv(count, block), *arrays, count, BLOCK=block)
            )
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
        return min(self._least(start) for _ in range(_ROUNDS))

    def _arithmetic(self, kind: str) -> float | None:
        """Return the operations a second of multiply-adds, each two; None if they cannot be measured.

        Args:
            kind: f32 or f64, or the type of the factors of cooperative matrices, as "f16 matrices".
        """
        triton.runtime.driver.set_active(self._driver)
        elem, _, matrices = kind.partition(" ")
        return self._matrices(elem) if matrices else self._processor(elem)

    def _processor(self, elem: str) -> float | None:
        # On a CPU device it is OpenCL C: with Triton, the sums of a loop may be in memory.
        if self._device is not None and not self._is_gpu:
            starts = [_opencl(self._device, elem, lanes) for lanes in (4, 8, 16)]
        else:
            invocations = _WARPS * self._driver.get_current_target().warp_size
            starts = [self._triton(elem, elements * invocations) for elements in (1, 4)]
        rates = [self._rate(start, operations) for start, operations in starts]
        return max(filter(None, rates), default=None)

    def _triton(self, elem: str, lanes: int) -> tuple[Callable[[int], object], float]:
        programs, fused = _PROGRAMS[self._is_gpu], WIDTHS[elem] in self._fuses
        out = self._put(np.full(programs * lanes, 0.25, f"f{WIDTHS[elem] // 8}"))

        def start(steps: int) -> object:
            constants = {"LANES": lanes, "FUSED": fused, "UNROLLED": _UNROLLED}
            return self._launch(self._multiply_add, programs, out, steps, **constants)

        return start, 2.0 * _CHAINS * _UNROLLED * programs * lanes

    def _matrices(self, factor: str) -> float | None:
        programs, side, depth = (sizes[self._is_gpu] for sizes in (_PROGRAMS, _SIDES, _DEPTHS))
        random = np.random.default_rng(0)
        a, b = (self._put(random.integers(-2, 3, side * depth).astype(np.int8)) for _ in range(2))
        out = self._put(np.zeros(side * side, np.int32 if factor == "i8" else np.float32))
        constants = {"SIDE": side, "DEPTH": depth, "FACTOR": FACTORS[factor]}

        def start(steps: int) -> Any:
            return self._launch(self._multiply, programs, a, b, out, steps, **constants)

        if not multiplies_matrices(start(1).asm["spv"]):
            return None
        return self._rate(start, 2.0 * side * side * depth * programs)


def multiplies_matrices(module: bytes) -> bool:
    """Return whether a kernel's SPIR-V multiplies cooperative matrices."""
    return b"SPV_KHR_cooperative_matrix" in module


@functools.cache
def device_roofs(driver: Any, by_device: bool = False) -> Roofs:
    """Return the roofs of a driver's device; they are measured once in a process."""
    return Roofs(driver, by_device)


def _opencl(device: Any, elem: str, lanes: int) -> tuple[Callable[[int], object], float]:
    import pyopencl as cl

    vector = f"{'float' if elem == 'f32' else 'double'}{lanes}"
    sums = [f"s{number}" for number in range(_CHAINS)]
    source = f"""
        kernel void multiply_add(global {vector} *out, int steps) {{
            {vector} x = out[get_global_id(0)], y = x * {"0.5f" if elem == "f32" else "0.5"};
            {vector} {", ".join(f"{name} = x + {number}" for number, name in enumerate(sums))};
            for (int i = 0; i < steps; i++) {{ {" ".join(f"{name} = fma({name}, x, y);" for name in sums)} }}
            out[get_global_id(0)] = {" + ".join(sums)};
        }}"""
    kernel = cl.Kernel(cl.Program(device.context, source).build(), "multiply_add")
    programs = _PROGRAMS[False]
    start = np.full(programs * lanes, 0.25, f"f{WIDTHS[elem] // 8}")
    buffer = cl.Buffer(device.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=start)

    def launch(steps: int) -> None:
        kernel(device.queue, (programs,), (1,), buffer, np.int32(steps)).wait()

    return launch, 2.0 * _CHAINS * programs * lanes
