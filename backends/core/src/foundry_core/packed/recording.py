"""Records the launches of a script: what each kernel was compiled for, and the arrays before and after."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..runtime import launches
from ..runtime.launches import Grid
from ..scalars import pointer_element
from .roads import PackError, Road, Storage

# Bytes of the arrays of a launch up to which they are an example.
MOST_RECORDED = 16 << 20


@dataclass
class Memory:
    """Memory that a launch reached: its content before and after."""

    before: bytes
    after: bytes = b""


@dataclass(frozen=True)
class ArrayUse:
    """An argument that is an array: bytes `first` to `first + bytes` of a memory."""

    memory: int
    first: int
    bytes: int
    shape: tuple[int, ...]
    type: str


@dataclass
class Launch:
    """The first launch of a compiled kernel.

    Attributes:
        source, metadata: Triton's.
        values: of the Python function's parameters, constants included: an ArrayUse, or the value.
        memories: what the arrays are parts of; None if it was too much to keep.
    """

    source: Any
    metadata: Any
    grid: Grid
    values: dict[str, Any]
    memories: list[Memory] | None


@dataclass
class Choice:
    """What triton.autotune chose for a launch: the names in its key, and the configuration's values by name."""

    launch: Launch
    key: Sequence[str]
    constants: dict[str, Any]


@dataclass
class Recorder:
    """Records launches of kernels of these names; of all if there are none.

    Attributes:
        found: by Triton's hash of the compiled kernel.
        seen: the names of all kernels that were launched.
    """

    road: Road
    wanted: Sequence[str] = ()
    found: dict[str, Launch] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    _last: Any = None
    _measuring: threading.local = field(default_factory=threading.local)

    def __call__(self, launcher: Any, grid: Grid, arguments: Sequence[Any], launch: Callable[[], None]) -> None:
        name = launcher.source.name
        self.seen.add(name)
        if getattr(self._measuring, "on", False) or (self.wanted and name not in self.wanted):
            launch()
            return
        kept = self.found.get(launcher.hash)
        storages = self._storages(launcher, arguments)
        record = self._record(launcher, grid, arguments, storages, contents=kept is None)
        launch()
        if kept is None:
            for memory, storage in zip(record.memories or [], storages, strict=False):
                memory.after = storage.content()
            self.found[launcher.hash] = record
        self._last = record

    def _storages(self, launcher: Any, arguments: Sequence[Any]) -> list[Storage]:
        found: dict[int, Storage] = {}
        for at in launcher.parameters.pointers:
            storage = self.road.storage(arguments[at])
            if storage.size:
                found.setdefault(storage.address, storage)
        return list(found.values())

    def _record(
        self, launcher: Any, grid: Grid, arguments: Sequence[Any], storages: Sequence[Storage], *, contents: bool
    ) -> Launch:
        source = launcher.source
        refuse(launcher)
        numbers = {storage.address: number for number, storage in enumerate(storages)}
        passed, values = iter(zip(launcher.parameters.types, arguments, strict=True)), {}
        for position, (name, type) in enumerate(source.signature.items()):
            if type == "constexpr":
                values[name] = source.constants[(position,)]
                continue
            taken, value = next(passed)
            values[name] = self._array(value, numbers, taken) if taken.startswith("*") else value
        memories = None
        uses = [use for use in values.values() if isinstance(use, ArrayUse)]
        if contents and sum(storage.size for storage in storages) <= MOST_RECORDED and _is_plain(uses, storages):
            memories = [Memory(storage.content()) for storage in storages]
        return Launch(source, launcher.metadata, grid, values, memories)

    def _array(self, tensor: Any, numbers: dict[int, int], type: str) -> ArrayUse:
        storage = self.road.storage(tensor)
        first = tensor.data_ptr() - storage.address if storage.size else 0
        shape = tuple(int(side) for side in tensor.shape)
        return ArrayUse(numbers.get(storage.address, -1), first, storage.size - first, shape, type)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Record the launches made inside the `with`; those with which triton.autotune measures are left out."""
        from triton.runtime.autotuner import Autotuner

        bench, run = Autotuner._bench, Autotuner.run

        @functools.wraps(bench)
        def measured(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            self._measuring.on = True
            try:
                return bench(tuner, *args, **kwargs)
            finally:
                self._measuring.on = False

        @functools.wraps(run)
        def chosen(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            self._last = None
            result = run(tuner, *args, **kwargs)
            if self._last is not None:
                if tuner.best_config.pre_hook is not None:
                    raise PackError(
                        f"the kernel {self._last.source.name} cannot be packed",
                        why="triton.autotune chose a configuration whose pre_hook Python calls before each launch",
                        next="let the kernel or its caller do what the pre_hook does",
                    )
                self.choices.append(Choice(self._last, list(tuner.keys), dict(tuner.best_config.all_kwargs())))
            return result

        Autotuner._bench, Autotuner.run = measured, chosen
        launches.observer = self
        try:
            yield
        finally:
            launches.observer = None
            Autotuner._bench, Autotuner.run = bench, run


def _is_plain(uses: Sequence[ArrayUse], storages: Sequence[Storage]) -> bool:
    """Return whether each memory consists of elements of one type, so that an example can make arrays of it."""
    types: dict[int, set[str]] = {}
    for use in uses:
        size = pointer_element(use.type).bytes
        types.setdefault(use.memory, set()).add(use.type.replace("*k", "*"))
        if use.first % size or (use.memory >= 0 and storages[use.memory].size % size):
            return False
    return all(len(found) == 1 for memory, found in types.items() if memory >= 0)


def refuse(launcher: Any) -> None:
    """Refuse a kernel whose launch a packed folder cannot make.

    Raises:
        PackError: it is such a kernel.
    """
    name, source = launcher.source.name, launcher.source
    why = ""
    if launcher.log is not None:
        why = "it prints or asserts, and a packed kernel has nobody who would read that"
    elif launcher.addresses:
        why = "it makes pointers of numbers, which mean nothing in another process"
    elif any(not isinstance(type, str) or "tensordesc" in type for type in source.signature.values()):
        why = "it takes tuples or descriptors; a packed kernel takes arrays and numbers"
    elif any(isinstance(key, str) for key in getattr(source, "constants", {})):
        why = "Triton 3.2 compiled it; pack it with 3.6 or a later release"
    if why:
        raise PackError(f"the kernel {name} cannot be packed", why=why)
