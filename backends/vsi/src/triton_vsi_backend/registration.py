"""Register the backend with Triton before 3.3, which does not use entry points."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "vsi"
_TRITON = "triton.backends"


def register() -> None:
    """Register now if Triton is imported, else when it is imported. Do nothing if Triton finds backends by itself."""
    if _TRITON in sys.modules:
        _add(sys.modules[_TRITON])
    else:
        sys.meta_path.insert(0, _AfterTriton())


def _add(triton_backends: ModuleType) -> None:
    table = getattr(triton_backends, "backends", None)
    if table is None or NAME in table:
        return
    from .compiler import VsiBackend
    from .driver import VsiDriver

    table[NAME] = triton_backends.Backend(VsiBackend, VsiDriver)


class _AfterTriton(importlib.abc.MetaPathFinder):
    """Registers the backend once, after Triton's table of backends was imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _TRITON:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_add(module: ModuleType) -> None:
            execute(module)
            _add(module)

        spec.loader.exec_module = execute_and_add  # type: ignore[method-assign]
        return spec
