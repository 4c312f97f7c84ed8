"""Imports Triton before modules that Triton imports itself, and calls functions when Triton has defined something.

Where a script imports a module of a backend first, the module imports Triton, which imports the same module again,
unfinished. And Triton imports its backends early: before it defines what some hooks replace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def install(package: str, *modules: str) -> None:
    """Make the import of these modules of a package import Triton first, if that was not imported before.

    The import of the package itself does not import Triton.
    """
    sys.meta_path.insert(0, _TritonFirst({f"{package}.{module}" for module in modules}))


class _TritonFirst(MetaPathFinder):
    def __init__(self, modules: set[str]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._modules or "triton" in sys.modules:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        execute, finished = spec.loader.exec_module, None

        # Called before the module is in sys.modules: Triton does not find it there unfinished.
        def create_module(spec: ModuleSpec) -> ModuleType | None:
            import triton  # noqa: F401

            nonlocal finished
            finished = sys.modules.get(spec.name)
            return finished

        def exec_module(module: ModuleType) -> None:
            if module is not finished:
                execute(module)

        spec.loader.create_module, spec.loader.exec_module = create_module, exec_module  # type: ignore[method-assign]
        return spec


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


def call_after(function: Callable[[], None], module: str = "triton.runtime.autotuner", name: str = "Autotuner") -> None:
    """Call a function at the first import after a module has defined a name, if Triton imports it after its backends.

    By default that is the autotuner, which Triton defines after its kernels.
    """
    sys.meta_path.insert(0, _After(function, module, name))
