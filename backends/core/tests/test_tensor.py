"""Tensor: how Triton and the launchers see a NumPy array."""

from __future__ import annotations

import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from foundry_core import Tensor


def test_address_is_that_of_the_first_element_of_a_view() -> None:
    base = np.zeros(10, np.float32)
    assert Tensor(base[3:]).data_ptr() == Tensor(base).data_ptr() + 12


def test_strides_are_in_elements() -> None:
    matrix = np.zeros((4, 6), np.float16)
    assert Tensor(matrix).stride() == (6, 1)
    assert Tensor(matrix.T).stride() == (1, 6)
    assert Tensor(matrix[:, ::2]).stride(1) == 2


def test_strides_that_are_no_multiple_of_the_element_are_refused() -> None:
    records = np.zeros(4, np.dtype([("a", np.float32), ("b", np.int8)]))
    with pytest.raises(ValueError, match="no multiple"):
        Tensor(records["a"]).stride()


@pytest.mark.parametrize(
    ("dtype", "name"), [(np.float32, "float32"), (ml_dtypes.bfloat16, "bfloat16"), (np.int8, "int8"), (bool, "bool")]
)
def test_dtype_prints_as_triton_expects(dtype: type, name: str) -> None:
    assert str(Tensor(np.zeros(1, dtype)).dtype) == name


def test_storage_is_the_whole_allocation_of_a_view() -> None:
    base = np.zeros((8, 8), np.int32)
    storage = Tensor(base[2:4, 1:]).untyped_storage()
    assert storage.data_ptr() == Tensor(base).data_ptr()
    assert storage.nbytes() == 8 * 8 * 4


def test_writing_through_the_array_is_seen_without_a_copy() -> None:
    array = np.zeros(3, np.float32)
    tensor = Tensor(array)
    array[1] = 5
    assert tensor.numpy() is array
    assert np.asarray(tensor)[1] == 5


def test_autotuning_can_reset_and_restore() -> None:
    tensor = Tensor(np.arange(4))
    saved = tensor.clone()
    tensor.zero_()
    assert not tensor.numpy().any()
    tensor.copy_(saved)
    assert tensor.numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("other", [[1, 2], 3.0, np.array([object()])])
def test_tensor_refuses_anything_but_an_array_of_numbers(other: object) -> None:
    with pytest.raises(TypeError):
        Tensor(other)  # type: ignore[arg-type]


def test_the_package_offers_the_class_itself() -> None:
    import foundry_core
    from foundry_core import tensor

    assert foundry_core.Tensor is tensor.Tensor
    with pytest.raises(AttributeError, match="no attribute 'Tenser'"):
        foundry_core.Tenser  # noqa: B018


def test_size_and_device_are_as_torchs() -> None:
    tensor = Tensor(np.zeros((3, 0, 5)))
    assert tensor.size() == (3, 0, 5)
    assert (tensor.size(0), tensor.size(-1)) == (3, 5)
    assert (str(tensor.device), tensor.device.type, tensor.device.index) == ("cpu", "cpu", None)
    with pytest.raises(IndexError):
        tensor.size(3)


@pytest.mark.parametrize(
    "key", [0, -1, np.int64(2), slice(1, 3), slice(None, None, -2), (1, 2), (..., 0), None, (slice(2), None), (), ...]
)
def test_an_index_is_a_view_of_the_same_memory(key: Any) -> None:
    array = np.arange(1, 13).reshape(3, 4)
    expected = array.copy()
    expected[key] = 0
    part = Tensor(array)[key]
    assert isinstance(part, Tensor)
    np.testing.assert_array_equal(part.numpy(), array[key])
    assert part.shape == array[key].shape
    assert np.shares_memory(part.numpy(), array)
    part.zero_()
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("key", [[0, 1], np.array([0]), np.array(1), True, np.bool_(True), (0, [1]), 1.0, "a"])
def test_an_index_that_would_copy_is_refused(key: Any) -> None:
    with pytest.raises(TypeError, match=r"takes no index(?s:.*)tensor\.numpy\(\)"):
        Tensor(np.arange(12).reshape(3, 4))[key]


def test_an_index_out_of_bounds_is_an_error_and_ends_a_loop() -> None:
    tensor: Any = Tensor(np.arange(3))
    with pytest.raises(IndexError):
        tensor[3]
    assert [int(part.numpy()) for part in tensor] == [0, 1, 2]


def test_assignment_is_in_place() -> None:
    array = np.arange(6)
    tensor = Tensor(array)
    tensor[1:3] = 9
    tensor[np.array([4, 5])] = Tensor(np.array([7, 8]))
    assert array.tolist() == [0, 9, 9, 3, 7, 8]
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tensor[0] = 1


def test_bytes_may_have_an_fp8_type_by_either_name() -> None:
    array = np.arange(16, dtype=np.uint8).reshape(4, 4)
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz):
        # Triton takes types with equal hashes for each other, and the hashes of these dtypes are equal.
        tensor = Tensor(array.view(kind))
        assert {hash(each.dtype) for each in (tensor, tensor[1], tensor.clone())} == {hash(np.dtype(kind).name)}
        assert np.dtype(tensor.dtype) == kind
    for name in ("fp8e4nv", "float8_e4m3fn"):
        tensor = Tensor(array, dtype=name)
        assert {str(each.dtype) for each in (tensor, tensor[1], tensor.clone(), tensor.new_empty(3))} == {"fp8e4nv"}
        assert tensor.numpy() is array
    for wrong, name in ((array.view(np.int8), "fp8e4nv"), (array, "fp32"), (array, "fp8")):
        with pytest.raises(TypeError, match="fp8e4b15"):
            Tensor(wrong, dtype=name)


