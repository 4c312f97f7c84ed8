"""Let PoCL use a library of functions that the machine has, and read only what it needs of it.

PoCL has its functions compiled for several kinds of x86-64 processors, takes the best kind that the processor supports,
and fails if its file is missing. The images have only the kinds that are tested: sse2, avx2 and avx512.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

# Compiled from docker/pocl.cpp, which says how it works.
_LAZY_READER = Path(sys.prefix, "lib", "pocl.so")
_LIBRARIES = "kernel-*-{}.bc"
# PoCL's own table, the best kind last; the names of the features are those of /proc/cpuinfo.
_AVX = {"avx", "cx16", "popcnt"}
_KINDS = {
    "sse2": set[str](),
    "ssse3": {"ssse3", "cx16"},
    "sse41": {"sse4_1", "cx16"},
    "avx": _AVX,
    "avx_f16c": _AVX | {"f16c"},
    "avx_fma4": _AVX | {"xop", "fma4"},
    "avx2": _AVX | {"avx2", "abm", "f16c", "fma", "bmi1", "bmi2"},
    "avx512": {"avx512f"},
}


def prepare() -> None:
    """Prepare PoCL before the first use of OpenCL in this process. If it was used already, PoCL works as it did."""
    choose_library()
    # Elsewhere than in our images, PoCL reads its library whole.
    if _LAZY_READER.exists():
        ctypes.CDLL(str(_LAZY_READER), mode=ctypes.RTLD_GLOBAL)


def choose_library(folder: Path = Path("/usr/share/pocl"), features: Iterable[str] | None = None) -> None:
    """Select the best kind that is there, by POCL_KERNELLIB_NAME, if the one that PoCL would take is missing.

    Call it before the first use of OpenCL. A kind that the environment selects already is left as it is.

    Args:
        folder: PoCL's libraries.
        features: the processor's; those of /proc/cpuinfo if None.
    """
    if features is None:
        try:
            _, _, first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\nflags")
        except OSError:
            return
        features = first.partition("\n")[0].split()
    usable = [kind for kind, needed in _KINDS.items() if needed.issubset(features)]
    there = [kind for kind in usable if any(folder.glob(_LIBRARIES.format(kind)))]
    if there and there[-1] != usable[-1]:
        os.environ.setdefault("POCL_KERNELLIB_NAME", there[-1])
