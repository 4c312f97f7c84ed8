"""Read a build's times from .ninja_log, Ninja's own record: the slowest steps, and how many ran at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from toolchains.system.errors import FoundryError

# Ninja's formats since version 5 have the same columns: start, end (milliseconds of that run), mtime, output, hash.
_HEADER = "# ninja log v"
_COLUMNS = 5
_KINDS = {".o": "compile", ".obj": "compile", ".a": "archive", ".inc": "generate", ".h": "generate", ".def": "generate"}


@dataclass(frozen=True)
class Step:
    """A step of a build.

    Attributes:
        output: the first file that it writes.
        seconds: its duration.
        start: seconds from the build's start to the step's start, without the time between two runs of Ninja.
    """

    output: str
    seconds: float
    start: float

    @property
    def kind(self) -> str:
        """Return what the step does, by its output's name: compile, archive, generate, or link."""
        return next((kind for end, kind in _KINDS.items() if self.output.endswith(end)), "link or other")


def read(ninja_log: str) -> list[Step]:
    """Return the steps of a build, slowest first, from the text of its .ninja_log.

    A step that ran more than once, because an input changed, counts with its last time. A build that was ended and
    continued has several runs; each one lasts until the end of its last finished step.

    Raises:
        FoundryError: it is not a log of Ninja's.
    """
    first, *lines = ninja_log.splitlines() or [""]
    if not first.startswith(_HEADER):
        raise FoundryError("a .ninja_log cannot be read", why=f"it starts with {first[:40]!r}, not with {_HEADER!r}")
    steps: dict[str, Step] = {}
    outputs: dict[tuple[str, str, str], str] = {}
    earlier = ended = 0
    for line in lines:
        columns = line.split("\t")
        # The line is incomplete because Ninja was killed while it wrote it.
        if len(columns) != _COLUMNS:
            continue
        start, end, _, output, command = columns
        # Each run starts its times at 0 again, and within a run the lines are ordered by the end of the steps.
        if int(end) < ended:
            earlier += ended
        ended = int(end)
        # A step with several outputs has a line for each of them.
        output = outputs.setdefault((start, end, command), output)
        steps[output] = Step(output, (int(end) - int(start)) / 1000, (earlier + int(start)) / 1000)
    return sorted(steps.values(), key=lambda step: -step.seconds)


def elapsed(steps: Sequence[Step]) -> float:
    """Return the seconds from the first start of Ninja to the end of the last step, without pauses between runs."""
    return max((step.start + step.seconds for step in steps), default=0.0)


def seconds_by_kind(steps: Sequence[Step]) -> dict[str, float]:
    """Return the sum of seconds by kind of step, largest first."""
    sums: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        sums[step.kind] += step.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def table(steps: Sequence[Step], n: int = 10) -> Table:
    """Return a table of the n slowest steps, the sum for each kind, and the average number of parallel steps."""
    overview = Table("seconds", "share", "step", box=None, header_style="bold")
    work = sum(step.seconds for step in steps)
    passed = elapsed(steps)
    rows = [(step.output, step.seconds) for step in sorted(steps, key=lambda step: -step.seconds)[:n]]
    rows += [(f"all of: {kind}", seconds) for kind, seconds in seconds_by_kind(steps).items()]
    for what, seconds in rows:
        overview.add_row(f"{seconds:.1f}", f"{seconds / work:.1%}" if work else "", what)
    at_once = f": {work / passed:.2f} at once" if passed else ""
    overview.add_row(f"{work:.1f}", "", f"all {len(steps)} steps, in {passed:.1f} s{at_once}")
    return overview
