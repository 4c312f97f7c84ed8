"""Loads through remainders, quotients, masks and hints: their values, and how wide the instructions are that load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import lower_simt

from ..devices import DEVICES, launch_on
from ..kernels import elementwise
from ..memory import Array
from ..spirv import Module

LANES = {name: target.warp_size for name, target in DEVICES.items()}
EACH, MIDDLE, POISON = 8, 4096, -7
LEAST, MOST = -(1 << 31), (1 << 31) - 1


def text(lines: Sequence[str], lanes: int, numbers: Sequence[str] = ("%n: i32", "%from: i32")) -> str:
    """Return a kernel that stores what it loads from the middle of an array of i16, at the offsets %o from there.

    %x is %i, the number of the element, plus %from; %ns is a tile of %n.
    """
    size = 4 * lanes * EACH
    return elementwise(
        ["i16"],
        {"%v": "i16"},
        [
            "%froms = tt.splat %from : i32 -> TILE(i32)",
            "%ns = tt.splat %n : i32 -> TILE(i32)",
            "%x = arith.addi %i, %froms : TILE(i32)",
            *lines,
            f"%middle = arith.constant {MIDDLE} : i32",
            "%base = tt.addptr %p0, %middle : !tt.ptr<i16>, i32",
            "%bases = tt.splat %base : !tt.ptr<i16> -> TILE(!tt.ptr<i16>)",
            "%at = tt.addptr %bases, %o : TILE(!tt.ptr<i16>), TILE(i32)",
            "%v = tt.load %at : TILE(!tt.ptr<i16>)",
        ],
        lanes=lanes,
        size=size,
        numbers=numbers,
        each=EACH,
    )


def load_widths(module: bytes) -> Counter[int]:
    """Return how many instructions load how many bytes of global memory."""
    read = Module(module)
    found: Counter[int] = Counter()
    for function in read.functions.values():
        for _, instructions in function.blocks:
            for name, words in instructions:
                if name == "Load" and len(words) > 4:
                    found[read.types[words[0]].size] += 1
    return found


def loaded(device: str, ttgir: str, n: int, start: int, programs: int = 3) -> tuple[Array, Array, Counter[int]]:
    """Run a kernel; return the array, what it found there, and the widths of its loads."""
    target = DEVICES[device]
    made = lower_simt(ttgir, target)
    table = np.random.default_rng(3).integers(-(1 << 15), 1 << 15, 2 * MIDDLE).astype(np.int16)
    out = np.full(programs * 4 * LANES[device] * EACH, POISON, np.int16)
    with np.errstate(all="ignore"):
        result = launch_on(made, target, [table, out, np.int32(n), np.int32(start)], (programs, 1, 1))
    return table, result.arrays[1], load_widths(made.module)


def dividends(device: str, start: int, programs: int = 3) -> Array:
    """Return %x in all programs: it wraps around."""
    return (np.arange(programs * 4 * LANES[device] * EACH) + start).astype(np.int32).astype(np.int64)


def quotient(x: Array, n: int) -> Array:
    return np.sign(x) * np.sign(n) * (np.abs(x) // abs(n))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [8, 16, 24, 20, 7, 1, 4, -8, -24, 1000, 4096, 4095])
@pytest.mark.parametrize("start", [0, 8, 3, -8, -64, -61, MOST - 7, MOST - 100, LEAST, LEAST + 4])
def test_remainder_finds_what_numpy_finds(start: int, n: int, device: str) -> None:
    table, found, _ = loaded(device, text(["%o = arith.remsi %x, %ns : TILE(i32)"], LANES[device]), n, start)
    x = dividends(device, start)
    np.testing.assert_array_equal(found, table[MIDDLE + x - n * quotient(x, n)])


# One load of 16 bytes is that of another array, which `elementwise` writes.
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operation", ["remsi", "remui"])
def test_kernel_has_a_second_variant_with_wide_loads_where_only_the_launch_decides(operation: str, device: str) -> None:
    _, _, widths = loaded(device, text([f"%o = arith.{operation} %x, %ns : TILE(i32)"], LANES[device]), 16, 0)
    assert widths == {16: 3, 2: EACH}


@pytest.mark.parametrize("device", DEVICES)
def test_kernel_has_one_variant_with_wide_loads_where_attributes_say_enough(device: str) -> None:
    numbers = [f"%{name}: i32 {{tt.divisibility = 16 : i32}}" for name in ("n", "from")]
    _, _, widths = loaded(device, text(["%o = arith.remui %x, %ns : TILE(i32)"], LANES[device], numbers), 16, 0)
    assert widths == {16: 2}
