"""Check what is stored of a product without workgroup memory: its values, and that no barrier is behind the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from foundry_core.mapping.simt.lower import Simt, lower_simt
from foundry_core.mapping.simt.target import Arrangement, SimtTarget

from ..cases import CASES, check
from ..devices import LAVAPIPE, SECRET, arranged, by_columns, in_pairs, launch_on, mixed
from ..kernels import product
from ..memory import Array
from ..spirv import Module
from .test_neighbours import load_widths

SIZE = 32
# Another layout, as Triton gives it to stores.
_OTHER = f"tensor<{SIZE}x{SIZE}xf32, #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [LANES], warpsPerCTA = [2, 2], order = [1, 0]}}>>"  # noqa: E501


class Epilogue(NamedTuple):
    """What is computed of the product %d0: the text of %v, its type, and what NumPy says of the product."""

    lines: Sequence[str]
    result: str
    numpy: Callable[[Array], Array]


ROW = np.arange(SIZE, 2 * SIZE, dtype=np.float32)
_ZERO = "%none = arith.constant dense<0.0> : TILE(f32)"
EPILOGUES = {
    "f32": Epilogue(["%v = arith.addf %d0, %zero : TILE(f32)"], "f32", lambda d: d + 0),
    "f16": Epilogue(["%v = arith.truncf %d0 : TILE(f32) to TILE(f16)"], "f16", lambda d: d),
    "bf16": Epilogue(["%v = arith.truncf %d0 : TILE(f32) to TILE(bf16)"], "bf16", lambda d: d),
    "relu": Epilogue([_ZERO, "%v = arith.maximumf %d0, %none : TILE(f32)"], "f32", lambda d: np.maximum(d, 0)),
    "where": Epilogue(
        [
            _ZERO,
            "%c = arith.cmpf ogt, %d0, %none : TILE(f32)",
            "%w = arith.negf %d0 : TILE(f32)",
            "%v = arith.select %c, %d0, %w : TILE(i1), TILE(f32)",
        ],
        "f32",
        lambda d: np.where(d > 0, d, -d),
    ),
    "row": Epilogue(["%v = arith.addf %d0, %row : TILE(f32)"], "f32", lambda d: d + ROW),
    "column": Epilogue(["%v = arith.mulf %column, %d0 : TILE(f32)"], "f32", lambda d: d * ROW[:, None]),
    "row and bf16": Epilogue(
        ["%w = arith.addf %d0, %row : TILE(f32)", "%v = arith.truncf %w : TILE(f32) to TILE(bf16)"],
        "bf16",
        lambda d: d + ROW,
    ),
    "layouts": Epilogue(
        [
            f"%x = ttg.convert_layout %d0 : TILE(f32) -> {_OTHER}",
            f"%y = arith.negf %x : {_OTHER}",
            f"%w = ttg.convert_layout %y : {_OTHER} -> TILE(f32)",
            "%v = arith.truncf %w : TILE(f32) to TILE(f16)",
        ],
        "f16",
        lambda d: -d,
    ),
}


def devices() -> dict[str, SimtTarget]:
    found = {}
    for lanes in (8, 16, 32, 64):
        for device, name in (
            (SECRET, "large"),
            (replace(LAVAPIPE, compiles_slowly=False, preserves_denormals=(16,)), "small"),
        ):
            of = replace(device, warp_size=lanes)
            for how in (in_pairs, by_columns, mixed):
                found[f"{name}-{lanes}-{how.__name__}"] = arranged(of, how)
    return found


KNOWN = devices()


def factors() -> tuple[Array, Array, Array]:
    """Return two matrices and their product, with NaN, infinities, a zero of each sign and a subnormal f16."""
    random = np.random.default_rng(3)
    a, b = (random.integers(-8, 9, (2, SIZE, SIZE)) / 4).astype(np.float16)
    a[2, 3], a[5, 7], a[9], b[:, 4] = np.nan, np.inf, 0, 0
    a[11], b[:, 6] = 0, 0
    a[11, 0], b[0, 6] = 2.0**-14, 2.0**-8
    with np.errstate(all="ignore"):
        return a, b, a.astype(np.float32) @ b.astype(np.float32)


def text(epilogue: Epilogue, lanes: int, more: Sequence[str] = ()) -> str:
    found = product("f16", "f32", 1, {"%v": epilogue.result}, [*more, *epilogue.lines], lanes=lanes, size=SIZE)
    return found.replace("LANES", f"{lanes // 8}, 8")


def instructions(made: Simt) -> list[str]:
    """Return the names of a kernel's instructions."""
    read = Module(made.module)
    return [name for _, block in read.functions[read.entry].blocks for name, _ in block]


def computed(ttgir: str, target: SimtTarget, epilogue: Epilogue) -> tuple[Array, int, int]:
    """Return what a kernel stores, the barriers behind its last product, and the bytes of its workgroup memory."""
    made = lower_simt(ttgir, target)
    a, b, _ = factors()
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[epilogue.result]
    out = launch_on(made, target, [a, b, np.full((SIZE, SIZE), 77, dtype)]).arrays[2]
    names = instructions(made)
    last = len(names) - names[::-1].index("CooperativeMatrixMulAdd")
    return out, names[last:].count("ControlBarrier"), made.local_bytes


