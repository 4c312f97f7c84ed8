"""Other ways to do the same work on an OpenCL device: kernels that are written by hand, and CLBlast.

They run on the device that Triton's kernels run on, through PyOpenCL. The kernels in OpenCL C are in bench/problems:
vectors of 16, blocks that stay in the cache, as many work-items as the work needs, and no test in an inner loop. Their
files say what each does. CLBlast's products of f32 are called through its C interface.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problem import Array
from ..turns import Candidate

# Values of the enumerations in CLBlast's clblast_c.h.
_ROW_MAJOR = 101
_NOT_TRANSPOSED = 111
_ONE, _ZERO = ctypes.c_float(1), ctypes.c_float(0)


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


def sgemm(a: Array, b: Array, c: Array) -> Callable[[], object]:
    """Return a callable that computes C = A B and returns when C is ready."""
    (m, k), (_, n) = a.shape, b.shape
    x, y, z = _buffers(a, b, c)
    sizes = map(ctypes.c_size_t, (m, n, k))
    layouts = _ROW_MAJOR, _NOT_TRANSPOSED, _NOT_TRANSPOSED
    return _call("CLBlastSgemm", *layouts, *sizes, _ONE, *_at(x, k), *_at(y, n), _ZERO, *_at(z, n), keep=(x, y, z))


def sgemv(a: Array, x: Array, y: Array) -> Callable[[], object]:
    """Return a callable that computes y = A x and returns when y is ready."""
    matrix, left, right = _buffers(a, x, y)
    sizes = map(ctypes.c_size_t, a.shape)
    parts = _at(matrix, a.shape[1]), _at(left, 1), _at(right, 1)
    layouts = _ROW_MAJOR, _NOT_TRANSPOSED
    return _call(
        "CLBlastSgemv", *layouts, *sizes, _ONE, *parts[0], *parts[1], _ZERO, *parts[2], keep=(matrix, left, right)
    )


def _buffers(*arrays: Array) -> list[Any]:
    """Return OpenCL buffers in the memory of arrays, because CLBlast does not accept SVM. Making them is not timed."""
    import pyopencl as cl
    from triton_spirv_backend.opencl import open_device

    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    return [cl.Buffer(open_device().context, flags, hostbuf=array) for array in arrays]


def _at(buffer: Any, step: int) -> tuple[Any, ...]:
    """Return a buffer, the offset 0, and the distance of its rows or elements, as C's arguments."""
    return ctypes.c_void_p(buffer.int_ptr), ctypes.c_size_t(0), ctypes.c_size_t(step)


def _call(name: str, *arguments: object, keep: object) -> Callable[[], object]:
    """Return a callable of a function; `keep` lives as long as it."""
    from triton_spirv_backend.opencl import open_device

    function, queue = getattr(ctypes.CDLL("libclblast.so.1"), name), open_device().queue
    handle = ctypes.c_void_p(queue.int_ptr)

    def run(_: object = keep) -> None:
        if status := function(*arguments, ctypes.byref(handle), None):
            raise RuntimeError(f"{name} failed with status {status}")
        queue.finish()

    return run
