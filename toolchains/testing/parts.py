"""Run the parts of a check run, some of them in parallel, and tell in plain words what passed.

Each part is a suite. Its whole output goes to its log file; when it has ended, one line says how, and after a failure
the end of its output follows: on a terminal the lines that matter, and all of them in a log, as of CI.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from threading import Event, Lock, Thread

from rich.live import Live
from rich.text import Text

from toolchains.system import steps
from toolchains.system.children import end_children
from toolchains.system.errors import CheckError, FoundryError
from toolchains.testing.junit import Count
from toolchains.testing.record import Estimate, Passed, Record, RunInputs

# Called with each line that a part prints.
Line = Callable[[str], None]
# Where a log of pytest begins to say what failed.
_FAILURES = ("= FAILURES =", "= ERRORS =")
# The first and the last lines of what failed that a terminal shows.
_HEAD, _TAIL = 40, 20
# Seconds between two lines about what is running, if there is no terminal.
_EVERY = 120
_STYLES = {"passed": "green", "failed": "bold red"}


@dataclass(frozen=True)
class CheckPart:
    """A part of the run.

    Attributes:
        title: names it.
        run: runs the part and passes its output on line by line; raises a FoundryError if it fails.
        junit: the file with its results, if it consists of tests.
        beside: whether it may run in parallel with neighbours that may too. Then it works in child processes.
        about: what it checks, in plain words.
    """

    title: str
    run: Callable[[Line], None]
    junit: Path | None = None
    beside: bool = False
    about: str = ""

    @property
    def suite(self) -> str:
        """Return what its log and its entry in the record are called."""
        return self.junit.stem if self.junit else self.title.replace(" ", "-")

    def __str__(self) -> str:
        return f"{self.title}: {self.about}" if self.about else self.title


def run_parts(
    parts: Sequence[CheckPart],
    folder: Path,
    *,
    options: Sequence[str] = (),
    continued: bool = False,
    lanes: int = os.cpu_count() or 1,
) -> int:
    """Run all parts and print the summary over them as the last line.

    Args:
        folder: for the logs, and for the record of what passed. Files of an earlier run are removed, except those of
            parts that are not run again.
        options: the words of the command line by which these parts were chosen.
        continued: do not run parts that passed before on the same inputs; count their tests.
        lanes: how many run at the same time, among neighbours that may run in parallel.

    Returns:
        0, or CheckError's exit status if a part failed or executed no test, or if no test was executed at all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = _Run(parts, folder, options, continued, lanes)
    start = time.monotonic()
    try:
        with run.watched():
            for beside, group in groupby(parts, lambda part: part.beside and lanes > 1):
                if beside:
                    run.side_by_side(list(group))
                else:
                    for part in group:
                        run.work(part)
    except BaseException:
        # The reader of the output may be what ended.
        with suppress(OSError):
            run.say("", f"\nThis run was ended. {run.result()}")
        raise
    return run.finish(time.monotonic() - start)


