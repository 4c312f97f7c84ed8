"""The identity of a compiler made of Python packages and programs: what a compiled kernel's cache key must contain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path


def fingerprint(packages: Iterable[str], programs: Iterable[Path]) -> str:
    """sha256 over the Python source of `packages` and over the identity of `programs`.

    Sources count by content, so that an edit in a checkout is a new compiler. Programs count by resolved path, size and
    time of last change: LLVM's libraries are too big to be read at every start.
    """
    digest = hashlib.sha256()
    for package in packages:
        root = Path(str(files(package)))
        for source in sorted(root.rglob("*.py")):
            digest.update(f"{package}/{source.relative_to(root)}\0".encode())
            digest.update(source.read_bytes())
    for program in programs:
        resolved = program.resolve()
        status = resolved.stat()
        digest.update(f"{resolved}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()
