"""Arrays in the memory of a Vulkan device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import dlpack
from ..checked import POISON
from ..checked import memory as poison
from ..scalars import FP8
from ..tensor import Device as Place
from ..tensor import Storage, Tensor
from .cuda import Loan
from .device import opened
from .memory import DeviceBuffer


class _Memory:
    """Memory of the device as NumPy describes an array. Views of it are computed; its elements are never read."""

    def __init__(self, buffer: DeviceBuffer | Loan, size: int) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "data": (buffer.address, False),
            "shape": (size,),
            "typestr": "|u1",
        }


class DeviceStorage(Storage):
    """The memory of the device that a DeviceTensor is a view of."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer: DeviceBuffer, size: int) -> None:
        super().__init__(buffer.address, size, np.empty(0))
        self._buffer = buffer

    def cpu(self) -> Storage:
        """Return a copy in the host's memory."""
        found = np.empty(self._bytes, np.uint8)
        opened().download(self._buffer, 0, found.ctypes.data, self._bytes)
        return Storage(found.ctypes.data, self._bytes, found)

    def copy_(self, source: Storage) -> Storage:
        """Copy the bytes of a storage in the host's memory, in place."""
        opened().upload(self._buffer, 0, source.data_ptr(), self._bytes)
        return self


def _over(buffer: DeviceBuffer, size: int, array: npt.NDArray[Any], kind: str) -> DeviceTensor:
    """Return the tensor over an array in `size` bytes of memory."""
    tensor = object.__new__(DeviceTensor)
    Tensor.__init__(tensor, array, kind)
    tensor._buffer, tensor._size = buffer, size
    tensor._note_place()
    return tensor


def _part(found: dlpack.Taken, memory: _Memory, low: int) -> npt.NDArray[Any]:
    """Return another library's elements, in memory that has for it the address `low`."""
    first = found.array.__array_interface__["data"][0] - low
    return np.ndarray(found.array.shape, found.array.dtype, np.asarray(memory), first, found.array.strides)


