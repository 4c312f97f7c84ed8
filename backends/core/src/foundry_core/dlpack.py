"""DLPack: arrays that share memory with other libraries' tensors, in both directions.

NumPy's own C makes and takes the capsules, with their lifetimes. It knows only memory of the host, and neither bf16 nor
fp8; so we name device and type in the capsule: after NumPy made it, and before NumPy takes it. An array of memory that
the host cannot read has its address, and NumPy never reads its elements.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .failure import Failure

# Places, as DLPack numbers them: a kind and the number of a device.
CPU = (1, 0)
CUDA, CUDA_HOST, VULKAN, CUDA_MANAGED = 2, 3, 7, 13
_PLACES = {2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda_managed"}
# DLPack's numbers of the types that NumPy lacks, by Triton's names.
_CODES = {"bf16": 4, "fp8e4nv": 10, "fp8e4b8": 11, "fp8e5": 12, "fp8e5b16": 13}
_TRITON = {code: name for name, code in _CODES.items()}
_READ_ONLY, _COPIED = 1, 2
# What we ask for: later versions of the same number before the dot have the same structures.
_VERSION = (1, 1)


class SharingError(Failure, BufferError):
    """Memory cannot be shared with another library."""


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("place", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def _opened(capsule: Any) -> tuple[_Tensor, _Versioned | None]:
    """Return what a capsule holds that nobody has taken; it lives as long as the capsule."""
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.version[0] != _VERSION[0]:
            raise SharingError(
                "a tensor cannot be shared",
                why=f"its library speaks DLPack {'.'.join(map(str, versioned.version))}, and we speak 1",
            )
        return versioned.tensor, versioned
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), None
    raise SharingError("a tensor cannot be shared", why="its __dlpack__() returned no capsule that can be taken")


def place_name(place: tuple[int, int]) -> str:
    """Return the name of a place as torch writes it."""
    return "cpu" if place[0] == CPU[0] else f"{_PLACES.get(place[0], f'device type {place[0]}')}:{place[1]}"


def give(
    array: npt.NDArray[Any],
    kind: str,
    max_version: tuple[int, int] | None,
    *,
    place: tuple[int, int] = CPU,
    is_copied: bool = False,
) -> Any:
    """Return a capsule over an array, for another library; it keeps the array.

    Args:
        kind: Triton's name of an fp8 type, if the array has its bytes.
        max_version: the newest version of DLPack that the other library knows; None if it knows none with versions.
        place: where the elements are for the other library, if the array has its address of them.

    Raises:
        BufferError: DLPack has no such type, or cannot say that the array is read-only.
    """
    name = kind or ("bf16" if array.dtype.name == "bfloat16" else "")
    if name and name not in _CODES:
        raise SharingError(
            f"a tensor of {name} cannot be shared",
            why="DLPack has no such type",
            next="share its bytes: pass the array of uint8",
        )
    plain = array.view(f"u{array.itemsize}") if name else array
    how: dict[str, Any] = {"max_version": max_version} if max_version else {}
    capsule = plain.__dlpack__(**how)
    tensor, versioned = _opened(capsule)
    if name:
        tensor.code = _CODES[name]
    tensor.place[:] = place
    if versioned and is_copied:
        versioned.flags |= _COPIED
    return capsule


class Taken(NamedTuple):
    """Another library's tensor: its elements with their strides, Triton's name of an fp8 type, and its place."""

    array: npt.NDArray[Any]
    kind: str
    place: tuple[int, int]


class _Capsule:
    """What NumPy takes a capsule from."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **how: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


class _Memory:
    """Memory as NumPy describes an array, because NumPy takes a tensor without a version as read-only."""

    def __init__(self, owner: npt.NDArray[Any]) -> None:
        self._owner = owner
        known = owner.__array_interface__
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


def take(source: Any) -> Taken:
    """Return the elements of another library's tensor, which they keep alive. Those of a GPU must not be read.

    Raises:
        BufferError: the library does not share the tensor, or Triton does not have its type.
    """
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"a {type(source).__name__} has no __dlpack__(), by which libraries share tensors")
    place = (int(source.__dlpack_device__()[0]), int(source.__dlpack_device__()[1]))
    # -1: it need not wait for anything. Who takes memory of a GPU waits for the whole GPU.
    how: dict[str, Any] = {"stream": -1} if place[0] == CUDA else {}
    try:
        capsule = source.__dlpack__(**how, max_version=_VERSION)
    except TypeError:  # of a library before versions
        capsule = source.__dlpack__(**how)
    tensor, versioned = _opened(capsule)
    name = _TRITON.get(tensor.code, "")
    if tensor.lanes != 1 or tensor.bits % 8 or (name and tensor.bits != (16 if name == "bf16" else 8)):
        raise SharingError(
            "a tensor cannot be shared", why=f"its elements have {tensor.bits} bits, {tensor.lanes} each"
        )
    read_only = bool(versioned and versioned.flags & _READ_ONLY)
    if name:
        tensor.code = 1  # unsigned integers
    tensor.place[:] = CPU
    array = np.from_dlpack(_Capsule(capsule))
    if not read_only and not array.flags.writeable:
        array = np.asarray(_Memory(array))
    if name == "bf16":
        import ml_dtypes

        array = array.view(ml_dtypes.bfloat16)
    return Taken(array, name if name != "bf16" else "", place)
