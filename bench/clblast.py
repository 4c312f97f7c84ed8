"""CLBlast's SGEMM through its C interface, on the device that Triton's kernels run on."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable

import numpy as np
import pyopencl as cl
from triton_spirv_backend.opencl import open_device

# Values of the enumerations in CLBlast's clblast_c.h.
_ROW_MAJOR = 101
_NOT_TRANSPOSED = 111


def sgemm(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Callable[[], object]:
    """Return a callable that computes C = A B and returns when C is ready.

    The matrices are OpenCL buffers in the arrays' own memory, because CLBlast does not accept SVM. Creating the buffers
    is not timed.
    """
    library = ctypes.CDLL("libclblast.so.1")
    device = open_device()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffers = [cl.Buffer(device.context, flags, hostbuf=array) for array in (a, b, c)]
    (m, k), (_, n) = a.shape, b.shape
    size, real, handle = ctypes.c_size_t, ctypes.c_float, ctypes.c_void_p
    queue = handle(device.queue.int_ptr)
    matrices = [
        (handle(buffer.int_ptr), size(0), size(array.shape[1]))
        for buffer, array in zip(buffers, (a, b, c), strict=True)
    ]

    def run() -> None:
        status = library.CLBlastSgemm(
            _ROW_MAJOR,
            _NOT_TRANSPOSED,
            _NOT_TRANSPOSED,
            size(m),
            size(n),
            size(k),
            real(1.0),
            *matrices[0],
            *matrices[1],
            real(0.0),
            *matrices[2],
            ctypes.byref(queue),
            None,
        )
        if status != 0:
            raise RuntimeError(f"CLBlastSgemm failed with status {status}")
        device.queue.finish()

    run.buffers = buffers  # type: ignore[attr-defined]  # they live as long as the callable
    return run