class DeviceTensor(Tensor):
    """An array in the device's memory that can be passed to kernels; a launch copies nothing and does not wait.

        x = DeviceTensor.from_numpy(np.arange(8, dtype=np.float32))
        kernel[(1,)](x, ...)
        x.numpy()

    Indexing by integers and slices, reshape and permute return views of the same memory. Copies, fills and launches
    happen in the order in which they are called; `numpy` waits for those before it.

    Args:
        shape: extents. The elements have any value; `poison_` makes them NaN.
        dtype: NumPy's or ml_dtypes' type of the elements, or Triton's name of an fp8 type, such as "fp8e4nv".

    Raises:
        TypeError: Triton does not have the type.
        DeviceMemoryError: the device has no memory left.
    """

    __slots__ = ("_buffer", "_size", "address", "dense")

    def __init__(self, shape: tuple[int, ...] | int, dtype: npt.DTypeLike = np.float32) -> None:
        kind = dtype if isinstance(dtype, str) and dtype in FP8 else ""
        element = np.dtype(np.uint8 if kind else dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self._size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
        self._buffer = DeviceBuffer(opened(), self._size, of_host=False)
        memory = np.asarray(_Memory(self._buffer, self._size))
        super().__init__(np.ndarray(shape, element, memory), kind)
        self._note_place()
        if poison.is_installed():
            self._fill(POISON)

    def _note_place(self) -> None:
        # For launches: the address, and whether kernels may write: no two elements share memory because there are no
        # gaps, and another library has not said that it is read-only.
        self.address: int = self._address
        self.dense: bool = self._array.flags.forc and self._array.flags.writeable

    @classmethod
    def from_numpy(cls, array: npt.ArrayLike, dtype: str = "") -> DeviceTensor:
        """Copy an array to the device. An array of uint8 may have numbers of an fp8 type: dtype="fp8e4nv"."""
        source = np.ascontiguousarray(array).reshape(np.shape(array))
        tensor = cls(source.shape, dtype or source.dtype)
        tensor._write(source)
        return tensor

    @classmethod
    def zeros(cls, shape: tuple[int, ...] | int, dtype: npt.DTypeLike = np.float32) -> DeviceTensor:
        return cls(shape, dtype).zero_()

    @classmethod
    def full(cls, shape: tuple[int, ...] | int, value: Any, dtype: npt.DTypeLike = np.float32) -> DeviceTensor:
        return cls(shape, dtype).fill_(value)

    def _alike(self, array: npt.NDArray[Any]) -> DeviceTensor:
        """Return the tensor over a view of this one's memory."""
        return _over(self._buffer, self._size, array, self._kind if self._array.dtype == np.uint8 else "")

    @property
    def device(self) -> Place:
        """The location of the array: the device's memory."""
        return Place("vulkan", 0)

    # To and from other libraries.

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device as CUDA numbers it; as a device of Vulkan, if CUDA cannot have its memory."""
        try:
            return opened().border.place
        except dlpack.SharingError:
            return dlpack.VULKAN, 0

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule, by which CUDA's libraries share this memory: torch.from_dlpack(tensor).

        Everything that was launched before has finished. As long as the other library has the memory, each launch, copy
        and fill waits for CUDA's work before it, and has finished when it returns.

        Raises:
            BufferError: CUDA cannot have the memory; or DLPack lacks the type; or `dl_device` is another device.
        """
        if dl_device is not None and dl_device[0] == dlpack.CPU[0]:
            if copy is False:
                raise dlpack.SharingError(
                    "a DeviceTensor cannot be shared as memory of the host",
                    why="it is in the device's",
                    next="allow a copy",
                )
            return dlpack.give(self.numpy(), self._kind, max_version, is_copied=True)
        border = opened().border
        if dl_device is not None and tuple(dl_device) != border.place:
            raise dlpack.SharingError(
                f"a DeviceTensor cannot be shared as memory of {dlpack.place_name(dl_device)}",
                why=f"it is on {dlpack.place_name(border.place)}",
                next="let the other library copy it, as torch.from_dlpack(tensor).to(device) does",
            )
        tensor = self.clone() if copy else self
        loan = border.lend(tensor._buffer, tensor._size)
        first = tensor._address - tensor._buffer.address
        memory = np.asarray(_Memory(loan, tensor._size))
        lent = np.ndarray(self.shape, self._array.dtype, memory, first, tensor._array.strides)
        return dlpack.give(lent, self._kind, max_version, place=border.place, is_copied=bool(copy))

    @classmethod
    def from_dlpack(cls, source: Any, *, copy: bool | None = None) -> DeviceTensor:
        """Return a tensor over memory of a DeviceTensor that another library has, or a copy of any other tensor.

        Args:
            copy: True copies in any case, False never.

        Raises:
            BufferError: it is on another device, or cannot be shared; or `copy` is False, and it would have to be.
            TypeError: Triton does not have its type, or it is no tensor.
        """
        found = dlpack.take(source)
        tensor = None if copy else cls._over(found)
        if tensor is not None:
            return tensor
        if copy is False:
            raise dlpack.SharingError(
                f"a DeviceTensor cannot share a tensor on {dlpack.place_name(found.place)}",
                why="it is not memory of a DeviceTensor, and Vulkan reaches no other of CUDA",
                next="allow a copy; or allocate it as torch.from_dlpack(DeviceTensor(shape, dtype)), which both reach",
            )
        if found.place[0] in (dlpack.CPU[0], dlpack.CUDA_HOST):
            return cls.from_numpy(found.array, found.kind)
        border = opened().border
        if found.place != border.place:
            raise dlpack.SharingError(
                f"a DeviceTensor cannot be made of a tensor on {dlpack.place_name(found.place)}",
                why=f"{opened().name} is {dlpack.place_name(border.place)}",
                next="copy it there before, as tensor.to(device) does; or through the host: tensor.cpu()",
            )
        if not found.array.size:
            return cls(found.array.shape, found.kind or found.array.dtype)
        low, high = np.lib.array_utils.byte_bounds(found.array)
        buffer, size = DeviceBuffer(opened(), high - low, of_host=False), high - low
        border.cuda.copy(border.lend(buffer, size).address, low, size)
        return _over(buffer, size, _part(found, _Memory(buffer, size), low), found.kind)

    @classmethod
    def over(cls, source: Any) -> DeviceTensor | None:
        """Return the tensor over the memory of torch's tensor on CUDA; None if it is not of a DeviceTensor."""
        if opened().shared is None:
            return None
        # torch shares no tensor whose gradient it computes.
        return cls._over(dlpack.take(source.detach() if hasattr(source, "detach") else source))

    @classmethod
    def _over(cls, found: dlpack.Taken) -> DeviceTensor | None:
        shared = opened().shared
        if shared is None or found.place != shared.place:
            return None
        if not found.array.size:
            return cls(found.array.shape, found.kind or found.array.dtype)
        low, high = np.lib.array_utils.byte_bounds(found.array)
        loan = shared.owner(low, high - low)
        if loan is None:
            return None
        array = _part(found, _Memory(loan.buffer, loan.size), loan.address)
        array.flags.writeable = found.array.flags.writeable
        return _over(loan.buffer, loan.size, array, found.kind)

    # To and from the host. The bytes from the first to the last element of a view are copied.

    def _span(self) -> tuple[int, int]:
        """Return the place of the view's bytes in its buffer, and their number."""
        if not self._array.size:
            return 0, 0
        low, high = np.lib.array_utils.byte_bounds(self._array)
        return low - self._buffer.address, high - low

    def _read(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
        """Return a copy of the view's bytes, and the view as an array in that copy."""
        at, size = self._span()
        found = np.empty(size, np.uint8)
        opened().download(self._buffer, at, found.ctypes.data, size)
        first = self._address - self._buffer.address - at if size else 0
        return found, np.ndarray(self.shape, self._array.dtype, found, first, self._array.strides)

    def numpy(self) -> npt.NDArray[Any]:
        """Return a copy of the elements in the host's memory, after all launches so far."""
        _, view = self._read()
        return view if view.flags.c_contiguous else view.copy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a DeviceTensor becomes an array of the host only by a copy")
        return np.asarray(self.numpy(), dtype)

    def on_host(self) -> npt.NDArray[Any]:
        """Return a copy of the elements in the host's memory, with the strides that they have in the device's."""
        return self._read()[1]

    def _write(self, source: npt.NDArray[Any]) -> None:
        """Copy an array of the same shape and type to the elements."""
        at, size = self._span()
        if self._array.flags.c_contiguous:
            opened().upload(self._buffer, at, source.ctypes.data, size)
            return
        found, view = self._read()
        view[...] = source
        opened().upload(self._buffer, at, found.ctypes.data, size)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign to elements in place, with any index that NumPy accepts."""
        if isinstance(value, Tensor):
            value = value.numpy()
        found, view = self._read()
        view[key] = value
        opened().upload(self._buffer, self._span()[0], found.ctypes.data, found.size)

    def cpu(self) -> Tensor:
        """Return a copy in the host's memory."""
        return Tensor(self.numpy(), self._kind if self._array.dtype == np.uint8 else "")

    def to(self, device: object) -> Tensor:
        """Return this tensor, or a copy in the host's memory for `cpu`.

        Raises:
            ValueError: another device.
        """
        if str(device) == "cpu":
            return self.cpu()
        if str(device) != "vulkan":
            raise ValueError(f"a DeviceTensor is in the memory of a Vulkan device, so it cannot go to {device!r}")
        return self

    def new_empty(self, *shape: int, device: object = "vulkan") -> Tensor:
        """Return a tensor of the same type with its own, uninitialized memory."""
        if str(device) == "cpu":
            return Tensor(np.empty(shape, self._array.dtype), self._kind if self._array.dtype == np.uint8 else "")
        return DeviceTensor(shape, self._kind or self._array.dtype)

    def untyped_storage(self) -> DeviceStorage:
        """Return the allocation that this tensor is a view of."""
        return DeviceStorage(self._buffer, self._size)

    # On the device.

    def _fill(self, word: int) -> DeviceTensor:
        """Write a 32-bit word everywhere; the size of an element divides that of a word, or words are all alike."""
        at, size = self._span()
        device = opened()
        pattern = np.full(1, word, np.uint32).view(np.uint8)
        head = min(-at % 4, size)
        body = (size - head) // 4 * 4
        if body:
            device.fill(self._buffer, at + head, body, int(np.roll(pattern, -head).view(np.uint32)[0]))
        for first, count in ((0, head), (head + body, size - head - body)):
            part = np.roll(pattern, -first)[:count].copy()
            device.upload(self._buffer, at + first, part.ctypes.data, count)
        return self

    def fill_(self, value: Any) -> DeviceTensor:
        """Set every element to a number, in place."""
        element = np.array(value, self._array.dtype)
        words = np.frombuffer(element.tobytes() * (8 // element.itemsize), np.uint32)
        if self.dense and words[0] == words[1]:
            return self._fill(int(words[0]))
        self._write(np.full(self.shape, element))
        return self

    def zero_(self) -> DeviceTensor:
        """Set every element to zero, in place."""
        return self.fill_(0)

    def poison_(self) -> DeviceTensor:
        """Set all bits of every element, in place: NaN as a float, -1 as an int. It shows what a kernel does not write.

        Raises:
            ValueError: a view with gaps, which are not to be changed.
        """
        if not self.dense:
            raise ValueError("a view with gaps is not poisoned; poison the tensor that it is a view of")
        return self._fill(0xFFFFFFFF)

    def clone(self) -> DeviceTensor:
        """Return a tensor with a copy of the elements."""
        tensor = DeviceTensor(self.shape, self._kind or self._array.dtype)
        return tensor.copy_(self)

    def copy_(self, source: Any) -> DeviceTensor:
        """Copy the values of a tensor or an array, in place."""
        device = opened()
        if (
            isinstance(source, DeviceTensor)
            and source.dtype == self.dtype
            and source.shape == self.shape
            and source._array.flags.c_contiguous
            and self._array.flags.c_contiguous
            and source._buffer is not self._buffer
        ):
            at, size = self._span()
            if size:
                device.copy(self._buffer, at, source._buffer, source._span()[0], size)
        else:
            values = source.numpy() if hasattr(source, "numpy") else np.asarray(source)
            self._write(np.ascontiguousarray(np.broadcast_to(values, self.shape), self._array.dtype))
        return self

    def __repr__(self) -> str:
        return f"DeviceTensor(shape={self.shape}, dtype={self.dtype}, device={self.device})"
