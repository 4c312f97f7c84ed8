"""Loads through computed indices: random integer expressions, many in one kernel, compared with NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from expressions import (
    BLOCK,
    FAR,
    LAST_BLOCK,
    OTHER,
    POISON,
    PROGRAMS,
    TABLE,
    TURNS,
    Access,
    M,
    N,
    draw_accesses,
    draw_table,
    wrong_accesses,
)
from foundry_core.codegen.pipeline import to_spirv
from foundry_core.errors import ToolError
from foundry_core.tensor import Tensor
from image import BACKEND
from shared_kernels import imported

# Expressions per kernel, and kernels. A DPU's program has at most 4096 instructions, so its kernels are smaller.
# zen-compiler runs spirv's lowering, or another one for threads, in a separate process, so vsi has fewer kernels.
EXPRESSIONS, KERNELS = {"dpu": (10, 60), "vsi": (40, 10)}.get(BACKEND, (40, 50))

HEAD = """
import triton
import triton.language as tl


@triton.jit
def indices(table, middle, out, n, m, far, last, turns, BLOCK: tl.constexpr):
    x = table + middle
    i = tl.arange(0, BLOCK)
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
"""
ONE = "    tl.store(out + (({number} * {turns} + {turn}) * programs + pid) * BLOCK + i, {load})\n"
LOAD, MASKED = "tl.load(x + {index})", "tl.load(x + (i * 0) + {index}, mask={mask}, other={other})"


def loading(access: Access) -> str:
    index, mask = access
    return (
        LOAD.format(index=index.text) if mask is None else MASKED.format(index=index.text, mask=mask.text, other=OTHER)
    )


def source(accesses: list[Access], in_loop: list[Access]) -> str:
    """Return a kernel that loads through each expression. It stores the result in a row per iteration and program."""
    lines = [HEAD]
    for number, each in enumerate(accesses):
        lines.append(ONE.format(number=number, turns="turns", turn=0, load=loading(each)))
    lines.append("    for turn in range(turns):\n")
    for number, each in enumerate(in_loop, len(accesses)):
        lines.append("    " + ONE.format(number=number, turns="turns", turn="turn", load=loading(each)))
    return "".join(lines)


@pytest.mark.any_release
# The host has no road by work-groups, which vsi takes.
@(pytest.mark.each_image if BACKEND == "vsi" else pytest.mark.values)
@pytest.mark.parametrize("seed", range(KERNELS))
def test_loads_through_random_indices_find_what_numpy_finds(seed: int, tmp_path: Path) -> None:
    """backends/core/host/tests/test_indices.py does the same on the host, on three roads."""
    outside, inside = draw_accesses(seed, EXPRESSIONS)
    table = draw_table(seed)
    out = np.full((EXPRESSIONS, TURNS, PROGRAMS, BLOCK), POISON, np.int32)
    run = imported(tmp_path / f"indices_{seed}.py", source(outside, inside)).indices
    options = {"num_warps": 1, "enable_multi_threads": seed % 2 == 1} if BACKEND == "vsi" else {}
    run[(PROGRAMS,)](Tensor(table), TABLE, Tensor(out), N, M, FAR, LAST_BLOCK, TURNS, BLOCK=BLOCK, **options)
    wrong = wrong_accesses(table, outside, inside, out)
    assert not wrong, f"seed {seed}: " + "\n".join(wrong)


@triton.jit
def masked(table, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(table + i + (i & 7)))
    tl.store(out + BLOCK + i, tl.load(table + i + i % 8))
    tl.store(out + 2 * BLOCK + i, tl.load(table + (i & 3) * 5 + i // 4 % 2))


def test_the_lowest_bits_of_a_loops_counter_are_all_that_is_taken_of_it() -> None:
    i = np.arange(BLOCK)
    table = np.random.default_rng(0).permutation(2 * BLOCK).astype(np.int32)
    out = np.full((3, BLOCK), -77, np.int32)
    masked[(1,)](Tensor(table), Tensor(out), BLOCK=BLOCK)
    np.testing.assert_array_equal(out, table[np.stack([i + (i & 7), i + i % 8, (i & 3) * 5 + i // 4 % 2])])


@triton.jit
def across(table, out, start, end, m, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if WIDE:
        s, n = start.to(tl.int64) + i, end.to(tl.int64)
    else:
        s, n = start + i, end
    tl.store(out + i, tl.load(table + s % m + m))
    tl.store(out + BLOCK + i, tl.load(table + s.to(tl.int64) % m + m))
    tl.store(out + 2 * BLOCK + i, tl.load(table + i, mask=s < n, other=-5))
    tl.store(out + 3 * BLOCK + i, tl.load(table + i), mask=s <= n)
    tl.store(out + 4 * BLOCK + i, tl.load(table + i), mask=(s > n) & (i < 61))
    tl.store(out + 5 * BLOCK + i, tl.load(table + i), mask=n <= s)
    tl.store(out + 6 * BLOCK + i, tl.load(table + i), mask=s.to(tl.int64) == n)
    tl.store(out + 7 * BLOCK + i, tl.load(table + i, mask=s != n, other=-5))


@pytest.mark.any_release
@pytest.mark.parametrize("bits", [32, 64])
def test_sums_wrap_around_where_integers_end(bits: int) -> None:
    """Sums wrap as NumPy's do, if they are used for more than an addition to an address."""
    element, m = np.int32 if bits == 32 else np.int64, 1000
    top, i = 2 ** (bits - 1), np.arange(BLOCK)
    starts = [top - BLOCK, top - 40, top - 1, -top, -3, 8]
    ends = [top - 1, top - 20, 5, -1, -top, -top + 7]
    if bits == 64:
        starts, ends = [*starts, 2**32 - 7, 2**31 - 40, -(2**40)], [*ends, 2**32, 2**31 - 20]
    table = np.random.default_rng(0).permutation(2 * m).astype(np.int32)
    wrong = []
    for start in starts:
        for end in ends:
            with np.errstate(over="ignore"):
                s, n = np.full(BLOCK, start, element) + i.astype(element), element(end)
            out = np.full((8, BLOCK), -77, np.int32)
            across[(1,)](Tensor(table), Tensor(out), start, end, m, WIDE=bits == 64, BLOCK=BLOCK)
            around, poison = table[np.fmod(s, element(m)).astype(np.int64) + m], np.full(BLOCK, -77, np.int32)
            masks = [s < n, s <= n, (s > n) & (i < 61), n <= s, s == n, s != n]
            others = [poison - poison - 5, poison, poison, poison, poison, poison - poison - 5]
            expected = [around, around]
            expected += [np.where(mask, table[:BLOCK], other) for mask, other in zip(masks, others, strict=True)]
            differ = np.flatnonzero((out != np.stack(expected)).any(axis=1))
            wrong += [f"from {start}, to {end}: row {row}" for row in differ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(BACKEND == "dpu", reason="a DPU's programs do not go through SPIR-V")
@pytest.mark.parametrize("type", ["i2", "i3", "i24", "i63", "i128", "<4 x i7>"])
def test_integers_that_spirv_lacks_are_refused_before_llc_sees_them(type: str) -> None:
    function = "define spir_func {type} @{name}({type} %x) {{\n  %i3 = add {type} %x, %x ; i5\n  ret {type} %i3\n}}\n"
    accepted = function.format(type="i16", name="i3") + function.format(type="<4 x i32>", name='"an i7"')
    assert to_spirv(accepted)
    with pytest.raises(ToolError, match=f"SPIR-V has no type i{type.strip('<>').rpartition('i')[2]}, which line 5 of"):
        to_spirv(accepted.rpartition("define")[0] + function.format(type=type, name="f"))
