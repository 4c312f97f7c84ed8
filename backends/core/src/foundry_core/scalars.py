"""The scalar types: one row each. All tables of their names, sizes and layouts derive from these rows.

This module uses the standard library only: the dpu plugin generates C with it where neither NumPy nor LLVM is
installed.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .failure import Failure


class ScalarTypeError(Failure, TypeError):
    """A kernel has a parameter of a type that cannot be passed as a number."""


@dataclass(frozen=True)
class FloatLayout:
    """The bits of a float with up to 16 bits: a sign, an exponent, and a mantissa in the lowest bits.

    Attributes:
        bits: width in bits.
        mantissa: width of the mantissa in bits.
        bias: the bias of the exponent. The smallest normal number is 2^(1 - bias).
        largest: the bits of the largest finite number.
        overflow: the bits to which larger numbers are rounded in arithmetic: infinity, NaN, or `largest`. A conversion
            to a type of 8 bits gives `largest` instead, as Triton's do on its GPUs (`cvt.satfinite`).
        nan: the bits that a NaN is converted to. In a type with infinities, all bits between `overflow` and the sign
            are NaNs. In a type without NaN, this is `largest`.
        negative_zero: whether the type has a -0. Otherwise those bits are the NaN.
    """

    bits: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int
    negative_zero: bool = True

    @property
    def has_infinities(self) -> bool:
        """Whether the type has infinities and NaNs as IEEE 754 has."""
        return self.overflow not in (self.nan, self.largest)

    @property
    def magnitude(self) -> int:
        """A mask of all bits but the sign."""
        return (1 << (self.bits - 1)) - 1


# Triton's own type, in its IR an i8. Like Triton's conversion on GPUs, ours never gives 0x7F, which is 1.875.
E4B15 = FloatLayout(8, 3, 15, 0x7E, 0x7E, 0x7E)
# Floats of 4 bits (OCP Microscaling Formats, version 1.0), two of them in a byte of tl.dot_scaled's operands.
E2M1 = FloatLayout(4, 1, 1, largest=0x7, overflow=0x7, nan=0x7)


@dataclass(frozen=True)
class Scalar:
    """A type of array elements, and in most cases also of a kernel's scalar arguments.

    Attributes:
        name: Triton's name in a kernel's signature; `*` and the name is a pointer to it.
        bits: width in bits.
        mlir: MLIR's name, which does not distinguish signed from unsigned.
        dtype: the name of the NumPy or ml_dtypes type of an array's elements; "" if neither has the type.
        carrier: the name of the NumPy type in which a number is passed to a kernel: a Boolean as a byte that is 0 or 1,
            16-bit floats as their bits. "" if a kernel takes only pointers to this type.
        layout: the layout of a float with 8 or 16 bits, which is an f32 in registers.
    """

    name: str
    bits: int
    mlir: str
    dtype: str
    carrier: str
    layout: FloatLayout | None = None

    @property
    def bytes(self) -> int:
        """Size in bytes of an element in memory, and of a number that is passed."""
        return -(-self.bits // 8)

    @property
    def c_type(self) -> str:
        """The carrier's name in C."""
        return _C_FLOATS.get(self.carrier, f"{self.carrier}_t")

    @property
    def llvm(self) -> str:
        """The carrier's name in LLVM, which does not distinguish signed from unsigned."""
        return _C_FLOATS.get(self.carrier, f"i{8 * self.bytes}")

    @property
    def code(self) -> str:
        """The carrier's character in Python's `struct`."""
        return _CODES[self.carrier]

    @property
    def convert(self) -> Callable[[Any], Any]:
        """A function from an argument of a launch to the number that is passed; 16-bit floats are rounded to nearest.

        An integer may be too large for the carrier: the code that packs it raises struct.error.
        """
        if self.bits == 1:
            return bool
        if self.carrier == self.dtype:
            return _FLOATS.get(self.carrier, operator.index)
        import ml_dtypes
        import numpy as np

        element, carrier = getattr(ml_dtypes, self.dtype, self.dtype), self.carrier

        def rounded(value: Any) -> int:
            with np.errstate(over="ignore"):
                return int(np.array(float(value), element).view(carrier))

        return rounded


