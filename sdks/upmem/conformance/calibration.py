"""The emulator's cycle model next to what was published of hardware: microbenchmarks that run on it, and a table.

    python calibration.py        prints the table of ../README.md

Nothing here reads the model's constants: programs in C run, and the cycles that they count themselves are compared with
published.toml. All cycles are modelled; on a real SDK the same programs measure hardware.
"""

from __future__ import annotations

import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance_programs import FOLDER, build_device, build_host, programs

PUBLISHED: dict[str, Any] = tomllib.loads((FOLDER / "published.toml").read_text())
MEGAHERTZ: int = PUBLISHED["frequency_mhz"]
# For what is published without the number of tasklets.
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


def measured(folder: Path) -> Runs:
    """Build the microbenchmarks in a folder with the SDK on PATH, and run them."""
    for program in programs("measured"):
        process = build_device(program, folder)
        assert process.returncode == 0, process.stdout
    process = build_host("calibrate", folder)
    assert process.returncode == 0, process.stdout
    done = subprocess.run([folder / "calibrate", folder], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    runs = {}
    for line in done.stdout.splitlines():
        name, length, tasklets, cycles, operations = line.split()
        runs[name, int(length), int(tasklets)] = Run(int(cycles), int(operations))
    return runs


def transfer(direction: str, length: int, tasklets: int) -> float:
    """Return the published cycles of a transfer of a DPU whose tasklets all transfer."""
    line, engine = PUBLISHED["dma"][direction], PUBLISHED["dma"]["engine"]
    waits = line["alpha"] + line["beta"] * length
    return float(max(waits / tasklets, min(waits, engine["start"] + engine["byte"] * length)))


def compared(runs: Runs) -> Iterator[tuple[str, str, float, float]]:
    """Yield of each published point what it is, its unit, and its published and modelled number."""
    for name, direction, tasklets, share in (("read", "dma_read", 1, 1), ("update", "dma_update", TASKLETS, 2)):
        for length, number in PUBLISHED["bandwidth"][name].items():
            run = runs[direction, int(length), tasklets]
            many = "1 tasklet" if tasklets == 1 else f"{tasklets} tasklets"
            what = f"MRAM {'read' if share == 1 else 'read and written'}, {length} bytes a transfer, {many}"
            yield what, "MB/s", number, share * int(length) * MEGAHERTZ / run.each
    for operation, number in PUBLISHED["mops"].items():
        what = f"{operation.replace('_', ' ')}, {TASKLETS} tasklets"
        yield what, "Mop/s", number, MEGAHERTZ / runs[operation, 0, TASKLETS].each


def main() -> None:
    """Print the published points with the modelled ones, and the curve of transfers, as Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        runs = measured(Path(folder))
    print("| | published | modelled | |\n|---|--:|--:|--:|")
    for what, unit, number, modelled in compared(runs):
        print(f"| {what} | {number:g} {unit} | {modelled:.4g} {unit} | {modelled / number - 1:+.1%} |")
    counts = (1, 2, 4, 8, 16)
    print(
        "\n| MB/s, modelled: reads of | "
        + "1 tasklet | "
        + " | ".join(f"{count} tasklets" for count in counts[1:])
        + " |"
    )
    print("|---|" + "--:|" * len(counts))
    for length in (8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        rates = (length * MEGAHERTZ / runs["dma_read", length, count].each for count in counts)
        print(f"| {length} bytes | " + " | ".join(f"{rate:.1f}" for rate in rates) + " |")


if __name__ == "__main__":
    main()
