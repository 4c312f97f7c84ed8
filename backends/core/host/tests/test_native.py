"""Check that native runs refuse what no device promises. A test that they run would prove nothing otherwise."""

from __future__ import annotations

import re

import numpy as np
import pytest

from .. import native
from ..memory import Array, Fault

# Of an array of four i32, and 16 bytes of WRAM.
_HEAD = """!global = !llvm.ptr<255>
module {
  llvm.func @"_Z12get_local_idj"(i32) -> i64
  llvm.func @"_Z7barrierj"(i32) attributes {convergent}
  llvm.func @kernel(%x_0: !global {foundry.elem = i32}, %n_1: i32) attributes {} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %wram = llvm.alloca %one x !llvm.array<16 x i8> {alignment = 8 : i64} : (i32) -> !llvm.ptr
"""


def run(*lines: str, n: int = 0, work_items: int = 1, declared: str = "") -> Array:
    text = _HEAD.replace("module {", f"module {{\n{declared}") + "\n".join(lines) + "\n    llvm.return\n  }\n}\n"
    if work_items == 1:
        text = re.sub(r"^  llvm\.func @\"_Z.*\n", "", text, flags=re.MULTILINE)
    return native.run(text, [np.arange(4, dtype=np.int32), np.int32(n)], work_items=work_items).arrays[0]


def copied(alignment: int, *, out: bool, at: int = 0, near: int = 0) -> list[str]:
    """Copy %n_1 bytes between bytes of WRAM and of the array."""
    attributes = f"{{llvm.align = {alignment} : i64}}"
    first, second = ("(%far, %near", "(!global, !llvm.ptr") if out else ("(%near, %far", "(!llvm.ptr, !global")
    return [
        f"%far = llvm.getelementptr %x_0[{at}] : (!global) -> !global, i8",
        f"%near = llvm.getelementptr %wram[{near}] : (!llvm.ptr) -> !llvm.ptr, i8",
        f'"llvm.intr.memcpy"{first}, %n_1) <{{arg_attrs = [{attributes}, {attributes}, {{}}], isVolatile = false}}> '
        f": {second}, i32) -> ()",
    ]


def test_dma_moves_words() -> None:
    found = run(
        *copied(8, out=False, at=8),
        *(line.replace("%near", "%n").replace("%far", "%f") for line in copied(8, out=True)),
        n=8,
    )
    np.testing.assert_array_equal(found, [2, 3, 2, 3])


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize(
    ("alignment", "at", "near", "size", "said"),
    [
        (8, 0, 0, 24, "out of bounds"),
        (8, 8, 0, 16, "out of bounds of all arrays"),
        (8, -8, 0, 8, "out of bounds of all arrays"),
        (8, 0, 8, 16, "out of bounds of private memory"),
        (8, 4, 0, 8, "a DMA that is not"),
        (8, 0, 4, 8, "a DMA that is not"),
        (8, 0, 0, 4, "a DMA that is not"),
        (4, 0, 0, -4, "a negative number of bytes"),
    ],
)
def test_copy_that_a_dpu_does_not_make_is_refused(
    out: bool, alignment: int, at: int, near: int, size: int, said: str
) -> None:
    with pytest.raises(Fault, match=said):
        run(*copied(alignment, out=out, at=at, near=near), n=size)


@pytest.mark.parametrize(("base", "space"), [("%x_0", "!global"), ("%wram", "!llvm.ptr")])
@pytest.mark.parametrize(
    ("at", "said"),
    [(16, "out of bounds"), (-4, "out of bounds"), (2, "no multiple"), (13, "out of bounds|no multiple")],
)
@pytest.mark.parametrize("is_store", [False, True])
def test_access_outside_of_arrays_or_alignment_is_refused(
    base: str, space: str, at: int, said: str, is_store: bool
) -> None:
    place = f"%at = llvm.getelementptr {base}[{at}] : ({space}) -> {space}, i8"
    how = f"{{alignment = 4 : i64}} : {space} -> i32"
    access = (
        f"%got = llvm.load %at {how}"
        if not is_store
        else f"llvm.store %one, %at {how.replace(f'{space} -> i32', f'i32, {space}')}"
    )
    with pytest.raises(Fault, match=said):
        run(place, access)


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(Fault, match="a division by zero"):
        run("%q = arith.divsi %one, %n_1 : i32")


