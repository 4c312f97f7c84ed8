"""Check kernels on every road to a device: their values, and what the lowering claims of them."""

from __future__ import annotations

import pytest

from .cases import CASES, check
from .devices import DEVICES
from .roads import ROADS, false_claims, run

# The texts are for subgroups of 8 and of 32 invocations.
_LANES = {road: DEVICES[road].warp_size if road in DEVICES else 8 for road in ROADS}


@pytest.mark.parametrize("road", [road for road in ROADS if _LANES[road] in (8, 32)])
@pytest.mark.parametrize("name", CASES)
def test_kernel_computes_what_numpy_does_and_reaches_what_is_claimed(name: str, road: str) -> None:
    case = CASES[name]()
    kernel = case.kernel(_LANES[road])
    launched = run(road, kernel, case.arguments, case.grid)
    check(case, launched.arrays)
    assert false_claims(road, kernel, launched, case.arguments, case.grid) == []
