"""Kernels as the device's driver compiled them, kept on disk: one file a kernel, in Triton's cache folder.

A file is named by the SPIR-V; its folder by the device and the version of its driver. Two processes may write the same
one: each first writes another file, and renames it. A file that is damaged is ignored and replaced.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import suppress
from pathlib import Path

from .library import DeviceProperties

_BEGINNING = b"FoundryVk1"


def kernel_file(device: DeviceProperties, spirv: bytes) -> Path:
    from triton import knobs

    folder = f"{bytes(device.uuid).hex()}-{device.driver_version:x}"
    return Path(knobs.cache.dir) / "vulkan" / folder / hashlib.sha256(spirv).hexdigest()


def read_kernel_file(file: Path) -> bytes:
    """Return what is in a file; b"" if it is missing or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return b""
    data = content[len(_BEGINNING) + 32 :]
    return data if content == _sealed(data) else b""


def write_kernel_file(file: Path, data: bytes) -> None:
    """Write a file, unless the folder cannot be written to."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(_sealed(data))
        Path(temporary.name).replace(file)


def _sealed(data: bytes) -> bytes:
    return _BEGINNING + hashlib.sha256(data).digest() + data
