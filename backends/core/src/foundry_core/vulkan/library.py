"""The C library of vulkan.c, as Python calls it.

We write our own C instead of using a binding from PyPI: a launch is six calls of Vulkan, and through `vulkan` (cffi,
which makes a structure for each call in Python) they take some 40 us. In C they are one call of under 3 us.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_char, c_char_p, c_float, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path

from ..failure import Failure
from ..once import once

VARIABLE = "FOUNDRY_VULKAN_LIBRARY"
# It is here so that compilers can ask for it without what a device needs.
VALIDATION_VARIABLE = "FOUNDRY_VULKAN_VALIDATION"
_NAME = "libfoundry_vulkan.so"
Messages = ctypes.CFUNCTYPE(None, c_char_p)


class VulkanError(Failure):
    """Vulkan, or its driver, did not do what was asked."""


# What is in Properties as a number: 0 or 1 if it is a feature.
_NUMBERS = [
    *("api", "vendor", "type", "subgroup", "least_subgroup", "most_subgroup", "workgroup_bytes", "push_bytes"),
    *("invocations", "int8", "int16", "int64", "float16", "float64", "bfloat16", "memory_model", "explicit_layout"),
    *("cooperative", "float_atomics", "float_atomic_add64", "shuffle", "shuffle_types", "device_address"),
    *("push8", "push16", "storage8", "storage16", "size_control", "denorm16", "denorm32", "denorm64", "special16"),
    *("special32", "special64", "nearest16", "nearest32", "nearest64", "timestamps", "buffer_atomics64"),
    *("workgroup8", "workgroup16", "driver_version", "allocations"),
]


class DeviceProperties(ctypes.Structure):
    """What a device says of itself: the fields of Properties in vulkan.c, in its order."""

    _fields_ = (
        ("name", c_char * 256),
        ("driver", c_char * 512),
        ("uuid", c_uint8 * 16),
        *((name, c_uint32) for name in _NUMBERS),
        ("timestamp_ns", c_float),
        ("memory_bytes", c_uint64),
        ("grid", c_uint64 * 3),
        ("host_alignment", c_uint64),
        ("most_buffer", c_uint64),
        ("most_allocation", c_uint64),
    )


_FUNCTIONS = {
    "error": (c_char_p, []),
    "start": (c_int, [c_void_p]),
    "count": (c_int, []),
    "properties": (c_int, [c_int, ctypes.POINTER(DeviceProperties)]),
    "fragments": (c_int, [c_int, c_void_p, c_int]),
    "open": (c_void_p, [c_int, c_uint64]),
    "close": (None, [c_void_p]),
    "wait": (c_int, [c_void_p, c_uint64, c_uint64]),
    "state": (c_int, [c_void_p]),
    "recorded": (c_uint64, [c_void_p]),
    "submitted": (c_uint64, [c_void_p]),
    "finished": (c_uint64, [c_void_p]),
    "allocate": (c_void_p, [c_void_p, c_uint64, c_int]),
    "share": (c_void_p, [c_void_p, c_void_p, c_uint64]),
    "free": (None, [c_void_p, c_void_p]),
    "address": (c_uint64, [c_void_p]),
    "mapped": (c_void_p, [c_void_p]),
    "copy": (c_uint64, [c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_uint64]),
    "fill": (c_uint64, [c_void_p, c_void_p, c_uint64, c_uint64, c_uint32]),
    "pipeline": (c_void_p, [c_void_p, c_char_p, c_size_t, c_char_p, c_uint32, c_uint32, c_char_p, c_size_t]),
    "describe": (c_int, [c_void_p, c_void_p, c_char_p, c_int]),
    "cache": (c_size_t, [c_void_p, c_void_p, c_char_p, c_size_t]),
    "launch": (c_uint64, [c_void_p, c_void_p, c_uint32, c_uint32, c_uint32, c_char_p]),
    "stamp": (c_uint64, [c_void_p, c_uint32]),
    "read_stamp": (c_int, [c_void_p, c_uint32, ctypes.POINTER(c_uint64)]),
}


class Library:
    """The functions of vulkan.c, under their names without `foundry_vulkan_`."""

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
            function = getattr(loaded, f"foundry_vulkan_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

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
