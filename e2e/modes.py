"""Triton's modes that every target has, each in its own process: compiling without running, and interpreting.

They need this project's patches (patches/triton): with the official wheel of some release, a case fails. As a program,
this module is that process: TRITON_COMPILE_ONLY=ttir python e2e/modes.py compile, or TRITON_INTERPRET=1 python
e2e/modes.py interpret.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matmul
import numpy as np
import triton
import triton.language as tl
import vec_add
from foundry_core.tensor import Tensor
from report import Case, run_command

HERE = Path(__file__).resolve().parent
# Global arrays: Triton looks at every global of a kernel's module.
ROWS = np.random.default_rng(0).standard_normal((5, 13), np.float32)
SUMS, LARGEST = (np.full(5, np.nan, np.float32) for _ in range(2))


def cases() -> Iterator[Case]:
    yield Case("modes", "TRITON_COMPILE_ONLY=ttir on a machine without a device", compile_only)
    yield Case("modes", "TRITON_INTERPRET=1 runs kernels in Triton's interpreter", interpret)


def compile_only() -> None:
    """Check compile-only mode in another process; OCL_ICD_VENDORS hides the OpenCL devices."""
    with tempfile.TemporaryDirectory() as cache:
        run_other("modes.py", "compile", TRITON_COMPILE_ONLY="ttir", TRITON_CACHE_DIR=cache, OCL_ICD_VENDORS=cache)


def interpret() -> None:
    """Check the interpreter in another process, with NumPy arrays."""
    run_other("modes.py", "interpret", TRITON_INTERPRET="1")


def run_other(name: str, *arguments: str, **variables: str | None) -> None:
    """Run another script of this folder; the script must succeed."""
    run_command(sys.executable, HERE / name, *arguments, variables=variables)


def check_compile_only() -> None:
    """Check that Triton's cache has the IR up to the named stage, and that nothing was launched."""
    wanted = os.environ.get("TRITON_COMPILE_ONLY")
    assert wanted, "set TRITON_COMPILE_ONLY to the name of the last stage, such as ttir"
    x, output = np.ones(1000, np.float32), np.full(1000, np.nan, np.float32)
    launch = vec_add.add_kernel[(triton.cdiv(x.size, 256),)]
    kernel = launch(Tensor(x), Tensor(x), Tensor(output), x.size, BLOCK_SIZE=256)
    assert np.isnan(output).all(), "the kernel was launched"
    cache = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
    found = sorted(cache.rglob(f"add_kernel.{wanted}"))
    assert found, f"no add_kernel.{wanted} in {cache}"
    assert "tt.func" in kernel.asm["ttir"]


@triton.jit
def reduce_rows(rows, sums, largest, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(rows + row * n + i, mask=i < n, other=float("-inf"))
    tl.store(largest + row, tl.max(x, 0))
    tl.store(sums + row, tl.sum(tl.where(i < n, x, 0.0), 0))


def check_interpreter() -> None:
    """Check that the interpreter runs vec_add and matmul as they are, and a sum and a maximum of rows."""
    kind = type(reduce_rows).__name__
    assert kind == "InterpretedFunction", f"a kernel is a {kind}: set TRITON_INTERPRET=1"
    for dtype in ("f32", "f16", "i64"):
        assert vec_add.check(1000, 256, dtype, 1) == 0
    assert isinstance(matmul.check((33, 65, 17), "f16->f32", "row", "column", "row", 5, 16, 32, 16, 3), float)
    reduce_rows[(5,)](Tensor(ROWS), Tensor(SUMS), Tensor(LARGEST), 13, BLOCK=16)
    assert (ROWS.max(1) == LARGEST).all(), LARGEST
    exact = ROWS.sum(1, dtype=np.float64)
    # 12 additions and the result, each within half a unit in the last place of what is summed.
    assert (np.abs(SUMS - exact) <= 13 * 2.0**-24 * np.abs(ROWS).sum(1)).all(), SUMS


if __name__ == "__main__":
    {"compile": check_compile_only, "interpret": check_interpreter}[sys.argv[1]]()
