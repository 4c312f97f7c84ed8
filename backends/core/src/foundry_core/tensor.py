"""NumPy arrays as kernel arguments: the few methods of a tensor that Triton calls."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt


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
        TypeError: not an array, or an array of Python objects.
    """

    __slots__ = ("_address", "_array")

    def __init__(self, array: npt.NDArray[Any]) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor wraps a numpy.ndarray, not a {type(array).__name__}; numpy.asarray makes one")
        if array.dtype.hasobject:
            raise TypeError("an array of Python objects has no elements that a kernel could read")
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
