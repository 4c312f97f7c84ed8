"""Locates the programs that the lowering runs, and computes the identity of a compiler made of them.

Separate from tools.py, so that it imports the standard library only.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import shutil
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

NAMES = ("mlir-opt", "mlir-translate", "llc", "spirv-val")


def locate(name: str) -> Path | None:
    """Return the program in the folder FOUNDRY_LLVM_BIN, else on PATH; None if it is not installed."""
    folder = os.environ.get("FOUNDRY_LLVM_BIN")
    path = Path(folder, name) if folder else Path(shutil.which(name) or "")
    return path if path.is_file() else None


def fingerprint(packages: Iterable[str], programs: Iterable[Path]) -> str:
    """Return the sha256 of the Python source of `packages` and of the identity of `programs`: a part of cache keys.

    Sources are identified by content, so that an edit in a checkout is a new compiler. Programs are identified by
    resolved path, size and modification time, because LLVM's libraries are too large to read at every start.
    """
    digest = hashlib.sha256()
    for package in packages:
        # Names as strings: objects of Path take twice as long as reading the files.
        root = str(files(package))
        for folder, _, names in sorted(os.walk(root)):
            for name in sorted(names):
                if name.endswith(".py"):
                    digest.update(f"{package}{folder.removeprefix(root)}/{name}\0".encode())
                    with io.FileIO(f"{folder}/{name}") as file:
                        digest.update(file.readall())
    for program in programs:
        resolved = program.resolve()
        status = resolved.stat()
        digest.update(f"{resolved}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def triton_fingerprint(package: str = "triton") -> str:
    """Return what identifies Triton: its Python source, and libtriton by size and modification time.

    Triton itself reads all 190 MB of libtriton for this, in each process: 0.15 s, as long as the rest of a launch from
    its cache.
    """
    return fingerprint((package,), sorted(Path(str(files(package)), "_C").glob("libtriton.*")))


@functools.cache
def _triton_key() -> str:
    return f"{sys.modules['triton'].__version__}-{triton_fingerprint()}"


def replace_triton_key(_: type) -> None:
    """Replace the function that identifies Triton, in each of its modules that has it."""
    for name in ("triton.runtime.cache", "triton.runtime.autotuner", "triton.compiler.compiler"):
        module: Any = sys.modules.get(name)
        if hasattr(module, "triton_key"):
            module.triton_key = _triton_key
