"""The C library of launch.c, which has vulkan.c in it, as Python calls it.

We write our own C instead of using a binding from PyPI: a launch is six calls of Vulkan, and through `vulkan` (cffi,
which makes a structure for each call in Python) they take some 40 us. In C they are one call of under 3 us.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from ..failure import Failure
from ..once import once
from ..prototypes import members, prototypes

VARIABLE = "FOUNDRY_VULKAN_LIBRARY"
_NAME = "libfoundry_vulkan.so"
_PREFIX = "foundry_vulkan_"
# What the library is compiled from.
_SOURCE = Path(__file__).with_name("vulkan.c").read_text(encoding="utf-8")
_FUNCTIONS = prototypes(_SOURCE, _PREFIX)
# Takes the messages of the validation layer.
(Messages,) = _FUNCTIONS["start"].arguments


class VulkanError(Failure):
    """Vulkan, or its driver, did not do what was asked."""


class DeviceProperties(ctypes.Structure):
    """What a device says of itself: Properties in vulkan.c. A feature is 0 or 1."""

    _fields_ = members(_SOURCE, "Properties")


class Library:
    """The functions that vulkan.c exports, under their names without `foundry_vulkan_`."""

    def __init__(self, path: Path) -> None:
        if not path.exists() and not os.environ.get(VARIABLE):
            raise VulkanError(
                f"{path.name} is not installed",
                why=f"there is no {path}: an installation from the sources compiles no C",
                next="take core from the wheels, which have it. In the checkout: ./foundry wheel spirv, then "
                "pip install --force-reinstall --no-deps build/wheels/spirv/triton_foundry_core-*.whl",
            )
        try:
            loaded = ctypes.CDLL(str(path))
        except OSError as error:
            raise VulkanError(
                f"{path.name} cannot be loaded", why=str(error), next=f"set {VARIABLE} to a file that can be loaded"
            ) from error
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, f"{_PREFIX}{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        # It calls Python's functions, so that it keeps Python's lock.
        self.launcher = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)((f"{_PREFIX}launcher", loaded))

    def __getattr__(self, name: str) -> ctypes._FuncPointer:
        raise AttributeError(name)

    def last_error(self) -> str:
        """Return what the last call that failed said."""
        return str(self.error().decode(errors="replace"))


@once
def library() -> Library:
    """Return the library, loaded once. VARIABLE in the environment names another file than the wheel's.

    Raises:
        VulkanError: it cannot be loaded.
    """
    return Library(Path(os.environ.get(VARIABLE) or Path(__file__).with_name(_NAME)))
