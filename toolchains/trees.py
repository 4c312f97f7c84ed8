"""Folders read the same way on every machine: as one digest, or as a tar without the machine's traces in it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO

# The date that everything built here carries: 2026-01-01 in seconds. Files that are older keep their own.
EPOCH = 1767225600
# What tools leave behind in source folders.
_LITTER = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


def files(folder: Path) -> dict[str, Path]:
    """The regular files below a folder by their relative names, sorted, without what tools leave behind."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not _LITTER.intersection(name.parts):
            found[name.as_posix()] = path
    return dict(sorted(found.items()))


def digest(entries: Mapping[str, Path]) -> str:
    """sha256 over names, execute permissions and contents."""
    whole = hashlib.sha256()
    for name in sorted(entries):
        path = entries[name]
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{name}\0{_mode(path):o}\0{content}\n".encode())
    return whole.hexdigest()


def pack(file: IO[bytes], entries: Mapping[str, Path | bytes]) -> None:
    """Write an uncompressed tar: sorted, owned by root, dated EPOCH, parent folders included."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folders: set[str] = set()
        for name in sorted(entries):
            for parent in reversed(PurePosixPath(name).parents[:-1]):
                if str(parent) not in folders:
                    folders.add(str(parent))
                    tar.addfile(_entry(str(parent), 0o755, kind=tarfile.DIRTYPE))
            source = entries[name]
            if isinstance(source, bytes):
                tar.addfile(_entry(name, 0o644, len(source)), io.BytesIO(source))
            else:
                with source.open("rb") as content:
                    tar.addfile(_entry(name, _mode(source), source.stat().st_size), content)


def _mode(path: Path) -> int:
    # Of the nine permissions git keeps one; the others depend on who cloned with which umask.
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def _entry(name: str, mode: int, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size, entry.type, entry.mtime = mode, size, kind, EPOCH
    return entry
