"""Choose the OpenCL device that kernels run on: one whose driver is in the SDK.

PyOpenCL has its own loader. It finds drivers in the system's vendors folder and does not use LD_LIBRARY_PATH.
Therefore the SDK's drivers are added to the system's while it looks for drivers, once per process.

Environment:
    VSI_SDK_DIR: the SDK; those libraries in its folder drivers/ that are OpenCL drivers are used.
    FOUNDRY_VSI_DEVICE: the device: its number among all OpenCL devices, or a part of its name or its platform's name.
        Such a device need not be of the SDK. Default: the first device of the SDK that accepts SPIR-V.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from foundry_core.once import once

from . import pieces
from .errors import MissingError

if TYPE_CHECKING:
    import pyopencl as cl
    from foundry_core.runtime.opencl import OpenCLDevice

DEVICE_VARIABLE = "FOUNDRY_VSI_DEVICE"

# Where the two common loaders look for drivers: ocl-icd in a folder of .icd files, Khronos' in a list of libraries.
_VENDORS_VARIABLE = "OCL_ICD_VENDORS"
_LIBRARIES_VARIABLE = "OCL_ICD_FILENAMES"
_SYSTEM_VENDORS = "/etc/OpenCL/vendors"
# The entry point of cl_khr_icd, through which a loader calls a driver, and strings that only loaders contain.
_ENTRY = b"clIcdGetPlatformIDsKHR"
_LOADERS = (_VENDORS_VARIABLE.encode(), _LIBRARIES_VARIABLE.encode())

_GetPlatforms = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)


def choose_device() -> cl.Device:
    """Return the device that the environment selects.

    Raises:
        MissingError: no SDK is named, or it has no OpenCL driver.
        DeviceError: no device can be used; the message lists the available devices.
    """
    wanted = os.environ.get(DEVICE_VARIABLE, "")
    folder = pieces.drivers()
    if folder is None and not wanted:
        raise MissingError(
            "there is no VeriSilicon SDK",
            why=f"{pieces.SDK_VARIABLE} is not set",
            next=f"export {pieces.SDK_VARIABLE}=/path/to/sdk, which has include/, lib/ and drivers/",
        )
    platforms = _load(folder)
    if not platforms and not wanted:
        raise MissingError(
            f"{folder} has no OpenCL driver",
            why=f"no library in it has the entry point of OpenCL's loaders ({_ENTRY.decode()})",
            next=f"complete the SDK, or set {DEVICE_VARIABLE} to a part of a device's name",
        )

    from foundry_core.runtime.opencl import device_refusal, find

    def refuse(device: cl.Device) -> str | None:
        if not wanted and device.platform.int_ptr not in platforms:
            return f"its driver is not in {folder}"
        return device_refusal(device)

    return find(wanted, variable=DEVICE_VARIABLE, refuse=refuse)


@once
def open_device() -> OpenCLDevice:
    """Return the device that the environment selects. Each process opens it once.

    Raises:
        MissingError, DeviceError: as choose_device.
    """
    device = choose_device()

    from foundry_core.runtime.opencl import OpenCLDevice

    return OpenCLDevice(device)


@functools.cache
def _load(folder: Path | None) -> frozenset[int]:
    """Let PyOpenCL find the drivers in `folder` as well as the system's; return the handles of their platforms.

    Platform handles are the drivers' own handles, even if a loader is in between.
    """
    libraries = [] if folder is None else icds(folder)
    with _announced(libraries):
        from foundry_core.runtime.opencl import platforms

        platforms()
    return frozenset(handle for library in libraries for handle in _platforms(library))


def icds(folder: Path) -> list[Path]:
    """Return the libraries of a folder that are OpenCL drivers, each once even if it has several names."""
    drivers: dict[Path, None] = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and ".so" in path.name and _is_driver(path):
            drivers.setdefault(path.resolve())
    return list(drivers)


def _is_driver(path: Path) -> bool:
    """Return whether a file contains the entry point's name and is not a loader. Loaders contain the name, too."""
    if not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_ENTRY) >= 0 and all(content.find(word) < 0 for word in _LOADERS)


def _platforms(library: Path) -> list[int]:
    """Return the handles of a driver's platforms; none if it does not load. A loader also ignores such a driver."""
    try:
        loaded = ctypes.CDLL(str(library))
        address = loaded.clGetExtensionFunctionAddress
    except (OSError, AttributeError):
        return []
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    entry = address(_ENTRY)
    if not entry:
        return []
    get, count = _GetPlatforms(entry), ctypes.c_uint()
    if get(0, None, ctypes.byref(count)) or not count.value:
        return []
    handles = (ctypes.c_void_p * count.value)()
    if get(count.value, handles, None):
        return []
    return [handle for handle in handles if handle]


@contextmanager
def _announced(libraries: list[Path]) -> Iterator[None]:
    """Set an environment in which OpenCL's loaders find `libraries` and the drivers that they would find without it."""
    if not libraries:
        yield
        return
    before = {name: os.environ.get(name) for name in (_VENDORS_VARIABLE, _LIBRARIES_VARIABLE)}
    with TemporaryDirectory(prefix="triton-vsi-vendors-") as vendors:
        others = Path(before[_VENDORS_VARIABLE] or os.environ.get("OPENCL_VENDOR_PATH") or _SYSTEM_VENDORS)
        if others.is_dir():
            for icd in others.glob("*.icd"):
                Path(vendors, f"system-{icd.name}").write_bytes(icd.read_bytes())
        for number, library in enumerate(libraries):
            Path(vendors, f"sdk-{number}.icd").write_text(f"{library}\n")
        named = [str(library) for library in libraries]
        os.environ[_VENDORS_VARIABLE] = vendors
        os.environ[_LIBRARIES_VARIABLE] = os.pathsep.join([*named, *filter(None, [before[_LIBRARIES_VARIABLE]])])
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
