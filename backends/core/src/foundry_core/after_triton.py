"""Calls functions when Triton has defined its kernels and its autotuner: after it has imported its backends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

# The later of the two, which imports the other.
_AUTOTUNER = "triton.runtime.autotuner"


class _AfterAutotuner(MetaPathFinder):
    """Waits for the first import after Triton has defined its autotuner. It finds no modules."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def find_spec(self, *_: Any) -> None:
        if hasattr(sys.modules.get(_AUTOTUNER), "Autotuner"):
            try:
                sys.meta_path.remove(self)
            except ValueError:  # by another thread, which imports too
                return
            self._function()


def call(function: Callable[[], None]) -> None:
    """Call a function at the first import after Triton has defined its autotuner."""
    sys.meta_path.insert(0, _AfterAutotuner(function))
