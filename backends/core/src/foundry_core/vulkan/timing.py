"""Triton's device interface for a Vulkan device: events are timestamps that the device takes between launches."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections import deque

from .device import opened
from .library import VulkanError, library

_free_slots: deque[int] = deque()
_new_slots = itertools.count()


def _slot() -> int:
    try:
        return _free_slots.popleft()
    except IndexError:
        return next(_new_slots)


class Event:
    """A point in the order of launches; torch calls this an event.

    Args:
        enable_timing: whether `elapsed_time` will be asked for.
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self._device = opened()
        self._timed = enable_timing
        self._number = 0
        self._seconds = 0.0
        self._slot: int | None = None

    def record(self, stream: int = 0) -> None:
        """Take the time when everything that was launched before has finished."""
        if self._timed and not self._device.properties.timestamps:
            self._device.wait()
            self._seconds = time.perf_counter()
        elif self._timed:
            if self._slot is None:
                self._slot = _slot()
            number = library().stamp(self._device.handle, self._slot)
            self._number = self._device.check(number, "an event cannot be recorded")
        else:
            self._number = library().recorded(self._device.handle)

    def synchronize(self) -> None:
        """Wait for everything that was launched before this event was recorded."""
        self._device.wait(self._number)

    def query(self) -> bool:
        """Return whether that has finished."""
        return bool(library().finished(self._device.handle) >= self._number)

    def elapsed_time(self, end: Event) -> float:
        """Return the time from this event to `end`, in milliseconds, after waiting for both.

        Raises:
            VulkanError: one of them takes no times, or was not recorded.
        """
        for event in (self, end):
            if not event._timed or not (event._number or event._seconds):
                raise VulkanError(
                    "an event has no time",
                    why="it was not recorded, or not made by Event(enable_timing=True)",
                )
        if self._seconds:
            return (end._seconds - self._seconds) * 1e3
        return (end._ticks() - self._ticks()) * float(self._device.properties.timestamp_ns) / 1e6

    def _ticks(self) -> int:
        self.synchronize()
        ticks = ctypes.c_uint64()
        found = library().read_stamp(self._device.handle, self._slot, ctypes.byref(ticks))
        self._device.check(found, "an event cannot be read")
        return ticks.value

    def __del__(self) -> None:
        if (slot := getattr(self, "_slot", None)) is not None:
            _free_slots.append(slot)


class VulkanInterface:
    """The part of torch.cuda that Triton uses. There is one device, which the environment chooses, and one stream."""

    Event = Event

    @staticmethod
    def synchronize(device: object = None) -> None:
        """Wait for all launches.

        Raises:
            VulkanError: one takes too long, or the device was lost.
        """
        opened().wait()

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def set_device(device: object) -> None:
        """Do nothing: there is one device."""

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_stream(device: object = None) -> int:
        return 0

    @staticmethod
    def get_device_name(device: object = None) -> str:
        return str(opened().name)
