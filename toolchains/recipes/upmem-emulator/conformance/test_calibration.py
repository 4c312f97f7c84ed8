"""The emulator's cycle model against what was published of hardware, by microbenchmarks that run on it.

Nothing here reads the model's constants: programs in C run, and the cycles that they count themselves are compared with
published.toml. All cycles are modelled; on a real SDK the same programs measure hardware.
"""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from typing import Any

import pytest
from conformance_programs import FOLDER, build_device, build_host, programs

PUBLISHED: dict[str, Any] = tomllib.loads((FOLDER / "published.toml").read_text())
TASKLETS = 16


@dataclass(frozen=True)
class Run:
    """Cycles that a number of equal operations took."""

    cycles: int
    operations: int

    @property
    def each(self) -> float:
        """Cycles for one operation of the DPU, however many tasklets share the work."""
        return self.cycles / self.operations


# What was run, bytes of a transfer (0: no transfer), tasklets.
Runs = dict[tuple[str, int, int], Run]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("calibration")
    for program in programs("measured"):
        said = build_device(program, folder)
        assert said.returncode == 0, said.stdout
    said = build_host("calibrate", folder)
    assert said.returncode == 0, said.stdout
    done = subprocess.run([folder / "calibrate", folder], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        name, length, tasklets, cycles, operations = line.split()
        found[name, int(length), int(tasklets)] = Run(int(cycles), int(operations))
    return found


def _close(measured: float, published: float) -> None:
    assert measured == pytest.approx(published, rel=PUBLISHED["tolerance"])


@pytest.mark.parametrize("tasklets", [1, 2, 4, 8, 11, 16, 24])
@pytest.mark.parametrize("length", [8, 16, 32, 64, 128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_a_transfer_takes_alpha_plus_beta_times_its_bytes_also_if_tasklets_share_the_engine(
    runs: Runs, direction: str, length: int, tasklets: int
) -> None:
    line = PUBLISHED["dma"][direction]
    _close(runs[f"dma_{direction}", length, tasklets].each, line["alpha"] + line["beta"] * length)


@pytest.mark.parametrize(("length", "published"), PUBLISHED["bandwidth"]["read"].items())
def test_bandwidth_of_reads_is_as_published(runs: Runs, length: str, published: float) -> None:
    _close(int(length) * PUBLISHED["frequency_mhz"] / runs["dma_read", int(length), 1].each, published)


@pytest.mark.parametrize(("operation", "published"), PUBLISHED["mops"].items())
def test_arithmetic_is_as_fast_as_published(runs: Runs, operation: str, published: float) -> None:
    _close(PUBLISHED["frequency_mhz"] / runs[operation, 0, TASKLETS].each, published)


@pytest.mark.parametrize("tasklets", [1, 2, 4, 8, 11, 16, 24])
@pytest.mark.parametrize("operation", ["add_int32", "multiply_float"])
def test_throughput_rises_with_tasklets_until_the_pipeline_is_full(runs: Runs, operation: str, tasklets: int) -> None:
    full = PUBLISHED["saturation"]
    share = runs[operation, 0, TASKLETS].each / runs[operation, 0, tasklets].each
    _close(share, min(tasklets, full) / full)