def compare(out: Array, epilogue: Epilogue) -> None:
    with np.errstate(all="ignore"):
        wanted = epilogue.numpy(factors()[2])
        if epilogue.result != "bf16":
            wanted = wanted.astype(out.dtype)
            np.testing.assert_array_equal(np.signbit(out[~np.isnan(out)]), np.signbit(wanted[~np.isnan(wanted)]))
            np.testing.assert_array_equal(out, wanted)
            return
        bits = np.asarray(wanted, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        is_nan = (out & 0x7FFF) > 0x7F80
        np.testing.assert_array_equal(is_nan, np.isnan(wanted))
        np.testing.assert_array_equal(out[~is_nan], rounded[~is_nan])


@pytest.mark.parametrize("device", KNOWN)
@pytest.mark.parametrize("name", EPILOGUES)
def test_nothing_behind_a_product_passes_through_workgroup_memory(name: str, device: str) -> None:
    target, epilogue = KNOWN[device], EPILOGUES[name]
    out, barriers, used = computed(text(epilogue, target.warp_size), target, epilogue)
    compare(out, epilogue)
    assert barriers == 0
    # The two factors, in rows that are 16 bytes longer.
    assert used == 2 * SIZE * (2 * SIZE + 16)


@pytest.mark.parametrize("name", EPILOGUES)
def test_product_passes_through_workgroup_memory_where_its_arrangement_is_not_known(name: str) -> None:
    epilogue = EPILOGUES[name]
    out, barriers, _ = computed(text(epilogue, 32), SECRET, epilogue)
    compare(out, epilogue)
    assert barriers > 0


def test_factors_are_loaded_as_widely_as_before() -> None:
    ttgir = text(EPILOGUES["f16"], 32)
    known, secret = (load_widths(lower_simt(ttgir, device).module) for device in (arranged(SECRET, by_columns), SECRET))
    assert known == secret


# What a chain needs and is not computed again: the sums of a tile's rows, which are a column; and a tile with two uses.
_SUMS = [
    "%wide = arith.extf %x0 : TILE(f16) to TILE(f32)",
    '%sums = "tt.reduce"(%wide) <{axis = 1 : i32}> ({',
    "^bb0(%l: f32, %r: f32):",
    "%s = arith.maximumf %l, %r : f32",
    "tt.reduce.return %s : f32",
    f"}}) : (TILE(f32)) -> tensor<{SIZE}xf32, #ttg.slice<{{dim = 1, parent = #b}}>>",
    f"%sum = tt.expand_dims %sums {{axis = 1 : i32}} : tensor<{SIZE}xf32, #ttg.slice<{{dim = 1, parent = #b}}>> -> "
    f"tensor<{SIZE}x1xf32, #b>",
    f"%tile = tt.broadcast %sum : tensor<{SIZE}x1xf32, #b> -> TILE(f32)",
]


@pytest.mark.parametrize("device", ["large-32-in_pairs", "small-8-by_columns", "large-64-mixed"])
@pytest.mark.parametrize("of", ["reduction", "tile with two uses"])
def test_chain_gets_what_cannot_be_computed_again(of: str, device: str) -> None:
    target, (a, _, _) = KNOWN[device], factors()
    wide = a.astype(np.float32)
    with np.errstate(all="ignore"):
        added = np.maximum.reduce(wide, 1)[:, None] if of == "reduction" else wide
    more = _SUMS if of == "reduction" else ["%tile = arith.extf %x0 : TILE(f16) to TILE(f32)"]
    epilogue = Epilogue([*more, "%v = arith.addf %d0, %tile : TILE(f32)"], "f32", lambda d: d + added)
    out, _, _ = computed(text(epilogue, target.warp_size), target, epilogue)
    compare(out, epilogue)


Arranged = Callable[[int, str, int, int, int], Arrangement] | None


def written_by_triton(name: str, lanes: int, how: Arranged) -> list[str]:
    """Return the instructions of one of Triton's kernels whose values are right, on a device arranged in this way."""
    case = CASES[name]()
    device = replace(LAVAPIPE if lanes == 8 else SECRET, compiles_slowly=False)
    target = arranged(device, how) if how else device
    made = lower_simt(case.kernel(lanes).ttgir, target)
    with np.errstate(all="ignore"):
        check(case, launch_on(made, target, case.arguments, case.grid).arrays)
    return instructions(made)


@pytest.mark.parametrize("how", [in_pairs, by_columns, mixed, None])
@pytest.mark.parametrize("lanes", [8, 32])
def test_kernel_of_triton_with_masks_a_row_and_a_column(lanes: int, how: Arranged) -> None:
    names = written_by_triton("activated", lanes, how)
    last = len(names) - names[::-1].index("CooperativeMatrixMulAdd")
    assert (names[last:].count("ControlBarrier") == 0) == (how is not None)


@pytest.mark.parametrize("how", [in_pairs, by_columns, mixed, None])
@pytest.mark.parametrize("lanes", [8, 32])
def test_attention_keeps_scores_and_sums_in_registers(lanes: int, how: Arranged) -> None:
    names = written_by_triton("attended", lanes, how)
    assert ("CooperativeMatrixStore" in names) == (how is None)
    if how in (in_pairs, by_columns):
        # Only the queries, the keys and the values, which all subgroups read, are in workgroup memory, and the scores
        # of a row are in one subgroup.
        assert names.count("ControlBarrier") <= 5