_C_FLOATS = {"float32": "float", "float64": "double"}
# A number that is too large for f32 is infinite, as in C.
_FLOATS: dict[str, Callable[[Any], Any]] = {
    "float32": lambda value: ctypes.c_float(value).value,
    "float64": float,
}
_CODES = {
    **{f"int{bits}": code for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{f"uint{bits}": code for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    "float32": "f",
    "float64": "d",
}

ROWS = (
    # Releases of Triton use different names for tl.int1.
    Scalar("i1", 1, "i1", "bool", "uint8"),
    Scalar("u1", 1, "i1", "bool", "uint8"),
    *(Scalar(f"i{bits}", bits, f"i{bits}", f"int{bits}", f"int{bits}") for bits in (8, 16, 32, 64)),
    *(Scalar(f"u{bits}", bits, f"i{bits}", f"uint{bits}", f"uint{bits}") for bits in (8, 16, 32, 64)),
    Scalar("fp16", 16, "f16", "float16", "uint16", FloatLayout(16, 10, 15, 0x7BFF, 0x7C00, 0x7E00)),
    Scalar("bf16", 16, "bf16", "bfloat16", "uint16", FloatLayout(16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0)),
    Scalar("fp32", 32, "f32", "float32", "float32"),
    Scalar("fp64", 64, "f64", "float64", "float64"),
    Scalar("fp8e5", 8, "f8E5M2", "float8_e5m2", "", FloatLayout(8, 2, 15, 0x7B, 0x7C, 0x7E)),
    Scalar("fp8e4nv", 8, "f8E4M3FN", "float8_e4m3fn", "", FloatLayout(8, 3, 7, 0x7E, 0x7F, 0x7F)),
    Scalar("fp8e4b8", 8, "f8E4M3FNUZ", "float8_e4m3fnuz", "", FloatLayout(8, 3, 8, 0x7F, 0x80, 0x80, False)),
    Scalar("fp8e5b16", 8, "f8E5M2FNUZ", "float8_e5m2fnuz", "", FloatLayout(8, 2, 16, 0x7F, 0x80, 0x80, False)),
    Scalar("fp8e4b15", 8, "i8", "", "", E4B15),
)
ELEMENTS = {row.name: row for row in ROWS}
PASSED = {row.name: row for row in ROWS if row.carrier}
# By MLIR's name: the floats that are f32 in registers.
LAYOUTS = {row.mlir: row.layout for row in ROWS if row.layout and row.mlir[0] != "i"}
# Triton's names of the floats with 8 bits.
FP8 = tuple(row.name for row in ROWS if row.layout and row.bits == 8)


def pointer_element(pointer: str) -> Scalar:
    """Return the element type of a pointer in a signature: `*fp32`, or `*kfp32` for a tl.const pointer.

    Raises:
        ScalarTypeError: this table does not have the element type.
    """
    name = pointer.removeprefix("*").removeprefix("k")
    if name not in ELEMENTS:
        raise ScalarTypeError(
            f"a kernel cannot take a {pointer}", why=f"an array's elements are one of {', '.join(ELEMENTS)}"
        )
    return ELEMENTS[name]


def passed(name: str) -> Scalar:
    """Return the type of a parameter in a signature that is a number.

    Raises:
        ScalarTypeError: no number of this type can be passed.
    """
    if name not in PASSED:
        raise ScalarTypeError(
            f"a kernel cannot take a number of type {name}",
            why=f"it takes numbers of {', '.join(PASSED)}",
            next="pass an array with one element" if name in ELEMENTS else "",
        )
    return PASSED[name]
