"""Make a small wheel of a made-up Triton, with everything that repacking handles."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import patch_series

from toolchains.lockfile.lock import Artifact, LockedTriton

LLVM = "0123456789abcdef0123456789abcdef01234567"
NAME = "triton-1.0-cp312-abi3-manylinux_2_28_x86_64.whl"
PATCH = patch_series.hello("python/triton/knobs.py", "first = 1")


def library(commit: str = LLVM) -> bytes:
    """Return a shared object for strip. At its end is what strip drops, including the string of a libtriton.so."""
    mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
    libc = next(Path(path) for path in mapped if Path(path).name.startswith("libc.so"))
    return libc.read_bytes() + b"\0LLVM version 22.0.0git\0LLVM version 22.0.0git (" + commit.encode() + b")\0"


FILES = {
    "triton/__init__.py": b"__version__ = '1.0'\n",
    "triton/knobs.py": b"first = 1\n",
    "triton/FileCheck": b"tool",
    "triton/_C/libtriton.so": library(),
    "triton/_C/libproton.so": b"profiler",
    "triton/backends/__init__.py": b"",
    "triton/backends/driver.py": b"",
    "triton/backends/nvidia/__init__.py": b"",
    "triton/backends/nvidia/bin/ptxas": b"tool",
    "triton/backends/nvidia/lib/cupti/libcupti.so": b"profiler",
    "triton/backends/amd/__init__.py": b"",
    "triton/profiler/proton.py": b"",
    "triton/include/triton/ir.h": b"",
    "triton-1.0.dist-info/METADATA": b"Metadata-Version: 2.4\nName: triton\nVersion: 1.0\n\nVersion: 1.0 is new\n",
    "triton-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: setuptools\nTag: cp312-abi3-manylinux_2_28_x86_64\n",
    "triton-1.0.dist-info/entry_points.txt": b"[console_scripts]\nproton = triton.profiler.proton:main\n\n"
    b"[triton.backends]\namd = triton.backends.amd\nnvidia = triton.backends.nvidia\n",
    "triton-1.0.dist-info/RECORD": b"stale",
}


def make(
    folder: Path, files: Mapping[str, bytes], date: tuple[int, int, int, int, int, int] = (2020, 1, 1, 0, 0, 0)
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / NAME, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100755 if name.endswith(("ptxas", ".so")) else 0o100664) << 16
            archive.writestr(entry, content)
    return folder / NAME


def locked(wheel: Path, llvm_hash: str = LLVM) -> LockedTriton:
    content = wheel.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    return LockedTriton("1.0", llvm_hash, Artifact("wheel", "triton", "1.0", NAME, len(content), sha256))
