"""A line on the terminal that says what is being done, whenever nothing was printed for two seconds.

It stands below what was printed, at the start of a line, and is removed before anything else is printed. So it never
stands in a log, in the output of a script, behind a question that waits for an answer, or on a program's whole screen.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import RLock, Thread
from typing import Any

from toolchains.system.console import printable

# Seconds without output until the line appears, and between two looks at the clock.
_SILENCE, _INTERVAL = 2, 0.25
# The start of the line, and what removes all of it.
_REMOVE = b"\r\x1b[2K"
_DIM, _PLAIN = b"\x1b[2m", b"\x1b[22m"


@dataclass
class _Screen:
    """What is on the terminal, and what is being done; one thread at a time uses it."""

    doing: list[tuple[str, float]] = field(default_factory=list)
    printed: float = 0
    at_start: bool = True
    shown: bytes = b""
    # The stream that the line is written to; None without a terminal.
    terminal: _Terminal | None = None
    lock: RLock = field(default_factory=RLock)

    def watch(self) -> None:
        while True:
            time.sleep(_INTERVAL)
            with self.lock:
                if self.doing and self.at_start and time.monotonic() - self.printed >= _SILENCE:
                    self.show()

    def show(self) -> None:
        what, since = self.doing[-1]
        seconds = f": {time.monotonic() - since:.0f} s"
        width = shutil.get_terminal_size().columns - 1 - len(seconds)
        # A line that is too long would be two lines, of which one is removed.
        text = what if len(what) <= width else what[: max(width - 3, 0)] + "..."
        line = (text + seconds).encode("ascii", "replace")
        if line != self.shown:
            self.shown = line
            self.write(_REMOVE + _DIM + line + _PLAIN)

    def remove(self) -> None:
        with self.lock:
            if self.shown:
                self.shown = b""
                self.write(_REMOVE)

    def write(self, data: bytes) -> None:
        assert self.terminal is not None
        # The terminal may have been closed: what is being done must not fail by that.
        with suppress(OSError):
            os.write(self.terminal.fileno(), data)


_screen = _Screen()


class _Terminal(io.FileIO):
    """A terminal that the line is removed from before anything is written."""

    def write(self, data: Any) -> int:
        with _screen.lock:
            _screen.remove()
            count = super().write(data)
            _screen.printed = time.monotonic()
            _screen.at_start = bytes(data).endswith(b"\n")
            return count


def watched(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a stream in place of one of this process's: the same, unless it is a terminal that can remove a line."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return stream
    stream.flush()
    terminal = _Terminal(stream.fileno(), "w", closefd=False)
    if stream is sys.stderr:
        _screen.terminal, _screen.printed = terminal, time.monotonic()
        Thread(target=_screen.watch, daemon=True).start()
    buffered = io.BufferedWriter(terminal)
    return io.TextIOWrapper(buffered, stream.encoding, "replace", line_buffering=True)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what is done in this with statement: the line names it and its seconds, or what was begun later."""
    begun = (printable(what, kept=""), time.monotonic())
    with _screen.lock:
        _screen.doing.append(begun)
    try:
        yield
    finally:
        with _screen.lock:
            _screen.doing.remove(begun)
            _screen.remove()