def test_private_memory_is_poison_before_it_is_written() -> None:
    found = run(
        "%got = llvm.load %wram {alignment = 4 : i64} : !llvm.ptr -> i32",
        "llvm.store %got, %x_0 {alignment = 4 : i64} : i32, !global",
    )
    assert found[0] == np.uint32(0xABABABAB).astype(np.int32)


@pytest.mark.parametrize("all_wait", [True, False])
def test_barrier_that_some_work_items_do_not_reach_is_refused(all_wait: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "PATIENCE", 0.2)
    lines = [
        '%id = llvm.call @"_Z12get_local_idj"(%zero) : (i32) -> i64',
        "%me = arith.trunci %id : i64 to i32",
        f"%waits = arith.cmpi sge, %me, {'%zero' if all_wait else '%one'} : i32",
        "scf.if %waits {",
        'llvm.call @"_Z7barrierj"(%zero) : (i32) -> ()',
        "}",
        "%at = llvm.getelementptr %x_0[%me] : (!global, i32) -> !global, i32",
        "llvm.store %me, %at {alignment = 4 : i64} : i32, !global",
    ]
    if all_wait:
        np.testing.assert_array_equal(run(*lines, work_items=3), [0, 1, 2, 3])
    else:
        with pytest.raises(Fault, match="do not reach"):
            run(*lines, work_items=3)


def test_operation_that_is_not_known_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="ceildivsi"):
        run("%q = arith.ceildivsi %one, %n_1 : i32")


@pytest.mark.parametrize("limit", [4, 5])
@pytest.mark.parametrize("way", ["load", "store"])
def test_access_under_a_mask_reaches_the_lanes_that_it_has(way: str, limit: int) -> None:
    arguments = {
        "load": "(%x_0, %four, %mask, %wide) : (!global, i32, vector<8xi1>, vector<8xi32>) -> vector<8xi32>",
        "store": "(%wide, %x_0, %four, %mask) : (vector<8xi32>, !global, i32, vector<8xi1>) -> ()",
    }[way]
    lines = [
        "%four = arith.constant 4 : i32",
        "%places = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>",
        "%limit = vector.broadcast %n_1 : i32 to vector<8xi32>",
        "%mask = arith.cmpi slt, %places, %limit : vector<8xi32>",
        "%wide = arith.constant dense<9> : vector<8xi32>",
        f'{"%got = " * (way == "load")}llvm.call @"xlvm.masked.{way}.v8i32.p1"{arguments}',
    ]
    if way == "load":
        lines += [
            "%one_ = vector.extract %got[3] : i32 from vector<8xi32>",
            "%none = vector.extract %got[4] : i32 from vector<8xi32>",
            "%sum = arith.addi %one_, %none : i32",
            "llvm.store %sum, %x_0 {alignment = 4 : i64} : i32, !global",
        ]
    declared = {
        "load": "(!global, i32, vector<8xi1>, vector<8xi32>) -> vector<8xi32>",
        "store": "(vector<8xi32>, !global, i32, vector<8xi1>)",
    }[way]
    head = f'  llvm.func @"xlvm.masked.{way}.v8i32.p1"{declared}'
    if limit == 4:
        found = run(*lines, n=limit, declared=head)
        np.testing.assert_array_equal(found, [12, 1, 2, 3] if way == "load" else [9] * 4)
    else:
        with pytest.raises(Fault, match="out of bounds of all arrays"):
            run(*lines, n=limit, declared=head)
