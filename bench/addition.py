"""Measure vec_add in f32, n = 2^25: Triton's kernel against the same loop in OpenCL C, on the same device and data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyopencl as cl
import triton
from arrays import aligned
from foundry_core.tensor import Tensor
from measure import interleaved, ratios
from measurement import Measurement, Row
from triton_spirv_backend.opencl import open_device
from vec_add import add_kernel

LENGTH = 2**25
BLOCKS = (1024, 4096, 16384)
ROUNDS = 30


def measure() -> Measurement:
    """Time Triton's kernel at several block sizes, three OpenCL C kernels, and NumPy."""
    x, y, total = aligned(LENGTH), aligned(LENGTH), aligned(LENGTH)
    candidates: dict[str, Callable[[], object]] = {}
    for block in BLOCKS:
        candidates[f"Triton, block {block}"] = _triton(x, y, total, block)
    candidates |= _opencl(x, y, total, BLOCKS[1])
    candidates["NumPy add, one thread"] = lambda: np.add(x, y, out=total)
    for name, candidate in candidates.items():
        total.fill(np.nan)
        candidate()
        assert np.array_equal(total, x + y), f"{name} is wrong"
    times = interleaved(candidates, rounds=ROUNDS)
    traffic = 3 * x.nbytes / 1e9
    return Measurement(
        title=f"vec_add f32, n = 2^{LENGTH.bit_length() - 1}",
        rows=[Row(name, time, traffic / time.median) for name, time in times.items()],
        unit="GB/s",
        ratios=ratios(
            "Triton over the best OpenCL C kernel",
            [time for name, time in times.items() if name.startswith("Triton")],
            [time for name, time in times.items() if name.startswith("OpenCL C")],
        ),
        aim="at least 0.95 of OpenCL C",
    )


def _triton(x: np.ndarray, y: np.ndarray, total: np.ndarray, block: int) -> Callable[[], object]:
    tensors = Tensor(x), Tensor(y), Tensor(total)
    grid = (triton.cdiv(x.size, block),)
    return lambda: add_kernel[grid](*tensors, x.size, BLOCK_SIZE=block)


def _opencl(x: np.ndarray, y: np.ndarray, total: np.ndarray, block: int) -> dict[str, Callable[[], object]]:
    device = open_device()
    source = Path(__file__).with_name("peers.cl").read_text()
    program = cl.Program(device.context, source).build([f"-DBLOCK={block}"])
    arguments = [cl.SVM(x), cl.SVM(y), cl.SVM(total), np.int32(x.size)]

    def launch(name: str, items: int, group: int | None) -> Callable[[], object]:
        kernel = cl.Kernel(program, name)
        kernel.set_args(*arguments)
        local = None if group is None else (group,)
        return lambda: cl.enqueue_nd_range_kernel(device.queue, kernel, (items,), local).wait()

    blocks = -(-x.size // block)
    return {
        "OpenCL C, one work-item an element": launch("element", x.size, None),
        f"OpenCL C, one work-item a block of {block}, test in the loop": launch("blocked", blocks, 1),
        f"OpenCL C, one work-item a block of {block}, restrict": launch("blocked_fast", blocks, 1),
    }
