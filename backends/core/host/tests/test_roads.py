"""Check kernels on every road to a device: their values, and what the lowering claims of them."""

from __future__ import annotations

import numpy as np
import pytest
from foundry_core.errors import TooLarge

from ..cases import CASES, check
from ..devices import DEVICES
from ..kernels import elementwise
from ..roads import ROADS, Kernel, false_claims, run

_LANES = {road: DEVICES[road].warp_size if road in DEVICES else 8 for road in ROADS}


# They share nearly all of their code with work-item, h100 and lavapipe.
_SLOW = ("pocl", "keeping", "opencl")


@pytest.mark.parametrize(
    "road",
    [pytest.param(road, marks=[pytest.mark.slow] * (road in _SLOW)) for road in ROADS],
)
@pytest.mark.parametrize("name", CASES)
def test_kernel_computes_what_numpy_does_and_reaches_what_is_claimed(name: str, road: str) -> None:
    case = CASES[name]()
    kernel = case.kernel(_LANES[road])
    if (name, road) == ("narrow", "least"):
        with pytest.raises(TooLarge, match="of which the device has 16384"):
            run(road, kernel, case.arguments, case.grid)
        return
    launched = run(road, kernel, case.arguments, case.grid)
    check(case, launched.arrays)
    assert false_claims(road, kernel, launched, case.arguments, case.grid) == []


@pytest.mark.parametrize("road", ["work-item", "tasklet", "lavapipe"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_mask_is_set_where_all_of_its_limits_hold(order: tuple[int, ...], road: str) -> None:
    size, limits = 64, (("sge", 3), ("sgt", 6), ("slt", 50), ("sle", 40))
    lines = ["%m0 = arith.constant dense<true> : TILE(i1)"]
    for number, (predicate, limit) in enumerate(limits[at] for at in order):
        lines += [
            f"%l{number} = arith.constant dense<{limit}> : TILE(i32)",
            f"%k{number} = arith.cmpi {predicate}, %i, %l{number} : TILE(i32)",
            f"%m{number + 1} = arith.andi %m{number}, %k{number} : TILE(i1)",
        ]
    lines.append("tt.store %a1, %x0, %m4 : TILE(!tt.ptr<i32>)")
    ttir, ttgir = (elementwise(["i32", "i32"], {}, lines, lanes=lanes, size=size) for lanes in (0, 8))
    x = np.arange(size, dtype=np.int32)
    launched = run(road, Kernel(ttir, ttgir), [x, np.full(size, -1, np.int32)])
    np.testing.assert_array_equal(launched.arrays[1], np.where((x > 6) & (x <= 40), x, -1))
