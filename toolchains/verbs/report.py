"""The verb report: write the page about build/results."""

from __future__ import annotations

from pathlib import Path

from toolchains.lockfile import lock
from toolchains.report import page
from toolchains.report.results import collect
from toolchains.repro import expected
from toolchains.system import durable, paths
from toolchains.system.errors import FoundryError, UsageError


def report(*, output: str, results: str, compare: str) -> None:
    """Write the page; see the verb's help.

    The page that is already there is the last report: what changed, and the history, count from it.

    Raises:
        UsageError: there is no folder of results, or a file is no report.
        FileError: a file is damaged.
    """
    folder = Path(results) if results else paths.RESULTS
    if results and not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", next="name one with results, or leave --results out")
    place = Path(output) if output else paths.RESULTS / "report.html"
    durable.require_writable(place.parent, f"--output={output}" if output else str(place))
    other = page.read(Path(compare)) if compare else None
    locked = expected.due(lock.everything())
    last = None
    if place.exists():
        try:
            last = page.read(place)
        except FoundryError as error:
            print(f"this report begins a new history: {error}")
    collected = collect(folder, locked, last)
    durable.write(place, page.render(collected, locked, other))
    print(f"{len(collected.runs)} runs and {len(collected.measurements)} measurements are in {place}")
