"""Check the numbers that modules are written with against those of spirv.py, which come from Khronos's documents."""

from __future__ import annotations

from foundry_core.mapping.simt import words

from . import spirv


def test_opcodes_are_khronos_s() -> None:
    assert words.OP.items() <= spirv.NUMBERS.items()


def test_extended_instructions_are_khronos_s() -> None:
    for name, functions in words.EXTENDED.items():
        assert functions.items() <= spirv.EXTENDED[name].items()
