"""Python's recursion limit, while expressions of a kernel are walked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_RECURSION = 50_000
# How many expressions are being walked, and the limit of recursion before.
_deep, _limit = 0, 0
_deep_lock = threading.Lock()


@contextmanager
def deep_expressions() -> Iterator[None]:
    """Raise Python's recursion limit in this context: unrolled loops make deep expressions, walked recursively."""
    global _deep, _limit
    # The limit is one of all threads, and each may be compiling a kernel: the last one restores it.
    with _deep_lock:
        if _deep == 0:
            _limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_limit, _RECURSION))
        _deep += 1
    try:
        yield
    finally:
        with _deep_lock:
            _deep -= 1
            if _deep == 0:
                sys.setrecursionlimit(_limit)
