"""Check kernels with tiles of many registers on a device whose compiler is slow: values, and the length of the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from foundry_core.errors import TooLarge
from foundry_core.mapping.simt import program
from foundry_core.mapping.simt.lower import lower_simt

from ..devices import LAVAPIPE, run
from ..kernels import elementwise
from ..memory import Array

WARPS = 4
SLOW = replace(LAVAPIPE, warps=WARPS)


def kernel(lines: Sequence[str], size: int, output: str, elem: str = "i32") -> str:
    return elementwise(["i32"], {output: elem}, lines, lanes=SLOW.warp_size, warps=WARPS, size=size)


def numbers(size: int) -> Array:
    return np.random.default_rng(size).integers(-(1 << 31), 1 << 31, size).astype(np.int32)


@pytest.mark.parametrize("size", [2048, 1 << 20])
def test_code_for_each_element_is_as_long_for_every_size(size: int) -> None:
    text = kernel(["%v = arith.muli %x0, %i : TILE(i32)"], size, "%v")
    assert len(lower_simt(text, SLOW).module) < 9000
    if size == 2048:
        x = numbers(size)
        _, found = run(text, SLOW, [x, np.full(size, 77, np.int32)])
        np.testing.assert_array_equal(found, x * np.arange(size, dtype=np.int32))


def test_slices_are_combined_in_the_order_of_the_axis() -> None:
    size = 1 << 14
    lines = [
        "%base = arith.constant dense<31> : TILE(i32)",
        '%m:2 = "tt.reduce"(%x0, %base) <{axis = 0 : i32}> ({',
        "^bb0(%va: i32, %pa: i32, %vb: i32, %pb: i32):",
        # The hash of a text is that of its first part, times a power for the length of the second, and that of this.
        "%h = arith.muli %va, %pb : i32",
        "%v = arith.addi %h, %vb : i32",
        "%p = arith.muli %pa, %pb : i32",
        "tt.reduce.return %v, %p : i32, i32",
        "}) : (TILE(i32), TILE(i32)) -> (i32, i32)",
        "%w = tt.splat %m#0 : i32 -> TILE(i32)",
    ]
    text = kernel(lines, size, "%w")
    assert len(lower_simt(text, SLOW).module) < 40000
    x, expected = numbers(size), 0
    for number in x.tolist():
        expected = (expected * 31 + number) & 0xFFFFFFFF
    _, found = run(text, SLOW, [x, np.full(size, 77, np.int32)])
    np.testing.assert_array_equal(found, np.full(size, expected, np.uint32).view(np.int32))


@pytest.mark.parametrize("place", ["%turned", "%i"])
def test_tile_that_is_stored_where_others_are_loaded_keeps_the_order(place: str) -> None:
    size = 4096 if place == "%turned" else 1 << 14
    lines = [
        f"%last = arith.constant dense<{size - 1}> : TILE(i32)",
        "%turned = arith.subi %last, %i : TILE(i32)",
        f"%at = tt.addptr %s0, {place} : TILE(!tt.ptr<i32>), TILE(i32)",
        "%double = arith.addi %x0, %x0 : TILE(i32)",
        "tt.store %at, %double : TILE(!tt.ptr<i32>)",
    ]
    x = numbers(size)
    text = kernel(lines, size, "%x0")
    # Only what is accessed by index is accessed in slices.
    assert (len(lower_simt(text, SLOW).module) < 9000) == (place == "%i")
    found, copy = run(text, SLOW, [x, np.full(size, 77, np.int32)])
    np.testing.assert_array_equal(found, 2 * (x[::-1] if place == "%turned" else x))
    np.testing.assert_array_equal(copy, x)


@pytest.mark.parametrize("place", ["%turned", "%i"])
def test_store_at_other_places_of_what_may_be_the_same_array_is_not_sliced(place: str) -> None:
    size = 4096
    lines = [
        f"%last = arith.constant dense<{size - 1}> : TILE(i32)",
        "%turned = arith.subi %last, %i : TILE(i32)",
        f"%at = tt.addptr %s1, {place} : TILE(!tt.ptr<i32>), TILE(i32)",
    ]
    text = kernel(lines, size, "%x0").replace("tt.store %a1", "tt.store %at")
    assert (len(lower_simt(text, SLOW).module) < 9000) == (place == "%i")
    x = numbers(size)
    _, found = run(text, SLOW, [x, np.full(size, 77, np.int32)])
    np.testing.assert_array_equal(found, x[::-1] if place == "%turned" else x)


def test_code_that_stays_too_long_is_refused_on_a_slow_device_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_FOR_SLOW_COMPILER", 1 << 14)
    lines = [
        '%v = "tt.scan"(%x0) <{axis = 0 : i32, reverse = false}> ({',
        "^bb0(%a: i32, %b: i32):",
        "%c = arith.addi %a, %b : i32",
        "tt.scan.return %c : i32",
        "}) : (TILE(i32)) -> TILE(i32)",
    ]
    text = kernel(lines, 8192, "%v")
    with pytest.raises(TooLarge, match=r"bytes of code.*make its tiles smaller: 8192xi32") as refused:
        lower_simt(text, SLOW)
    assert (refused.value.resource, refused.value.limit) == ("code", 1 << 14)
    assert len(lower_simt(text, replace(SLOW, compiles_slowly=False)).module) > 1 << 14
    assert lower_simt(kernel(lines, 512, "%v"), SLOW).module
