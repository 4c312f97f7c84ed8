"""Python's view of dpu.h (python/dpu/ffi.py) is what a C compiler sees in it."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

HOST = Path(__file__).resolve().parents[1]


def load_ffi() -> ModuleType:
    """Load ffi.py without a library."""
    spec = importlib.util.spec_from_file_location("ffi", HOST / "python" / "dpu" / "ffi.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(ctypes, "CDLL"):
        spec.loader.exec_module(module)
    return module


FFI = load_ffi()
STRUCTURES = {
    FFI.Symbol: "struct dpu_symbol_t",
    FFI.Set: "struct dpu_set_t",
    FFI._Iterator: "struct dpu_set_iterator_t",
}
TYPES = STRUCTURES | {ctypes.c_uint32: "uint32_t", ctypes.c_int: "int", ctypes.c_size_t: "size_t"}


def members(structure: Any, path: str = "", at: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield the members that are no structures: each with its offset and its size."""
    for name, kind in structure._fields_:
        place = at + getattr(structure, name).offset
        if not hasattr(kind, "_fields_"):
            yield path + name, place, ctypes.sizeof(kind)
        else:
            yield from members(kind, path if name in getattr(structure, "_anonymous_", ()) else f"{path}{name}.", place)


def refusal(*lines: str) -> str:
    """Return what a C compiler says of lines after #include <dpu.h>."""
    command = ["cc", "-std=c11", "-fsyntax-only", "-Wall", "-Wconversion", "-Wno-sign-conversion", "-Werror"]
    source = "\n".join(["#include <dpu.h>", *lines, ""])
    words = [*command, f"-I{HOST / 'include' / 'dpu'}", "-xc", "-"]
    return subprocess.run(words, input=source, capture_output=True, text=True, check=False).stderr


def call(name: str, types: list[Any]) -> str:
    """Return a function that calls one of dpu.h's with arguments of these types."""
    other = {ctypes.c_char_p: "const char *"}
    arguments = ", ".join(f"*({TYPES.get(each) or other.get(each, 'void *')} *)any" for each in types)
    return f"void call_{name}(void *any) {{ (void){name}({arguments}); }}"


def test_numbers_are_those_of_the_header() -> None:
    numbers = {name: value for name, value in vars(FFI).items() if name.startswith("DPU_")}
    assert len(numbers) == 14
    assert refusal(*(f'_Static_assert({name} == {value}, "");' for name, value in numbers.items())) == ""


def test_structures_have_the_layout_of_the_header() -> None:
    lines = []
    for structure, name in STRUCTURES.items():
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(structure)}, "{name}");')
        for member, offset, size in members(structure):
            lines.append(f'_Static_assert(offsetof({name}, {member}) == {offset}, "{member}");')
            lines.append(f'_Static_assert(sizeof((({name} *)0)->{member}) == {size}, "{member}");')
    assert refusal(*lines) == ""


def test_functions_take_the_arguments_of_the_header() -> None:
    assert refusal(*(call(name, types) for name, types in FFI._ARGUMENTS.items())) == ""


def test_a_difference_is_noticed() -> None:
    size, number, text = ctypes.c_size_t, ctypes.c_uint32, ctypes.c_char_p
    for types in ([number, text], [text, number, FFI.Set], [size, text, ctypes.c_void_p], [number, text, FFI.Set]):
        assert "error" in refusal(call("dpu_alloc", types))
    assert "error" in refusal('_Static_assert(DPU_OK == 1, "");')
