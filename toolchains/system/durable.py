"""Write files and folders so that a name never refers to incomplete content, not even after a power failure.

A rename may reach the disk before the content of what was renamed. So the content is synced first, then the rename.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

from toolchains.system.errors import UsageError


def require_writable(folder: Path, what: str) -> None:
    """Check that files can be written to a folder, or that the folder can be made, before there are results for it.

    Args:
        folder: the folder; it is not made.
        what: what names it in the error, such as "--results=out".

    Raises:
        UsageError: nothing can be written there.
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    try:
        with TemporaryDirectory(dir=nearest, prefix=".foundry-"):
            pass
    except OSError as error:
        raise UsageError(
            f"{what} cannot be written to",
            why=f"{nearest}: {error.strerror}",
            next="name a folder that can be written to; it is made if needed",
        ) from error


def move(source: Path, place: Path) -> None:
    """Rename a file or a folder, synced to the disk before and after; an existing file of that name is replaced."""
    _sync_all(source)
    missing = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    source.rename(place)
    for folder in (place.parent, *(folder.parent for folder in missing)):
        _sync(folder)


def write(path: Path, text: str) -> None:
    """Write a text file, or replace an existing one; a reader sees either the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        work = Path(file.name)
        try:
            file.write(text)
            file.close()
            work.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
            move(work, path)
        except BaseException:
            work.unlink(missing_ok=True)
            raise


def _sync_all(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            _sync_all(inner)
    if not path.is_symlink():
        _sync(path)


def _sync(path: Path) -> None:
    """Sync the content of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
