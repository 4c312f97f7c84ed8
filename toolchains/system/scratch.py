"""Give this process a folder for large temporary files, and remove the folders of processes that were killed.

    TMPDIR/foundry-UID/lock         held while a folder is created or removed
    TMPDIR/foundry-UID/NAME         the working folder of one process
    TMPDIR/foundry-UID/NAME.owner   names that process; locked as long as the process or one of its children lives

The kernel releases the lock when the last process that has the file open ends. So a free lock means that no process
uses the folder any more, even if another process has the owner's number by now.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from toolchains.system.errors import FileError, FoundryError

_OWNER = ".owner"
# Others may enter but not list: run as an ordinary user, mmdebstrap works with the rights of a subordinate user.
_MODE = 0o711
# The folders of this process by the value of TMPDIR, each with the open file that holds its lock.
_held: dict[Path, tuple[Path, int]] = {}


def remove_as_subordinate(place: Path) -> None:
    """Remove what belongs to a subordinate user. children.py replaces this: only that module starts processes."""


@dataclass(frozen=True)
class Leftover:
    """A folder that a killed process left, with the name of that process and the size in bytes."""

    path: Path
    owner: str
    size: int


def process_folder(temporary: Path) -> Path:
    """Return the folder of this process below a folder for temporary files; removed when the process ends.

    Raises:
        FileError: the folder's name belongs to a folder of another user.
    """
    if temporary not in _held:
        with _locked(temporary, create=True) as parent:
            owner, name = mkstemp(dir=parent, prefix="", suffix=_OWNER)
            try:
                fcntl.flock(owner, fcntl.LOCK_EX)
                os.write(owner, f"process {os.getpid()} on {socket.gethostname()}".encode())
                # After its owner file, because a folder without an owner file is never removed.
                place = Path(name).with_suffix("")
                place.mkdir()
                place.chmod(_MODE)
            except OSError:
                # The disk is full: nothing of this process is left for the next one.
                Path(name).unlink()
                os.close(owner)
                raise
        _held[temporary] = place, owner
        atexit.register(_leave, os.getpid(), place)
    return _held[temporary][0]


def locks() -> tuple[int, ...]:
    """Return the open files that a child must inherit, so that its folder stays while the child works in it."""
    return tuple(owner for _, owner in _held.values())


def leftovers(temporary: Path) -> list[Leftover]:
    """Return the folders that killed processes left."""
    with _locked(temporary) as parent:
        return [_described(place) for place in _abandoned(parent)] if parent else []


def sweep(temporary: Path) -> list[Leftover]:
    """Remove the folders that killed processes left, and return what was removed."""
    removed = []
    with _locked(temporary) as parent:
        for place in _abandoned(parent) if parent else ():
            leftover = _described(place)
            _remove(place)
            if not place.exists():
                removed.append(leftover)
    return removed


@contextmanager
def _locked(temporary: Path, *, create: bool = False) -> Iterator[Path | None]:
    """Yield this user's folder of folders, for one process at a time; None if it does not exist."""
    parent = temporary / f"foundry-{os.geteuid()}"
    if create:
        temporary.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            parent.mkdir()
            parent.chmod(_MODE)
    try:
        status = parent.lstat()
    except FileNotFoundError:
        yield None
        return
    # Everybody may write to the folder for temporary files, and can guess the name.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise FileError(
            f"cannot use {parent} for temporary files",
            why="it must be a folder that you own and that nobody else can write to",
            next="remove it, or set TMPDIR to a folder of yours",
        )
    with (parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield parent


def _abandoned(parent: Path) -> Iterator[Path]:
    """Yield the folders whose owner and all of its children are dead; each is locked during the check."""
    for file in sorted(parent.glob(f"*{_OWNER}")):
        # The owner may end and remove its file at this moment.
        with suppress(FileNotFoundError), file.open() as owner:
            host = owner.read().rpartition(" on ")[2]
            # If the folder is shared with another machine, the lock may not be.
            if host in ("", socket.gethostname()):
                # A living process has the lock.
                with suppress(BlockingIOError):
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield file.with_suffix("")


def _described(place: Path) -> Leftover:
    size = 0
    for top, folders, files in os.walk(place):
        for name in (*folders, *files):
            with suppress(OSError):
                size += Path(top, name).lstat().st_blocks * 512
    return Leftover(place, _owner_file(place).read_text() or "an unknown process", size)


def _remove(place: Path) -> None:
    """Remove a folder and its owner file; if something cannot be removed, it stays, with its owner file, for later."""
    if _has_mounts(place):
        # Continuing would delete the content of what is mounted there.
        return
    shutil.rmtree(place, ignore_errors=True)
    if place.exists() and os.geteuid() != 0:
        remove_as_subordinate(place)
        shutil.rmtree(place, ignore_errors=True)
    if not place.exists():
        _owner_file(place).unlink(missing_ok=True)


def _has_mounts(place: Path) -> bool:
    """Return whether something is mounted below a folder. mountinfo writes a space in a name as \\040."""
    inside = f"{place.resolve()}/".replace(" ", "\\040")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4].startswith(inside) for line in mounts)


def _leave(process: int, place: Path) -> None:
    # A child that was forked from this process also runs this function at its end. What cannot be removed is left for
    # the next process.
    if os.getpid() == process:
        with suppress(OSError, FoundryError):
            _remove(place)


def _owner_file(place: Path) -> Path:
    return place.with_name(place.name + _OWNER)
