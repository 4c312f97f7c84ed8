"""Tell the user which step of a build is running, and how long each one took; run steps side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar, overload

from rich.text import Text

from toolchains.system import paths
from toolchains.system.children import end_children
from toolchains.system.console import Console
from toolchains.system.waiting import doing

A = TypeVar("A")
B = TypeVar("B")
# All that is printed beside a progress display must go through that display's console.
console = Console(stderr=True, highlight=False)
_printing = Lock()
# What was printed last: the seconds below it need no name.
_last = ""
# Calls of side_by_side that have not ended, and the first error of any of them.
_calls, _counting = 0, Lock()
_cause: BaseException | None = None


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print the name of a step when it starts, and its seconds when it is done; the name again if another began."""
    start = time.monotonic()
    _say(what, Text("-", "bold"), what)
    with doing(what):
        yield
    seconds = f"{time.monotonic() - start:.1f} s"
    _say("", Text(f"  {seconds}" if _last == what else f"  {seconds}: {what}", "dim"))


def _say(step: str, *parts: str | Text) -> None:
    global _last
    with _printing:
        console.print(*parts)
        _last = step


@overload
def side_by_side(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]: ...
@overload
def side_by_side(*works: Callable[[], A]) -> tuple[A, ...]: ...
def side_by_side(*works: Callable[[], Any]) -> tuple[Any, ...]:
    """Run functions at the same time, each in a thread, and return their results in order.

    Most of what they do must be in child processes, in the engine, or waiting. If one raises an error, or Ctrl-C is
    pressed, the children of the others are ended. The first error is raised when all functions have ended. A function
    may call this one, too: the first error of all is raised then, not that of a function whose children were ended.
    """
    global _calls, _cause
    if len(works) == 1:
        return (works[0](),)
    # The first call creates the folder, which two threads must not do at the same time.
    paths.scratch()
    with _counting:
        _calls += 1
    try:
        with ThreadPoolExecutor(len(works)) as pool:
            running = [pool.submit(work) for work in works]
            try:
                done, _ = wait(running, return_when=FIRST_EXCEPTION)
                failed = [future for future in running if future in done and future.exception() is not None]
                return tuple(future.result() for future in failed or running)
            except BaseException as error:
                with _counting:
                    _cause = first = _cause or error
                # Threads cannot be ended, but the children that they wait for can, and those that they start then.
                while wait(running, timeout=0.1).not_done:
                    end_children()
                raise first from None
    finally:
        with _counting:
            _calls -= 1
            if not _calls:
                _cause = None
