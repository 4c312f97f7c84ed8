"""What the profile counts of a kernel, and that it names a bound and the lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from foundry_core.footprint.work import Work
from foundry_core.profile.recording import LaunchRecord
from foundry_core.runtime.device_report import DeviceReport, Kind

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

configs = [triton.Config({"B": block}, num_warps=warps) for block, warps in ((64, 4), (128, 4), (128, 8))]

@triton.autotune(configs, key=["n"])
@triton.jit
def tuned(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

tuned[lambda meta: (triton.cdiv(300, meta["B"]),)](Tensor(np.ones(300, np.float32)), 300)
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
        if "modelled" in each:
            assert each["bound"] in ("dma", "pipeline") and 0 < each["share"] <= 1
            assert done.stdout.count("(modelled)") >= 3
            assert ("script.py:10" in done.stdout) == bool(each["modelled"]["lines"])
        else:
            memory, arithmetic = (
                each["bytes"] / each["memory_roof"],
                each["operations"] / each["arithmetic_roofs"]["f32"],
            )
            nearest = max(memory, arithmetic)
            if nearest < 2 * each["launch"]:
                expected = "launch", each["launch"]
            else:
                expected = "memory" if nearest == memory else "arithmetic", nearest
            share = expected[1] / each["seconds"]
            assert (each["bound"], each["share"]) == (expected[0], pytest.approx(share) if share <= 1 else None)
    scaled = [part for part in done.stdout.split("\n\n") if part.startswith("scaled")]
    assert {part.partition(":")[0] for part in scaled} == {
        f"scaled, FACTOR={factor}, grid 1 x 1 x 1" for factor in (2, 3)
    }
    assert all(found[name]["configuration"] == "" for name in ("kernel", "product"))
    tuned = {part.partition(", grid")[0] for part in done.stdout.split("\n\n") if part.startswith("tuned")}
    assert tuned == {f"tuned, B={block}, num_warps={warps}" for block, warps in ((64, 4), (128, 4), (128, 8))}
    if written["ran"]["kind"] == "CPU OpenCL device":
        assert sorted(tuple(factor for factor in (2, 3) if f"* {factor})" in part) for part in scaled) == [(2,), (3,)]
    if "_pocl" in done.stdout:
        assert "script.py:10" in done.stdout and "v = v * 0.5 + 1.0" in done.stdout


class Driver:
    """A driver of Triton, as far as a profile asks it."""

    def device_report(self) -> DeviceReport:
        return DeviceReport(Kind.HARDWARE, "a device", "a driver", "memory")


class Known:
    """Roofs of a device that does nothing else in f64, or multiplies matrices of f16."""

    launch = 1e-6

    def memory(self, bytes: int) -> float:
        return 1e9

    def arithmetic(self, kind: str) -> float | None:
        return {"f32": 1e9, "f16 matrices": 1e12}.get(kind)


@pytest.mark.anywhere
def test_each_kind_of_arithmetic_has_its_roof_and_no_share_is_above_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from foundry_core.profile import report, roofs

    monkeypatch.setattr(roofs, "device_roofs", lambda *_: Known())
    module = [b""]

    class Spv:
        def read_bytes(self) -> bytes:
            return module[0]

    monkeypatch.setattr(report, "_stage", lambda launched, name: Spv())

    def shown(seconds: float, operations: dict[str, float], products: dict[str, float]) -> tuple[dict[str, Any], str]:
        work = Work(operations, products, 0.0, 1000)
        monkeypatch.setattr(report, "_work", lambda launched: work)
        launched = LaunchRecord("k", "0", (1, 1, 1), [], {}, Driver(), set(), True, [seconds])
        figures = report.examine(launched)
        return figures, report.format_report(figures)

    # Without matrices, products are multiply-adds: half of their roof. Products of integers have none.
    figures, text = shown(2.0, {"f32": 0.5e9}, {"f16": 0.5e9, "i8": 1e9})
    assert (figures["operations"], figures["bound"], figures["share"]) == (1e9, "arithmetic", 0.5)
    assert "bound by arithmetic: 50% of its roof" in text
    module[0] = b"SPV_KHR_cooperative_matrix"
    figures, text = shown(2.0, {}, {"f16": 1e12})
    assert (figures["share"], figures["arithmetic_roofs"]) == (0.5, {"f16 matrices": 1e12})
    # A roof that was not measured is no part of a share, and is named.
    figures, text = shown(2.0, {"f64": 1e9, "f32": 1e8}, {"bf16": 1e9})
    assert (figures["share"], figures["unmeasured"]) == (0.05, ["f64", "bf16 matrices"])
    assert "bound by arithmetic in f64, arithmetic in bf16 matrices" in text
    # What is faster than a roof has no share of it.
    figures, text = shown(0.5, {"f32": 1e9}, {})
    assert (figures["bound"], figures["share"]) == ("arithmetic", None)
    assert "%" not in text and "faster than the roof that was measured" in text
