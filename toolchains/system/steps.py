"""Tell the user which step of a build is running, and how long each one took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

_console = Console(stderr=True, highlight=False)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print the name of a step when it starts, and its seconds when it is done."""
    start = time.monotonic()
    _console.print(f"[bold]-[/] {what}")
    yield
    _console.print(f"  {time.monotonic() - start:.1f} s", style="dim")
