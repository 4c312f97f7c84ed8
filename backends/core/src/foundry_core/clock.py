"""Timers for triton.testing and triton.autotune. Launches are synchronous: they have finished when they return."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt


class Event:
    """A point in time; torch calls this an event."""

    def __init__(self, enable_timing: bool = True) -> None:
        self._seconds = 0.0

    def record(self) -> None:
        """Store the current time; every launch before this call has finished."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Return the time from this event to `end`, in milliseconds."""
        return (end._seconds - self._seconds) * 1e3


class DeviceInterface:
    """The part of torch.cuda that triton.testing.do_bench uses."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        """Return immediately: launches are synchronous."""

    @staticmethod
    def current_device() -> int:
        """Return 0, the only device."""
        return 0


def cache_filler(cache_bytes: int) -> npt.NDArray[np.uint8]:
    """Return an array; writing to it evicts all other data from a last-level cache of `cache_bytes`."""
    return np.empty(2 * cache_bytes, np.uint8)
