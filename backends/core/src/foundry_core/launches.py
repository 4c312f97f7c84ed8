"""Records a driver's launches for later queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class LaunchLog(Generic[Entry]):
    """The launches of a process, one entry for each."""

    def __init__(self) -> None:
        self._last: Entry | None = None
        self._listeners: list[list[Entry]] = []

    def last(self) -> Entry | None:
        """Return the launch that finished last; None before the first."""
        return self._last

    def note(self, launch: Entry) -> None:
        """Add a launch that has finished."""
        self._last = launch
        for listener in self._listeners:
            listener.append(launch)

    @contextmanager
    def profile(self) -> Iterator[list[Entry]]:
        """Collect the launches made inside the `with`, in order, from any thread.

        with triton_dpu_backend.profile() as launches:
            kernel[grid](...)
        launches[0].cycles
        """
        launches: list[Entry] = []
        self._listeners.append(launches)
        try:
            yield launches
        finally:
            # Compare by identity: two lists that recorded the same launches are equal.
            self._listeners[:] = [listener for listener in self._listeners if listener is not launches]
