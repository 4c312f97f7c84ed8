"""Records the launches of a process: which kernels, on what, and how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import launches
from ..launches import Grid


@dataclass
class Launched:
    """The launches of one kernel with one grid and one set of integers.

    Attributes:
        values: of the parameters; None for an array.
        sizes: the bytes of each array, by the parameter's index.
        seconds: of each launch.
        modelled: what a model says of the last one.
    """

    kernel: str
    hash: str
    grid: Grid
    values: list[Any]
    sizes: dict[int, int]
    seconds: list[float] = field(default_factory=list)
    modelled: dict[str, Any] = field(default_factory=dict)


class Recorder:
    """Times each launch of a process; foundry_core.launches calls it."""

    def __init__(self) -> None:
        self.found: dict[object, Launched] = {}

    def __call__(self, launcher: Any, grid: Grid, arguments: Sequence[Any], launch: Callable[[], None]) -> None:
        began = time.perf_counter()
        launch()
        seconds = time.perf_counter() - began
        values = [each if isinstance(each, int | float) else None for each in arguments]
        key = (launcher.hash, grid, tuple(values))
        if key not in self.found:
            sizes = {
                i: each.untyped_storage().nbytes() for i, each in enumerate(arguments) if hasattr(each, "data_ptr")
            }
            self.found[key] = Launched(launcher.kernel, launcher.hash, grid, values, sizes)
        self.found[key].seconds.append(seconds)
        self.found[key].modelled = launcher.modelled()


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record the launches made inside the `with`, of any thread."""
    recorder = Recorder()
    launches.observer = recorder
    try:
        yield recorder
    finally:
        launches.observer = None
