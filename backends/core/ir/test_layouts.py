"""Which element an invocation has, from the bases of a layout."""

from __future__ import annotations

import pytest
from foundry_core.mapping.simt.layouts import Layout
from foundry_core.mapping.simt.program import SimtProgram
from foundry_core.mapping.simt.spirv.vulkan import ShaderWorkgroup
from foundry_core.mapping.simt.target import SimtTarget


# Distances that double: of one bit each, their sum is a product; of two bits, the bits overlap. One moves nothing.
@pytest.mark.parametrize("bases", [(1, 2, 4), (3, 6, 12), (0, 5, 10), (8, 16, 3)])
def test_the_bases_of_the_bits_that_are_set_are_combined_by_exclusive_or(bases: tuple[int, ...]) -> None:
    group = ShaderWorkgroup(SimtTarget())
    group.begin()
    program = SimtProgram.__new__(SimtProgram)
    program.group, program.code = group, group.code
    layout = Layout((32,), bases, (), ())
    for number in range(8):
        place = program.combine_bases(bases, group.code.integer(number, "i32"))
        assert group.code.value(place) == layout.offset(number)
