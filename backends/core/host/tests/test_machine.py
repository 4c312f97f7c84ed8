"""Check that the machine refuses what no device promises. A test that it runs would prove nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from foundry_core.emit.mlir import Reg
from foundry_core.mapping.simt.spirv.vulkan import ShaderWorkgroup
from foundry_core.mapping.simt.target import SimtTarget

from ..machine import Device, launch
from ..memory import Array, Fault

LANES, WARPS = 8, 2
Body = Callable[[ShaderWorkgroup, Reg, Reg], Reg]


def stored(body: Body) -> Array:
    """Launch a kernel in which each invocation computes an i32, from the array's address and its own number."""
    group = ShaderWorkgroup(SimtTarget(LANES, WARPS))
    t, group.local_bytes = group.code, 1024
    group.pointer()
    (base,) = group.begin()
    number = t.binary("arith.addi", t.binary("arith.muli", group.warp(), t.integer(LANES, "i32")), group.lane())
    value = body(group, base, number)
    offset = t.cast("arith.extsi", t.binary("arith.muli", number, t.integer(4, "i32")), "i64")
    group.store(t.binary("arith.addi", base, offset), [value], 4)
    module, out = group.finish("kernel"), np.full(LANES * WARPS, 77, np.int32)
    return launch(module, Device(LANES), [out], offsets=group.argument_offsets, shared=1024).arrays[0]


def exchanged(by: int, barrier: Callable[[ShaderWorkgroup], None]) -> Body:
    """Write a number to workgroup memory, wait, and read that of an invocation whose number differs in some bits."""

    def body(group: ShaderWorkgroup, base: Reg, number: Reg) -> Reg:
        group.write_shared(number, [number])
        barrier(group)
        return group.read_shared(group.code.binary("arith.xori", number, group.code.integer(by, "i32")), "i32")[0]

    return body


def of_subgroup(group: ShaderWorkgroup) -> None:
    scope, order = (group.code.id(group.code.integer(n, "i32")) for n in (3, 0x8 | 0x100 | 0x2000 | 0x4000))
    group.module.do("ControlBarrier", scope, scope, order)


def of_workgroup(group: ShaderWorkgroup) -> None:
    group.barrier(of_all=True)


def test_barrier_orders_those_who_wait() -> None:
    numbers = np.arange(LANES * WARPS)
    np.testing.assert_array_equal(stored(exchanged(9, of_workgroup)), numbers ^ 9)
    np.testing.assert_array_equal(stored(exchanged(1, of_subgroup)), numbers ^ 1)


@pytest.mark.parametrize(("by", "barrier"), [(1, lambda group: None), (9, of_subgroup)])
def test_race_in_workgroup_memory_is_refused(by: int, barrier: Callable[[ShaderWorkgroup], None]) -> None:
    with pytest.raises(Fault, match="a race in workgroup memory"):
        stored(exchanged(by, barrier))


@pytest.mark.parametrize(
    ("plus", "said"), [(4 * LANES * WARPS, "out of bounds"), (-4, "out of bounds"), (2, "no multiple of 4")]
)
def test_access_outside_of_arrays_or_alignment_is_refused(plus: int, said: str) -> None:
    def body(group: ShaderWorkgroup, base: Reg, number: Reg) -> Reg:
        return group.load(group.code.binary("arith.addi", base, group.code.integer(plus, "i64")), "i32", 1, 4)[0]

    with pytest.raises(Fault, match=said):
        stored(body)


@pytest.mark.parametrize("barrier", [of_subgroup, of_workgroup])
def test_barrier_that_some_invocations_do_not_reach_is_refused(barrier: Callable[[ShaderWorkgroup], None]) -> None:
    def body(group: ShaderWorkgroup, base: Reg, number: Reg) -> Reg:
        t = group.code
        t.do_when(t.compare("slt", group.lane(), t.integer(3, "i32")), lambda: barrier(group))
        return number

    with pytest.raises(Fault, match="do not reach"):
        stored(body)


def test_shuffle_from_an_invocation_that_is_not_there_is_refused() -> None:
    def body(group: ShaderWorkgroup, base: Reg, number: Reg) -> Reg:
        t = group.code
        less = t.compare("slt", group.lane(), t.integer(3, "i32"))
        return t.choose(less, lambda: group.shuffle_xor(number, 4), lambda: number)

    with pytest.raises(Fault, match="an invocation that is not there"):
        stored(body)
