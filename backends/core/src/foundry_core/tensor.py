"""NumPy arrays as kernel arguments: the few methods of a tensor that Triton calls."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .overlap import strides_overlap
from .scalars import ROWS

# NumPy's and ml_dtypes' names of the types that Triton has pointers to.
DTYPES = tuple(dict.fromkeys(row.dtype for row in ROWS if row.dtype))
_INSTEAD = {
    "c": "pass its real and imaginary parts: array.view of the float type, with two elements for each number",
    "M": "pass its ticks: array.view(numpy.int64)",
    "m": "pass its ticks: array.view(numpy.int64)",
    "O": "numpy.asarray(array.tolist(), dtype) makes an array of numbers",
}


class Storage:
    """The memory that a tensor is a view of: the same two questions that torch's UntypedStorage answers."""

    __slots__ = ("_address", "_bytes")

    def __init__(self, address: int, size: int) -> None:
        self._address = address
        self._bytes = size

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._address

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._bytes


class Tensor:
    """A view of a NumPy array that can be passed to a Triton kernel; a kernel's stores land in the array itself.

    Triton recognises an argument as a tensor by `data_ptr` and takes the element type from `dtype`; any NumPy dtype
    with a Triton counterpart will do, bfloat16 being ml_dtypes.bfloat16. The array is never copied; it may be strided.
    `zero_`, `clone` and `copy_` are what triton.autotune calls for `reset_to_zero` and `restore_value`.

        x = Tensor(np.arange(8, dtype=np.float32))
        kernel[(1,)](x, ...)
        x.numpy()

    Raises:
        TypeError: not an array, or an array of what Triton has no type for.
    """

    __slots__ = ("_address", "_array")

    def __init__(self, array: npt.NDArray[Any]) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor wraps a numpy.ndarray, not a {type(array).__name__}; numpy.asarray makes one")
        if array.dtype.name not in DTYPES or not array.dtype.isnative:
            raise TypeError(_refusal(array))
        self._array = array
        self._address = int(array.__array_interface__["data"][0])

    def data_ptr(self) -> int:
        """Address of element [0, 0, ...]."""
        return self._address

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._array.ndim

    @overload
    def stride(self) -> tuple[int, ...]: ...

    @overload
    def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Distance between neighbours along each dimension, or along `dim`, in elements (NumPy's are in bytes).

        Raises:
            ValueError: a field of a structured array, whose distance is no multiple of the element size.
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
        """Whether elements of the array share memory with each other, as those of a broadcast do."""
        array = self._array
        if array.flags.forc:
            return False
        return strides_overlap((*array.shape, array.itemsize), (*array.strides, 1))

    def element_size(self) -> int:
        """Size of an element in bytes."""
        return self._array.itemsize

    def numel(self) -> int:
        """Number of elements."""
        return self._array.size

    def untyped_storage(self) -> Storage:
        """The allocation that the array is a view of, which is what a kernel may reach from `data_ptr`."""
        owner = self._array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = np.lib.array_utils.byte_bounds(owner)
        return Storage(low, high - low)

    def numpy(self) -> npt.NDArray[Any]:
        """The array itself."""
        return self._array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._array, dtype=dtype, copy=copy)

    def zero_(self) -> Tensor:
        """Set every element to zero, in place."""
        self._array.fill(0)
        return self

    def clone(self) -> Tensor:
        """A tensor with memory of its own and the same values."""
        return Tensor(self._array.copy())

    def copy_(self, source: Tensor) -> Tensor:
        """Take over the values of `source`, in place."""
        np.copyto(self._array, source.numpy())
        return self

    def __repr__(self) -> str:
        return f"Tensor({self._array!r})"


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
