"""Measure what a launch costs the host: the time from a kernel's call to its return."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
from arrays import aligned
from foundry_core.tensor import Tensor
from measure import interleaved
from measurement import Measurement, Row
from triton_spirv_backend.opencl import open_device
from vec_add import add_kernel

BLOCK = 64
ROUNDS = 200
BATCH = 20
# The same work as add_kernel for one block, launched without Triton.
_SOURCE = """
__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void add(global const float *x, global const float *y, global float *sum, int n, int gx, int gy, int gz) {
    for (int i = 0; i < 64; i++)
        if (i < n) sum[i] = x[i] + y[i];
}
"""


def measure() -> Measurement:
    """Time a launch of one small program, a launch of no program, and the same kernel through PyOpenCL alone."""
    x, y, total = (aligned(BLOCK) for _ in range(3))
    tensors = Tensor(x), Tensor(y), Tensor(total)
    device = open_device()
    kernel = cl.Kernel(cl.Program(device.context, _SOURCE).build(), "add")
    kernel.set_args(cl.SVM(x), cl.SVM(y), cl.SVM(total), *map(np.int32, (BLOCK, 1, 1, 1)))
    times = interleaved(
        {
            "launch of one program, to its end": lambda: add_kernel[(1,)](*tensors, BLOCK, BLOCK_SIZE=BLOCK),
            "launch of no program: Triton's and the driver's Python": lambda: add_kernel[(0,)](
                *tensors, BLOCK, BLOCK_SIZE=BLOCK
            ),
            "PyOpenCL alone, same work, arguments set before": lambda: cl.enqueue_nd_range_kernel(
                device.queue, kernel, (1,), (1,)
            ).wait(),
        },
        rounds=ROUNDS,
        batch=BATCH,
    )
    return Measurement(
        title="launch",
        rows=[Row(name, time) for name, time in times.items()],
        aim="under 100 us of host time a launch",
    )
