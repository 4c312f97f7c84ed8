"""What a kernel's parameter is in a .npy file and in C++: read off its Triton type and the kernel's TTIR."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from foundry_core.scalars import Scalar, ScalarTypeError, element, passed


@dataclass(frozen=True)
class Element:
    """A type that a file can hold elements of.

    Attributes:
        c_type: a scalar of it, as kernel and cmd_gen.so take it: i1 as a byte, 16-bit floats as their bits.
        bytes: its size.
        descrs: what NumPy calls it in a file.
        numpy: what to convert to with NumPy.
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
        # ml_dtypes writes types of its own, such as '<V2', which NumPy alone reads, and writes again, as '|V2'.
        descrs = (np.dtype(type).str, f"|V{row.bytes}", bits.str)
        return Element(in_std, row.bytes, descrs, f"ml_dtypes.{row.dtype}, or its bits as np.{bits}")
    name = "bool_" if row.bits == 1 else row.dtype
    return Element(in_std, row.bytes, (np.dtype(row.dtype).str,), f"np.{name}")


@dataclass(frozen=True)
class Parameter:
    """One of the arguments that are passed to a kernel.

    Attributes:
        type: Triton's type, "*fp32" or "i32".
        name: what the Python function calls it.
        element: the type itself, of a pointer what it points to.
        divisor: the kernel was compiled for multiples of it; 1 for any number.
    """

    type: str
    name: str
    element: Element
    divisor: int = 1

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("*")


def parameter(type: str, name: str, divisor: int = 1) -> Parameter:
    """Return what a parameter of a Triton type is.

    Raises:
        ValueError: no file could hold an argument of that type.
    """
    try:
        row = element(type) if type.startswith("*") else passed(type)
    except ScalarTypeError as error:
        raise ValueError(f"the standalone launcher cannot take {name}, a {type}, from a .npy file: {error}") from error
    return Parameter(type, name, _element(row), divisor)


def divisors(ttir: str, kernel: str, count: int) -> list[int]:
    """Return what each parameter is a multiple of by the kernel's signature (tt.divisibility); 1 if it does not say.

    The text is searched, not parsed: TTIR that only VeriSilicon's compiler understands is to be dumped too.

    Args:
        ttir: the kernel as Triton prints it, one line from `tt.func` to the body; "" knows of nothing.
        kernel: its name.
        count: how many parameters it has.

    Raises:
        ValueError: the signature has another number of parameters.
    """
    found = re.search(rf"^ *tt\.func (?:public )?@\"?{re.escape(kernel)}\"?\((.*)$", ttir, re.MULTILINE)
    if found is None:
        return [1] * count
    # A % starts a parameter and nothing else in there.
    written = found[1].split("%")[1:]
    if len(written) != count:
        raise ValueError(f"{kernel} takes {len(written)} arguments by its TTIR and {count} by its signature")
    return [int(hit[1]) if (hit := re.search(r"tt\.divisibility = (\d+)", text)) else 1 for text in written]
