"""torch.compile on device `vsi`: register the device and the code generator of its kernels with PyTorch.

PyTorch has no public interface for that, so what it was run with is written down (`RELEASES`), and with any other
release compiling for `vsi` is refused. Nothing here touches torch.compile on other devices.

`arrange()` imports nothing; it is called by `import torch` (entry point torch.backends, see pyproject.toml) and by
importing the package. `register()` runs when PyTorch's compiler and vpex have been imported: not before, because the
compiler takes seconds, and because Triton imports its backends while PyTorch's compiler imports Triton.

`register_device()` runs before that, as soon as PyTorch has its table of devices: has_triton() looks there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

# The releases of torch, and of Triton with each, that this was run with.
RELEASES = {"2.6": "3.2"}
# The last part of PyTorch's compiler to be imported, its table of devices, and what makes the device type.
_COMPILER = "torch._inductor.compile_fx"
_TABLE = "torch._dynamo.device_interface"
_DEVICE = "vpex"


class UnknownRelease(NotImplementedError):
    """This release of PyTorch may differ from those that the registration was written for."""


def arrange() -> None:
    """Call `register()` as soon as PyTorch's compiler and vpex are imported; now, if they are."""
    if not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())
    _register_if_ready()


def register_device() -> bool:
    """Register device `vsi` with dynamo, so that has_triton() finds it; a second time does nothing.

    Returns:
        Whether it is registered now. It cannot be as long as there is no torch.vsi, and is not for other releases.
    """
    import torch
    from torch._dynamo.device_interface import device_interfaces, register_interface_for_device
    from torch.utils._triton import has_triton

    if not hasattr(torch, "vsi") or ".".join(torch.__version__.split(".")[:2]) not in RELEASES:
        return False
    if "vsi" not in device_interfaces:
        from .interface import VsiInterface

        register_interface_for_device("vsi", VsiInterface)
        # It remembers an answer from before there was a vsi.
        has_triton.cache_clear()
    return True


def register() -> bool:
    """Register device `vsi` with dynamo and Inductor; a second time does nothing.

    Returns:
        Whether torch.compile knows `vsi` now. It cannot as long as there is no torch.vsi: import vpex first.
    """
    import torch
    import torch._inductor.compile_fx
    from torch._inductor.codegen import common

    if not hasattr(torch, "vsi"):
        return False
    release = ".".join(torch.__version__.split(".")[:2])
    if release not in RELEASES:
        common.register_backend_for_device("vsi", _Refusal(), _Refusal())
        return False
    if common.get_scheduling_for_device("vsi") is not None:
        return True
    from torch._inductor import utils
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    from . import matmul
    from .codegen import VsiDeviceOps, VsiScheduling

    register_device()
    # PyTorch loads its own overrides into an empty table only.
    common.get_device_op_overrides("cpu")
    common.register_device_op_overrides("vsi", VsiDeviceOps())
    utils.GPU_TYPES.append("vsi")
    utils.GPU_KERNEL_BIN_EXTS["vsi"] = ".spv"
    # It remembers an answer from before there was a vsi.
    utils.get_gpu_type.cache_clear()
    matmul.register()
    common.register_backend_for_device("vsi", VsiScheduling, PythonWrapperCodegen)
    return True


def _register_if_ready() -> None:
    for name, registration in ((_TABLE, register_device), (_COMPILER, register)):
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            registration()


class _Refusal:
    """Raises an error with the reason in the place of a scheduling and of a wrapper's code generator."""

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        import torch

        known = " and ".join(f"torch {release} with Triton {triton}" for release, triton in RELEASES.items())
        raise UnknownRelease(
            f"torch.compile on device vsi does not support torch {torch.__version__}\n"
            f"  why:  it uses interfaces of PyTorch's that change from release to release; it was run with {known}\n"
            "  next: use one of those, or run eagerly what you compile"
        )

    create = __call__


class _Watch(MetaPathFinder):
    """Checks again, when a module that it waits for has been imported, whether all of them are."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in (_COMPILER, _TABLE, _DEVICE):
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _ThenRegister(spec.loader)
                return spec
        return None


class _ThenRegister(Loader):
    """A module's loader, after whose work `register()` may be due."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Until here it stood in for the module's own, which some ask things of later.
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        # The module counts as one that is being imported until its loader returns.
        if module.__name__ == _COMPILER:
            register()
        elif module.__name__ == _TABLE:
            register_device()
        else:
            _register_if_ready()
