"""NumPy arrays as kernel arguments: implements the tensor methods that Triton calls."""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import dlpack
from .scalars import FP8, ROWS
from .spans import strides_overlap
from .tensor_text import tensor_text

# NumPy's and ml_dtypes' names of the types that Triton pointers can have.
DTYPES = tuple(dict.fromkeys(row.dtype for row in ROWS if row.dtype))
# Triton's name of each fp8 type, by itself and by the name in ml_dtypes.
_FP8 = {name: row.name for row in ROWS if row.name in FP8 for name in (row.name, row.dtype) if name}
_INSTEAD = {
    "c": "pass its real and imaginary parts: array.view of the float type, with two elements for each number",
    "M": "pass its ticks: array.view(numpy.int64)",
    "m": "pass its ticks: array.view(numpy.int64)",
    "O": "numpy.asarray(array.tolist(), dtype) makes an array of numbers",
}


# Memory whose address a script has got: the first address and the first behind it, and what owns it.
_noted: dict[tuple[int, int], weakref.ref[Any]] = {}
# The modules of Triton and its plugins that ask for addresses, for launches.
_ASKING: set[str | None] = set()


def _caller(depth: int) -> str | None:
    """Return the name of a calling module; Python 3.12 has a function that makes no object of the frame."""
    return sys._getframe(depth + 1).f_globals.get("__name__")


_module: Callable[[int], str | None] = getattr(sys, "_getframemodulename", _caller)


def note_address(owner: Any, low: int, bytes: int) -> None:
    """Note that a script has got an address in `bytes` bytes of memory, from `low`."""
    _noted[low, low + bytes] = weakref.ref(owner)


def reachable() -> list[tuple[int, int]]:
    """Return the memory of which a script has got an address and that is still there: first and last byte + 1."""
    for span in [span for span, owner in _noted.items() if owner() is None]:
        del _noted[span]
    return list(_noted)


@dataclass(frozen=True)
class Device:
    """The location of a tensor's memory, with the attributes of torch's device; always the host's memory."""

    type: str = "cpu"
    index: int | None = None

    def __str__(self) -> str:
        return self.type


class Storage:
    """The memory that a tensor is a view of, with the methods of torch's UntypedStorage.

    Args:
        address: address of the first byte.
        size: size in bytes.
        owner: the array that owns this memory.
    """

    __slots__ = ("_address", "_bytes", "_owner")

    def __init__(self, address: int, size: int, owner: npt.NDArray[Any]) -> None:
        self._address = address
        self._bytes = size
        self._owner = owner

    @property
    def owner(self) -> npt.NDArray[Any]:
        """The array that owns this memory."""
        return self._owner

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._address

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._bytes

    def cpu(self) -> Storage:
        """Return this storage, which is in the host's memory. Triton's interpreter calls this."""
        return self

    def copy_(self, source: Storage) -> Storage:
        """Copy the bytes of `source`, in place.

        Raises:
            ValueError: `source` has another size.
        """
        if source.data_ptr() != self._address:
            np.copyto(self.view((self._bytes,), (1,), np.dtype(np.uint8)), source.view((source.nbytes(),), (1,)))
        return self

    def view(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: npt.DTypeLike = np.uint8, offset: int = 0
    ) -> npt.NDArray[Any]:
        """Return an array in this memory; strides and offset are in bytes."""
        whole = np.asarray(_Memory(self._address, self._bytes, self._owner))
        return np.ndarray(shape, dtype, whole, offset, strides)


class _Memory:
    """An object from which NumPy makes an array of bytes without copying."""

    def __init__(self, address: int, size: int, owner: npt.NDArray[Any]) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not owner.flags.writeable),
            "shape": (size,),
            "typestr": "|u1",
        }


class Tensor:
    """A view of a NumPy array that can be passed to a Triton kernel; a kernel's stores change the array itself.

    A launch wraps an array that is passed directly in the same way. A Tensor saves the wrapping at each launch.

    Triton recognizes a tensor by `data_ptr` and takes the element type from `dtype`. Any NumPy dtype with a Triton
    counterpart is valid; bfloat16 and fp8 types are those of ml_dtypes. The array is never copied; it may be strided.
    An array of uint8 may have numbers of an fp8 type: `Tensor(array, dtype="fp8e4nv")`. triton.autotune
    calls `zero_`, `clone` and `copy_` for `reset_to_zero` and `restore_value`. Triton's interpreter
    (TRITON_INTERPRET=1) calls `cpu`, `to`, `new_empty`, `set_` and `data`, and works in the array itself.

        x = Tensor(np.arange(8, dtype=np.float32))
        kernel[(1,)](x, ...)
        x.numpy()

    Args:
        dtype: Triton's or ml_dtypes' name of the fp8 type that an array of uint8 has: `fp8e4nv` or `float8_e4m3fn`.

    Attributes:
        dtype: the element type: NumPy's dtype, or the name of an fp8 type.

    Raises:
        TypeError: not an array, or an array of a type that Triton does not have.
    """

    __slots__ = ("_address", "_array", "_kind", "dtype")

    def __init__(self, array: npt.NDArray[Any], dtype: str = "") -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor wraps a numpy.ndarray, not a {type(array).__name__}; numpy.asarray makes one")
        if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                "a kernel cannot take a masked array\n  why:  it would compute with the elements that the mask hides\n"
                "  next: pass array.filled(value)"
            )
        if array.dtype.name not in DTYPES or not array.dtype.isnative:
            raise TypeError(_refusal(array))
        self._kind = _kind(array, dtype) if dtype else array.dtype.name if array.dtype.name in _FP8 else ""
        self._array = array
        # Triton distinguishes types by their hash, and ml_dtypes' dtypes of several fp8 types have the same one.
        self.dtype: Any = self._kind or array.dtype
        self._address = int(array.__array_interface__["data"][0])

    def data_ptr(self) -> int:
        """Return the address of element [0, 0, ...].

        Kernels in the checked mode may reach the array by an address that a script got here.
        """
        if _module(1) not in _ASKING:
            self._note_address()
        return self._address

    def _note_address(self) -> None:
        module = _module(2) or ""
        package = module.partition(".")[0]
        if package in ("triton", "foundry_core") or (package.startswith("triton_") and package.endswith("_backend")):
            _ASKING.add(module)
        elif self._array.size:
            low, high = np.lib.array_utils.byte_bounds(self._array)
            note_address(self.untyped_storage().owner, low, high - low)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def device(self) -> Device:
        """The location of the array: the host's memory, on whatever device kernels run."""
        return Device()

    @overload
    def size(self) -> tuple[int, ...]: ...

    @overload
    def size(self, dim: int) -> int: ...

    def size(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Return the extents, or the extent of `dim`, as torch does; NumPy's `size` is `numel()`."""
        return self._array.shape if dim is None else self._array.shape[dim]

    def __getitem__(self, key: Any) -> Tensor:
        """Return a tensor over a part of the same memory, by integers, slices, None and ..., like NumPy's views.

        A kernel's stores to the part change the array. An integer for each dimension gives a tensor of shape ().

        Raises:
            TypeError: an array, a list or a Boolean as index: NumPy would copy the elements, and a kernel's stores to
                the copy would be lost.
            IndexError: an index is out of bounds.
        """
        parts = key if isinstance(key, tuple) else (key,)
        if not all(_makes_view(part) for part in parts):
            raise TypeError(
                f"Tensor takes no index {key!r}\n"
                "  why:  it would select a copy, and what a kernel stores there would not reach the array\n"
                "  next: if a copy is meant: Tensor(tensor.numpy()[index])"
            )
        # With an ellipsis, NumPy returns a view even for a single element.
        view = self._array[parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)]
        return self._alike(view)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign to elements in place, with any index that NumPy accepts."""
        self._array[key] = value.numpy() if isinstance(value, Tensor) else value

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @overload
    def stride(self) -> tuple[int, ...]: ...

    @overload
    def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Return the distance between neighbours along each dimension, or along `dim`, in elements (NumPy: bytes).

        Raises:
            ValueError: the array is a field of a structured array, whose distance is not a multiple of the element
                size.
        """
        size = self._array.itemsize
        if any(stride % size for stride in self._array.strides):
            raise ValueError(f"strides of {self._array.strides} bytes are no multiple of the {size} byte elements")
        strides = tuple(stride // size for stride in self._array.strides)
        return strides if dim is None else strides[dim]

    @property
    def readonly(self) -> bool:
        """Whether the array must not be written to."""
        return not self._array.flags.writeable

    def overlaps(self) -> bool:
        """Return whether elements of the array share memory with each other, as those of a broadcast do."""
        array = self._array
        if array.flags.forc:
            return False
        return strides_overlap((*array.shape, array.itemsize), (*array.strides, 1))

    def element_size(self) -> int:
        """Return the size of an element in bytes."""
        return self._array.itemsize

    def numel(self) -> int:
        return self._array.size

    def is_contiguous(self) -> bool:
        """Return whether the elements follow each other in row-major order, without gaps."""
        return self._array.flags.c_contiguous

    def reshape(self, *shape: int) -> Tensor:
        """Return a view with other extents; one may be -1, and is computed.

        Raises:
            ValueError: the elements would have to be copied.
        """
        return self._alike(np.reshape(self._array, shape, copy=False))

    def permute(self, *dims: int) -> Tensor:
        """Return a view with the dimensions in another order."""
        return self._alike(self._array.transpose(dims))

    @property
    def T(self) -> Tensor:
        """A view with the dimensions in reverse order."""
        return self._alike(self._array.T)

    def untyped_storage(self) -> Storage:
        """Return the allocation that the array is a view of. A kernel may reach all of it from `data_ptr`."""
        owner = self._array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = np.lib.array_utils.byte_bounds(owner)
        return Storage(low, high - low, owner)

    def storage_offset(self) -> int:
        """Return the distance from the first byte of the storage to element [0, 0, ...], in elements."""
        return (self._address - self.untyped_storage().data_ptr()) // self._array.itemsize

    @property
    def data(self) -> Tensor:
        """This tensor; torch's name for the tensor without gradient."""
        return self

    def cpu(self) -> Tensor:
        """Return this tensor, which is in the host's memory."""
        return self

    def to(self, device: object) -> Tensor:
        """Return this tensor: every device of Foundry reads it from the host's memory.

        Raises:
            ValueError: the device is not `cpu`.
        """
        if str(device) != "cpu":
            raise ValueError(f"a Tensor of foundry_core is in the host's memory, so it cannot go to {device!r}")
        return self

    def new_empty(self, *shape: int, device: object = "cpu") -> Tensor:
        """Return a tensor of the same type with its own, uninitialized memory."""
        return self._alike(np.empty(shape, self._array.dtype)).to(device)

    def _alike(self, array: npt.NDArray[Any]) -> Tensor:
        """Return a tensor over an array whose elements have this tensor's type."""
        return Tensor(array, self._kind if self._array.dtype == np.uint8 else "")

    def set_(self, source: Storage, storage_offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
        """Become a view of `source`; offset, size and strides are in elements, as in `stride`."""
        step = self._array.itemsize
        strides = tuple(step * each for each in stride)
        self._array = source.view(size, strides, self._array.dtype, step * storage_offset)
        self._address = source.data_ptr() + step * storage_offset
        return self

    def numpy(self) -> npt.NDArray[Any]:
        """Return the array itself."""
        return self._array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule, by which another library shares this memory: torch.from_dlpack(tensor).

        Raises:
            BufferError: DLPack lacks the type, or the library wants it elsewhere, or does not know what is read-only.
        """
        if dl_device is not None and tuple(dl_device) != dlpack.CPU:
            raise dlpack.SharingError(
                f"a Tensor cannot be shared as memory of {dlpack.place_name(dl_device)}",
                why="it is in the host's memory",
                next="let the other library copy it, as torch.from_dlpack(tensor).to(device) does",
            )
        array = self._array.copy() if copy else self._array
        return dlpack.give(array, self._kind, max_version, is_copied=bool(copy))

    @classmethod
    def from_dlpack(cls, source: Any, *, copy: bool | None = None) -> Tensor:
        """Return a tensor over another library's memory of the host, or over a copy if `copy`.

        Raises:
            BufferError: it is in other memory, or cannot be shared.
            TypeError: Triton does not have its type, or it is no tensor.
        """
        found = dlpack.take(source)
        if found.place[0] != dlpack.CPU[0]:
            raise dlpack.SharingError(
                f"a Tensor cannot be made of a tensor on {dlpack.place_name(found.place)}",
                why="a Tensor is in the host's memory",
                next="foundry_core.vulkan.array.DeviceTensor.from_dlpack takes it; or copy it: tensor.cpu()",
            )
        return Tensor(found.array.copy() if copy else found.array, found.kind)

    def zero_(self) -> Tensor:
        """Set every element to zero, in place."""
        self._array.fill(0)
        return self

    def clone(self) -> Tensor:
        return self._alike(self._array.copy())

    def copy_(self, source: Tensor) -> Tensor:
        """Copy the values of `source`, in place."""
        np.copyto(self._array, source.numpy())
        return self

    def __repr__(self) -> str:
        """Return the elements as torch shows them; those of an fp8 type in an array of uint8 as bytes."""
        as_bytes = bool(self._kind) and self._array.dtype == np.uint8
        return tensor_text(self._array, f"{self._kind}, as bytes" if as_bytes else self._array.dtype.name)


def _kind(array: npt.NDArray[Any], dtype: str) -> str:
    """Return Triton's name of the type of an array of bytes."""
    if array.dtype != np.uint8 or dtype not in _FP8:
        raise TypeError(
            f"Tensor cannot read an array of {array.dtype} as {dtype!r}\n"
            f"  why:  it reads an array of uint8 as one of {', '.join(_FP8)}\n"
            "  next: leave dtype out, or pass array.view(numpy.uint8)"
        )
    return _FP8[dtype]


def _makes_view(index: Any) -> bool:
    """Return whether the index is one of NumPy's basic indexing, which never copies."""
    if index is None or isinstance(index, slice | EllipsisType):
        return True
    if isinstance(index, bool | np.bool_ | np.ndarray):
        return False
    try:
        operator.index(index)
    except TypeError:
        return False
    return True


def _refusal(array: npt.NDArray[Any]) -> str:
    dtype = array.dtype
    if dtype.name in DTYPES:
        why, instead = "its bytes are in the other order", "pass array.astype(array.dtype.newbyteorder('='))"
    else:
        why = f"Triton has {', '.join(DTYPES)}"
        instead = (
            f"pass a field of it: array['{dtype.names[0]}']"
            if dtype.names
            else _INSTEAD.get(dtype.kind, "convert it: array.astype(...)")
        )
    return f"a kernel cannot take an array of {dtype} with shape {array.shape}\n  why:  {why}\n  next: {instead}"
