"""Measure what the check of data races costs in processor time, in programs of the forms of PrIM's.

    python race_check_cost.py        prints the table of ../README.md

Each program runs in turns with the check, with DPU_EMULATOR_RACES=ignore, and compiled without the check. The time is
that of all processes of the host program, less that of a run without a launch; of several turns, the least counts.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

from conformance_programs import FOLDER, build_host

# The forms of forms/device.c, and how many numbers their array has.
FORMS = dict.fromkeys(("VA", "RED", "SCAN", "HST_S", "HST_L", "GEMV", "BS", "SEL"), 1 << 22) | {
    "HST_L": 1 << 19,
    "BS": 1 << 18,
}
TURNS, LAUNCHES = 5, 4
CHECKED, IGNORED, WITHOUT = "with the check", "DPU_EMULATOR_RACES=ignore", "compiled without it"
PR_SET_CHILD_SUBREAPER = 36


def processor_seconds(command: list[str], races: str) -> float:
    """Run a command. Return the processor time of all its processes; those that outlive it become this one's."""
    process = subprocess.Popen(command, env=os.environ | {"DPU_EMULATOR_RACES": races})
    total = 0.0
    while True:
        try:
            child, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return total
        assert child != process.pid or status == 0, command
        total += usage.ru_utime + usage.ru_stime


def measured(folder: Path, form: str, tasklets: int) -> dict[str, float]:
    """Return the seconds of a form's launches in each way."""
    ways = {CHECKED: ("fault", []), IGNORED: ("ignore", []), WITHOUT: ("ignore", ["-foundry-no-race-check"])}
    compiler = ["dpu-upmem-dpurte-clang", "-O2", f"-DNR_TASKLETS={tasklets}", f"-DFORM={form}"]
    for way, (_, flags) in ways.items():
        source, program = str(FOLDER / "forms/device.c"), str(folder / way)
        subprocess.run([*compiler, *flags, source, "-o", program], check=True)
    least: dict[tuple[str, int], float] = {}
    for _ in range(TURNS):
        for way, (races, _) in ways.items():
            for launches in (LAUNCHES, 0):
                command = [str(folder / "forms/host"), str(folder / way), str(FORMS[form]), str(launches)]
                seconds = processor_seconds(command, races)
                least[way, launches] = min(seconds, least.get((way, launches), seconds))
    return {way: least[way, LAUNCHES] - least[way, 0] for way in ways}


def main() -> None:
    """Print the cost of each form as Markdown, with 16 tasklets and with one."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "forms").mkdir()
        process = build_host("forms/host", folder)
        assert process.returncode == 0, process.stdout
        print(f"| processor time | tasklets | {CHECKED} | {IGNORED} | {WITHOUT} |\n|---|--:|--:|--:|--:|")
        for form, tasklets in [*((form, 16) for form in FORMS), ("VA", 1), ("SCAN", 1), ("HST_S", 1)]:
            seconds = measured(folder, form, tasklets)
            ratios = (f"{seconds[way] / seconds[WITHOUT]:.2f}" for way in (CHECKED, IGNORED))
            print(f"| {form} | {tasklets} | {' | '.join(ratios)} | {1000 * seconds[WITHOUT]:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
