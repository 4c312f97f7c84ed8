"""Check what is read of the C sources that Python calls by ctypes."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from foundry_core.prototypes import members, prototypes
from foundry_core.vulkan.device import _State

BACKENDS = Path(__file__).parents[2]
SOURCE = """
static int helper(int x) { return x; }
EXPORT const char *toy_text(const Thing *t, char *text, char **more) {
    toy_none();
    return NULL;
}
EXPORT void toy_each(void (*take)(const char *, uint64_t),
                     uint32_t (*rows)[5], size_t bytes) {
}
uint8_t toy_none(void) { return 0; }
int32_t toy_fill(uint8_t bytes[SIZE], const Thing *t);
struct thing {
    char name[8], end;
    float x, y;
};
"""


def test_types_of_functions_are_read() -> None:
    found = prototypes(SOURCE, "toy_")
    assert list(found) == ["text", "each", "none", "fill"]
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    assert found["text"] == (text, [pointer, text, pointer])
    assert found["none"] == (ctypes.c_uint8, [])
    assert found["fill"] == (ctypes.c_int32, [pointer, pointer])
    assert found["each"].result is None
    assert found["each"].arguments == [ctypes.CFUNCTYPE(None, text, ctypes.c_uint64), pointer, ctypes.c_size_t]


def test_members_of_a_structure_are_read() -> None:
    class Thing(ctypes.Structure):
        _fields_ = members(SOURCE, "thing")

    assert [name for name, _ in Thing._fields_] == ["name", "end", "x", "y"]
    assert (Thing.end.offset, Thing.x.offset, ctypes.sizeof(Thing)) == (8, 12, 20)


def test_types_that_are_not_known_are_refused() -> None:
    with pytest.raises(KeyError):
        prototypes("int toy_wide(wchar_t x) {", "toy_")
    for member in ("wchar_t x", "const char *x", "float x, *y"):
        with pytest.raises((KeyError, ValueError)):
            members(f"struct thing {{ {member}; }}", "thing")


@pytest.mark.parametrize(
    ("path", "prefix", "count"),
    [
        ("core/src/foundry_core/vulkan/vulkan.c", "foundry_vulkan_", 26),
        ("dpu/src/triton_dpu_backend/host/runtime.c", "triton_dpu_", 10),
    ],
)
def test_no_function_is_missed(path: str, prefix: str, count: int) -> None:
    source = (BACKENDS / path).read_text()
    defined = re.findall(rf"^(?!static)\S.*\b{prefix}(\w+)\(", source, re.MULTILINE)
    assert list(prototypes(source, prefix)) == defined and len(defined) == count


def test_states_of_a_device_are_those_of_the_source() -> None:
    source = (BACKENDS / "core/src/foundry_core/vulkan/vulkan.c").read_text()
    (names,) = re.findall(r"^enum { (WELL, .*) };", source, re.MULTILINE)
    assert [(state.name, state.value) for state in _State] == [(n, i) for i, n in enumerate(names.split(", "))]
