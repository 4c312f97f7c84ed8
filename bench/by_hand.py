"""Kernels in OpenCL C, written by hand for CPU devices: the peers in bench/problems/*.cl.

They run on the device that Triton's kernels run on, through PyOpenCL, on the same arrays. What each does is said in its
file: vectors of 16, blocks that stay in the cache, as many work-items as the work needs, and no test in an inner loop.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .turns import Candidate


@functools.cache
def _program(file: Path, options: tuple[str, ...]) -> Any:
    import pyopencl as cl
    from triton_spirv_backend.opencl import open_device

    source = file.with_name("types.cl").read_text() + file.read_text()
    return cl.Program(open_device().context, source).build(list(options))


def kernel(
    module: str,
    name: str,
    items: int,
    *arguments: npt.NDArray[Any] | np.generic,
    group: int | None = 1,
    **constants: object,
) -> Candidate:
    """Return a candidate that launches a kernel of `items` work-items and returns when it has ended.

    Args:
        module: the path of the module in bench/problems/ with the .cl file next to it.
        name: of the kernel.
        arguments: arrays, and scalars of the kernel's types.
        group: work-items of a work-group; None if the implementation chooses.
        constants: what the source takes from the compiler's command line (-D).
    """
    import pyopencl as cl
    from triton_spirv_backend.opencl import open_device

    options = ("-w", *(f"-D{key}={value}" for key, value in constants.items()))
    compiled = cl.Kernel(_program(Path(module).with_suffix(".cl"), options), name)
    # PyOpenCL takes no arrays of types that NumPy does not have.
    compiled.set_args(*(cl.SVM(it.view(np.uint8)) if isinstance(it, np.ndarray) else it for it in arguments))
    queue = open_device().queue

    def run(_: object = arguments) -> None:  # the kernel has their addresses only
        cl.enqueue_nd_range_kernel(queue, compiled, (items,), None if group is None else (group,)).wait()

    return Candidate(run)
