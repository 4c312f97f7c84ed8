"""Check kernels of which NVIDIA's driver (580.159.04, on an H100) was seen to compute something else, though the SPIR-V
was right: their values, and that the form is not written of which the driver makes something else. Devices that lack
what kernels need are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.vulkan.device import lacks
from foundry_core.vulkan.library import DeviceProperties

from ..devices import DEVICES, H100, run
from ..kernels import elementwise
from ..memory import Array
from ..spirv import WORKGROUP, Instruction, Module

INTEGERS: dict[str, Any] = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def pairs(elem: str, *, first: bool, lanes: int, size: int) -> str:
    """Return a kernel that finds the largest element, and the first or the last place that has it."""
    lines = [
        '%m:2 = "tt.reduce"(%x0, %r) <{axis = 0 : i32}> ({',
        f"^bb0(%va: {elem}, %ia: i32, %vb: {elem}, %ib: i32):",
        f"%more = arith.cmpi sgt, %va, %vb : {elem}",
        f"%same = arith.cmpi eq, %va, %vb : {elem}",
        f"%near = arith.cmpi {'slt' if first else 'sgt'}, %ia, %ib : i32",
        "%tie = arith.andi %same, %near : i1",
        "%take = arith.ori %more, %tie : i1",
        f"%vm = arith.select %take, %va, %vb : {elem}",
        "%im = arith.select %take, %ia, %ib : i32",
        f"tt.reduce.return %vm, %im : {elem}, i32",
        f"}}) : (TILE({elem}), TILE(i32)) -> ({elem}, i32)",
        f"%v = tt.splat %m#0 : {elem} -> TILE({elem})",
        "%w = tt.splat %m#1 : i32 -> TILE(i32)",
    ]
    return elementwise([elem], {"%v": elem, "%w": "i32"}, lines, lanes=lanes, size=size)


@pytest.mark.parametrize("device", ["h100", "lavapipe", "opencl"])
@pytest.mark.parametrize("elem", INTEGERS)
def test_largest_element_and_its_place(device: str, elem: str) -> None:
    target = DEVICES[device]
    size, known = 16 * target.warp_size, np.iinfo(INTEGERS[elem])
    random = np.random.default_rng(2)
    for x in (
        np.full(size, known.min, INTEGERS[elem]),
        np.full(size, -15503 % -known.max, INTEGERS[elem]),
        random.integers(-1, 2, size).astype(INTEGERS[elem]),
        random.integers(known.min, known.max, size, INTEGERS[elem], endpoint=True),
    ):
        for first in (True, False):
            blank = [np.full(size, 77, INTEGERS[elem]), np.full(size, 77, np.int32)]
            text = pairs(elem, first=first, lanes=target.warp_size, size=size)
            _, value, place = run(text, target, [x, *blank])
            np.testing.assert_array_equal(value, x.max())
            np.testing.assert_array_equal(place, np.flatnonzero(x == x.max())[0 if first else -1])


def instructions(text: str) -> tuple[Module, list[Instruction]]:
    module = Module(lower_simt(text, H100).module)
    blocks = module.functions[module.entry].blocks
    return module, [each for _, inside in blocks for each in inside]


@pytest.mark.parametrize("elem", ["i8", "i16"])
def test_narrow_integers_are_not_read_as_vectors(elem: str) -> None:
    # The second i16 of a vector from workgroup memory was another number.
    module, found = instructions(pairs(elem, first=True, lanes=32, size=512))
    reads = [
        module.types[words[0]]
        for name, words in found
        if name == "Load" and module.types[module.type_of[words[2]]].parts[0] == WORKGROUP
    ]
    assert reads
    assert all(read.lanes == 1 or read.dtype.itemsize >= 4 for read in reads)


def nested(low: int, high: int, step: int, *, lanes: int, size: int) -> str:
    """Return a kernel with a loop between two constants around one whose iterations depend on the outer one."""
    lines = [
        *(f"%{name} = arith.constant {number} : i32" for name, number in (("lo", low), ("hi", high), ("st", step))),
        *(f"%c{number} = arith.constant {number} : i32" for number in (0, 3)),
        *(f"%t{number} = arith.constant dense<{number}> : TILE(i64)" for number in (3, 4)),
        "%v = scf.for %k = %lo to %hi step %st iter_args(%a = %x0) -> (TILE(i64)) : i32 {",
        "%s = arith.muli %k, %k : i32",
        "%in:2 = scf.while (%b = %a, %j = %s) : (TILE(i64), i32) -> (TILE(i64), i32) {",
        "%more = arith.cmpi sgt, %j, %c0 : i32",
        "scf.condition(%more) %b, %j : TILE(i64), i32",
        "} do {",
        "^bb0(%b: TILE(i64), %j: i32):",
        "%low = arith.andi %b, %t3 : TILE(i64)",
        "%jl = arith.andi %j, %c3 : i32",
        "%jw = arith.extsi %jl : i32 to i64",
        "%js = tt.splat %jw : i64 -> TILE(i64)",
        "%same = arith.cmpi eq, %low, %js : TILE(i64)",
        "%sum = arith.addi %b, %t4 : TILE(i64)",
        "%jx = arith.extsi %j : i32 to i64",
        "%jt = tt.splat %jx : i64 -> TILE(i64)",
        "%xor = arith.xori %b, %jt : TILE(i64)",
        "%new = arith.select %same, %sum, %xor : TILE(i1), TILE(i64)",
        "%less = arith.subi %j, %c3 : i32",
        "scf.yield %new, %less : TILE(i64), i32",
        "}",
        "scf.yield %in#0 : TILE(i64)",
        "}",
    ]
    return elementwise(["i64"], {"%v": "i64"}, lines, lanes=lanes, size=size)


def after_loops(x: Array, low: int, high: int, step: int) -> Array:
    for k in range(low, high, step):
        for j in range(k * k, 0, -3):
            x = np.where(x & 3 == j & 3, x + 4, x ^ j)
    return x


@pytest.mark.parametrize(("low", "high", "step"), [(-2, 3, 2), (-3, 2, 2), (0, 5, 2), (3, 3, 1), (0, 1, 4)])
def test_loop_between_constants_around_a_loop(low: int, high: int, step: int) -> None:
    size = 512
    x = np.random.default_rng(4).integers(-(2**63), 2**63, size, np.int64)
    text = nested(low, high, step, lanes=32, size=size)
    _, found = run(text, H100, [x, np.full(size, 77, np.int64)])
    np.testing.assert_array_equal(found, after_loops(x, low, high, step))
    # The last of three iterations was left out. Now the driver cannot know how many there are.
    module, body = instructions(text)
    made = {words[1]: name for name, words in body if len(words) > 1 and words[0] in module.types}
    counters = [
        words for name, words in body if name == "Phi" and int(np.ravel(module.constants.get(words[2], [99]))[0]) == low
    ]
    assert [made[words[4]] for words in counters] == ["BitwiseXor"]


NEEDED = (
    "vulkanMemoryModel",
    "explicit_layout",
    "shaderInt64",
    "shuffle",
    "shaderSubgroupExtendedTypes",
    "bufferDeviceAddress",
    "subgroupSizeControl",
)


@pytest.mark.parametrize(("elem", "size"), [("i8", 1), ("i16", 2), ("i64", 8)])
def test_device_without_shuffles_of_a_type_that_a_sum_exchanges_is_refused(elem: str, size: int) -> None:
    lines = [
        '%s = "tt.reduce"(%x0) <{axis = 0 : i32}> ({',
        f"^bb0(%a: {elem}, %b: {elem}):",
        f"%t = arith.addi %a, %b : {elem}",
        f"tt.reduce.return %t : {elem}",
        f"}}) : (TILE({elem})) -> {elem}",
        f"%v = tt.splat %s : {elem} -> TILE({elem})",
    ]
    module = Module(lower_simt(elementwise([elem], {"%v": elem}, lines, lanes=32, size=512), H100).module)
    exchanged = {
        module.types[words[0]].size
        for function in module.functions.values()
        for _, instructions in function.blocks
        for name, words in instructions
        if name == "GroupNonUniformShuffleXor"
    }
    assert exchanged == {size}
    known = DeviceProperties(**dict.fromkeys(NEEDED, 1))
    assert lacks(known) == ""
    known.shaderSubgroupExtendedTypes = 0
    assert lacks(known) == "shaderSubgroupExtendedTypes"
