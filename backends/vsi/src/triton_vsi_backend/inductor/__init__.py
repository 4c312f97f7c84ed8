"""torch.compile on device `vsi`: register the device and the code generator of its kernels with PyTorch.

PyTorch has no public interface for this. `RELEASES` lists the releases that it was run with; with any other release,
compiling for `vsi` is refused. Nothing here changes torch.compile on other devices.

`register_on_import()` imports nothing. It is called by `import torch` (entry point torch.backends, see pyproject.toml)
and by the import of this package. `register()` runs after PyTorch's compiler and vpex were imported. It does not import
them, because the compiler's import takes seconds, and because Triton imports its backends while the compiler imports
Triton.

`register_device()` runs earlier, as soon as PyTorch's table of devices exists, because has_triton() reads that table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

# The releases of torch that this was run with, and the release of Triton with each.
RELEASES = {"2.6": "3.2"}
# The module of PyTorch's compiler that is imported last, its table of devices, and the module with the device type.
_COMPILER = "torch._inductor.compile_fx"
_TABLE = "torch._dynamo.device_interface"
_DEVICE = "vpex"


class UnknownRelease(NotImplementedError):
    """The registration was not written for this release of PyTorch, which may differ."""


def register_on_import() -> None:
    """Call `register()` as soon as PyTorch's compiler and vpex are imported, which may be now."""
    if not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())
    _register_if_ready()


def register_device() -> bool:
    """Register device `vsi` with dynamo, so that has_triton() finds it. A second call does nothing.

    Returns:
        Whether the device is registered now. It is not while there is no torch.vsi, and not with other releases.
    """
    import torch
    from torch._dynamo.device_interface import device_interfaces, register_interface_for_device
    from torch.utils._triton import has_triton

    if not hasattr(torch, "vsi") or ".".join(torch.__version__.split(".")[:2]) not in RELEASES:
        return False
    if "vsi" not in device_interfaces:
        from .interface import VsiInterface

        register_interface_for_device("vsi", VsiInterface)
        # has_triton caches an answer from the time before vsi was registered.
        has_triton.cache_clear()
    return True


def register() -> bool:
    """Register device `vsi` with dynamo and Inductor. A second call does nothing.

    Returns:
        Whether torch.compile knows `vsi` now. It does not while there is no torch.vsi: import vpex first.
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
    from foundry_core.inductor import in_place, products
    from torch._inductor import utils
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    from .codegen import VsiDeviceOps, VsiScheduling

    register_device()
    # PyTorch loads its own overrides only into an empty table.
    common.get_device_op_overrides("cpu")
    common.register_device_op_overrides("vsi", VsiDeviceOps())
    utils.GPU_TYPES.append("vsi")
    utils.GPU_KERNEL_BIN_EXTS["vsi"] = ".spv"
    # get_gpu_type caches an answer from the time before vsi was registered.
    utils.get_gpu_type.cache_clear()
    in_place.register("vsi")
    # A device that registered its own products with PyTorch keeps them.
    if not any(
        torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1") for name in ("aten::mm", "aten::mm.out")
    ):
        products.register("vsi", (torch.float32, torch.float16, torch.bfloat16))
    common.register_backend_for_device("vsi", VsiScheduling, PythonWrapperCodegen)
    return True


def _register_if_ready() -> None:
    for name, registration in ((_TABLE, register_device), (_COMPILER, register)):
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            registration()


class _Refusal:
    """Raises an error with the reason, in place of a scheduling class and of a wrapper's code generator."""

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
    """Checks after the import of each module that it waits for whether all of them are imported."""

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
    """A module's loader, followed by the registration that the module makes possible."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Until here this loader replaced the module's own, which other code may use later.
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        # A module counts as being imported until its loader returns.
        if module.__name__ == _COMPILER:
            register()
        elif module.__name__ == _TABLE:
            register_device()
        else:
            _register_if_ready()
