"""Shows how far a build from source is, from the lines that Conan, CMake and Ninja print, and keeps what went wrong.

The percentage is Ninja's own: it weighs each step by what it took in an earlier build of the same folder, as far as
.ninja_log knows, and by the average step otherwise. Ninja counts only what is left, so a build that goes on after a
kill would start at 0 again. Hence the recipe prints how many steps the whole build has, as counted by
`ninja -t commands TARGETS`, in a line `steps in all: N`; what was done before counts by its share of these steps.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

# What NINJA_STATUS must be: steps done and in all, percentage predicted, time that passed, time left. Since Ninja 1.12.
STATUS = "[%f/%t %P %w %W] "
# The line in which a recipe says how many steps a build has, done ones included.
WHOLE = "steps in all: "

_STATUS = re.compile(r"\[(\d+)/(\d+) +(\d+)% (\S+) (\S+)\] (.*)")
_WHOLE = re.compile(re.escape(WHOLE) + r"(\d+)$")
_FAILED = re.compile(r"FAILED: (?:\[code=(\d+)\] )?(.*?) *$")
# What CMake's generator has Ninja do before it reads build.ninja again: no step of the build.
_AGAIN = "Re-running CMake"
# What Conan says it does now.
_PHASES = (
    (re.compile(r"RUN: cmake --build|Running CMake\.build\(\)"), "build"),
    (re.compile(r"RUN: cmake --install|Running CMake\.install\(\)"), "install"),
    (re.compile(r"RUN: cmake |Running CMake\.configure\(\)"), "configure"),
    (re.compile(r"Calling package\(\)"), "package"),
)
_KEPT = 400
# A compiler that crashes prints its whole stack: of a message these first and last lines are shown.
_HEAD, _TAIL = 24, 12
# Several steps run at a time, and most often they fail of the same.
_SHOWN = 3
# Without a terminal, a line at most this often (seconds).
_EVERY = 30.0


@dataclass
class StepFailure:
    """A step that failed: its output, exit status (None before Ninja 1.13), command, and what the command printed."""

    output: str
    status: int | None
    command: str = ""
    message: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"FAILED: {self.output}", *_cut(self.message)])


class Watcher:
    """Takes the lines of a build as they come; used in a with statement.

    Args:
        console: a bar that moves where it is a terminal, else a line from time to time.
        log: file that gets every line; its folder is made, what was in it is replaced.
        name: what is built.
    """

    def __init__(self, console: Console, log: Path, name: str = "") -> None:
        self.failures: list[StepFailure] = []
        self.phase = "start"
        # Of the whole build, 0 to 100; it never falls within a phase.
        self.percent = 0.0
        self.steps = (0, 0)
        # Ninja's, "[h:]mm:ss"; empty while unknown.
        self.left = ""
        self._console = console
        self._path = log
        self._name = name
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._cmake_errors: list[str] = []
        self._in_cmake_error = False
        self._open_failure: StepFailure | None = None
        # Said of the run of Ninja that is to come.
        self._whole = 0
        self._run = _Run()
        self._start = self._said = time.monotonic()
        self._bar = _bar(console) if console.is_terminal else None

    def __enter__(self) -> Watcher:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._log = self._path.open("w")
        if self._bar:
            self._task = self._bar.add_task(self._name, total=None, left="", detail="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()
        self._log.close()

    def line(self, text: str) -> None:
        """Take one line of the build's output, without its newline."""
        self._log.write(text + "\n")
        # Whoever follows the file, or reads it after a kill, finds all of it.
        self._log.flush()
        self._lines.append(text)
        status = _STATUS.match(text)
        if whole := _WHOLE.search(text):
            self._whole = int(whole[1])
            self._run = _Run(self._whole)
        elif status:
            self._step(status)
        elif not self._phase_changed(text):
            self._error(text)
        self._show(status[6] if status else text)

    def last(self, n: int) -> list[str]:
        """The last lines, at most 400."""
        return list(self._lines)[-n:]

    @property
    def failed_steps(self) -> list[str]:
        """What each step that failed printed, below its name; long messages are cut in the middle."""
        return [str(failure) for failure in self.failures]

    def why(self) -> str:
        """What went wrong, as far as it was said: by the steps that failed, else by CMake, else in the last lines."""
        if self.failures:
            return "\n".join(self.failed_steps[:_SHOWN])
        return "\n".join(_cut(self._cmake_errors) if self._cmake_errors else self.last(_HEAD))

    def _step(self, status: re.Match[str]) -> None:
        self._open_failure = None
        self._in_cmake_error = False
        done, total, predicted = int(status[1]), int(status[2]), int(status[3])
        if status[6].startswith(_AGAIN):
            return
        if done < self._run.done:
            # Ninja has started once more, for other targets.
            self._run = _Run()
            self.percent = 0.0
        if self.phase != "install":
            self.phase = "build"
        self._run.at(done, total)
        self._whole = 0
        self.steps = self._run.steps()
        self.percent = max(self.percent, self._run.percent(predicted))
        self.left = "" if "?" in status[5] else status[5]

    def _phase_changed(self, text: str) -> bool:
        for pattern, phase in _PHASES:
            if pattern.search(text):
                self.phase, self.percent, self.left, self._run = phase, 0.0, "", _Run(self._whole)
                self._say()
                return True
        return False

    def _error(self, text: str) -> None:
        failed = _FAILED.match(text)
        if failed:
            self._open_failure = StepFailure(failed[2], int(failed[1]) if failed[1] else None)
            self.failures.append(self._open_failure)
        elif text.startswith("ninja: "):
            self._open_failure = None
        elif self._open_failure and not self._open_failure.command:
            self._open_failure.command = text
        elif self._open_failure:
            self._open_failure.message.append(text)
        elif text.startswith("CMake Error"):
            self._in_cmake_error = True
            self._cmake_errors.append(text)
        elif self._in_cmake_error and (not text or text.startswith((" ", "Call Stack"))):
            self._cmake_errors.append(text)
        else:
            self._in_cmake_error = False

    def _show(self, current: str) -> None:
        if self._bar:
            known = self.phase == "build" and self.steps[1] > 0
            self._bar.update(
                self._task,
                total=100 if known else None,
                completed=self.percent,
                description=self._far(),
                left=f"about {self.left} left" if self.left else "",
                detail=current.rsplit("/", 1)[-1],
            )
        elif time.monotonic() - self._said >= _EVERY:
            self._say()

    def _say(self) -> None:
        if not self._bar:
            passed = int(time.monotonic() - self._start)
            left = f", about {self.left} left" if self.left else ""
            text = f"  {self._far()}, {passed // 60:02}:{passed % 60:02} passed{left}"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
            self._said = time.monotonic()

    def _far(self) -> str:
        """As "upmem-llvm: build 43 %, 940 of 2184 steps"."""
        text = f"{self._name}: {self.phase}".removeprefix(": ")
        if self.phase == "build" and self.steps[1]:
            text += f" {int(self.percent)} %, {self.steps[0]} of {self.steps[1]} steps"
        return text


class _Run:
    """One run of Ninja: what of the whole it found to do, and how much of that is done."""

    def __init__(self, whole: int = 0) -> None:
        self._whole = whole
        self.done = 0
        self._total = 0
        self._before = 0

    def at(self, done: int, total: int) -> None:
        if not self._total:
            # What it does not want to do was done before.
            self._before = max(0, self._whole - total)
        self.done, self._total = done, total

    def steps(self) -> tuple[int, int]:
        # Ninja takes steps out of its plan when what they depend on turns out not to have changed.
        return (self._before + self.done, self._before + self._total)

    def percent(self, predicted: int) -> float:
        before = self._before / (self._before + self._total)
        return 100 * before + (1 - before) * predicted


def _cut(lines: Sequence[str]) -> list[str]:
    if len(lines) <= _HEAD + _TAIL:
        return list(lines)
    left_out = len(lines) - _HEAD - _TAIL
    return [*lines[:_HEAD], f"... {left_out} lines are left out ...", *lines[-_TAIL:]]


def _bar(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
        # Goes on while a step takes minutes and nothing is printed.
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn(
            "{task.fields[detail]}",
            style="dim",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        console=console,
        expand=True,
        transient=True,
        refresh_per_second=4,
    )
