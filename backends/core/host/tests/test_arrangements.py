"""Check that a device is asked which invocation holds which element of a sum, and believed only what a layout says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foundry_core.mapping.simt.matrices.arrangements import probed_kinds, read_probe, write_probe
from foundry_core.mapping.simt.target import Arrangement, SimtTarget

from ..devices import LAVAPIPE, SECRET, arranged, by_columns, in_pairs, mixed, promised
from ..machine import launch


def tried(target: SimtTarget) -> tuple[Arrangement, ...]:
    """Run the probe on a device of which nothing is known, and return what it finds."""
    unknown = replace(target, arrangements=())
    probe = write_probe(unknown, probed_kinds(unknown))
    zeros = (0,) * (4 * target.splits_grids)
    offsets = [0, *range(8, 12 + 4 * len(zeros), 4)]
    found = launch(
        probe.module,
        promised(target),
        [np.full(probe.words, -1, np.int32)],
        offsets=offsets,
        trailing=zeros,
        push_bytes=target.argument_bytes,
        shared=probe.shared,
    )
    return read_probe(probe, found.arrays[0].tolist(), target.warp_size)


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
@pytest.mark.parametrize("device", [SECRET, LAVAPIPE], ids=["h100", "lavapipe"])
@pytest.mark.parametrize("how", [in_pairs, by_columns, mixed])
def test_arrangement_is_found(device: SimtTarget, how: Callable[..., Arrangement], lanes: int) -> None:
    target = arranged(replace(device, warp_size=lanes, warps=1), how)
    assert target.arrangements
    assert sorted(tried(target)) == sorted(target.arrangements)


@pytest.mark.parametrize("lanes", [8, 64])
def test_arrangement_that_no_layout_can_say_is_not_believed(lanes: int) -> None:
    assert tried(replace(SECRET, warp_size=lanes, warps=1)) == ()


@pytest.mark.parametrize("change", ["missing", "twice", "moved", "poison"])
def test_answer_that_is_not_each_element_once_is_not_believed(change: str) -> None:
    target = arranged(replace(SECRET, warps=1, fragments=SECRET.fragments[:1]), in_pairs)
    probe = write_probe(target, dict(list(probed_kinds(target).items())[:1]))
    arrangement = target.arrangements[0]
    numbers = [
        sum(b for bit, b in enumerate((*arrangement.lanes, *arrangement.components)) if place >> bit & 1)
        for place in range(probe.words)
    ]
    assert read_probe(probe, numbers, 32) == (arrangement,)
    changes: dict[str, Any] = {
        "missing": [0] * len(numbers),
        "twice": [number & ~16 for number in numbers],
        "moved": [number ^ 1 for number in numbers],
        "poison": [*numbers[:-1], -1],
    }
    assert read_probe(probe, changes[change], 32) == ()
