"""Check what a tasklet does with words of MRAM: pieces that start inside of one, runs of a mask, and slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from foundry_core.codegen.pipeline import TaskletTarget, to_structured, to_tasklet_mlir

from .. import native
from ..kernels import elementwise
from ..memory import Array

SIZE = 256
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def run(ttir: str, arguments: Sequence[Array], grid: int = 1, *, parts: int | None = None) -> list[Array]:
    made = to_tasklet_mlir(to_structured(ttir), TaskletTarget(parts=parts))
    assert parts is None or made.parts == parts
    return native.run(made.text, arguments, (grid, 1, 1), slices=made.parts).arrays


def moved(elem: str, by: int, lines: Sequence[str], stored: str) -> str:
    """Return a kernel that stores %v, where the pointers are moved by some elements."""
    shift = [
        f"%by = arith.constant dense<{by}> : TILE(i32)",
        *(f"%m{k} = tt.addptr %a{k}, %by : TILE(!tt.ptr<{elem}>), TILE(i32)" for k in (0, 1)),
    ]
    return elementwise([elem, elem], {}, [*shift, *lines, stored], lanes=0, size=SIZE)


@pytest.mark.parametrize("elem", DTYPES)
@pytest.mark.parametrize("by", [0, 1, 3, 4])
def test_piece_that_starts_in_a_word_is_moved_and_changed(elem: str, by: int) -> None:
    x = np.random.default_rng(by).integers(-100, 100, SIZE + 8).astype(DTYPES[elem])
    pointers = f"TILE(!tt.ptr<{elem}>)"
    for change in ([], [f"%d = arith.addi %v, %v : TILE({elem})"]):
        lines = [f"%v = tt.load %m0 : {pointers}", *change]
        text = moved(elem, by, lines, f"tt.store %m1, {'%d' if change else '%v'} : {pointers}")
        for text_ in (text, text.replace("tt.divisibility = 16", "tt.divisibility = 1")):
            _, found = run(text_, [x, np.full_like(x, 77)])
            wanted = np.full_like(x, 77)
            wanted[by : by + SIZE] = x[by : by + SIZE] * (2 if change else 1)
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("elem", DTYPES)
@pytest.mark.parametrize("by", [0, 1, 4])
def test_piece_that_starts_in_a_word_and_is_used_twice(elem: str, by: int) -> None:
    x = np.random.default_rng(by).integers(-100, 100, SIZE + 8).astype(DTYPES[elem])
    pointers = f"TILE(!tt.ptr<{elem}>)"
    # The load is kept: what is stored first may be what it reads.
    stores = f"tt.store %m1, %v : {pointers}\n    tt.store %a1, %v : {pointers}"
    _, found = run(moved(elem, by, [f"%v = tt.load %m0 : {pointers}"], stores), [x, np.full_like(x, 77)])
    wanted = np.full_like(x, 77)
    wanted[by : by + SIZE] = x[by : by + SIZE]
    wanted[:SIZE] = x[by : by + SIZE]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("elem", DTYPES)
@pytest.mark.parametrize("mask", [0x1, 0x2, 0x3, 0x10, 0x7F])
def test_mask_of_runs_stores_the_runs(elem: str, mask: int) -> None:
    x = np.random.default_rng(mask).integers(-100, 100, SIZE).astype(DTYPES[elem])
    pointers = f"TILE(!tt.ptr<{elem}>)"
    lines = [
        f"%bits = arith.constant dense<{mask}> : TILE(i32)",
        "%zero = arith.constant dense<0> : TILE(i32)",
        "%and = arith.andi %r, %bits : TILE(i32)",
        "%is = arith.cmpi ne, %and, %zero : TILE(i32)",
    ]
    text = elementwise([elem, elem], {}, [*lines, f"tt.store %a1, %x0, %is : {pointers}"], lanes=0, size=SIZE)
    _, found = run(text, [x, np.full_like(x, 77)])
    np.testing.assert_array_equal(found, np.where(np.arange(SIZE) & mask, x, 77))


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_slices_of_a_program_are_the_program(parts: int) -> None:
    x = np.random.default_rng(parts).integers(-100, 100, 2 * SIZE).astype(np.int32)
    lines = ["%v = arith.addi %x0, %i : TILE(i32)"]
    text = elementwise(["i32"], {"%v": "i32"}, lines, lanes=0, size=SIZE)
    _, found = run(text, [x, np.full_like(x, 77)], 2, parts=parts)
    np.testing.assert_array_equal(found, x + np.arange(2 * SIZE))
