"""Records the launches of a process: which kernels, on what, and how long."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..runtime import launches
from ..runtime.launches import Grid
from . import objects

# How often the first launch of a kernel is made again, and the bytes of arrays up to which it is.
_REPEATS = 3
_MOST_COPIED = 1 << 30


@dataclass
class LaunchRecord:
    """The launches of one kernel with one grid and one set of integers.

    Attributes:
        values: of the parameters; None for an array.
        sizes: the bytes of each array, by the parameter's index.
        seconds: of each launch. The first of a kernel includes what prepares it, such as the device's compiler.
        repeated: of launches that the profile made after the first launch of a kernel.
        driver: Triton's, which launched it. A process may have several that take turns.
        programs: what PoCL loaded for the kernel (see objects.program); none if it was loaded before the profile began.
        prepared: whether the first of `seconds` is not the kernel's first launch.
        modelled: what a model says of the last one.
        configuration: what is compiled in, and the options that an autotuner chooses, by name.
        described: what its launcher knows of a shader; see SynchronousLauncher.described.
    """

    kernel: str
    hash: str
    grid: Grid
    values: list[Any]
    sizes: dict[int, int]
    driver: Any
    programs: set[str]
    prepared: bool
    seconds: list[float] = field(default_factory=list)
    repeated: list[float] = field(default_factory=list)
    modelled: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)


class Recorder:
    """Times each launch of a process; foundry_core.runtime.launches calls it."""

    def __init__(self) -> None:
        self.found: dict[object, LaunchRecord] = {}
        self._programs: dict[object, set[str]] = {}

    def __call__(self, launcher: Any, grid: Grid, arguments: Sequence[Any], launch: Callable[[], None]) -> None:
        from triton.runtime import driver

        compiled = launcher.hash, type(driver.active)
        prepared = compiled in self._programs
        before = None if prepared else _output_contents(launcher, arguments)
        loaded = set() if prepared else _programs(launcher.kernel)
        seconds = _timed(launch)
        if not prepared:
            self._programs[compiled] = _programs(launcher.kernel) - loaded
        repeated: list[float] = []
        if before is not None and not launcher.modelled():
            after = [(at, ctypes.string_at(at, len(bytes))) for at, bytes in before]
            for _ in range(_REPEATS):
                _restore(before)
                repeated.append(_timed(launch))
            _restore(after)
        values = [each if isinstance(each, int | float) else None for each in arguments]
        key = (compiled, grid, tuple(values))
        if key not in self.found:
            sizes = {
                i: each.untyped_storage().nbytes() for i, each in enumerate(arguments) if hasattr(each, "data_ptr")
            }
            programs = self._programs[compiled]
            self.found[key] = LaunchRecord(
                launcher.kernel, launcher.hash, grid, values, sizes, driver.active, programs, prepared
            )
            self.found[key].configuration = launcher.configuration
            self.found[key].described = launcher.described()
        self.found[key].seconds.append(seconds)
        self.found[key].repeated += repeated
        self.found[key].modelled = launcher.modelled()


def _programs(kernel: str) -> set[str]:
    return set(map(objects.program, objects.loaded_objects(kernel)))


def _timed(launch: Callable[[], None]) -> float:
    began = time.perf_counter()
    launch()
    return time.perf_counter() - began


def _output_contents(launcher: Any, arguments: Sequence[Any]) -> list[tuple[int, bytes]] | None:
    """Return address and contents of each array that a launch writes; None if it must not be made again.

    A kernel that prints would print again, one that makes pointers of numbers may write elsewhere, and an array that
    is not in the host's memory, or a large one, is not copied.
    """
    if launcher.log is not None or launcher.addresses:
        return None
    spans: dict[int, int] = {}
    for each in (arguments[i] for i in launcher.parameters.outputs):
        storage = getattr(each, "untyped_storage", None)
        if storage is None or str(getattr(getattr(each, "device", None), "type", "cpu")) != "cpu":
            return None
        spans[storage().data_ptr()] = storage().nbytes()
    if sum(spans.values()) > _MOST_COPIED:
        return None
    return [(at, ctypes.string_at(at, size)) for at, size in spans.items()]


def _restore(contents: Sequence[tuple[int, bytes]]) -> None:
    for at, bytes in contents:
        ctypes.memmove(at, bytes, len(bytes))


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record the launches made inside the `with`, of any thread."""
    recorder = Recorder()
    launches.observer = recorder
    try:
        yield recorder
    finally:
        launches.observer = None
