"""How many subgroups execute a program."""

from __future__ import annotations

import pytest
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
