"""What the profile counts of a kernel, and that it names a bound and the lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """import sys
import numpy as np, triton, triton.language as tl
from foundry_core.tensor import Tensor

@triton.jit
def kernel(x, y, out, n, rounds, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    for _ in range(rounds):
        v = v * 0.5 + 1.0
    tl.store(out + i, tl.exp(v), mask=i < n)

@triton.jit
def product(a, b, c, K: tl.constexpr):
    i, k = tl.arange(0, 16), tl.arange(0, K)
    left = tl.load(a + i[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * 16 + i[None, :])
    tl.store(c + i[:, None] * 16 + i[None, :], tl.dot(left, right))

def scaled_by(factor):
    @triton.jit
    def scaled(x, out, FACTOR: tl.constexpr):
        i = tl.arange(0, 256)
        if FACTOR == 2:
            tl.store(out + i, tl.load(x + i) * 2)
        else:
            tl.store(out + i, tl.load(x + i) * 3)
    for _ in range(2):
        scaled[(1,)](Tensor(np.ones(256, np.float32)), Tensor(np.ones(256, np.float32)), FACTOR=factor)

scaled_by(2)
scaled_by(3)
x, y, out = (np.ones(3000, np.float32) for _ in range(3))
for _ in range(2):
    kernel[(3,)](Tensor(x), Tensor(y), Tensor(out), 2500, 7, B=1024)
a, b, c = (np.ones(size, np.float32) for size in (16 * 32, 32 * 16, 16 * 16))
product[(1,)](Tensor(a), Tensor(b), Tensor(c), K=32)
sys.exit(len(sys.argv))
"""


@pytest.mark.any_release
def test_the_profile_counts_bytes_operations_and_functions(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "foundry_core.profile", "--json=figures.json", "script.py", "--more"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    written = json.loads((tmp_path / "figures.json").read_text())
    found = {each["kernel"]: each for each in written["kernels"]}
    assert written["script"] == "script.py" and written["ran"]["device"]
    kernel, product = found["kernel"], found["product"]
    # 2500 elements are read and written. Each of 3 x 1024 elements has 7 products and sums, and one exp.
    assert (kernel["launches"], kernel["bytes"], kernel["exact"]) == (2, 2 * 2500 * 4, True)
    assert (kernel["operations"], kernel["functions"]) == (3 * 1024 * 7 * 2, 3 * 1024)
    # tl.dot adds to a block of zeros.
    assert (product["bytes"], product["operations"]) == ((16 * 32 * 2 + 16 * 16) * 4, 2 * 16 * 16 * 32)
    for each in (kernel, product):
        assert each["share"] > 0
        if "modelled" in each:
            assert each["bound"] in ("dma", "pipeline") and each["share"] <= 1
            assert done.stdout.count("(modelled)") >= 3
            assert ("script.py:10" in done.stdout) == bool(each["modelled"]["lines"])
        else:
            memory, arithmetic = (
                each["bytes"] / each["memory_roof"],
                each["operations"] / each["arithmetic_roofs"]["32"],
            )
            nearest = max(memory, arithmetic)
            if nearest < 2 * each["launch"]:
                expected = "launch", each["launch"]
            else:
                expected = "memory" if nearest == memory else "arithmetic", nearest
            assert (each["bound"], each["share"]) == (expected[0], pytest.approx(expected[1] / each["seconds"]))
    scaled = [part for part in done.stdout.split("\n\n") if part.startswith("scaled")]
    assert len(scaled) == 2
    if written["ran"]["kind"] == "CPU OpenCL device":
        assert sorted(tuple(factor for factor in (2, 3) if f"* {factor})" in part) for part in scaled) == [(2,), (3,)]
    if "_pocl" in done.stdout:
        assert "script.py:10" in done.stdout and "v = v * 0.5 + 1.0" in done.stdout
