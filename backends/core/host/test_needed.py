"""Check that a Vulkan device is refused that lacks what kernels use without asking."""

from __future__ import annotations

import pytest
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.vulkan.device import lacks
from foundry_core.vulkan.library import DeviceProperties

from .devices import H100
from .kernels import elementwise
from .spirv import Module

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
