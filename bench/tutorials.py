"""Run the tutorials as they time themselves: get_started.py over sizes, with its plot, and each other one with --bench.

A tutorial checks its results before it times anything. Its providers follow one another and need not have the same
number of threads, so no ratio is taken here; bench/opencl.py compares the same kernels with equal work.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

from .measurement import Measurement, Row, Suite
from .turns import Times

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_FIRST = _EXAMPLES / "get_started.py"
# A line of a tutorial's comparison: who, the median and the least time of a call, of how many calls, and the rate.
_LINE = re.compile(r"^(\S.*?) +([\d.]+) ms, least +([\d.]+) of (\d+) runs +([\d.]+) (\S.*)$", re.MULTILINE)


def first() -> list[Measurement]:
    """Run the first tutorial, which leaves its table and its plot in the folder for files."""
    folder = Path(os.environ.get("FOUNDRY_BENCH_FILES", "."))
    _run(_FIRST, folder)
    with (folder / "vector-add-performance.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    rows = [
        Row(f"{name.partition(' (')[0]}, {float(line['size']):.0f} elements", rate=float(rate))
        for line in table
        for name, rate in line.items()
        if name != "size"
    ]
    return [Measurement(f"tutorial {_FIRST.stem}: vector addition over sizes", rows, "GB/s")]


def timed(path: Path) -> list[Measurement]:
    """Run another tutorial with --bench."""
    return [Measurement(f"tutorial {path.stem}, as it times itself", *read(_run(path, Path.cwd(), "--bench")))]


def read(said: str) -> tuple[list[Row], str]:
    """Return the rows of a tutorial's comparison, and the unit of the rates.

    Raises:
        AssertionError: there are none, or one of them is there twice, or they have several units.
    """
    found = _LINE.findall(said)
    rows = [
        Row(" ".join(name.split()), Times(float(least) * 1e-3, float(median) * 1e-3, int(runs)), float(rate))
        for name, median, least, runs, rate, _ in found
    ]
    units = {unit.strip() for *_, unit in found}
    assert len(units) == 1 and len({row.label for row in rows}) == len(rows), f"no comparison to read in: {said}"
    return rows, units.pop()


def _run(path: Path, folder: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, path, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{path.name} ended with status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


SUITE = Suite(
    {_FIRST.stem: first} | {path.stem: partial(timed, path) for path in sorted((_EXAMPLES / "tutorials").glob("*.py"))}
)
