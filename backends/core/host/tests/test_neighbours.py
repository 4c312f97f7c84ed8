"""Loads through remainders, quotients, masks and hints: their values, and how wide the instructions are that load."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import Simt, lower_simt

from ..cases import TEXTS
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


def instructions(module: bytes) -> Counter[str]:
    """Return how many instructions of each name there are."""
    found = Module(module).functions.values()
    return Counter(name for function in found for _, block in function.blocks for name, _ in block)


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


@functools.cache
def lowered(device: str, ttgir: str) -> Simt:
    """Lower a kernel once for all tests that launch it."""
    return lower_simt(ttgir, DEVICES[device])


def loaded(device: str, ttgir: str, n: int, start: int, programs: int = 3) -> tuple[Array, Array, Counter[int]]:
    """Run a kernel; return the array, what it found there, and the widths of its loads."""
    target, made = DEVICES[device], lowered(device, ttgir)
    table = np.random.default_rng(3).integers(-(1 << 15), 1 << 15, 2 * MIDDLE).astype(np.int16)
    out = np.full(programs * 4 * LANES[device] * EACH, POISON, np.int16)
    with np.errstate(all="ignore"):
        result = launch_on(made, target, [table, out, np.int32(n), np.int32(start)], (programs, 1, 1))
    return table, result.arrays[1], load_widths(made.module)


def dividends(device: str, start: int, programs: int = 3) -> Array:
    """Return %x in all programs: it wraps around."""
    return (np.arange(programs * 4 * LANES[device] * EACH) + start).astype(np.int32).astype(np.int64)


def wrapped(x: Array) -> Array:
    return x.astype(np.int32).astype(np.int64)


def quotient(x: Any, n: int) -> Array:
    return np.sign(x) * np.sign(n) * (np.abs(x) // abs(n))


@pytest.mark.parametrize("device", ["h100", "lavapipe", "opencl"])
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


# As where a program's block of columns is a quotient: of its sign, no argument and no extent of the grid tells.
QUOTIENT = [
    "%top = arith.constant 64 : i32",
    "%q = arith.divsi %from, %n : i32",
    "%start = arith.muli %q, %top : i32",
    "%starts = tt.splat %start : i32 -> TILE(i32)",
    "%z = arith.addi %starts, %r : TILE(i32)",
    "%c48 = arith.constant dense<48> : TILE(i32)",
    "%o = arith.remsi %z, %c48 : TILE(i32)",
]


@pytest.mark.parametrize("device", ["h100", "lavapipe", "opencl"])
@pytest.mark.parametrize("n", [1, -1, 7, -8, MOST, LEAST])
@pytest.mark.parametrize("start", [0, 5, -5, 100, -100, 1 << 24, -(1 << 24), MOST, LEAST + 1])
def test_remainder_of_what_a_program_computes_finds_what_numpy_finds(start: int, n: int, device: str) -> None:
    table, found, _ = loaded(device, text(QUOTIENT, LANES[device]), n, start, 2)
    block = np.tile(np.arange(4 * LANES[device] * EACH), 2)
    x = wrapped(wrapped(quotient(np.int64(start), n) * 64) + block)
    np.testing.assert_array_equal(found, table[MIDDLE + x - 48 * quotient(x, 48)])


@pytest.mark.parametrize("device", DEVICES)
def test_loads_are_wide_where_what_a_program_computes_is_natural(device: str) -> None:
    _, _, widths = loaded(device, text(QUOTIENT, LANES[device]), 3, 9)
    assert widths == {16: 3, 2: EACH}


CONSTANTS = [f"%c{n} = arith.constant dense<{n}> : TILE(i32)" for n in (1, 2, 3, 4, 8, 15, 16, 31, 48)]
CONSTANTS += ["%minus = arith.constant dense<-16> : TILE(i32)", "%zero = arith.constant dense<0> : TILE(i32)"]


def unsigned(x: Array) -> Array:
    return x & 0xFFFFFFFF


# Lines that make %z, and what it is: x are the numbers %x, n is %n.
OPERATIONS: dict[str, tuple[str, Callable[[Array, Any], Array]]] = {
    "remainder of 48": ("%z = arith.remsi %x, %c48 : TILE(i32)", lambda x, n: x - 48 * quotient(x, 48)),
    "remainder without sign": ("%z = arith.remui %x, %ns : TILE(i32)", lambda x, n: unsigned(x) % unsigned(n)),
    "quotient of 16": ("%z = arith.divsi %x, %c16 : TILE(i32)", lambda x, n: quotient(x, 16)),
    "quotient": ("%z = arith.divsi %x, %ns : TILE(i32)", lambda x, n: quotient(x, int(n))),
    "quotient without sign": ("%z = arith.divui %x, %ns : TILE(i32)", lambda x, n: unsigned(x) // unsigned(n)),
    "lowest bits": ("%z = arith.andi %x, %c15 : TILE(i32)", lambda x, n: x & 15),
    "without lowest bits": ("%z = arith.andi %x, %minus : TILE(i32)", lambda x, n: x & -16),
    "any bits": ("%z = arith.andi %x, %ns : TILE(i32)", lambda x, n: x & n),
    "shift right": ("%z = arith.shrsi %x, %c3 : TILE(i32)", lambda x, n: x >> 3),
    "shift right without sign": ("%z = arith.shrui %x, %c4 : TILE(i32)", lambda x, n: unsigned(x) >> 4),
    "shift left": (
        "%s = arith.shli %x, %c2 : TILE(i32)\n%z = arith.shrui %s, %c2 : TILE(i32)",
        lambda x, n: unsigned(x << 2) >> 2,
    ),
    "or": ("%z = arith.ori %x, %c8 : TILE(i32)", lambda x, n: x | 8),
    "exclusive or": ("%z = arith.xori %x, %c2 : TILE(i32)", lambda x, n: x ^ 2),
    "smaller": ("%z = arith.minsi %x, %ns : TILE(i32)", np.minimum),
    "larger": ("%z = arith.maxsi %x, %ns : TILE(i32)", np.maximum),
    "smaller without sign": ("%z = arith.minui %x, %ns : TILE(i32)", lambda x, n: np.minimum(unsigned(x), unsigned(n))),
    "smaller of two rows": (
        "%y = arith.addi %x, %c16 : TILE(i32)\n%z = arith.minsi %x, %y : TILE(i32)",
        lambda x, n: np.minimum(x, wrapped(x + 16)),
    ),
    "chosen below": (
        "%m = arith.cmpi slt, %x, %ns : TILE(i32)\n%y = arith.subi %x, %c16 : TILE(i32)\n"
        "%z = arith.select %m, %x, %y : TILE(i1), TILE(i32)",
        lambda x, n: np.where(x < n, x, wrapped(x - 16)),
    ),
    "chosen above": (
        "%m = arith.cmpi sgt, %x, %ns : TILE(i32)\n%y = arith.subi %x, %c16 : TILE(i32)\n"
        "%z = arith.select %m, %x, %y : TILE(i1), TILE(i32)",
        lambda x, n: np.where(x > n, x, wrapped(x - 16)),
    ),
    "chosen where equal": (
        "%m = arith.cmpi eq, %x, %ns : TILE(i32)\n%z = arith.select %m, %zero, %x : TILE(i1), TILE(i32)",
        lambda x, n: np.where(x == n, 0, x),
    ),
    "chosen without sign": (
        "%m = arith.cmpi uge, %x, %ns : TILE(i32)\n%y = arith.subi %x, %c8 : TILE(i32)\n"
        "%z = arith.select %m, %x, %y : TILE(i1), TILE(i32)",
        lambda x, n: np.where(unsigned(x) >= unsigned(n), x, wrapped(x - 8)),
    ),
    "product": (
        "%s = arith.muli %x, %ns : TILE(i32)\n%z = arith.remui %s, %c16 : TILE(i32)",
        lambda x, n: unsigned(x * n) % 16,
    ),
    "negative": (
        "%s = arith.subi %ns, %x : TILE(i32)\n%z = arith.andi %s, %c31 : TILE(i32)",
        lambda x, n: (n - x) & 31,
    ),
    "narrow": (
        "%t = arith.trunci %x : TILE(i32) to TILE(i8)\n%z = arith.extsi %t : TILE(i8) to TILE(i32)",
        lambda x, n: x.astype(np.int8).astype(np.int64),
    ),
    "narrow without sign": (
        "%t = arith.trunci %x : TILE(i32) to TILE(i8)\n%z = arith.extui %t : TILE(i8) to TILE(i32)",
        lambda x, n: x & 255,
    ),
    "wide remainder": (
        "%w = arith.extsi %x : TILE(i32) to TILE(i64)\n%d = arith.extsi %ns : TILE(i32) to TILE(i64)\n"
        "%q = arith.remsi %w, %d : TILE(i64)\n%z = arith.trunci %q : TILE(i64) to TILE(i32)",
        lambda x, n: x - int(n) * quotient(x, int(n)),
    ),
    "wide quotient": (
        "%w = arith.extui %x : TILE(i32) to TILE(i64)\n%d = arith.extui %ns : TILE(i32) to TILE(i64)\n"
        "%q = arith.divui %w, %d : TILE(i64)\n%z = arith.trunci %q : TILE(i64) to TILE(i32)",
        lambda x, n: unsigned(x) // unsigned(n),
    ),
}
NUMBERS = [8, 24, 7, 1, -8, -3, LEAST, MOST]
STARTS = [0, 8, 3, -8, -61, -1024, MOST - 7, MOST - 100, LEAST + 4]


@pytest.mark.parametrize("device", ["h100", "lavapipe", "least"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_of_neighbours_are_what_numpy_says(name: str, device: str) -> None:
    """Each number is stored as it is: what is known of it may only change how it is computed."""
    lines, expected = OPERATIONS[name]
    lanes, size = LANES[device], 4 * LANES[device] * EACH
    start = ["%froms = tt.splat %from : i32 -> TILE(i32)", "%ns = tt.splat %n : i32 -> TILE(i32)"]
    start += [*CONSTANTS, "%x = arith.addi %i, %froms : TILE(i32)"]
    # Kernels without an operation such as this one are written without the analysis.
    start.append("%unused = arith.remui %x, %c16 : TILE(i32)")
    made = lower_simt(
        elementwise(
            ["i32"],
            {"%z": "i32"},
            [*start, *lines.split("\n")],
            lanes=lanes,
            size=size,
            each=EACH,
            numbers=("%n: i32", "%from: i32"),
        ),
        DEVICES[device],
    )
    for n in NUMBERS:
        for first in STARTS:
            x = dividends(device, first, 2)
            with np.errstate(all="ignore"):
                arrays = [np.zeros(2 * size, np.int32), np.full(2 * size, POISON, np.int32)]
                result = launch_on(made, DEVICES[device], [*arrays, np.int32(n), np.int32(first)], (2, 1, 1))
                wanted = np.asarray(expected(x, np.int64(n))).astype(np.int32)
            np.testing.assert_array_equal(result.arrays[1], wanted, f"n = {n}, first = {first}")


def hint(name: str, number: int) -> str:
    return f"{{tt.{name} = dense<{number}> : tensor<1xi32>}}"


# Lines that make the offsets %o from %i, a multiple of 8 and not negative, and the loads that a kernel then has of
# them: of its 16 bytes, or of its elements.
SMALL = ["%top = arith.constant dense<2047> : TILE(i32)", "%s = arith.andi %i, %top : TILE(i32)", *CONSTANTS]
WIDE, EQUAL, NARROW = {16: 2}, {16: 1, 2: 1}, {16: 1, 2: EACH}
WIDTHS = {
    "remainder of 16": (["%o = arith.remsi %s, %c16 : TILE(i32)"], WIDE),
    "remainder of 48": (["%o = arith.remsi %s, %c48 : TILE(i32)"], WIDE),
    "remainder of 31": (["%o = arith.remsi %s, %c31 : TILE(i32)"], NARROW),
    "quotient of 16": (["%o = arith.divsi %s, %c16 : TILE(i32)"], EQUAL),
    "quotient of 4": (["%o = arith.divsi %s, %c4 : TILE(i32)"], {16: 1, 2: 2}),
    "lowest bits": (["%o = arith.andi %s, %c15 : TILE(i32)"], WIDE),
    "without lowest bits": (["%o = arith.andi %s, %minus : TILE(i32)"], EQUAL),
    "shift": (["%o = arith.shrsi %s, %c3 : TILE(i32)"], EQUAL),
    "even quotient": (
        ["%t = arith.muli %s, %c16 : TILE(i32)", "%o = arith.divsi %t, %c16 : TILE(i32)"],
        NARROW,
    ),
    "smaller": (
        ["%t = arith.addi %s, %c16 : TILE(i32)", "%o = arith.minsi %s, %t : TILE(i32)"],
        WIDE,
    ),
    "chosen by a block": (
        [
            "%m = arith.cmpi slt, %s, %c16 : TILE(i32)",
            "%t = arith.addi %s, %c16 : TILE(i32)",
            "%o = arith.select %m, %t, %s : TILE(i1), TILE(i32)",
        ],
        WIDE,
    ),
    "chosen by an element": (
        [
            "%m = arith.cmpi sgt, %s, %c16 : TILE(i32)",
            "%t = arith.addi %s, %c16 : TILE(i32)",
            "%o = arith.select %m, %t, %s : TILE(i1), TILE(i32)",
        ],
        NARROW,
    ),
    "extended": (
        [
            "%t = arith.trunci %s : TILE(i32) to TILE(i16)",
            "%u = arith.extui %t : TILE(i16) to TILE(i32)",
            "%o = arith.remsi %u, %c16 : TILE(i32)",
        ],
        WIDE,
    ),
    "promised neighbours": (
        [
            f"%t = arith.remsi %s, %ns {hint('contiguity', 8)} : TILE(i32)",
            f"%o = arith.muli %t, %c1 {hint('divisibility', 8)} : TILE(i32)",
        ],
        WIDE,
    ),
    "promised equals": ([f"%o = arith.remsi %s, %ns {hint('constancy', 8)} : TILE(i32)"], EQUAL),
}


@pytest.mark.parametrize("device", ["h100", "lavapipe", "least"])
@pytest.mark.parametrize("name", WIDTHS)
def test_neighbours_are_loaded_by_one_instruction(name: str, device: str) -> None:
    lines, expected = WIDTHS[name]
    made = lower_simt(text([*SMALL, *lines], LANES[device]), DEVICES[device])
    # A second variant has the same loads, or wider ones, as it may be assumed of a launch.
    assert all(load_widths(made.module)[width] >= count for width, count in expected.items())
    is_promise = name.startswith("promised")
    assert load_widths(made.module) == expected or is_promise


@pytest.mark.parametrize("device", ["h100", "lavapipe"])
@pytest.mark.parametrize("limit", [0, 8, 13, 1000])
def test_mask_that_is_not_uniform_along_neighbours_keeps_narrow_loads(limit: int, device: str) -> None:
    lanes, size = LANES[device], 4 * LANES[device] * EACH
    lines = [*SMALL, "%ns = tt.splat %n : i32 -> TILE(i32)", "%o = arith.remsi %s, %c16 : TILE(i32)"]
    lines += ["%other = arith.constant dense<-3> : TILE(i16)", "%m = arith.cmpi slt, %s, %ns : TILE(i32)"]
    lines += ["%bases = tt.splat %p0 : !tt.ptr<i16> -> TILE(!tt.ptr<i16>)"]
    lines += ["%at = tt.addptr %bases, %o : TILE(!tt.ptr<i16>), TILE(i32)"]
    lines += ["%v = tt.load %at, %m, %other : TILE(!tt.ptr<i16>)"]
    for numbers, narrow in ((["%n: i32"], True), (["%n: i32 {tt.divisibility = 8 : i32}"], False)):
        if not narrow and limit % 8:
            continue
        made = lower_simt(
            elementwise(["i16"], {"%v": "i16"}, lines, lanes=lanes, size=size, numbers=numbers, each=EACH),
            DEVICES[device],
        )
        assert (load_widths(made.module)[2] > 0) == narrow
        x = np.arange(size, dtype=np.int16)
        arrays = [x, np.full(size, POISON, np.int16)]
        result = launch_on(made, DEVICES[device], [*arrays, np.int32(limit)], (1, 1, 1))
        i = np.arange(size) & 2047
        np.testing.assert_array_equal(result.arrays[1], np.where(i < limit, i % 16, -3))


@pytest.mark.parametrize("device", ["h100", "lavapipe", "opencl"])
@pytest.mark.parametrize("divisor", [1, 3, -1, -2, 100])
def test_block_that_begins_at_a_quotient_of_unknown_sign_finds_what_numpy_finds(divisor: int, device: str) -> None:
    lines = [
        *CONSTANTS,
        "%program = tt.get_program_id x : i32\n%blocks = arith.divsi %program, %from : i32",
        "%block = arith.constant 64 : i32\n%start = arith.muli %blocks, %block : i32",
        "%starts = tt.splat %start : i32 -> TILE(i32)\n%y = arith.addi %r, %starts : TILE(i32)",
        "%o = arith.remsi %y, %c48 : TILE(i32)",
    ]
    table, found, widths = loaded(device, text(lines, LANES[device]), 0, divisor)
    assert widths == {16: 3, 2: EACH}
    size = 4 * LANES[device] * EACH
    y = (np.arange(size) + 64 * quotient(np.arange(3), divisor)[:, None]).ravel()
    np.testing.assert_array_equal(found, table[MIDDLE + y - 48 * quotient(y, 48)])


# A select of zero would wait for what was loaded: the loads of a software pipeline are to be in flight.
@pytest.mark.parametrize("device", ["h100", "lavapipe"])
@pytest.mark.parametrize(
    ("elem", "other", "selects"), [("f16", 0.0, 0), ("f16", -0.0, 4), ("f16", 1.5, 4), ("bf16", 0.0, 0)]
)
@pytest.mark.parametrize("limit", [0, 8, 64, 1 << 20])
def test_elements_that_a_mask_leaves_out_are_chosen_in_whole_words(
    limit: int, elem: str, other: float, selects: int, device: str
) -> None:
    lanes, size = LANES[device], 4 * LANES[device] * EACH
    lines = ["%ns = tt.splat %n : i32 -> TILE(i32)", "%m = arith.cmpi slt, %i, %ns : TILE(i32)"]
    lines += ["%bases = tt.splat %p0 : !tt.ptr<ELEM> -> TILE(!tt.ptr<ELEM>)".replace("ELEM", elem)]
    lines += [f"%at = tt.addptr %bases, %i : TILE(!tt.ptr<{elem}>), TILE(i32)"]
    lines += [f"%other = arith.constant dense<{other:e}> : TILE({elem})"]
    lines += [f"%v = tt.load %at, %m, %other : TILE(!tt.ptr<{elem}>)"]
    numbers = ["%n: i32 {tt.divisibility = 8 : i32}"]
    ttgir = elementwise([elem], {"%v": elem}, lines, lanes=lanes, size=size, numbers=numbers, each=EACH)
    made = lower_simt(ttgir, DEVICES[device])
    read = Module(made.module)
    instructions = [each for function in read.functions.values() for _, block in function.blocks for each in block]
    # The other ones choose addresses.
    words = [name for name, operands in instructions if name == "Select" and read.types[operands[0]].size < 8]
    assert len(words) == selects
    x = np.arange(size).astype(np.uint16) + 0x7BFD
    result = launch_on(made, DEVICES[device], [x, np.full(size, 0x1234, np.uint16), np.int32(limit)], (1, 1, 1))
    left_out = np.float16(other).view(np.uint16)
    np.testing.assert_array_equal(result.arrays[1], np.where(np.arange(size) < limit, x, left_out))


# Carried from one iteration to the next: what was a multiple of 8, and not negative, before the loop is not inside.
@pytest.mark.parametrize("device", ["h100", "lavapipe"])
@pytest.mark.parametrize("step", [8, 5, -8, -48])
def test_remainder_of_what_a_loop_moves_finds_what_numpy_finds(step: int, device: str) -> None:
    lanes, size, turns = LANES[device], 4 * LANES[device] * EACH, 4
    lines = [
        *CONSTANTS,
        "%ns = tt.splat %n : i32 -> TILE(i32)",
        f"%low = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%high = arith.constant {turns} : i32",
        f"%step = arith.constant dense<{step}> : TILE(i32)\n%blank = arith.constant dense<0> : TILE(i16)",
        f"%middle = arith.constant {MIDDLE} : i32\n%base = tt.addptr %p0, %middle : !tt.ptr<i16>, i32",
        "%bases = tt.splat %base : !tt.ptr<i16> -> TILE(!tt.ptr<i16>)",
        "%v:2 = scf.for %turn = %low to %high step %one "
        "iter_args(%x = %r, %sum = %blank) -> (TILE(i32), TILE(i16)) : i32 {",
        "%o = arith.remsi %x, %c48 : TILE(i32)",
        "%at = tt.addptr %bases, %o : TILE(!tt.ptr<i16>), TILE(i32)",
        "%y = tt.load %at : TILE(!tt.ptr<i16>)",
        "%sums = arith.addi %sum, %y : TILE(i16)",
        "%next = arith.addi %x, %step : TILE(i32)",
        "scf.yield %next, %sums : TILE(i32), TILE(i16)",
        "}",
    ]
    ttgir = elementwise(
        ["i16"], {"%v#1": "i16"}, lines, lanes=lanes, size=size, numbers=["%n: i32", "%from: i32"], each=EACH
    )
    table, found, _ = loaded(device, ttgir, 48, 0, 1)
    i = np.arange(size)
    x = np.stack([i + step * turn for turn in range(turns)])
    wanted = table[MIDDLE + x - 48 * quotient(x, 48)].astype(np.int64).sum(0).astype(np.int16)
    np.testing.assert_array_equal(found, wanted)


def four_neighbours(divisible: bool) -> str:
    """Return the product of Triton's tutorial, its rows and columns modulo M and N, with four neighbours at a time."""
    made = (TEXTS / "matmul.32.ttgir").read_text()
    for before, after in (
        ("sizePerThread = [1, 1], threadsPerWarp = [2, 16]", "sizePerThread = [1, 4], threadsPerWarp = [8, 4]"),
        ("sizePerThread = [1], ", "sizePerThread = [4], "),
        ("sizePerThread = [1, 1], threadsPerWarp = [1, 32]", "sizePerThread = [1, 4], threadsPerWarp = [1, 32]"),
    ):
        assert made.count(before) == 1
        made = made.replace(before, after)
    if divisible:
        made = re.sub(r"(%(n|k|sa|sb|sc)): i32(?=[,)])", r"\1: i32 {tt.divisibility = 16 : i32}", made)
    return made


