"""Remember which files of the store were found correct, so that they are not hashed at each use.

A verdict is a file verdicts/NAME with a fingerprint of the checked files: the name, size and inode of each, and the
times of its last changes in nanoseconds. One of them is the inode's time of change, which no program can set, so other
bytes with the old date are detected. A file gets no verdict if it changed so recently that the clock could not show a
further change.

A verdict protects against damage, and against users who may write a file of the store but not its verdicts. A user who
may write to the whole store can forge verdicts, and the manifests of parts as well. `./foundry pin --check` hashes
everything and reads no verdict.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

# File systems take the time of a change from a clock that ticks every 1 to 10 ms; some network ones once in 2 s.
_TICK = 2_000_000_000


def fingerprint(files: Mapping[str, Path]) -> str:
    """Return a text that changes whenever one of these files does; empty if one changed too recently to tell."""
    digest = hashlib.sha256()
    newest = 0
    for name, path in sorted(files.items()):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            digest.update(f"{name}\0{os.readlink(path)}\0".encode(errors="surrogateescape"))  # noqa: PTH115
            status = path.stat() if path.exists() else status
        numbers = status.st_mode, status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
        digest.update(f"{name}\0{numbers}\n".encode(errors="surrogateescape"))
        newest = max(newest, status.st_ctime_ns)
    return digest.hexdigest() if newest + _TICK < time.time_ns() else ""


def is_known(place: Path, fingerprint: str) -> bool:
    """Return whether files with this fingerprint were found correct."""
    try:
        return bool(fingerprint) and place.read_text() == fingerprint
    except OSError:
        return False


def note(place: Path, fingerprint: str) -> None:
    """Record that files with this fingerprint were found correct; the fingerprint must be older than the check."""
    if not fingerprint:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: a lost or incomplete file is not a verdict, and the files are hashed again.
        work = place.with_name(f".{place.name}-{os.getpid()}")
        work.write_text(fingerprint)
        work.rename(place)
    except OSError:
        # A store that is read-only can still be used.
        return
