"""DeviceTensor: an array of the device with views, copies and fills."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.device import opened


@triton.jit
def gather_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i * stride, mask=i < n), mask=i < n)


def matrix() -> np.ndarray:
    return np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize(
    "key", [np.s_[1], np.s_[:, 2], np.s_[1:3, ::2], np.s_[::-1], np.s_[..., None], np.s_[2, 3], np.s_[2:2]], ids=str
)
def test_views_are_those_of_numpy_and_are_written_in_place(key: Any) -> None:
    array = matrix()
    tensor = DeviceTensor.from_numpy(array)
    view: Any = tensor[key]
    assert view.shape == array[key].shape and np.array_equal(view.numpy(), array[key])
    view.copy_(np.full(array[key].shape, 7, np.float32))
    array[key] = 7
    assert np.array_equal(tensor.numpy(), array)


def test_reshape_and_permute_copy_nothing() -> None:
    array, tensor = matrix(), DeviceTensor.from_numpy(matrix())
    for view, expected in (
        (tensor.T, array.T),
        (tensor.reshape(2, -1), array.reshape(2, -1)),
        (tensor.permute(1, 0), array.T),
    ):
        assert view.data_ptr() == tensor.data_ptr() and np.array_equal(view.numpy(), expected)
    assert tensor.T.stride() == (1, 6) and not tensor.T.is_contiguous() and tensor.is_contiguous()
    with pytest.raises(ValueError, match="copy"):
        tensor.T.reshape(24)


def test_a_view_is_passed_to_a_kernel() -> None:
    tensor, out = DeviceTensor.from_numpy(matrix()), DeviceTensor(4).poison_()
    column = tensor[:, 2]
    gather_kernel[(1,)](column, out, column.stride(0), 4, BLOCK=4)
    assert out.numpy().tolist() == [2, 8, 14, 20]


@pytest.mark.parametrize(
    "dtype", ["int8", "float16", ml_dtypes.bfloat16, "float32", "int64", "float64", "bool"], ids=str
)
def test_fills_write_exactly_the_view(dtype: Any) -> None:
    for first, count in ((0, 5), (1, 1), (3, 2), (3, 7)):
        tensor, expected = DeviceTensor.zeros(12, dtype), np.zeros(12, dtype)
        part: Any = tensor[first : first + count]
        part.fill_(1)
        expected[first : first + count] = 1
        assert np.array_equal(tensor.numpy(), expected)
        size = tensor.element_size()
        raw = np.zeros(12 * size, np.uint8)
        raw[first * size : (first + count) * size] = 255
        tensor.zero_()
        part.poison_()
        assert np.array_equal(tensor.numpy().view(np.uint8), raw)


def test_clones_and_assignments_keep_their_values() -> None:
    array, tensor = matrix(), DeviceTensor.from_numpy(matrix())
    other = tensor.clone()
    tensor.zero_()
    assert np.array_equal(other.numpy(), array) and not tensor.numpy().any()
    tensor[0] = other[1]
    assert np.array_equal(tensor.numpy()[0], array[1])
    tensor.T.copy_(other.T)
    assert np.array_equal(tensor.numpy(), array)
    assert np.array_equal(np.asarray(other.cpu()), array)


def test_a_type_of_8_bits_keeps_its_name_in_views() -> None:
    tensor = DeviceTensor.from_numpy(np.zeros(4, np.uint8), "fp8e5")
    assert tensor.dtype == tensor[1:].dtype == tensor.clone().dtype == "fp8e5"


def test_a_large_array_is_copied_in_pieces() -> None:
    array = np.arange(9_000_001, dtype=np.float64)  # 69 MiB, three pieces
    assert np.array_equal(DeviceTensor.from_numpy(array).numpy(), array)


def test_many_small_tensors_need_few_allocations() -> None:
    before = opened().memory.allocations
    tensors = [DeviceTensor.full(100, number) for number in range(3000)]
    assert opened().memory.allocations - before <= 1
    assert [tensor.numpy()[0] for tensor in tensors[::500]] == list(range(0, 3000, 500))
