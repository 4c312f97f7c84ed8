"""The forms in which the lowering writes loops, calls and returns: as an effect, a hint, or no branch at all."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.codegen.pipeline import to_structured, written_arguments
from foundry_core.tensor import Tensor
from kernels import structured
from results import poisoned

CALL = """
tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) {
  %r = tt.call @"f.g"(%q, %n) : (!tt.ptr<i32>, i32) -> i32
  tt.return
}
tt.func private @"f.g"(%to: !tt.ptr<i32>, %n: i32) -> i32 attributes {noinline = true} {
  tt.store %to, %n : !tt.ptr<i32>
  tt.return %n : i32
}
"""


@triton.jit
def hinted(out, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = i * 0
    for k in tl.range(0, n, disable_licm=True):
        total += k ^ (m * 77)
    for k in tl.range(0, n, disable_licm=True, loop_unroll_factor=2):
        total += k * k
    while tl.condition(n > 0, disable_licm=True):
        total += n
        n -= 1
    tl.store(out + i, total)


@pytest.mark.skipif(not hasattr(tl, "condition"), reason="this release of Triton has no tl.condition")
def test_nothing_is_hoisted_out_of_a_loop_with_the_hint() -> None:
    out = poisoned(16, dtype=np.int32)
    compiled = hinted[(1,)](Tensor(out), 7, 3, BLOCK=16)
    assert out.tolist() == [sum(k ^ 231 for k in range(7)) + 91 + 28] * 16
    # Other roads write SPIR-V, which has no such hint.
    if "llir" in compiled.asm:
        llvm = compiled.asm["llir"]
        assert "llvm.licm.disable" in llvm
        assert llvm.index(" phi ") < llvm.index(", 77")


@triton.jit
def waits(out, n):
    while n > 0:
        pass
    k = n
    while k > 0:
        k = k | 1
    while tl.load(out + n) == 0:
        k += 1
    tl.store(out, 7)


def test_a_loop_that_only_waits_is_kept() -> None:
    out = np.full(1, 1, np.int32)
    kernel = waits[(1,)](Tensor(out), 0)
    assert out.tolist() == [7]
    if "tile" in kernel.asm:
        # Each loop has an effect that no compiler removes.
        assert kernel.asm["tile"].count("tile.keep") == 3
        assert kernel.asm["llir"].count("store volatile") == 3


@triton.jit
def counts_down(out, n):
    while tl.load(out) > n:
        tl.store(out, tl.load(out) - 1)


def test_a_loop_that_carries_nothing() -> None:
    out = np.full(1, 9, np.int32)
    kernel = counts_down[(1,)](Tensor(out), 4)
    assert out.tolist() == [4]
    assert "tile.keep" not in kernel.asm.get("tile", "")


@triton.jit
def early(x, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    if program >= n:
        return
    at = x + program * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + 1)


def test_a_return_is_no_branch_in_the_structured_form() -> None:
    text = structured(early, {"x": "*fp32", "n": "i32"}, {"BLOCK": 64})
    assert "cf.br" not in text
    assert "cf.cond_br" not in text
    assert text.count("scf.if") == 1


def test_pointer_that_a_function_stores_through_counts_as_written() -> None:
    ttir = CALL
    assert written_arguments(ttir) == ([1], [1])
    text = to_structured(ttir)
    assert "tile.store %n to %q" in text and "call" not in text and "private" not in text
