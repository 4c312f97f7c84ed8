"""Every row of the table of scalar types: its numbers and arrays arrive in a kernel bit for bit, or are refused."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core import scalars
from foundry_core.failure import Failure
from foundry_core.scalars import ROWS, Scalar, ScalarTypeError
from foundry_core.tensor import DTYPES, Tensor
from image import BACKEND
from triton.compiler import ASTSource

# Types that no device of this backend supports. They are refused at compile time, by Triton's or MLIR's name.
REFUSED = {"fp64"} if BACKEND == "vsi" else set()
PASSED = [row for row in ROWS if row.carrier]
N = 256


@triton.jit
def store(out, value):
    tl.store(out, value)


@triton.jit
def copy(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


def compiled(kernel: Any, signature: dict[str, str], row: Scalar, **constants: int) -> Any:
    """Compile a kernel for exactly this signature. Return None if it is refused by the type's name, as it must be."""
    try:
        found = triton.compile(ASTSource(kernel, signature, constants))
    except Exception as error:
        said = f"{error} {error.__cause__ or ''}"
        # LLVM's translator names the missing capability: Float64.
        assert row.name in said or row.mlir in said or f"Float{row.bits}" in said
        assert row.name in REFUSED
        return None
    assert row.name not in REFUSED
    return found


def element(row: Scalar) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, row.dtype, row.dtype) or np.uint8)


def numbers(row: Scalar) -> list[Any]:
    if row.bits == 1:
        return [True, False]
    if row.dtype.lstrip("u").startswith("int"):
        limits = np.iinfo(row.dtype)
        return [int(limits.min), int(limits.max), 1, 0]
    info = ml_dtypes.finfo(element(row))
    extremes = [info.max, -info.max, info.smallest_subnormal, info.tiny]
    return [*map(float, extremes), 1 / 3, -0.0, np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("row", PASSED, ids=lambda row: row.name)
def test_a_number_of_every_type_reaches_the_kernel(row: Scalar) -> None:
    kernel = compiled(store, {"out": f"*{row.name}", "value": row.name}, row)
    if kernel is None:
        return
    bits = np.dtype(f"u{row.bytes}")
    for number in numbers(row):
        out = np.full(3, 0x5A, np.uint8).repeat(row.bytes).view(element(row))
        before = out.view(bits).copy()
        kernel[(1, 1, 1)](Tensor(out), number)
        expected = np.array(number, element(row))
        if number == number:
            assert out[:1].view(bits) == expected.reshape(1).view(bits), number
        else:
            assert np.isnan(out[0].astype(np.float64))
        assert (out.view(bits)[1:] == before[1:]).all()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_array_of_every_type_reaches_the_kernel_or_is_refused_by_name(row: Scalar) -> None:
    signature = {"x": f"*{row.name}", "out": f"*{row.name}", "N": "constexpr"}
    kernel = compiled(copy, signature, row, N=N)
    if kernel is None:
        return
    kind = element(row)
    x = np.zeros(N, kind) if row.bits == 1 else np.arange(N * row.bytes, dtype=np.uint8).view(kind)
    if row.bits == 1:
        x[::3] = True
    out = np.full(N * row.bytes, 0 if row.bits == 1 else 0x5A, np.uint8).view(kind)
    name = "" if row.dtype else row.name
    kernel[(1, 1, 1)](Tensor(x, name), Tensor(out, name), N)
    numeric = np.ones(N, bool) if kind.kind in "biu" else ~np.isnan(x.astype(np.float64))
    bits = f"u{row.bytes}"
    assert (out.view(bits)[numeric] == x.view(bits)[numeric]).all()
    assert np.isnan(out[~numeric].astype(np.float64)).all()


@pytest.mark.parametrize("row", PASSED, ids=lambda row: row.name)
def test_all_names_of_a_passed_type_have_one_size(row: Scalar) -> None:
    c = getattr(ctypes, f"c_{row.c_type.removesuffix('_t')}")
    widths = {"float": 4, "double": 8} | {f"i{8 * size}": size for size in (1, 2, 4, 8)}
    sizes = [np.dtype(row.carrier).itemsize, struct.calcsize(row.code), ctypes.sizeof(c), widths[row.llvm]]
    assert sizes == [row.bytes] * 4
    assert element(row).itemsize == row.bytes
    assert triton.runtime.driver.active.map_python_to_cpp_type(row.name) == row.c_type


def test_a_tensor_takes_every_type_that_numpy_has() -> None:
    assert set(DTYPES) == {row.dtype for row in ROWS if row.dtype}
    for name in DTYPES:
        array = np.zeros(2, getattr(ml_dtypes, name, name))
        assert Tensor(array).element_size() == array.itemsize


@pytest.mark.parametrize("name", [row.name for row in ROWS if not row.carrier] + ["fp128", "tensordesc<fp32>"])
def test_a_number_that_no_kernel_takes_is_refused_by_name(name: str) -> None:
    with pytest.raises(Failure, match=f"number of type {name}"):
        triton.runtime.driver.active.map_python_to_cpp_type(name)
    # Both errors are the same class, so that a caller can tell a wrong type from other failures.
    with pytest.raises(ScalarTypeError, match=f"number of type {name}"):
        scalars.passed(name)


@pytest.mark.parametrize("pointer", ["*fp128", "**fp32", "*k"])
def test_a_pointer_to_what_no_array_has_is_refused_by_name(pointer: str) -> None:
    with pytest.raises(ScalarTypeError) as refused:
        scalars.pointer_element(pointer)
    assert pointer in str(refused.value)


def test_a_constant_pointer_is_a_pointer_to_the_same_type() -> None:
    for row in ROWS:
        assert scalars.pointer_element(f"*k{row.name}") is scalars.pointer_element(f"*{row.name}") is row


def test_fp8e4b15_is_not_the_type_of_ml_dtypes_with_a_similar_name() -> None:
    assert tl.float8e4b15.exponent_bias == 15
    assert float(ml_dtypes.finfo(ml_dtypes.float8_e4m3b11fnuz).max) == 1.875 * 2 ** (15 - 11)
    assert scalars.ELEMENTS["fp8e4b15"].dtype == ""
