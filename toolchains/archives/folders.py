"""Read folders reproducibly: as one digest, or as a tar that does not depend on the machine."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from toolchains.archives.tar_file import TarWriter

# The revision of the bytes written: raise it whenever they change. It is part of the identity of artifacts.
FORMAT = 1
# Folders that tools leave in source folders.
LITTER = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


def files(folder: Path) -> dict[str, Path]:
    """Return the regular files below a folder by their relative names, sorted, without the folders in LITTER."""
    by_name = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not LITTER.intersection(name.parts):
            by_name[name.as_posix()] = path
    return dict(sorted(by_name.items()))


def copy(sources: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Copy files into a folder under their names; return the copies.

    What is built from a copy is what its digest is of, also if somebody edits the files meanwhile.
    """
    copies = {name: folder / name for name in sources}
    for name, place in copies.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sources[name], place)
    return copies


def files_digest(entries: Mapping[str, Path]) -> str:
    """Return the sha256 over names, execute permissions and contents."""
    digest = hashlib.sha256()
    for name in sorted(entries):
        path = entries[name]
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{mode(path):o}\0{content}\n".encode())
    return digest.hexdigest()


def entries_below(source: Path, name: str) -> dict[str, Path]:
    """Return the files of a folder, or one file, as entries below this name."""
    name = name.strip("/")
    return {name: source} if source.is_file() else {f"{name}/{inner}": path for inner, path in files(source).items()}


def write_tar(file: IO[bytes], entries: Mapping[str, Path | bytes]) -> None:
    """Write an uncompressed tar of regular files: sorted, owned by root, dated EPOCH.

    Folders have no entries: unpacking creates missing folders, and does not change existing ones.
    """
    with TarWriter(file) as tar:
        add_files(tar, entries)


def add_files(tar: TarWriter, entries: Mapping[str, Path | bytes]) -> None:
    """Add regular files to a tar, sorted."""
    for name in sorted(entries):
        source = entries[name]
        if isinstance(source, bytes):
            tar.file(name, source)
        else:
            with source.open("rb") as content:
                tar.file(name, content, source.stat().st_size, executable=mode(source) == 0o755)


def mode(path: Path) -> int:
    """Return a file's permissions in a tar, which depend on whether its owner may execute it."""
    # Git keeps only this one of the nine permissions; the others depend on the umask of the clone.
    return 0o755 if path.stat().st_mode & 0o100 else 0o644
