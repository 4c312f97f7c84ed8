"""Read from a C source or header what ctypes needs of it: functions and structures are written once, there.

A function begins at the left margin, and its body or a semicolon follows its prototype. Types are those of `_TYPES` and
pointers: text is c_char_p, a function its CFUNCTYPE, and all else c_void_p, for which ctypes takes arrays, byref() and
bytes.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

_TYPES: dict[str, Any] = {
    "void": None,
    "char": ctypes.c_char,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "size_t": ctypes.c_size_t,
    **{f"uint{width}_t": getattr(ctypes, f"c_uint{width}") for width in (8, 16, 32, 64)},
}


class Prototype(NamedTuple):
    """What ctypes calls restype and argtypes."""

    result: Any
    arguments: list[Any]


def _type(declaration: str) -> Any:
    """Return the type of a parameter or of a result, with or without a name.

    Raises:
        KeyError: it is not in `_TYPES`.
    """
    if function := re.fullmatch(r"(.*)\(\*\w+\)\((.*)\)", declaration, re.DOTALL):
        return ctypes.CFUNCTYPE(_type(function[1]), *map(_type, function[2].split(",")))
    words = [word for word in re.findall(r"\w+|[*(\[]", declaration) if word != "const"]
    if "*" in words or "[" in words:
        return ctypes.c_char_p if words[0] == "char" and words.count("*") == 1 else ctypes.c_void_p
    return _TYPES[words[0]]


def prototypes(source: str, prefix: str) -> dict[str, Prototype]:
    """Return the functions of a C source whose names begin with a prefix, by the rest of the name.

    Raises:
        KeyError: a type is not in `_TYPES`.
    """
    return {
        name: Prototype(_type(result), [_type(each) for each in re.split(r",\s*(?![^(]*\))", rest) if each != "void"])
        for result, name, rest in re.findall(
            rf"^(?:EXPORT )?(\w[\w *]*?){prefix}(\w+)\(((?:[^()]|\([^()]*\))*)\)(?: {{|;)", source, re.MULTILINE
        )
    }


def members(source: str, name: str) -> list[tuple[str, Any]]:
    """Return the `_fields_` of a C structure of numbers and arrays of them.

    Raises:
        KeyError, ValueError: it has others.
    """
    (body,) = re.findall(rf"struct {name} {{([^}}]*)}}", source)
    found = []
    for kind, names in re.findall(r"(\w+)\s+([^;]*);", body):
        for each in names.split(","):
            if (member := re.fullmatch(r"\s*(\w+)(?:\[(\d+)\])?", each)) is None:
                raise ValueError(f"struct {name}: {each.strip()}")
            found.append((member[1], _TYPES[kind] * int(member[2]) if member[2] else _TYPES[kind]))
    return found
