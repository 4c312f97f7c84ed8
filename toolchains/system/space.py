"""Recognise a full disk in the output of programs, and report the free space."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from toolchains.system import paths
from toolchains.system.errors import FileError

FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)


def error(what: str, why: str, places: Sequence[Path] = ()) -> FileError:
    """Return the error for a full disk.

    Args:
        places: files or folders that could not be written; if unknown, the folders that Foundry writes to are reported.
    """
    shown = places or (paths.cache(), paths.temporary(), paths.BUILD)
    return FileError(
        what,
        why="\n".join([why, *(f"{free(place) / 1e9:.1f} GB free at {place}" for place in shown)]),
        next="./foundry prune, which shows what can go; or set FOUNDRY_CACHE and TMPDIR to folders on a larger disk",
    )


def free(place: Path) -> int:
    """Return the free bytes on the file system of a path, which need not exist."""
    place = place.absolute()
    return shutil.disk_usage(next(path for path in (place, *place.parents) if path.exists())).free
