"""Check functions of libdevice on the host: where a device has no such function, it gets the bits of our arithmetic.

foundry_core.functions is that arithmetic. tests/test_functions.py measures on NumPy's arrays how exact it is. Here a
kernel calls each function as a DPU does, which has none, and as devices do of those that OpenCL C lacks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import numpy as np
import pytest
from foundry_core.functions.table import F32_ONLY, FUNCTIONS

from backends.core.tests.arrays import compute

from ..devices import DEVICES
from ..kernels import elementwise
from ..memory import Array
from ..roads import Kernel, run
from ..rows import COUNT, DTYPES, values

_DIRECTED = re.compile(r"(add|sub|mul|div|rcp|sqrt|rsqrt)_r[zdun]")
_FROM_INTEGER = re.compile(r"(int|uint|ll|ull)_(r[zdu])")
# Those of an integer and a float.
_OF_INTEGERS = {"jn": 0, "yn": 0, "ldexp": 1, "pown": 1}
# Those that the machine has: it promises an accurate exp2.
_OF_THE_DEVICE = ("exp", "exp2")
_LANES = DEVICES["keeping"].warp_size


def symbol(name: str, elem: str) -> str:
    """Return libdevice's symbol of a function of the arithmetic."""
    single = elem == "f32"
    if _DIRECTED.fullmatch(name):
        return f"{'f' if single else 'd'}{name}"
    if converted := _FROM_INTEGER.fullmatch(name):
        return f"{converted[1]}2{'float' if single else 'double'}_{converted[2]}"
    name, _, mode = {"pown": "powi"}.get(name, name).partition("_r")
    return f"{name}{'f' * single}{f'_r{mode}' if mode else ''}"


# The functions that take any number of operands: how many libdevice's have.
_LENGTHS = {"hypot": 2, "rhypot": 2, "norm3d": 3, "rnorm3d": 3, "norm4d": 4, "rnorm4d": 4}


def operands(name: str, elem: str) -> list[str]:
    """Return the types of a function's operands."""
    if converted := _FROM_INTEGER.fullmatch(name):
        return ["i64" if "ll" in converted[1] else "i32"]
    types = [elem] * _LENGTHS.get(name, len(inspect.signature(FUNCTIONS[name]).parameters) - 1)
    if name in _OF_INTEGERS:
        types[_OF_INTEGERS[name]] = "i32"
    return types


def arguments(types: list[str]) -> Iterator[Array]:
    for number, type in enumerate(types):
        array = np.roll(values(type)[number % 3], number // 3)
        # An order, or an exponent.
        yield array % 40 if type == "i32" and len(types) > 1 else array


# All of a DPU's; of another device those that are quick, since it is the same arithmetic.
CASES = [
    ("tasklet", "f32"),
    pytest.param("tasklet", "f64", marks=pytest.mark.slow),
    pytest.param("keeping", "f32", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("road", "elem"), CASES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernel_gets_the_bits_of_the_arithmetic(name: str, elem: str, road: str) -> None:
    if (elem == "f64" and name in F32_ONLY) or (road == "keeping" and name in _OF_THE_DEVICE):
        pytest.skip("libdevice has it of f32 only, or the device has it itself")
    types = operands(name, elem)
    tiles, inputs = ", ".join(f"TILE({type})" for type in types), ", ".join(f"%x{k}" for k in range(len(types)))
    about = f'libname = "", libpath = "", pure = true, symbol = "__nv_{symbol(name, elem)}"'
    lines = [f"%v = tt.extern_elementwise {inputs} {{{about}}} : ({tiles}) -> TILE({elem})"]
    texts = (elementwise(types, {"%v": elem}, lines, lanes=lanes, size=COUNT) for lanes in (0, _LANES))
    given = list(arguments(types))
    found = run(road, Kernel(*texts), [*given, np.full(COUNT, 77, DTYPES[elem])]).arrays[-1]
    np.testing.assert_array_equal(found, compute(name, elem, *given))
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(compute(name, elem, *given)[zeros]))
