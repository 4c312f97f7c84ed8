"""CLBlast's products of f32 through its C interface, on the device that Triton's kernels run on."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from .problem import Array

# Values of the enumerations in CLBlast's clblast_c.h.
_ROW_MAJOR = 101
_NOT_TRANSPOSED = 111
_ONE, _ZERO = ctypes.c_float(1), ctypes.c_float(0)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libclblast.so.1")


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

    function, queue = getattr(_library(), name), open_device().queue
    handle = ctypes.c_void_p(queue.int_ptr)

    def run(_: object = keep) -> None:
        if status := function(*arguments, ctypes.byref(handle), None):
            raise RuntimeError(f"{name} failed with status {status}")
        queue.finish()

    return run
