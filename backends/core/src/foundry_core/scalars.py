"""The scalar types: one row each, from which every table of their names, sizes and layouts derives.

Needs nothing but Python: the dpu plugin generates C with these where neither NumPy nor LLVM is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .failure import Failure


class ScalarTypeError(Failure, TypeError):
    """A kernel has a parameter of a type in which no number can be passed to it."""


@dataclass(frozen=True)
class Scalar:
    """A type that elements of a kernel's arrays, and mostly its arguments too, can have.

    Attributes:
        name: Triton's name in a kernel's signature; `*` and the name is a pointer to it.
        bits: its width.
        mlir: MLIR's name, which does not tell signed from unsigned.
        dtype: the name of the NumPy or ml_dtypes type of an array's elements; "" if neither has the type.
        carrier: the name of the NumPy type in which a number is passed to a kernel: a Boolean as a byte that is 0 or
            1, 16-bit floats as their bits. "" if a kernel takes only pointers to this type.
    """

    name: str
    bits: int
    mlir: str
    dtype: str
    carrier: str

    @property
    def bytes(self) -> int:
        """Size of an element in memory, and of a number that is passed."""
        return -(-self.bits // 8)

    @property
    def c_type(self) -> str:
        """C's name of the carrier."""
        return _C_FLOATS.get(self.carrier, f"{self.carrier}_t")

    @property
    def llvm(self) -> str:
        """LLVM's name of the carrier, which does not tell signed from unsigned."""
        return _C_FLOATS.get(self.carrier, f"i{8 * self.bytes}")

    @property
    def code(self) -> str:
        """The character of Python's `struct` for the carrier."""
        return _CODES[self.carrier]

    @property
    def convert(self) -> Callable[[Any], Any]:
        """A function from the argument of a launch to the number that is passed, 16-bit floats rounded to nearest.

        The number may be too large for the carrier: the code that packs it must refuse it.
        """
        if self.bits == 1:
            return bool
        if self.carrier == self.dtype:
            return float if self.carrier in _C_FLOATS else int
        import ml_dtypes
        import numpy as np

        element, carrier = getattr(ml_dtypes, self.dtype, self.dtype), self.carrier
        return lambda value: int(np.array(value, element).view(carrier))


_C_FLOATS = {"float32": "float", "float64": "double"}
_CODES = {
    **{f"int{bits}": code for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{f"uint{bits}": code for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    "float32": "f",
    "float64": "d",
}

ROWS = (
    # Releases of Triton differ in the name of tl.int1.
    Scalar("i1", 1, "i1", "bool", "uint8"),
    Scalar("u1", 1, "i1", "bool", "uint8"),
    *(Scalar(f"i{bits}", bits, f"i{bits}", f"int{bits}", f"int{bits}") for bits in (8, 16, 32, 64)),
    *(Scalar(f"u{bits}", bits, f"i{bits}", f"uint{bits}", f"uint{bits}") for bits in (8, 16, 32, 64)),
    Scalar("fp16", 16, "f16", "float16", "uint16"),
    Scalar("bf16", 16, "bf16", "bfloat16", "uint16"),
    Scalar("fp32", 32, "f32", "float32", "float32"),
    Scalar("fp64", 64, "f64", "float64", "float64"),
    Scalar("fp8e5", 8, "f8E5M2", "float8_e5m2", ""),
    Scalar("fp8e4nv", 8, "f8E4M3FN", "float8_e4m3fn", ""),
    Scalar("fp8e4b8", 8, "f8E4M3FNUZ", "float8_e4m3fnuz", ""),
    Scalar("fp8e5b16", 8, "f8E5M2FNUZ", "float8_e5m2fnuz", ""),
    # Triton calls it by this name of MLIR's, but its exponents are biased by 15: ml_dtypes.float8_e4m3b11fnuz has 16
    # times its numbers.
    Scalar("fp8e4b15", 8, "f8E4M3B11FNUZ", "", ""),
)
ELEMENTS = {row.name: row for row in ROWS}
PASSED = {row.name: row for row in ROWS if row.carrier}


def element(pointer: str) -> Scalar:
    """Return what a pointer of a signature points to: `*fp32`, or `*kfp32` if it is a tl.const pointer.

    Raises:
        ScalarTypeError: Triton has such elements, and this table does not.
    """
    name = pointer.removeprefix("*").removeprefix("k")
    if name not in ELEMENTS:
        raise ScalarTypeError(
            f"a kernel cannot take a {pointer}", why=f"an array's elements are one of {', '.join(ELEMENTS)}"
        )
    return ELEMENTS[name]


def passed(name: str) -> Scalar:
    """Return the type of a parameter of a signature that is a number.

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
