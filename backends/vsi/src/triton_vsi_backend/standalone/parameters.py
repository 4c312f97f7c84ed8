"""Describe a kernel's parameter in a .npy file and in C++, from its Triton type and the kernel's TTIR."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from foundry_core.scalars import Scalar, ScalarTypeError, passed, pointer_element


@dataclass(frozen=True)
class Element:
    """A type of elements that a .npy file can hold.

    Attributes:
        c_type: the type of a scalar for the kernel and cmd_gen.so: a byte for i1, the bits for 16-bit floats.
        bytes: the size of an element.
        descrs: NumPy's names of the type in a file.
        numpy: the NumPy type to convert to.
    """

    c_type: str
    bytes: int
    descrs: tuple[str, ...]
    numpy: str


def _element(row: Scalar) -> Element:
    c_type = row.c_type if row.carrier else "uint8_t"
    in_std = c_type if c_type in ("float", "double") else f"std::{c_type}"
    bits = np.dtype(f"uint{8 * row.bytes}")
    if not row.dtype:
        return Element(in_std, row.bytes, (bits.str,), f"its bits as np.{bits}")
    if type := getattr(ml_dtypes, row.dtype, None):
        # ml_dtypes writes types such as '<V2'. NumPy without ml_dtypes can read them, and writes them back as '|V2'.
        descrs = (np.dtype(type).str, f"|V{row.bytes}", bits.str)
        return Element(in_std, row.bytes, descrs, f"ml_dtypes.{row.dtype}, or its bits as np.{bits}")
    name = "bool_" if row.bits == 1 else row.dtype
    return Element(in_std, row.bytes, (np.dtype(row.dtype).str,), f"np.{name}")


@dataclass(frozen=True)
class Parameter:
    """One of the arguments that are passed to a kernel.

    Attributes:
        type: Triton's type, "*fp32" or "i32".
        name: the parameter's name in the Python function.
        element: the type itself; for a pointer, the type that it points to.
        divisor: the kernel was compiled for multiples of this number; 1 for any number.
    """

    type: str
    name: str
    element: Element
    divisor: int = 1

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("*")


def parameter(type: str, name: str, divisor: int = 1) -> Parameter:
    """Return the description of a parameter of a Triton type.

    Raises:
        ValueError: no file can hold an argument of this type.
    """
    try:
        row = pointer_element(type) if type.startswith("*") else passed(type)
    except ScalarTypeError as error:
        raise ValueError(f"the standalone launcher cannot take {name}, a {type}, from a .npy file: {error}") from error
    return Parameter(type, name, _element(row), divisor)


def divisors(ttir: str, kernel: str, count: int) -> list[int]:
    """Return which number each parameter is a multiple of, by the kernel's signature (tt.divisibility); 1 if unknown.

    The text is searched, not parsed, so that TTIR that only VeriSilicon's compiler understands can be dumped, too.

    Args:
        ttir: the kernel as Triton prints it, one line from `tt.func` to the body; with "" all divisors are 1.
        kernel: its name.
        count: how many parameters it has.

    Raises:
        ValueError: the signature has a different number of parameters.
    """
    signature = re.search(rf"^ *tt\.func (?:public )?@\"?{re.escape(kernel)}\"?\((.*)$", ttir, re.MULTILINE)
    if signature is None:
        return [1] * count
    # Inside the parentheses, a % occurs only at the start of a parameter.
    texts = signature[1].split("%")[1:]
    if len(texts) != count:
        raise ValueError(f"{kernel} takes {len(texts)} arguments by its TTIR and {count} by its signature")
    return [int(hit[1]) if (hit := re.search(r"tt\.divisibility = (\d+)", text)) else 1 for text in texts]
