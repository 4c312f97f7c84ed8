"""A device's subgroups: how many execute a program, and which element an invocation of a layout has."""

from __future__ import annotations

import pytest
from foundry_core.mapping.simt.layouts import Layout
from foundry_core.mapping.simt.program import SimtProgram
from foundry_core.mapping.simt.runs import derived
from foundry_core.mapping.simt.spirv.vulkan import ShaderWorkgroup
from foundry_core.mapping.simt.target import SimtTarget


@pytest.mark.parametrize(
    ("warps", "elements", "memory", "wide"),
    [
        (1, 256, 32 << 10, 1),
        (1, 257, 32 << 10, 2),
        (4, 256, 32 << 10, 4),
        (4, 4096, 32 << 10, 16),
        (4, 1 << 20, 32 << 10, 64),
        (4, 1 << 20, 4 << 10, 16),
        (4, 1 << 20, 256, 4),
    ],
)
def test_larger_tile_gets_more_subgroups_as_far_as_the_device_has_room(
    warps: int, elements: int, memory: int, wide: int
) -> None:
    slow = SimtTarget(8, warps, memory, invocations=600, compiles_slowly=True)
    assert slow.widen(elements).warps == wide


def test_num_warps_is_kept_on_gpus_for_tiles_that_fit_in_registers() -> None:
    gpu = SimtTarget(32, 4)
    assert gpu.widen(1 << 16) == gpu
    assert gpu.widen(1 << 17).warps == 8


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


# Registers may differ in the lowest bits, in higher ones, or in bits in which lanes differ too.
@pytest.mark.parametrize(
    ("registers", "lanes"),
    [((1, 2), (4, 8)), ((4, 8), (1, 2)), ((1, 8), (2, 4)), ((1, 2), (3, 12)), ((3, 4), (1, 8))],
)
@pytest.mark.parametrize("run", [1, 2, 4, 16])
def test_register_of_a_run_is_its_first_one_and_a_constant(
    registers: tuple[int, ...], lanes: tuple[int, ...], run: int
) -> None:
    layout = Layout((16,), registers, lanes, ())
    runs = derived(layout, (run,), (1,))
    for lane in range(4):
        moved = (lanes[0] * (lane & 1)) ^ (lanes[1] * (lane >> 1))
        # Each run of the tile begins anywhere.
        numbers = [100 * (index // run) + index % run for index in (offset ^ moved for offset in layout.offsets)]
        assert numbers == [numbers[of] + more for of, more in runs]
