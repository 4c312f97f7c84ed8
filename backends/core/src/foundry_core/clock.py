"""Time as triton.testing and triton.autotune measure it, for launches that have finished when they return."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt


class Event:
    """A point in time; what torch calls an event."""

    def __init__(self, enable_timing: bool = True) -> None:
        self._seconds = 0.0

    def record(self) -> None:
        """Take the time now: every launch before this line has finished."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from here to `end`."""
        return (end._seconds - self._seconds) * 1e3


class DeviceInterface:
    """The part of torch.cuda that triton.testing.do_bench asks a driver for."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        """Nothing to wait for: launches are synchronous."""

    @staticmethod
    def current_device() -> int:
        """There is one device."""
        return 0


def cache_filler(cache_bytes: int) -> npt.NDArray[np.uint8]:
    """An array that, once written, has pushed everything else out of a last-level cache of `cache_bytes`."""
    return np.empty(2 * cache_bytes, np.uint8)
