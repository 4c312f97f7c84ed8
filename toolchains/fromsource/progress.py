"""Show the progress of a build from source, read from the output of Conan, CMake and Ninja, and keep its errors.

The percentage is Ninja's own: it weighs each step by its time in an earlier build of the same folder, if .ninja_log has
it, and by the average step otherwise. Ninja counts only the remaining steps, so a build that continues after a kill
would start at 0 again. So the recipe prints the number of steps of the whole build, as counted by
`ninja -t commands TARGETS`, in a line `steps in all: N`; earlier steps count by their share of that number.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from toolchains.system.console import Console

# The required NINJA_STATUS: steps done and in all, predicted percentage, elapsed time, remaining time. Since Ninja
# 1.12.
STATUS = "[%f/%t %P %w %W] "
# The start of the line in which a recipe prints the number of steps of a build, including finished ones.
WHOLE = "steps in all: "

_STATUS = re.compile(r"\[(\d+)/(\d+) +(\d+)% (\S+) (\S+)\] (.*)")
_WHOLE = re.compile(re.escape(WHOLE) + r"(\d+)$")
_FAILED = re.compile(r"FAILED: (?:\[code=(\d+)\] )?(.*?) *$")
# A command of CMake's generator that Ninja runs before it reads build.ninja again: not a step of the build.
_AGAIN = "Re-running CMake"
# The lines in which Conan names its current phase.
_PHASES = (
    (re.compile(r"RUN: cmake --build|Running CMake\.build\(\)"), "build"),
    (re.compile(r"RUN: cmake --install|Running CMake\.install\(\)"), "install"),
    (re.compile(r"RUN: cmake |Running CMake\.configure\(\)"), "configure"),
    (re.compile(r"Calling package\(\)"), "package"),
)
_KEPT = 400
# A compiler that crashes prints its whole stack. These first and last lines of a message are shown.
_HEAD, _TAIL = 24, 12
# Several steps run at a time, and usually fail for the same reason.
_SHOWN = 3
# The minimum interval between lines, in seconds, if there is no terminal.
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
    """Reads the lines of a build as they are printed; used in a with statement.

    Args:
        console: shows a moving bar on a terminal, otherwise a line from time to time.
        log: file that gets every line; its folder is created, and an existing file is replaced.
        name: the name of what is built.
    """

    def __init__(self, console: Console, log: Path, name: str = "") -> None:
        self.failures: list[StepFailure] = []
        self.phase = "start"
        # The percentage of the whole build, 0 to 100; it never decreases within a phase.
        self.percent = 0.0
        self.steps = (0, 0)
        # Ninja's prediction of the remaining time, "[h:]mm:ss"; empty if unknown.
        self.left = ""
        self._console = console
        self._path = log
        self._name = name
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._cmake_errors: list[str] = []
        self._in_cmake_error = False
        self._open_failure: StepFailure | None = None
        # The number of steps that the recipe printed for the next run of Ninja.
        self._whole = 0
        # Of the current run: the finished steps, all steps of Ninja's plan, and those that were finished before.
        self._done = self._total = self._before = 0
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
        """Read one line of the build's output, without its newline."""
        self._log.write(text + "\n")
        # Flush, so that the file is complete for somebody who follows it or reads it after a kill.
        self._log.flush()
        self._lines.append(text)
        status = _STATUS.match(text)
        if whole := _WHOLE.search(text):
            self._whole = int(whole[1])
            self._done = self._total = 0
        elif status:
            self._step(status)
        elif phase := next((phase for pattern, phase in _PHASES if pattern.search(text)), ""):
            self.phase, self.percent, self.left = phase, 0.0, ""
            self._done = self._total = 0
            self._say()
        else:
            self._error(text)
        if self._bar:
            known = self.phase == "build" and self.steps[1] > 0
            self._bar.update(
                self._task,
                total=100 if known else None,
                completed=self.percent,
                description=self._state(),
                left=f"about {self.left} left" if self.left else "",
                detail=(status[6] if status else text).rsplit("/", 1)[-1],
            )
        elif time.monotonic() - self._said >= _EVERY:
            self._say()

    def last(self, n: int) -> list[str]:
        """Return the last lines, at most 400."""
        return list(self._lines)[-n:]

    @property
    def failed_steps(self) -> list[str]:
        """Return what each failed step printed, below its name; long messages are cut in the middle."""
        return [str(failure) for failure in self.failures]

    def why(self) -> str:
        """Return the reason of a failure: from the failed steps, otherwise from CMake, otherwise the last lines."""
        if self.failures:
            return "\n".join(self.failed_steps[:_SHOWN])
        return "\n".join(_cut(self._cmake_errors) if self._cmake_errors else self.last(_HEAD))

    def _step(self, status: re.Match[str]) -> None:
        self._open_failure = None
        self._in_cmake_error = False
        done, total, predicted = int(status[1]), int(status[2]), int(status[3])
        if status[6].startswith(_AGAIN):
            return
        if done < self._done:
            # Ninja was started again, for other targets.
            self._total = 0
            self.percent = 0.0
        if self.phase != "install":
            self.phase = "build"
        if not self._total:
            # Steps that are not in Ninja's plan were done before.
            self._before = max(0, self._whole - total)
            self._whole = 0
        # Ninja removes steps from its plan if their inputs turn out to be unchanged.
        self._done, self._total = done, total
        self.steps = self._before + done, self._before + total
        before = self._before / self.steps[1]
        self.percent = max(self.percent, 100 * before + (1 - before) * predicted)
        self.left = "" if "?" in status[5] else status[5]

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

    def _say(self) -> None:
        if not self._bar:
            passed = int(time.monotonic() - self._start)
            left = f", about {self.left} left" if self.left else ""
            text = f"  {self._state()}, {passed // 60:02}:{passed % 60:02} passed{left}"
            self._console.print(text, highlight=False, soft_wrap=True)
            self._said = time.monotonic()

    def _state(self) -> str:
        """Return the progress in words: "upmem-llvm: build 43 %, 940 of 2184 steps"."""
        text = f"{self._name}: {self.phase}".removeprefix(": ")
        if self.phase == "build" and self.steps[1]:
            text += f" {int(self.percent)} %, {self.steps[0]} of {self.steps[1]} steps"
        return text


def _cut(lines: Sequence[str]) -> list[str]:
    if len(lines) <= _HEAD + _TAIL:
        return list(lines)
    left_out = len(lines) - _HEAD - _TAIL
    return [*lines[:_HEAD], f"... {left_out} lines are left out ...", *lines[-_TAIL:]]


def _bar(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
        # Continues while a step takes minutes and nothing is printed.
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
