"""Tensor: what Triton and the launchers see of a NumPy array."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from foundry_core.tensor import Tensor


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
def test_what_is_no_array_of_numbers_is_refused(other: object) -> None:
    with pytest.raises(TypeError):
        Tensor(other)  # type: ignore[arg-type]