@pytest.mark.parametrize(
    ("m", "n", "k", "divisible"),
    [(27, 32, 48, True), (27, 24, 40, False), (27, 21, 40, False), (5, 4, 3, False), (33, 48, 16, True)],
)
def test_product_modulo_its_extents_is_right_and_has_wide_loads(m: int, n: int, k: int, divisible: bool) -> None:
    made = lower_simt(four_neighbours(divisible), DEVICES["h100"])
    random = np.random.default_rng(2)
    a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    arguments = [a, b, np.full((m, n), np.nan, np.float32), *map(np.int32, (m, n, k, k, n, n))]
    grid = (-(-m // 16), -(-n // 16), 1)
    result = launch_on(made, DEVICES["h100"], arguments, grid)
    np.testing.assert_array_equal(result.arrays[2], a @ b)
    # Without hopes, the columns modulo N are loaded one by one, and where no attribute says more, all elements.
    assert load_widths(made.module) == ({4: 16, 16: 12} if divisible else {4: 32, 16: 8})


MOVED = {"f16": "i16", "bf16": "i16", "i16": "i16", "i8": "i8", "f8E5M2": "i8", "f8E4M3FN": "i8"}


def moved(elem: str, lanes: int, each: int) -> str:
    """Return a kernel that stores what it loads under a mask that neighbours have in common."""
    zero = "0.0" if elem[0] != "i" else "0"
    lines = [
        "%ns = tt.splat %n : i32 -> TILE(i32)",
        "%m = arith.cmpi slt, %i, %ns : TILE(i32)",
        f"%zero = arith.constant dense<{zero}> : TILE({elem})",
        f"%v = tt.load %a0, %m, %zero : TILE(!tt.ptr<{elem}>)",
    ]
    numbers = ["%n: i32 {tt.divisibility = 16 : i32}"]
    return elementwise([elem], {"%v": elem}, lines, lanes=lanes, size=4 * lanes * each, numbers=numbers, each=each)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("elem", MOVED)
def test_elements_that_are_only_moved_keep_their_bits(elem: str, device: str) -> None:
    """Also those of a NaN; and what a mask leaves out is a zero without a sign."""
    size = 4 * LANES[device] * 16
    made = lower_simt(moved(elem, LANES[device], 16), DEVICES[device])
    kind = np.dtype("u" + MOVED[elem].replace("i", "int"))
    x = np.random.default_rng(5).integers(0, np.iinfo(kind).max, size, kind, endpoint=True)
    for limit in (0, 16, size - 16, size):
        arrays = [x, np.full(size, 77, kind)]
        result = launch_on(made, DEVICES[device], [*arrays, np.int32(limit)], (1, 1, 1))
        np.testing.assert_array_equal(result.arrays[1], np.where(np.arange(size) < limit, x, 0))


# 16 bytes: a select of the address.
@pytest.mark.parametrize("elem", ["f16", "bf16", "i16", "i8"])
def test_elements_that_are_only_moved_stay_in_words(elem: str) -> None:
    counts = instructions(lower_simt(moved(elem, 32, 16 // (int(MOVED[elem][1:]) // 8)), DEVICES["h100"]).module)
    # Of a word's elements, no word is made.
    assert (counts["Select"], counts["CompositeConstruct"]) == (1, 1)


def rotated(elem: str, lanes: int, size: int, each: int, changed: int) -> str:
    """Return a kernel whose loop carries two tiles that it only moves, and one that it changes.

    Args:
        changed: the input that this one is at first.
    """
    tiles = ", ".join([f"TILE({elem})"] * 3)
    plus = "addi" if elem[0] == "i" else "addf"
    lines = [
        "%low = arith.constant 0 : i32\n%one = arith.constant 1 : i32",
        "%v:3 = scf.for %turn = %low to %n step %one "
        f"iter_args(%a = %x0, %b = %x1, %c = %x{changed}) -> ({tiles}) : i32 {{",
        f"%l = tt.load %a3 : TILE(!tt.ptr<{elem}>)",
        f"%d = arith.{plus} %c, %a : TILE({elem})",
        f"scf.yield %b, %l, %d : {tiles}\n}}",
    ]
    outputs = {f"%v#{k}": elem for k in range(3)}
    return elementwise([elem] * 4, outputs, lines, lanes=lanes, size=size, numbers=["%n: i32"], each=each)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("elem", ["i8", "i16", "i32", "f16", "bf16"])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
@pytest.mark.parametrize("changed", [0, 2])
def test_tiles_that_a_loop_moves_are_what_they_were(changed: int, turns: int, elem: str, device: str) -> None:
    lanes = LANES[device]
    size, numbers = 4 * lanes * 16, np.random.default_rng(turns).integers(-8, 8, (4, 4 * lanes * 16))
    kinds: dict[str, Any] = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "f16": np.float16, "bf16": np.float32}
    x = numbers.astype(kinds[elem])
    as_stored = (lambda y: (y.view(np.uint32) >> 16).astype(np.uint16)) if elem == "bf16" else (lambda y: y)
    out = [np.full(size, 77, as_stored(x).dtype) for _ in range(3)]
    made = lowered(device, rotated(elem, lanes, size, 16, changed))
    found = launch_on(made, DEVICES[device], [*as_stored(x), *out, np.int32(turns)], (1, 1, 1)).arrays[4:7]
    a, b, c = x[0], x[1], x[changed]
    for _ in range(turns):
        a, b, c = b, x[3], c + a
    for got, wanted in zip(found, (a, b, c), strict=True):
        np.testing.assert_array_equal(got, as_stored(wanted))


@pytest.mark.parametrize("elem", ["i8", "f16", "bf16"])
def test_loop_carries_words_of_tiles_that_it_only_moves(elem: str) -> None:
    each = 16 if elem == "i8" else 8
    counts = instructions(lower_simt(rotated(elem, 32, 128 * each, each, 2), DEVICES["h100"]).module)
    # The counter, four words of each of two tiles, and the elements of the one that changes.
    assert counts["Phi"] == 1 + 4 + 4 + each
