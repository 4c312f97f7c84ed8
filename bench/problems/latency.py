"""Measure what a launch costs the host: the time from a kernel's call to its return."""

from __future__ import annotations

import numpy as np
from vec_add import add_kernel

from ..devices import Triton
from ..measurement import Measurement, Row
from ..problem import Problem
from ..turns import Candidate, interleaved
from . import vec_add

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
    import pyopencl as cl
    from triton_spirv_backend.opencl import open_device

    problem, device = vec_add.problem(BLOCK, "f32"), open_device()
    kernel = cl.Kernel(cl.Program(device.context, _SOURCE).build(), "add")
    kernel.set_args(*map(cl.SVM, (*problem.inputs, problem.output)), *map(np.int32, (BLOCK, 1, 1, 1)))
    alone = Candidate(lambda: cl.enqueue_nd_range_kernel(device.queue, kernel, (1,), (1,)).wait())
    problem.check("PyOpenCL alone", alone)
    return timed(
        {**launches(problem, Triton(), "launch of "), "PyOpenCL alone, same work, arguments set before": alone}
    )


def launches(problem: Problem, device: Triton, of: str) -> dict[str, Candidate]:
    """Return the launches of one program and of no program, checked, by a label that begins with `of`."""
    arrays = [device.put(array) for array in (*problem.inputs, problem.output)]

    def programs(count: int) -> Candidate:
        kernel = device.jit(add_kernel)
        return Candidate(lambda: kernel[(count,)](*arrays, BLOCK, BLOCK_SIZE=BLOCK), device)

    one = programs(1)
    problem.check(f"{of}one program", one)
    return {
        f"{of}one program, to its end": one,
        f"{of}no program: Triton's and the driver's Python": programs(0),
    }


def timed(candidates: dict[str, Candidate]) -> Measurement:
    """Let launches take turns."""
    times = interleaved(candidates, rounds=ROUNDS, batch=BATCH)
    rows = [Row(name, time) for name, time in times.items()]
    return Measurement(title="launch", rows=rows, aim="under 100 us of host time a launch")
