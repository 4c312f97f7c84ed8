"""Packed kernels on DPUs: the folder's example, other sizes and numbers of DPUs against NumPy, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from image import printed

SCRIPT = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def scaled(x, y, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * alpha + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def gather(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + at, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


random = np.random.default_rng(0)
x, y = random.standard_normal((2, 1000), np.float32)
scaled[(8,)](x, y, np.full(1000, np.nan, np.float32), 1000, 0.5, BLOCK=128)
index = random.permutation(300).astype(np.int32)
gather[(19,)](random.integers(-9, 9, 300, np.int32), index, np.full(300, -1, np.int32), 300, BLOCK=16)
count[(5,)](random.integers(0, 7, 333, np.int32), np.zeros(7, np.int32), 333, BLOCK=64)
"""
USE = """
import os
import numpy as np
import scaled as packed

random = np.random.default_rng(1)
for n in (0, 1, 127, 128, 129, 1000, 40_001):
    x, y = (random.standard_normal(n, np.float32) for _ in range(2))
    x[: n // 8], y[n // 9 : n // 7] = np.float32("-0.0"), np.float32("nan")
    out = np.full(n + 5, 7, np.float32)
    packed.scaled[(-(-n // 128),)](x, y, out, n, -1.5, BLOCK=128)
    # The product and the sum are rounded, or the sum only.
    exact = np.float64(x) * -1.5 + np.float64(y)
    bound = 2.0**-23 * (np.abs(np.float64(x) * 1.5) + np.abs(exact))
    assert ((np.abs(out[:n] - exact) <= bound) | (np.isnan(exact) & np.isnan(out[:n]))).all(), n
    assert (out[n:] == 7).all(), n
x, index = random.integers(-1000, 1000, 900, np.int32), random.permutation(900).astype(np.int32)
out = np.full(905, -7, np.int32)
packed.gather[(57,)](x, index, out, 900, BLOCK=16)
assert (out[index] == x).all() and (out[900:] == -7).all()
x, bins = random.integers(0, 7, 1000, np.int32), np.arange(7, dtype=np.int32)
try:
    packed.count[(16,)](x, bins, 1000, BLOCK=64)
except packed.PackedError as error:
    assert "DPUs share no memory: use one DPU" in str(error) and os.environ["FOUNDRY_SCALED_DEVICE"] == "3"
    assert (bins == np.arange(7)).all()
else:
    assert (bins == np.arange(7) + np.bincount(x, minlength=7)).all()
out = np.full(10, 7, np.float32)
try:
    packed.scaled[(1,)](out, out, out, 100, 1.5, BLOCK=128)
except packed.PackedError as error:
    print(error)
assert (out == 7).all()
print(packed.device())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("packed")
    (work / "script.py").write_text(SCRIPT)
    printed("-m", "foundry_core.packed", "--name=scaled", work / "script.py", work / "scaled")
    return work / "scaled"


def test_example_computes_what_was_recorded(folder: Path) -> None:
    done = subprocess.run([folder / "bin/scaled_example", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as recorded on ") == 3


@pytest.mark.parametrize("dpus", ["", "1", "3"])
def test_other_sizes_and_numbers_of_dpus_agree_with_numpy(folder: Path, dpus: str) -> None:
    said = printed("-c", USE, PYTHONPATH=str(folder / "python"), FOUNDRY_SCALED_DEVICE=dpus)
    assert "is too short for scaled: it has 10 elements" in said
    assert said.endswith("emulated DPUs, one for 11 programs\n" if not dpus else f"{dpus} emulated DPUs\n")