class _Run:
    """What has passed and failed until now; see run_parts for the arguments."""

    def __init__(
        self, parts: Sequence[CheckPart], folder: Path, options: Sequence[str], continued: bool, lanes: int
    ) -> None:
        self._parts, self._folder, self._options, self._lanes = parts, folder, options, lanes
        # What is printed beside a step's name must go through the same console.
        self._terminal = sys.stdout.isatty() and steps.console.is_terminal and not os.environ.get("CI")
        self._inputs = RunInputs.read(options)
        last = Record.read(folder / "record.json")
        changed = last.inputs.differences(self._inputs) if last.inputs else ["there is no earlier run"]
        kept = last.passed if continued and not changed else {}
        if continued and changed:
            self.say("", f"Everything runs, also what passed before. Changed since: {', '.join(changed)}")
        self._record = Record(self._inputs, kept, last.seconds)
        self._estimate = Estimate(last.seconds)
        self._before = [part for part in parts if part.suite in kept]
        self._passed = {part.suite for part in self._before}
        # Of the parts that failed, why; of those that run, since when.
        self._failed: dict[str, str] = {}
        self._running: dict[str, float] = {}
        self._count = Count()
        self._stopping, self._lock = False, Lock()
        for file in folder.iterdir():
            if file.is_file() and file.stem not in self._passed:
                file.unlink()
        self._record.write(folder / "record.json")
        self._introduce()

    def _introduce(self) -> None:
        rest = [part.suite for part in self._parts if part.suite not in self._passed]
        source = "its last run here" if self._estimate.is_of_last_run(rest) else "times on two cores, not all measured"
        suites = "1 suite" if len(rest) == 1 else f"{len(rest)} suites"
        self.say("", f"{suites}, about {_words(self._left())} (an estimate from {source})")
        self.say("", f"The whole output of each goes to {self._folder}/*.log")
        for part in self._before:
            earlier = self._record.passed[part.suite]
            self._count.merge(earlier.count)
            self.say(
                "passed",
                f"before, {earlier.ended}, on the same files: {part} ({str(earlier.count) or 'it has no tests'})",
            )

    def say(self, state: str, text: str) -> None:
        """Print a text; if it is about a part, behind how that one ended."""
        word = state and f"{state:8}"
        if self._terminal:
            steps.console.print(Text.assemble((word, _STYLES.get(state, "")), text))
        else:
            print(word + text, flush=True)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Show what is running and the time left: below all lines of a terminal, otherwise in a line now and then."""
        if self._terminal:
            with Live(get_renderable=self._state, console=steps.console, transient=True, refresh_per_second=2):
                yield
            return
        ended = Event()

        def tell() -> None:
            while not ended.wait(_EVERY):
                self.say("", str(self._state()))

        Thread(target=tell, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _state(self) -> Text:
        # Without the lock: who has it may print, and so wait for the display that asks for this text.
        done = len(self._passed) + len(self._failed)
        text = f"{done} of {len(self._parts)} suites are done, about {_words(self._left())} left (an estimate)"
        names = [part.title for part in self._parts if part.suite in self._running]
        return Text(f"{text}; running: {', '.join(names) or 'none'}", no_wrap=True, overflow="ellipsis")

    def _left(self) -> float:
        """Return the expected seconds until all parts have ended."""
        now, left = time.monotonic(), 0.0
        for beside, group in groupby(self._parts, lambda part: part.beside):
            rest = [
                max(0.0, self._estimate.seconds(part.suite) - (now - self._running.get(part.suite, now)))
                for part in group
                if part.suite not in self._passed and part.suite not in self._failed
            ]
            left += max(sum(rest) / self._lanes, max(rest, default=0.0)) if beside else sum(rest)
        return left

    def side_by_side(self, parts: Sequence[CheckPart]) -> None:
        """Run parts in parallel."""
        with ThreadPoolExecutor(self._lanes) as pool:
            ended = [pool.submit(self.work, part) for part in parts]
            try:
                for each in ended:
                    each.result()
            except BaseException:
                # Stopped, or an error in this code: threads cannot be ended, but the children that they wait for can.
                self._stopping = True
                pool.shutdown(wait=False, cancel_futures=True)
                end_children()
                raise

    def work(self, part: CheckPart) -> None:
        """Run a part, unless it passed before; print and record how it ended."""
        if part.suite in self._passed:
            return
        start = time.monotonic()
        with self._lock:
            self._running[part.suite] = start
        if not self._terminal:
            self.say("begins", part.title)
        log = self._folder / f"{part.suite}.log"
        if part.junit:
            part.junit.unlink(missing_ok=True)
        error = ""
        with log.open("w", encoding="utf-8", errors="replace", buffering=1) as file:
            try:
                part.run(lambda text: print(text, file=file))
            except FoundryError as raised:
                error = raised.what
                print(raised, file=file)
        if self._stopping:
            # It was ended by this process, and has neither passed nor failed.
            return
        count, seconds = Count(), time.monotonic() - start
        if part.junit and not count.add(part.junit):
            error = "no test was executed"
        elif count.has_failures:
            error = str(count)
        # So the last line is no success either if a part without tests failed, or one that ended before its results.
        count.errors += bool(error and not count.has_failures)
        changed = self._inputs.differences(RunInputs.read(self._options)) if self._inputs.commit and not error else []
        with self._lock:
            del self._running[part.suite]
            self._count.merge(count)
            what = f"{part} ({f'{count}, ' if part.junit else ''}{_words(seconds)})"
            if error:
                self._failed[part.suite] = error
                text = log.read_text(encoding="utf-8")
                self.say("failed", f"{what}\n{_end_of(text) if self._terminal else text}\nThe whole output: {log}\n")
                return
            self._passed.add(part.suite)
            self._record.seconds[part.suite] = seconds
            if self._inputs.commit and not changed:
                self._record.passed[part.suite] = Passed(datetime.now().strftime("%Y-%m-%d %H:%M"), count)
            self._record.write(self._folder / "record.json")
            self.say("passed", what)
            if changed:
                self.say("", f"        --continue runs it again, because these changed meanwhile: {', '.join(changed)}")

    def result(self) -> str:
        """Return how many parts passed and which failed, and what to type if some have not passed."""
        before = f", {len(self._before)} of them before" if self._before else ""
        lines = [f"{len(self._passed)} of {len(self._parts)} suites passed{before}"]
        for part in self._parts:
            if error := self._failed.get(part.suite):
                lines.append(f"failed: {part.title}: {error}, see {self._folder / part.suite}.log")
        if len(self._passed) < len(self._parts):
            lines.append(f"next: {shlex.join(['./foundry', 'test', *self._options, '--continue'])}")
        return "\n".join(lines)

    def finish(self, seconds: float) -> int:
        """Print what passed and failed, with the summary as the last line; return the exit status."""
        print(f"\n{self.result()}\n{self._count.summary(seconds)}", flush=True)
        executed = self._count.passed + self._count.failed + self._count.errors
        return CheckError.exit_code if self._failed or not executed else 0


def _end_of(text: str) -> str:
    """Return the lines of an output that say what failed: pytest's part about it, or the last ones."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if any(mark in line for mark in _FAILURES)), 0)
    lines = lines[first or -_HEAD - _TAIL :]
    left_out = [f"... {len(lines) - _HEAD - _TAIL} lines are in the log ..."]
    return "\n".join(lines if len(lines) <= _HEAD + _TAIL else [*lines[:_HEAD], *left_out, *lines[-_TAIL:]])


def _words(seconds: float) -> str:
    """Return a duration in words, such as "40 s", "12 min" or "1 h 5 min"."""
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 100 else f"{minutes // 60} h " * (minutes >= 60) + f"{minutes % 60} min"
