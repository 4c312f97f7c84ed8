"""Remembers which files of the store were found to be right, so that they are not hashed at each use.

A verdict is a file verdicts/NAME with a fingerprint of what was looked at: of each file its name, size, inode, and the
times of its last changes in nanoseconds. The time of change of the inode is among them, which no program can set:
whoever writes other bytes and puts the old date back is found out. What changed so recently that the clock could not
tell it from a further change gets no verdict.

A verdict guards against damage, and against those who may write a file of the store but not its verdicts. Whoever may
write to all of the store can forge verdicts, and the manifests of parts as well. `./foundry pin --check` hashes
everything and asks no verdict.
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
    """What changes when one of these files does, by their names; empty where one changed too recently to tell."""
    found = hashlib.sha256()
    newest = 0
    for name, path in sorted(files.items()):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found.update(f"{name}\0{os.readlink(path)}\0".encode(errors="surrogateescape"))  # noqa: PTH115
            status = path.stat() if path.exists() else status
        numbers = status.st_mode, status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
        found.update(f"{name}\0{numbers}\n".encode(errors="surrogateescape"))
        newest = max(newest, status.st_ctime_ns)
    return found.hexdigest() if newest + _TICK < time.time_ns() else ""


def known(place: Path, fingerprint: str) -> bool:
    """Whether files with this fingerprint were found to be right."""
    try:
        return bool(fingerprint) and place.read_text() == fingerprint
    except OSError:
        return False


def note(place: Path, fingerprint: str) -> None:
    """Note that files with this fingerprint were found to be right; the fingerprint was taken before they were read."""
    if not fingerprint:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: one that is lost or cut off is no verdict, and the files are hashed again.
        work = place.with_name(f".{place.name}-{os.getpid()}")
        work.write_text(fingerprint)
        work.rename(place)
    except OSError:
        # A store that may only be read serves all the same.
        return
