"""Check the checked mode on every road: what it finds, with the place; and that a correct kernel has no finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from foundry_core.errors import LoweringError
from foundry_core.log import AFTER_LOAD, AFTER_STORE

from ..cases import CASES, I32, TEXTS, check
from ..devices import DEVICES
from ..kernels import elementwise
from ..roads import Kernel, Launched, run

# The texts are for subgroups of 8 invocations.
_ROADS = ("tasklet", "work-item", "work-group", "lavapipe")
_LANES = 8
SIZE = 64


@pytest.mark.parametrize(
    "road",
    [pytest.param(road, marks=[pytest.mark.slow] * (road in ("tasklet", "work-group"))) for road in _ROADS],
)
@pytest.mark.parametrize("name", CASES)
def test_correct_kernel_has_no_finding(name: str, road: str) -> None:
    if (name, road) == ("narrow", "tasklet"):
        with pytest.raises(LoweringError, match="keeps 69632 bytes of tiles in WRAM, of which a DPU has"):
            run(road, CASES[name]().kernel(_LANES), [], (), check=True)
        return
    case = CASES[name]()
    launched = run(road, case.kernel(_LANES), case.arguments, case.grid, check=True)
    check(case, launched.arrays)
    kinds = {record.site.kind for record in launched.records}
    # It loads and stores elements that another invocation stores, and nothing orders the two.
    assert kinds == ({AFTER_LOAD, AFTER_STORE} if name == "in_place" else set())


def findings(launched: Launched) -> list[tuple[str, tuple[int, int, int], int, int]]:
    """Return the kind of each finding, the program, the element of the tile, and the index or the number."""
    return [(each.site.kind, each.program, each.element, each.signed_value) for each in launched.records]


def on(
    road: str, inputs: Sequence[str], outputs: dict[str, str], lines: Sequence[str], *arguments: Any, grid: int = 1
) -> Launched:
    """Run a kernel with `lines` in the checked mode."""
    lanes = DEVICES[road].warp_size if road in DEVICES else _LANES
    ttir, ttgir = (elementwise(inputs, outputs, lines, lanes=each, size=SIZE) for each in (0, lanes))
    return run(road, Kernel(ttir, ttgir), arguments, (grid, 1, 1), check=True)


@pytest.mark.parametrize("road", _ROADS)
def test_store_outside_is_found_in_each_iteration_and_not_made(road: str) -> None:
    case = CASES["strided"]()
    x, out, *numbers = case.arguments
    launched = run(road, case.kernel(_LANES), [x, out[:50], *numbers], case.grid, check=True)
    assert findings(launched) == [("outside", (0, 0, 0), 10, 50), ("outside", (0, 0, 0), 0, 60)]
    np.testing.assert_array_equal(launched.arrays[1], case.expected[1][:50])


@pytest.mark.parametrize("road", _ROADS)
@pytest.mark.parametrize("place", [50, 2**31 - 1, -1])
def test_load_outside_is_found_by_its_element(road: str, place: int) -> None:
    case = CASES["gathered"]()
    x, index, *rest = case.arguments
    index = index.copy()
    index[37] = place
    launched = run(road, case.kernel(_LANES), [x, index, *rest], case.grid, check=True)
    # The kernel's mask leaves out negative numbers.
    assert findings(launched) == ([("outside", (1, 0, 0), 5, place)] if place >= 0 else [])


@pytest.mark.parametrize("road", _ROADS)
def test_access_of_the_array_s_last_element_is_not_outside(road: str) -> None:
    x = np.arange(2 * SIZE, dtype=I32)
    for missing in (0, 1):
        out = np.full(2 * SIZE - missing, 77, I32)
        launched = on(road, ["i32"], {"%x0": "i32"}, [], x, out, grid=2)
        assert findings(launched) == [("outside", (1, 0, 0), SIZE - 1, 2 * SIZE - 1)][:missing]
        np.testing.assert_array_equal(launched.arrays[1], x[: 2 * SIZE - missing])


@pytest.mark.parametrize("road", _ROADS)
def test_division_by_zero_is_found(road: str) -> None:
    x, y = np.arange(SIZE, dtype=I32), np.arange(SIZE, dtype=I32)[::-1] - 20
    lines = ["%v = arith.divsi %x0, %x1 : TILE(i32)"]
    launched = on(road, ["i32", "i32"], {"%v": "i32"}, lines, x, y.copy(), np.full(SIZE, 77, I32))
    assert findings(launched) == [("division", (0, 0, 0), 43, 0)]
    wanted = np.fix(x / np.where(y == 0, 1, y))
    np.testing.assert_array_equal(launched.arrays[2][y != 0], wanted[y != 0])


@pytest.mark.parametrize("road", _ROADS)
def test_quotient_that_does_not_fit_is_found(road: str) -> None:
    x, y = np.full(SIZE, 7, I32), np.full(SIZE, -1, I32)
    x[9] = np.iinfo(I32).min
    lines = ["%v = arith.remsi %x0, %x1 : TILE(i32)"]
    launched = on(road, ["i32", "i32"], {"%v": "i32"}, lines, x, y, np.full(SIZE, 77, I32))
    assert findings(launched) == [("division", (0, 0, 0), 9, -1)]


def conflict(road: str, number: str) -> Launched:
    """Let two programs store a number to the same places."""
    lines = [
        "%s = tt.splat %p1 : !tt.ptr<i32> -> TILE(!tt.ptr<i32>)",
        "%to = tt.addptr %s, %r : TILE(!tt.ptr<i32>), TILE(i32)",
        f"%n = tt.splat {number} : i32 -> TILE(i32)",
        "%v = arith.addi %n, %r : TILE(i32)",
        "tt.store %to, %v : TILE(!tt.ptr<i32>)",
    ]
    return on(road, ["i32", "i32"], {}, lines, np.zeros(2 * SIZE, I32), np.zeros(2 * SIZE, I32), grid=2)


@pytest.mark.parametrize("road", _ROADS)
def test_programs_that_store_different_values_to_one_place_are_found(road: str) -> None:
    assert findings(conflict(road, "%size")) == []
    found = conflict(road, "%pid").records
    assert [(each.site.kind, each.element) for each in found] == [("conflict", 0)]


@pytest.mark.parametrize("road", _ROADS)
@pytest.mark.parametrize("limit", [SIZE, 40])
def test_element_that_a_mask_leaves_undefined_is_found_where_it_is_stored(road: str, limit: int) -> None:
    lines = [
        f"%limit = arith.constant dense<{limit}> : TILE(i32)",
        "%some = arith.cmpi slt, %r, %limit : TILE(i32)",
        "%w = tt.load %a0, %some : TILE(!tt.ptr<i32>)",
        "%v = arith.addi %w, %r : TILE(i32)",
    ]
    x = np.arange(SIZE, dtype=I32)
    launched = on(road, ["i32"], {"%v": "i32"}, lines, x, np.full(SIZE, 77, I32))
    assert [each[:3] for each in findings(launched)] == [("undefined", (0, 0, 0), limit)][: limit < SIZE]
    np.testing.assert_array_equal(launched.arrays[1][:limit], (x + x)[:limit])


@pytest.mark.parametrize("road", _ROADS)
def test_prints_and_assertions_are_in_the_log(road: str) -> None:
    """The kernel `said` prints 16 elements a program, and asserts that those that exist are less than 100."""
    ttir, ttgir = ((TEXTS / f"said{suffix}").read_text() for suffix in (".ttir", f".{_LANES}.ttgir"))
    x = np.arange(27, dtype=I32) * 4
    launched = run(road, Kernel(ttir, ttgir), [x, np.full(27, 77, I32), I32(27)], (2, 1, 1))
    failed = [each for each in launched.records if each.site.kind == "assert"]
    assert [(each.program, each.element) for each in failed] == [((1, 0, 0), 9), ((1, 0, 0), 10)]
    printed = {(*each.program, each.element): each.signed_value for each in launched.records if each not in failed}
    # A program that fails ends there.
    assert printed == {(0, 0, 0, number): number * 4 for number in range(16)}
    np.testing.assert_array_equal(launched.arrays[1][:16], x[:16] + 1)
    np.testing.assert_array_equal(launched.arrays[1][16:], 77)
