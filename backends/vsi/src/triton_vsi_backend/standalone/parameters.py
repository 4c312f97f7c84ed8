"""What a kernel's parameter is in a .npy file and in C++: read off its Triton type and the kernel's TTIR."""

from __future__ import annotations

import re
from dataclasses import dataclass


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


def _number(kind: str, bits: int) -> Element:
    name = "int" if kind == "i" else "uint"
    order = "|" if bits == 8 else "<"
    return Element(f"std::{name}{bits}_t", bits // 8, (f"{order}{kind}{bits // 8}",), f"np.{name}{bits}")


# ml_dtypes writes bfloat16 as '<V2', which NumPy alone reads, and writes again, as '|V2'; of the 8-bit floats it writes
# float8_e5m2 as '<f1' and the others as '<V1' (0.6.0). Who has neither saves the bits.
_BITS = "or its bits as "
_ELEMENTS = {
    "i1": Element("std::uint8_t", 1, ("|b1",), "np.bool_"),
    **{f"i{bits}": _number("i", bits) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": _number("u", bits) for bits in (8, 16, 32, 64)},
    "fp16": Element("std::uint16_t", 2, ("<f2",), "np.float16"),
    "bf16": Element("std::uint16_t", 2, ("<V2", "|V2", "<u2"), f"ml_dtypes.bfloat16, {_BITS}np.uint16"),
    "fp32": Element("float", 4, ("<f4",), "np.float32"),
    "fp64": Element("double", 8, ("<f8",), "np.float64"),
    "fp8e5": Element("std::uint8_t", 1, ("<f1", "|V1", "|u1"), f"ml_dtypes.float8_e5m2, {_BITS}np.uint8"),
    **{
        type: Element("std::uint8_t", 1, ("<V1", "|V1", "|u1"), f"ml_dtypes.{name}, {_BITS}np.uint8")
        for type, name in {
            "fp8e4nv": "float8_e4m3fn",
            "fp8e4b15": "float8_e4m3b11fnuz",
            "fp8e4b8": "float8_e4m3fnuz",
            "fp8e5b16": "float8_e5m2fnuz",
        }.items()
    },
}
_ELEMENTS["u1"] = _ELEMENTS["i1"]


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
    """What a parameter of a Triton type is.

    Raises:
        ValueError: no file could hold an argument of that type.
    """
    # "*k" is a pointer that nothing is stored through.
    element = _ELEMENTS.get(type.removeprefix("*").removeprefix("k") if type.startswith("*") else type)
    if element is None or type.startswith("fp8"):
        raise ValueError(
            f"the standalone launcher cannot take {name}, a {type}, from a .npy file; dump_standalone "
            f"takes scalars and tensors of {', '.join(_ELEMENTS)}"
        )
    return Parameter(type, name, element, divisor)


def divisors(ttir: str, kernel: str, count: int) -> list[int]:
    """What each parameter is a multiple of by the kernel's signature (tt.divisibility); 1 where that says nothing.

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
