"""libZenTCBridge.so does what zen_tc_bridge.h says: words at their places, refusals with reasons, programs and sums."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from sdk import BRIDGE, SDK
from zen_compiler.bridge import Bridge, BridgeError, Matmul

HEADER = SDK / "include" / "zen_tc_bridge.h"
# Every number another, so that none can be taken for another.
MATMUL = Matmul(m=16, n=32, k=8, a_strides=(11, 1), b_strides=(37, 2), c_strides=(97, 3))


def words(command: bytes) -> list[int]:
    return list(struct.unpack("<64I", command))


def documented() -> dict[str, int]:
    """The table of the header: the first word of each field."""
    rows = re.findall(r"^ \*     (\d+)(?:-\d+)? +(\d+) +(\w+) ", HEADER.read_text(), re.MULTILINE)
    for word, byte, name in rows:
        assert int(byte) == 4 * int(word), name
    return {name: int(word) for word, _, name in rows}


def test_a_template_has_the_documented_words_and_zeros(bridge: Bridge) -> None:
    expected = [0] * 64
    expected[0] = int.from_bytes(b"ZTC1", "little")
    expected[1], expected[2] = 1, 5
    expected[12:15] = 16, 32, 8
    expected[16:18] = 1, 1
    expected[20:26] = 11, 1, 37, 2, 97, 3
    assert words(bridge.encode(MATMUL, 5)) == expected


def test_fields_are_where_the_header_says(bridge: Bridge) -> None:
    table = documented()
    assert len(table) == 14
    for name, word in table.items():
        assert bridge.field(name) == 4 * word
    for name in ("", "size", "MAGIC", "magic ", "mm"):
        with pytest.raises(BridgeError, match="no field"):
            bridge.field(name)


@pytest.mark.parametrize(
    ("grid", "program"),
    [((1, 1, 1), (0, 0, 0)), ((7, 5, 3), (6, 4, 2)), ((7, 5, 3), (2, 0, 1)), ((2**32 - 1,) * 3, (2**32 - 2,) * 3)],
)
def test_a_placed_command_has_grid_program_and_sum(
    bridge: Bridge, grid: tuple[int, int, int], program: tuple[int, int, int]
) -> None:
    template = bridge.encode(MATMUL, 5)
    expected = words(template)
    expected[4:7], expected[8:11] = grid, program
    expected[63] = sum(expected[:63]) % 2**32
    placed = bridge.place(template, grid, program)
    assert words(placed) == expected
    # Whatever was there before.
    assert bridge.place(bridge.place(template, (9, 9, 9), (8, 7, 6)), grid, program) == placed


@pytest.mark.parametrize("axis", range(3))
def test_a_program_outside_the_grid_is_refused_and_nothing_written(bridge: Bridge, axis: int) -> None:
    grid, program = [4, 5, 6], [3, 4, 5]
    program[axis] += 1
    with pytest.raises(BridgeError, match="no program"):
        bridge.place(bridge.encode(MATMUL, 0), grid, program)
    library = ctypes.CDLL(str(BRIDGE))
    command = (ctypes.c_uint8 * 256).from_buffer_copy(bridge.encode(MATMUL, 0))
    before = bytes(command)
    three = ctypes.c_uint32 * 3
    assert library.zen_tc_place(command, three(*grid), three(*program)) == -1
    assert library.zen_tc_place(command, three(0, 5, 6), three(0, 0, 0)) == -1
    assert bytes(command) == before


def test_bridge_refuses_to_place_a_malformed_command(bridge: Bridge) -> None:
    wrong = bytearray(bridge.encode(MATMUL, 0))
    wrong[0] ^= 1
    with pytest.raises(BridgeError, match="no command"):
        bridge.place(bytes(wrong), (1, 1, 1), (0, 0, 0))
    with pytest.raises(BridgeError, match="256 bytes"):
        bridge.place(b"ZTC1", (1, 1, 1), (0, 0, 0))


@pytest.mark.parametrize(
    "changes",
    [
        {"m": 1, "n": 1, "k": 1},
        {"m": 65536, "c_strides": (65535, 1)},
        {"a_strides": (0, 0), "b_strides": (0, 0)},
        {"c_strides": (32, 1)},
        {"c_strides": (1, 16)},
        {"c_strides": (3, 64)},
        {"m": 1, "c_strides": (0, 1)},
        {"n": 1, "c_strides": (1, 0)},
        {"m": 2, "a_strides": (2**32 - 8, 1)},
    ],
)
def test_matrices_that_the_tensor_core_takes(bridge: Bridge, changes: dict[str, int]) -> None:
    matmul = replace(MATMUL, **changes)  # type: ignore[arg-type]
    assert bridge.refuses(matmul) is None
    assert len(bridge.encode(matmul, 0)) == 256


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 0}, "m, n and k"),
        ({"n": 0}, "m, n and k"),
        ({"k": 0}, "m, n and k"),
        ({"k": 65537}, "m, n and k"),
        ({"m": 2**32 - 1}, "m, n and k"),
        ({"operand_type": 2}, "operands must be f32"),
        ({"operand_type": 0}, "operands must be f32"),
        ({"result_type": 2}, "results must be f32"),
        ({"m": 2, "a_strides": (2**32 - 7, 1)}, "2\\^32 elements"),
        ({"b_strides": (0, 2**31)}, "2\\^32 elements"),
        ({"c_strides": (2**31, 1)}, "2\\^32 elements"),
        ({"c_strides": (31, 1)}, "overlap"),
        ({"c_strides": (0, 1)}, "overlap"),
        ({"c_strides": (32, 0)}, "overlap"),
        ({"c_strides": (1, 15)}, "overlap"),
        ({"c_strides": (1, 1)}, "overlap"),
    ],
)
def test_refusals_say_why_and_write_nothing(bridge: Bridge, changes: dict[str, int], message: str) -> None:
    matmul = replace(MATMUL, **changes)  # type: ignore[arg-type]
    assert re.search(message, bridge.refuses(matmul) or "")
    with pytest.raises(BridgeError, match=message):
        bridge.encode(matmul, 0)
    raw = (ctypes.c_uint32 * 11)(
        matmul.m,
        matmul.n,
        matmul.k,
        matmul.operand_type,
        matmul.result_type,
        *matmul.a_strides,
        *matmul.b_strides,
        *matmul.c_strides,
    )
    command = (ctypes.c_uint8 * 256)(*[0xA5] * 256)
    assert ctypes.CDLL(str(BRIDGE)).zen_tc_encode(raw, 0, command) == -1
    assert bytes(command) == b"\xa5" * 256


@pytest.mark.parametrize("number", [-1, 2**32])
def test_a_number_that_is_no_word_is_refused_before_it_is_cut(bridge: Bridge, number: int) -> None:
    with pytest.raises(BridgeError, match="0 to 2\\^32 - 1"):
        bridge.encode(replace(MATMUL, m=number), 0)


def test_only_256_bytes_are_written(bridge: Bridge) -> None:
    library = ctypes.CDLL(str(BRIDGE))
    guarded = (ctypes.c_uint8 * 384)(*[0xA5] * 384)
    inner = ctypes.byref(guarded, 65)
    raw = (ctypes.c_uint32 * 11)(16, 32, 8, 1, 1, *MATMUL.a_strides, *MATMUL.b_strides, *MATMUL.c_strides)
    three = ctypes.c_uint32 * 3
    assert library.zen_tc_encode(raw, 5, inner) == 0
    assert library.zen_tc_place(inner, three(3, 2, 1), three(2, 1, 0)) == 0
    assert bytes(guarded)[65:321] == bridge.place(bridge.encode(MATMUL, 5), (3, 2, 1), (2, 1, 0))
    assert bytes(guarded)[:65] + bytes(guarded)[321:] == b"\xa5" * 128


def test_the_version_is_the_headers(bridge: Bridge) -> None:
    library = ctypes.CDLL(str(BRIDGE))
    assert f"#define ZEN_TC_VERSION {library.zen_tc_version()}\n" in HEADER.read_text()


def test_library_that_is_no_bridge_is_refused_with_the_missing_symbol(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match=r"has no zen_tc_version, zen_tc_refuses, .*not the reference SDK's"):
        Bridge(SDK / "lib" / "libOpenCL.so.1")
    text = tmp_path / "bridge.so"
    text.write_text("no library")
    with pytest.raises(BridgeError, match="cannot be loaded"):
        Bridge(text)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_compiles_without_a_warning(tmp_path: Path, language: str) -> None:
    compiler = shutil.which("clang")
    assert compiler, "clang is not on PATH"
    standard = {"c": "c99", "c++": "c++17"}[language]
    source = tmp_path / "use"
    source.write_text(
        '#include "zen_tc_bridge.h"\n'
        "int use(uint8_t *command, const zen_tc_matmul *matmul) {\n"
        "  return zen_tc_refuses(matmul) != 0 || zen_tc_encode(matmul, 0, command);\n"
        "}\n"
    )
    done = subprocess.run(
        [
            compiler,
            "-x",
            language,
            f"-std={standard}",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-fsyntax-only",
            "-I",
            HEADER.parent,
            source,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