def test_reshape_and_permute_return_views_or_nothing() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor(array)
    for view, expected in (
        (tensor.T, array.T),
        (tensor.permute(1, 0), array.T),
        (tensor.reshape(3, -1), array.reshape(3, 2)),
    ):
        assert view.data_ptr() == tensor.data_ptr() and np.array_equal(view.numpy(), expected)
    assert tensor.is_contiguous() and not tensor.T.is_contiguous()
    with pytest.raises(ValueError, match="copy"):
        tensor.T.reshape(6)


@pytest.mark.parametrize(
    ("array", "printed"),
    [
        (np.array([1, 2.5, -3], np.float32), "tensor([ 1.0000,  2.5000, -3.0000])"),
        (np.array([[1, 2], [np.nan, -np.inf]], np.float32), "tensor([[1., 2.],\n        [nan, -inf]])"),
        (np.array([1, 2000.5]), "tensor([1.0000e+00, 2.0005e+03], dtype=float64)"),
        (np.array([1.5], ml_dtypes.bfloat16)[0:], "tensor([1.5000], dtype=bfloat16)"),
        (np.array(7), "tensor(7)"),
        (np.array([True, False]), "tensor([ True, False])"),
        (np.array([[[1], [-10]]], np.int32), "tensor([[[  1],\n         [-10]]], dtype=int32)"),
        (np.zeros((2, 0), np.int64), "tensor([], size=(2, 0), dtype=int64)"),
        (
            np.arange(2002).reshape(2, 1001),
            "tensor([[   0,    1,    2,  ...,  998,  999, 1000],\n        [1001, 1002, 1003,  ..., 1999, 2000, 2001]])",
        ),
        (
            np.arange(20, dtype=np.float32),
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
            "        14., 15., 16., 17., 18., 19.])",
        ),
    ],
    ids=lambda value: str(getattr(value, "shape", "")),
)
def test_it_is_printed_as_torch_prints_it(array: np.ndarray, printed: str) -> None:
    assert repr(Tensor(array)) == str(Tensor(array)) == printed


class Foreign:
    """Another library's tensor; one from before DLPack had versions takes fewer words."""

    def __init__(self, tensor: Any, *, versions: bool = True) -> None:
        self.tensor, self.versions = tensor, versions

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **words: Any) -> Any:
        if words and not self.versions:
            raise TypeError(f"unexpected {words}")
        return self.tensor.__dlpack__(**words)


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, np.float64, bool])
def test_other_libraries_share_memory_in_both_directions(dtype: Any, versions: bool) -> None:
    array = np.arange(24).reshape(4, 6).astype(dtype)
    for part in (array, array.T, array[::-1, ::2], array[2:2], array[1, 1:2].reshape(())):
        tensor = Tensor.from_dlpack(Foreign(Tensor(part), versions=versions))
        assert (tensor.dtype, tensor.shape, tensor.data_ptr()) == (part.dtype, part.shape, Tensor(part).data_ptr())
        if part.size:
            assert tensor.stride() == Tensor(part).stride()
            tensor[...] = dtype(1)
            assert (part == 1).all()
    if dtype is not ml_dtypes.bfloat16:
        shared = np.from_dlpack(Tensor(array))
        shared[0, 0] = 0
        assert not array[0, 0] and np.shares_memory(shared, array)


@pytest.mark.parametrize("name", ["fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16"])
def test_floats_of_8_bits_keep_their_type_in_other_libraries(name: str) -> None:
    array = np.arange(16, dtype=np.uint8)
    tensor = Tensor.from_dlpack(Foreign(Tensor(array, name)))
    assert tensor.dtype == name and tensor.data_ptr() == Tensor(array).data_ptr()
    with pytest.raises(BufferError, match="DLPack has no such type"):
        Tensor(array, "fp8e4b15").__dlpack__()


def test_a_shared_array_lives_as_long_as_a_library_has_it() -> None:
    array = np.ones(1000)
    gone = weakref.ref(array)
    tensor = Tensor.from_dlpack(Foreign(Tensor(array)))
    capsule = Tensor(array).__dlpack__()
    del array
    assert gone() is not None and (tensor.numpy() == 1).all()
    del tensor
    assert gone() is not None
    del capsule
    assert gone() is None


def test_a_readonly_array_is_shared_only_with_a_library_that_knows_of_it() -> None:
    array = np.ones(4)
    array.flags.writeable = False
    assert Tensor.from_dlpack(Foreign(Tensor(array))).readonly
    with pytest.raises(BufferError, match="readonly"):
        Tensor.from_dlpack(Foreign(Tensor(array), versions=False))
    assert not Tensor.from_dlpack(Foreign(Tensor(array)), copy=True).readonly


def test_tensor_that_cannot_be_shared_is_refused() -> None:
    class OfCuda(Foreign):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    with pytest.raises(BufferError, match=r"tensor on cuda:1(?s:.*)DeviceTensor.from_dlpack"):
        Tensor.from_dlpack(OfCuda(Tensor(np.ones(4))))
    with pytest.raises(BufferError, match=r"memory of cuda:0(?s:.*)host's memory"):
        Tensor(np.ones(4)).__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="a list has no __dlpack__"):
        Tensor.from_dlpack([1])
    with pytest.raises(TypeError, match="complex128"):
        Tensor.from_dlpack(np.ones(4, complex))
    taken = Foreign(Tensor(np.ones(4)))
    capsule = taken.__dlpack__()
    Taken = type("Taken", (Foreign,), {"__dlpack__": lambda self, **words: capsule})
    Tensor.from_dlpack(Taken(None))
    with pytest.raises(BufferError, match="no capsule that can be taken"):
        Tensor.from_dlpack(Taken(None))
