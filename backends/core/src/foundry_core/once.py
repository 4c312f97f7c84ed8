"""Call a function once in a process, also where several threads call it at the same time.

functools.cache lets each of them call it. Triton's autotuner compiles in threads, so a device was opened twice, and a
kernel of one context was launched in a queue of another.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):
    """Decorate a function without arguments: its first result is that of all calls. An error is not kept."""

    def __init__(self, function: Callable[[], T]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._results: list[T] = []
        self._renew()
        # A thread that the child of a fork does not have may hold the lock.
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __call__(self) -> T:
        # Each launch calls it, so that what is known is returned without the lock.
        for known in self._results:
            return known
        with self._lock:
            if not self._results:
                self._results = [self._function()]
            return self._results[0]

    def cache_clear(self) -> None:
        """Forget the result."""
        self._results = []
