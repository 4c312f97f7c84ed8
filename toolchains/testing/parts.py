"""Run the parts of a check run, some of them in parallel, and sum up the results of their tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Lock
from xml.etree import ElementTree

from toolchains.system import foreign
from toolchains.system.children import end_children
from toolchains.system.errors import CheckError, FileError, FoundryError

# What reading a JUnit file raises if the file is damaged; any test may have written to it.
DAMAGED = (ElementTree.ParseError, LookupError, ValueError)
# Called with each line that a part prints.
Line = Callable[[str], None]


@dataclass(frozen=True)
class CheckPart:
    """A part of the run.

    Attributes:
        title: for people.
        run: runs the part and passes its output on line by line; raises a FoundryError if it fails.
        junit: the file with its results, if it consists of tests.
        beside: whether it may run in parallel with neighbours that may too. Then it works in child processes, and its
            output is printed at once when it has ended.
    """

    title: str
    run: Callable[[Line], None]
    junit: Path | None = None
    beside: bool = False


@dataclass
class Count:
    """Numbers of tests by outcome."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    def add(self, junit: Path) -> int:
        """Add the results of a JUnit file; return how many tests were executed, 0 if the file is missing or damaged."""
        executed = 0
        try:
            with foreign.open_file(junit, foreign.TEXT) as text:
                suites = list(ElementTree.parse(text).getroot().iter("testsuite"))
            counts = [
                [int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")] for suite in suites
            ]
        except (OSError, FileError, *DAMAGED):
            # A run that was interrupted has no tests that can be counted.
            return 0
        for tests, failed, errors, skipped in counts:
            self.failed += failed
            self.errors += errors
            self.skipped += skipped
            self.passed += tests - failed - errors - skipped
            executed += tests - skipped
        return executed

    def summary(self, seconds: float) -> str:
        """Return a summary line in pytest's format."""
        words = [
            f"{count} {word}"
            for count, word in (
                (self.failed, "failed"),
                (self.passed, "passed"),
                (self.skipped, "skipped"),
                (self.errors, "errors"),
            )
            if count
        ]
        return f" {', '.join(words) or 'no tests ran'} in {seconds:.2f}s ".center(100, "=")


def run_parts(parts: Sequence[CheckPart], *, lanes: int = os.cpu_count() or 1) -> int:
    """Run all parts and print the summary over them as the last line.

    Args:
        lanes: how many run at the same time, among neighbours that may run in parallel.

    Returns:
        0, or CheckError's exit status if a part failed or executed no test.
    """
    start = time.monotonic()
    count = Count()
    failures: list[str] = []
    for part, failed in _run(parts, lanes):
        if failed:
            failures.append(part.title)
        if part.junit is not None:
            executed = count.add(part.junit)
            if executed == 0:
                count.errors += 1
                failures.append(f"{part.title}: no test was executed")
        elif failed:
            count.errors += 1
    for title in failures:
        print(f"\nfailed: {title}", end="")
    print("\n" + count.summary(time.monotonic() - start), flush=True)
    return CheckError.exit_code if failures else 0


def _run(parts: Sequence[CheckPart], lanes: int) -> Iterator[tuple[CheckPart, bool]]:
    """Yield each part in order when it has ended, and whether it failed."""
    for beside, group in groupby(parts, lambda part: part.beside and lanes > 1):
        if beside:
            yield from _side_by_side(list(group), lanes)
        else:
            for part in group:
                print(f"\n== {part.title}", flush=True)
                yield part, _failed(part, lambda text: print(text, flush=True))


def _side_by_side(parts: Sequence[CheckPart], lanes: int) -> Iterator[tuple[CheckPart, bool]]:
    printing = Lock()

    def work(part: CheckPart) -> bool:
        lines: list[str] = []
        with printing:
            print(f"\n-- begins: {part.title}", flush=True)
        start = time.monotonic()
        failed = _failed(part, lines.append)
        with printing:
            print(f"\n== {part.title}, {time.monotonic() - start:.0f} s", *lines, sep="\n", flush=True)
        return failed

    with ThreadPoolExecutor(lanes) as pool:
        ended = [(part, pool.submit(work, part)) for part in parts]
        try:
            for part, failed in ended:
                yield part, failed.result()
        except BaseException:
            # Stopped, or an error in this code: threads cannot be ended, but the children that they wait for can.
            pool.shutdown(wait=False, cancel_futures=True)
            end_children()
            raise


def _failed(part: CheckPart, line: Line) -> bool:
    try:
        part.run(line)
    except FoundryError as error:
        line(str(error))
        return True
    return False
