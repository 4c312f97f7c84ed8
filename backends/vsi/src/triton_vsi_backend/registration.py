"""What importing the package registers: the backend with Triton, the device type vsi with TorchInductor.

Triton imports the package itself, in the middle of its own start and also where nobody has torch. So nothing here
imports either; what is not imported yet is registered with when it has been.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "vsi"
_TRITON = "triton.backends"
# What makes the device type, and the first part of torch's compiler that has to know it.
_DEVICE = "vpex"
_COMPILER = "torch._dynamo.device_interface"


def register() -> None:
    """Register with what is imported, now, and with what is not, afterwards."""
    for module, action in ((_TRITON, with_triton), (_DEVICE, with_torch), (_COMPILER, with_torch)):
        if module in sys.modules:
            action()
        else:
            sys.meta_path.insert(0, _AfterImport(module, action))


def with_triton() -> None:
    """Put the backend into Triton's table, where Triton has not done so: before 3.3 it knows no entry points."""
    backends = getattr(sys.modules[_TRITON], "backends", None)
    if backends is None or NAME in backends:
        return
    from triton.backends import Backend

    from .compiler import VsiBackend
    from .driver import VsiDriver

    backends[NAME] = Backend(VsiBackend, VsiDriver)


def with_torch() -> None:
    """Tell torch's compiler about the device type, once there are both."""
    if _COMPILER in sys.modules and hasattr(sys.modules.get("torch"), NAME):
        from .inductor import register as register_with_inductor

        register_with_inductor()


class _AfterImport(importlib.abc.MetaPathFinder):
    """Does something once, when a module has been imported."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self._module = module
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute, action = spec.loader.exec_module, self._action

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            action()

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec
