"""Check reductions that choose: the order in which elements may be combined, the values, and the shuffles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from foundry_core.ir import tt
from foundry_core.ir.combining import Order, reduction_order
from foundry_core.ir.parse import parse
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.mapping.simt.statements import reductions

from ..cases import CASES
from ..devices import DEVICES, H100, run
from ..kernels import elementwise
from ..memory import Array
from ..roads import Kernel
from ..roads import run as run_road
from ..rows import DTYPES
from ..spirv import Module


class Choice(NamedTuple):
    """A region on (%a, %ka, ...) and (%b, %kb, ...): f32 or i32 are T, and C what compares them.

    Attributes:
        order: what is known of it for floats and for integers.
        lines: its operations.
        results: what it returns.
        operands: what the reduction combines, with their types.
    """

    order: Sequence[Order]
    lines: Sequence[str]
    results: str
    operands: Sequence[tuple[str, str]] = (("%x0", "T"), ("%r", "i32"))


FREE, BY_PLACE, KEPT = Order(True, True), Order(True, place=1), Order(False)
_BY_NUMBER = (("%x0", "T"), ("%x1", "i32"))
_CHOSEN = ("%va = arith.select %g, %a, %b : T", "%ia = arith.select %g, %ka, %kb : i32")


def _tie(compared: str, joined: str, tied: str) -> list[str]:
    return [
        "%e = C oeq, %a, %b : T",
        f"%s = arith.cmpi {tied}, %ka, %kb : i32",
        "%t = arith.andi %e, %s : i1",
        f"%c = C {compared}, %a, %b : T",
        f"%g = arith.ori {joined} : i1",
        *_CHOSEN,
    ]


_NAN_FIRST = [
    *_tie("ogt", "%c, %t", "slt")[:-3],
    "%na = C NAN, %a, %a : T",
    "%m = arith.ori %c, %t : i1",
    "%g = arith.ori %m, %na : i1",
    *_CHOSEN,
]
CHOICES = {
    # As tl.argmax and tl.argmin have it, with tie_break_left and without, and as people write it.
    "argmax": Choice([Order(True), FREE], _tie("ogt", "%c, %t", "slt"), "%va, %ia"),
    "argmin": Choice([Order(True), FREE], _tie("olt", "%t, %c", "ult"), "%va, %ia"),
    "argmax-fast": Choice([BY_PLACE] * 2, ["%g = C ogt, %a, %b : T", *_CHOSEN], "%va, %ia"),
    "argmin-fast": Choice([BY_PLACE] * 2, ["%g = C olt, %a, %b : T", *_CHOSEN], "%va, %ia"),
    "last-argmax": Choice([Order(True), FREE], _tie("ogt", "%c, %t", "sge"), "%va, %ia"),
    "argmax-of-numbers": Choice([Order(True), FREE], _tie("ogt", "%c, %t", "slt"), "%va, %ia", _BY_NUMBER),
    # NaN is the largest, and of several the first.
    "nan-argmax": Choice(
        [FREE, FREE],
        [
            "%na = C NAN, %a, %a : T",
            "%nb = C NAN, %b, %b : T",
            "%one = arith.xori %na, %nb : i1",
            "%x = C UEQ, %a, %b : T",
            "%true = arith.constant true",
            "%none = arith.xori %one, %true : i1",
            "%e = arith.andi %x, %none : i1",
            "%c = C ogt, %a, %b : T",
            "%s = arith.cmpi slt, %ka, %kb : i32",
            "%t = arith.andi %e, %s : i1",
            "%m = arith.ori %c, %t : i1",
            "%g = arith.select %one, %na, %m : i1",
            *_CHOSEN,
        ],
        "%va, %ia",
    ),
    # NaN is the largest, and of several the one that the order has first.
    "argmax-or-nan": Choice([BY_PLACE, FREE], _NAN_FIRST, "%va, %ia"),
    "argmax-or-nan-of-numbers": Choice([KEPT, FREE], _NAN_FIRST, "%va, %ia", _BY_NUMBER),
    # Of two zeros, this finds the second.
    "second-of-equal": Choice([KEPT, FREE], ["%g = C ogt, %a, %b : T", _CHOSEN[0]], "%va", (("%x0", "T"),)),
    "argmax-and-sum": Choice(
        [Order(True), FREE],
        [*_tie("ogt", "%c, %t", "slt"), "%w = arith.addi %p, %q : i32"],
        "%va, %ia, %w",
        (("%x0", "T"), ("%r", "i32"), ("%x1", "i32")),
    ),
    "argmax-and-payload": Choice(
        [Order(True), FREE],
        [*_tie("ogt", "%c, %t", "slt"), "%w = arith.select %g, %p, %q : i32"],
        "%va, %ia, %w",
        (("%x0", "T"), ("%r", "i32"), ("%x1", "i32")),
    ),
    "argmax-and-branch": Choice(
        [Order(True), FREE],
        [
            *_tie("ogt", "%c, %t", "slt")[:-2],
            "%z:2 = scf.if %g -> (T, i32) {",
            "scf.yield %a, %ka : T, i32",
            "} else {",
            "scf.yield %b, %kb : T, i32",
            "}",
        ],
        "%z#0, %z#1",
    ),
    # No place tells which one is the first.
    "first": Choice([KEPT] * 2, [], "%a, %ka"),
    "argmax-fast-of-numbers": Choice([KEPT] * 2, ["%g = C ogt, %a, %b : T", *_CHOSEN], "%va, %ia", _BY_NUMBER),
    # Commutes, and is not associative.
    "greater-of-equal": Choice(
        [KEPT] * 2,
        [
            "%e = C oeq, %a, %b : T",
            "%c = C ogt, %a, %b : T",
            "%va = arith.select %c, %a, %b : T",
            "%h = arith.maxsi %ka, %kb : i32",
            "%l = arith.minsi %ka, %kb : i32",
            "%ia = arith.select %e, %h, %l : i32",
        ],
        "%va, %ia",
        _BY_NUMBER,
    ),
    # Depends on more than which is larger; and on two orders of one operand.
    "less-by-seven": Choice(
        [KEPT] * 2,
        [
            "%n = arith.constant 7 : i32",
            "%m = arith.addi %ka, %n : i32",
            "%g = arith.cmpi slt, %m, %kb : i32",
            *_CHOSEN,
        ],
        "%va, %ia",
    ),
    "two-orders": Choice(
        [KEPT] * 2,
        [
            "%s = arith.cmpi slt, %ka, %kb : i32",
            "%u = arith.cmpi ult, %ka, %kb : i32",
            "%g = arith.andi %s, %u : i1",
            *_CHOSEN,
        ],
        "%va, %ia",
    ),
    "affine": Choice([KEPT] * 2, ["%m = arith.muli %ka, %kb : i32", "%ia = arith.addi %m, %kb : i32"], "%b, %ia"),
}


def lines(choice: Choice, elem: str) -> list[str]:
    """Return a reduction by a choice, whose results are the tiles %o0, %o1 and so on."""
    types = [type.replace("T", elem) for _, type in choice.operands]
    names = [("%a", "%b"), ("%ka", "%kb"), ("%p", "%q")][: len(types)]
    compared = {"C ": "arith.cmpf ", "NAN": "uno", "UEQ": "ueq"}
    if elem[0] == "i":
        compared = {"C ": "arith.cmpi ", "NAN": "ne", "UEQ": "eq", " oeq": " eq", " ogt": " sgt", " olt": " slt"}

    def written(line: str) -> str:
        for name, text in compared.items():
            line = line.replace(name, text)
        return re.sub(r"\bT\b", elem, line)

    arguments = ", ".join(f"{pair[side]}: {type}" for side in (0, 1) for pair, type in zip(names, types, strict=True))
    tiles = ", ".join(f"TILE({type})" for type in types)
    return [
        f'%m:{len(types)} = "tt.reduce"({", ".join(name for name, _ in choice.operands)}) <{{axis = 0 : i32}}> ({{',
        f"^bb0({arguments}):",
        *map(written, choice.lines),
        f"tt.reduce.return {choice.results} : {', '.join(types)}",
        f"}}) : ({tiles}) -> ({', '.join(types)})",
        *(f"%o{number} = tt.splat %m#{number} : {type} -> TILE({type})" for number, type in enumerate(types)),
    ]


def kernel(choice: Choice, elem: str, *, lanes: int, size: int, each: int = 4, warps: int = 4) -> str:
    outputs = {f"%o{number}": type.replace("T", elem) for number, (_, type) in enumerate(choice.operands)}
    text = elementwise([elem, "i32"], outputs, lines(choice, elem), lanes=lanes, warps=warps, size=size)
    return text.replace("sizePerThread = [4]", f"sizePerThread = [{each}]")


@pytest.mark.parametrize("elem", ["f32", "i32"])
@pytest.mark.parametrize("name", CHOICES)
def test_order_in_which_elements_may_be_combined_is_known(name: str, elem: str) -> None:
    text = kernel(CHOICES[name], elem, lanes=32, size=512)
    (op,) = (op for op in parse(text).walk() if op.name == "tt.reduce")
    assert reduction_order(op) == CHOICES[name].order[elem == "i32"]


def inputs(elem: str, size: int, kind: str) -> tuple[Array, Array]:
    """Return elements and other numbers: some equal, and special ones."""
    random = np.random.default_rng(size + len(kind))
    x = random.integers(-3, 3, size).astype(DTYPES[elem])
    if kind == "equal":
        x[:] = 1
    elif kind == "few":
        # The last ones are not those of the last subgroup.
        late, last = size * 9 // 16 + size * 3 // 128, size * 7 // 8 + 4
        x[[5, late, last]], x[[6, late + 1, last + 1]] = 7, -7
    elif elem == "f32":
        known = np.finfo(np.float32)
        special = [0.0, -0.0, known.max, -known.max, np.inf, -np.inf, known.tiny, -1.5][: 8 if kind == "special" else 0]
        special += [np.nan] * (kind == "nan")
        x[random.integers(0, size, size // 4)] = np.resize(np.array(special or [1], x.dtype), size // 4)
    elif kind == "special":
        whole = np.iinfo(x.dtype)
        x[random.integers(0, size, size // 4)] = np.resize([whole.max, whole.min, -1], size // 4)
    return x, random.permutation(size).astype(np.int32) - size // 2


def fold(name: str, x: Array, places: Array, others: Array) -> tuple[int, ...]:
    """Return the place that a choice finds, as Python finds it in the order of the axis, and a sum or what is there."""
    best = 0
    for at in range(1, len(x)):
        a, b, tie = x[best], x[at], places[best] < places[at]
        match name.removesuffix("-of-numbers").split("-and-")[0]:
            case "argmax":
                keeps = a > b or (a == b and tie)
            case "argmin":
                keeps = a < b or (a == b and tie)
            case "argmax-fast":
                keeps = a > b
            case "argmin-fast":
                keeps = a < b
            case "last-argmax":
                keeps = a > b or (a == b and not tie)
            case "argmax-or-nan":
                keeps = a > b or np.isnan(a) or (a == b and tie)
            case "nan-argmax":
                keeps = a > b or (np.isnan(a) and not np.isnan(b)) or ((a == b or (a != a and b != b)) and tie)
            case _:
                keeps = True
        best = best if keeps else at
    more = {"sum": others.sum(dtype=np.int32), "payload": others[best]}
    return best, *(value for key, value in more.items() if name.endswith(key))


# Those that `fold` knows.
_CHECKED = [name for name in CHOICES if "argm" in name or name == "first"]


@pytest.mark.parametrize("kind", ["equal", "few", "special"])
@pytest.mark.parametrize("elem", ["f32", "i32"])
@pytest.mark.parametrize(
    ("road", "size", "each"),
    [
        ("h100", 512, 4),
        ("h100", 1024, 1),
        ("lavapipe", 256, 1),
        ("least", 512, 2),
        ("radv", 1024, 2),
        ("opencl", 64, 4),
    ],
)
@pytest.mark.parametrize("name", _CHECKED)
def test_place_is_the_one_that_is_found_in_the_order_of_the_axis(
    name: str, road: str, size: int, each: int, elem: str, kind: str
) -> None:
    target, choice = DEVICES[road], CHOICES[name]
    x, others = inputs(elem, size, kind)
    check(
        name, run(kernel(choice, elem, lanes=target.warp_size, size=size, each=each), target, given(choice, x, others))
    )


@pytest.mark.parametrize("road", ["work-item", "work-group", "tasklet"])
@pytest.mark.parametrize("elem", ["f32", "i32"])
@pytest.mark.parametrize("name", _CHECKED)
def test_place_is_the_same_on_devices_without_subgroups(name: str, elem: str, road: str) -> None:
    choice = CHOICES[name]
    texts = Kernel(kernel(choice, elem, lanes=0, size=64), "")
    check(name, run_road(road, texts, given(choice, *inputs(elem, 64, "plain"))).arrays)


@pytest.mark.parametrize(("road", "size", "each"), [("h100", 512, 1), ("lavapipe", 256, 4), ("radv", 1024, 2)])
@pytest.mark.parametrize("name", ["nan-argmax", "argmax-or-nan", "argmax-or-nan-of-numbers"])
def test_nan_that_wins_by_the_region_is_found(name: str, road: str, size: int, each: int) -> None:
    choice, target = CHOICES[name], DEVICES[road]
    arrays = given(choice, *inputs("f32", size, "nan"))
    check(name, run(kernel(choice, "f32", lanes=target.warp_size, size=size, each=each), target, arrays))


def given(choice: Choice, x: Array, others: Array) -> list[Array]:
    outs = [np.full_like(x, 77), *(np.full_like(others, 77) for _ in choice.operands[1:])]
    return [x, others, *outs]


def check(name: str, arrays: Sequence[Array]) -> None:
    """Compare what each invocation stored with what Python finds."""
    x, others, values, places, *more = arrays
    numbers = others if CHOICES[name].operands[1][0] == "%x1" else np.arange(len(x), dtype=np.int32)
    best, *rest = fold(name, x, numbers, others)
    for found, wanted in zip([values, places, *more], [x[best], numbers[best], *rest], strict=True):
        np.testing.assert_array_equal(found, np.full_like(found, wanted))


@pytest.mark.parametrize("name", ["argmax", "argmin", "argmax-fast", "last-argmax", "argmax-and-payload"])
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(("road", "each"), [("h100", 1), ("h100", 4), ("lavapipe", 1), ("least", 4), ("opencl", 4)])
@pytest.mark.parametrize("seed", range(3))
def test_next_to_nan_all_invocations_find_one_element_and_its_own_place(
    name: str, road: str, each: int, warps: int, seed: int
) -> None:
    choice, target, size = CHOICES[name], replace(DEVICES[road], warps=warps), 512
    x, others = inputs("f32", size, "nan")
    x = np.random.default_rng(seed).permutation(x)
    text = kernel(choice, "f32", lanes=target.warp_size, size=size, each=each, warps=warps)
    _, _, values, places, *more = run(text, target, given(choice, x, others))
    place = places[0]
    assert 0 <= place < size
    np.testing.assert_array_equal(places, np.full_like(places, place))
    np.testing.assert_array_equal(values, np.full_like(values, x[place]))
    for found in more:
        np.testing.assert_array_equal(found, np.full_like(found, others[place]))


def box(axis: int, counted: int, *, lanes: int) -> str:
    """Return a kernel for the place of each row's or column's largest number, of equal ones the last.

    Args:
        axis: the one along which it looks.
        counted: the axis along which the numbers of places grow.
    """
    slices = [f"#ttg.slice<{{dim = {1 - dim}, parent = #b}}>" for dim in (0, 1)]
    ends, shapes = (ROWS, COLUMNS), (f"{ROWS}x1", f"1x{COLUMNS}")
    tile, kept = f"tensor<{ROWS}x{COLUMNS}xELEM, #b>", f"tensor<{ends[1 - axis]}xELEM, {slices[1 - axis]}>"

    def of(text: str, elem: str) -> str:
        return text.replace("ELEM", elem)

    numbers, pointers = of(tile, "i32"), of(tile, "!tt.ptr<f32>")
    out, places = of(kept, "!tt.ptr<i32>"), of(kept, "i32")
    made = []
    for dim, (end, shape) in enumerate(zip(ends, shapes, strict=True)):
        row, thin = f"tensor<{end}xi32, {slices[dim]}>", f"tensor<{shape}xi32, #b>"
        made += [
            f"%r{dim} = tt.make_range {{end = {end} : i32, start = 0 : i32}} : {row}",
            f"%e{dim} = tt.expand_dims %r{dim} {{axis = {1 - dim} : i32}} : {row} -> {thin}",
            f"%n{dim} = tt.broadcast %e{dim} : {thin} -> {numbers}",
        ]
    made += [
        f"%columns = arith.constant dense<{COLUMNS}> : {numbers}",
        f"%down = arith.muli %n0, %columns : {numbers}",
        f"%at = arith.addi %down, %n1 : {numbers}",
        f"%s = tt.splat %p0 : !tt.ptr<f32> -> {pointers}",
        f"%a = tt.addptr %s, %at : {pointers}, {numbers}",
        f"%x = tt.load %a : {pointers}",
        f'%m:2 = "tt.reduce"(%x, %n{counted}) <{{axis = {axis} : i32}}> ({{',
        "^bb0(%v: f32, %i: i32, %w: f32, %j: i32):",
        "%g = arith.cmpf ogt, %v, %w : f32",
        "%vg = arith.select %g, %v, %w : f32",
        "%ig = arith.select %g, %i, %j : i32",
        "tt.reduce.return %vg, %ig : f32, i32",
        f"}}) : ({of(tile, 'f32')}, {numbers}) -> ({of(kept, 'f32')}, {places})",
        f"%o = tt.splat %p1 : !tt.ptr<i32> -> {out}",
        f"%q = tt.addptr %o, %r{1 - axis} : {out}, {places}",
        f"tt.store %q, %m#1 : {out}",
    ]
    layout = f"sizePerThread = [1, 2], threadsPerWarp = [{lanes // 4}, 4], warpsPerCTA = [2, 2], order = [1, 0]"
    head = (
        f"#b = #ttg.blocked<{{{layout}}}>",
        'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", '
        f'"ttg.threads-per-warp" = {lanes} : i32}} {{',
        "tt.func public @kernel(%p0: !tt.ptr<f32>, %p1: !tt.ptr<i32>) attributes {noinline = false} {",
    )
    return "\n".join([*head, *made, "tt.return", "}", "}", ""])


ROWS, COLUMNS = 64, 32


@pytest.mark.parametrize("road", ["h100", "lavapipe", "least", "radv"])
@pytest.mark.parametrize(("axis", "counted"), [(0, 0), (0, 1), (1, 1), (1, 0)])
def test_places_of_a_box_count_along_their_own_axis_only(axis: int, counted: int, road: str) -> None:
    target = DEVICES[road]
    text = box(axis, counted, lanes=target.warp_size)
    (op,) = (op for op in parse(text).walk() if op.name == "tt.reduce")
    assert reduction_order(op) == (BY_PLACE if axis == counted else KEPT)
    x = np.random.default_rng(axis).integers(-2, 3, (ROWS, COLUMNS)).astype(np.float32)
    _, found = run(text, target, [x, np.full(x.shape[1 - axis], 77, np.int32)])
    last = x.shape[axis] - 1 - np.flip(x, axis).argmax(axis)
    np.testing.assert_array_equal(found, last if axis == counted else np.arange(x.shape[1 - axis]))


def exchanges(text: str) -> tuple[int, int]:
    """Return how many shuffles and barriers a kernel has."""
    module = Module(lower_simt(text, H100).module)
    counts = Counter(op for function in module.functions.values() for _, block in function.blocks for op, _ in block)
    return sum(number for op, number in counts.items() if op.startswith("GroupNonUniform")), counts["ControlBarrier"]


def of_single_operations(op: tt.ReduceOp) -> Order:
    """Return what is known without a look at regions of several operations."""
    return reduction_order(op) if len(op.srcs) == 1 else KEPT


# Five bits of a lane's number, two operands; before, for each register whose neighbours are in other lanes. tl.topk has
# maxima and sums only.
@pytest.mark.parametrize(
    ("text", "shuffles", "before"),
    [
        *(
            pytest.param(kernel(CHOICES[name], "f32", lanes=32, size=4096, each=each), 10, before, id=f"{name}-{each}")
            for name in ("argmax", "argmax-fast", "last-argmax", "nan-argmax")
            for each, before in ((1, 320), (4, 80))
        ),
        # Only the order of the axis decides: registers are combined first as far as they are neighbours.
        *(
            pytest.param(
                kernel(CHOICES["argmax-fast-of-numbers"], "f32", lanes=32, size=4096, each=each),
                shuffles,
                shuffles,
                id=f"neighbours-{each}",
            )
            for each, shuffles in ((1, 320), (4, 80), (32, 10))
        ),
        *(
            pytest.param(CASES[name]().kernel(32).ttgir, shuffles, before, id=name)
            for name, shuffles, before in (("picked", 10, 80), ("sampled", 10, 80), ("top", 20, 20))
        ),
    ],
)
def test_registers_are_combined_before_lanes_exchange(
    text: str, shuffles: int, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, barriers = exchanges(text)
    assert found == shuffles
    monkeypatch.setattr(reductions, "reduction_order", of_single_operations)
    assert exchanges(text) == (before, barriers)
