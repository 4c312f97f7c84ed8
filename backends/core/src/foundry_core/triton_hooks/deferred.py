"""Calls functions when Triton has defined what they replace, which is after it has imported its backends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any


class _After(MetaPathFinder):
    """Waits for the first import after a module of Triton has defined a name. It finds no modules."""

    def __init__(self, function: Callable[[], None], module: str, name: str) -> None:
        self._function, self._module, self._name = function, module, name

    def find_spec(self, *_: Any) -> None:
        if hasattr(sys.modules.get(self._module), self._name):
            try:
                sys.meta_path.remove(self)
            except ValueError:  # by another thread, which imports too
                return
            self._function()


def call(function: Callable[[], None], module: str = "triton.runtime.autotuner", name: str = "Autotuner") -> None:
    """Call a function at the first import after a module has defined a name, if Triton imports it after its backends.

    By default that is the autotuner, which Triton defines after its kernels.
    """
    sys.meta_path.insert(0, _After(function, module, name))
