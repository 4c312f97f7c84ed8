"""Take files out of a tar whose content a foreign program wrote, such as a script in a container. Nothing is believed.

This module decides what is written. It follows no link: it takes none from the tar, and opens none in the folder on
this machine.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import re
import shutil
import stat
import sys
import tomllib
import unicodedata
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Literal, cast

from toolchains.archives import confine, tar_file
from toolchains.archives.folders import LITTER
from toolchains.archives.tar_file import reading
from toolchains.system import paths
from toolchains.system.errors import EngineError, LimitError, UnsafeArchiveError

# Folders that are copied neither in nor out: histories, whose settings name programs that their tools start; and
# environments and caches, which are large, useless to a script, and full of programs.
LEFT_OUT = LITTER | {".git", ".hg", ".jj", ".bzr", ".svn", ".venv"}
# Files that make their folder an environment, or a repository of git: tools start programs that such a folder names.
_MARKS = {"pyvenv.cfg", "head"}
# The short name of .git on Windows.
_SHORT_GIT = re.compile("git~[0-9]+")
# Unicode's classes of characters that change the direction of text, so that a name looks like another one.
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
# The longest names and paths of Linux, in bytes.
_LONGEST_NAME, _LONGEST_PATH = 255, 4095
# A file that may be unchanged is held in memory up to this many bytes, and on the disk beyond.
_HELD = 16 << 20
# Maximum number of names in a message.
_SHOWN = 20
_OUTSIDE = "repositories, environments and caches are not copied"


@dataclass(frozen=True)
class Bounds:
    """The most that is taken.

    Attributes:
        size: bytes of all files that are written together.
        entries: entries of the tar, in addition to the files that were copied in.
    """

    size: int
    entries: int = 100_000


@dataclass(frozen=True)
class Sent:
    """A file that was copied in: its size in bytes, and its sha256."""

    size: int
    sha256: str


@dataclass
class Taken:
    """What became of the entries of a tar, by their paths below the folder.

    Attributes:
        written: the new and changed files, which were written.
        left: what is never taken, such as links and what LEFT_OUT names, and why.
        refused: files that could not be written, and why.
        over, remedy: which bound was exceeded, and what helps if no higher bound does; "" if none.
    """

    written: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    over: str = ""
    remedy: str = ""

    def check(self, what: str, *, more: str = "") -> None:
        """Raise an error if not all files were written.

        Args:
            what: the message.
            more: what to type for higher bounds.

        Raises:
            LimitError: a bound was exceeded.
            UnsafeArchiveError: a file was refused.
        """
        lines = some([f"{shown(name)}: {why}" for name, why in self.refused.items()])
        if self.over:
            raise LimitError(what, why="\n".join([self.over, *lines]), next=self.remedy or more)
        if lines:
            raise UnsafeArchiveError(what, why="\n".join(lines), next="--results=DIR, with a new folder")


def shown(name: str) -> str:
    """Return a name as a terminal may show it, without characters that a terminal obeys."""
    return name if name.isprintable() else ascii(name)


def some(lines: Collection[str], most: int = _SHOWN) -> list[str]:
    """Return the first of many lines, and how many there are beyond."""
    return [*lines][:most] + ([f"and {len(lines) - most} more"] if len(lines) > most else [])


def take(
    packed: IO[bytes],
    destination: Path,
    bounds: Bounds,
    *,
    what: str,
    sent: Mapping[str, Sent] | None = None,
    only: Literal["file", "folder", ""] = "",
) -> Taken:
    """Write the files of a tar below a folder, which is created; or the one file of a tar to a name.

    An existing file is replaced, and keeps its permissions. Folders are created for files only.

    Args:
        packed: a tar as engines make them: each name begins with that of the folder, or is that of the file.
        destination: the folder, or the name of the file.
        what: the path that the tar was made of, for errors.
        sent: the files that were copied into the folder, by their names. If they are unchanged, they are not written.
        only: refuse a tar of anything else.

    Raises:
        UnsafeArchiveError: the tar is damaged; the files before the damage are written.
        EngineError: the tar is not of what `only` says, or of a link or a device.
        OSError: the disk is full.
    """
    taken, seen, sent = Taken(), set[str](), sent or {}
    entries = bounds.entries + len(sent)
    # What may be written; and what may be read: unchanged files, and some that are too large, to take those after them.
    unwritten = bounds.size
    unread = 2 * bounds.size + sum(file.size for file in sent.values())
    with reading(f"what came from {what} is a damaged archive"), tar_file.opened(packed, "r|") as tar:
        while member := tar.next():
            # tarfile keeps every entry in memory.
            tar.members.clear()  # type: ignore[attr-defined]
            entries -= 1
            if entries < 0:
                taken.over = f"there are more than {bounds.entries} new files and folders"
                taken.remedy = "pack many small files into one"
                break
            try:
                name = confine.relative_path(member.name, what).partition("/")[2]
            except UnsafeArchiveError as error:
                taken.refused[member.name] = error.why
                continue
            if not name and not (member.isreg() and only != "folder") and not (member.isdir() and only != "file"):
                raise EngineError(f"cannot copy {what} out of a container", why=f"it is no plain {only or 'file'}")
            outside = left_out(name, is_file=member.isreg())
            if outside and name not in sent:
                if posixpath.basename(outside) not in LITTER:
                    taken.left[outside] = _OUTSIDE
                continue
            if not member.isreg() and not member.isdir():
                taken.left[name] = "it is not a plain file"
                continue
            if member.isdir():
                continue
            unread -= member.size
            content = tar.extractfile(member)
            # A sparse file of a few bytes may be larger than this machine's disk.
            if content is None or member.issparse() or unread < 0:
                taken.over = f"{shown(name)} has {member.size} bytes; it and what comes after it was not read"
                break
            with SpooledTemporaryFile(_HELD, "w+b", dir=str(paths.scratch())) as held:
                before = sent.get(name)
                if before and before.size == member.size:
                    shutil.copyfileobj(content, held)
                    held.seek(0)
                    if hashlib.file_digest(held, "sha256").hexdigest() == before.sha256:
                        seen.add(name)
                        continue
                    held.seek(0)
                    content = cast(IO[bytes], held)
                why = "the archive has it twice" if name in seen else _OUTSIDE if outside else _name_error(name)
                if not why and member.size > unwritten:
                    taken.over = f"new and changed files have more than {bounds.size} bytes"
                    why = f"it has {member.size} bytes"
                if not why:
                    why = _write(destination, name, content, executable=bool(member.mode & stat.S_IXUSR))
            seen.add(name)
            if why:
                taken.refused[name] = why
            else:
                unwritten -= member.size
                taken.written.append(name)
    return taken


def left_out(path: str, *, is_file: bool) -> str:
    """Return the outermost part of a path that is neither copied in nor out; "" if all of it is.

    Names are compared as file systems of Windows and macOS do, which take .Git and "git~1" for .git.
    """
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        plain = "".join(char for char in unicodedata.normalize("NFKC", part) if unicodedata.category(char) != "Cf")
        plain = plain.casefold().partition(":")[0].rstrip(" .")
        if plain in LEFT_OUT or _SHORT_GIT.fullmatch(plain) or (is_file and number == len(parts) and plain in _MARKS):
            return "/".join(parts[:number])
    return ""


def _name_error(name: str) -> str:
    """Return why no file may have this name; "" if it may."""
    if any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(char) in _TURNING
        for char in name
    ):
        return "its name has control characters, or is not UTF-8"
    if len(name.encode()) > _LONGEST_PATH or any(len(part.encode()) > _LONGEST_NAME for part in name.split("/")):
        return "its name is too long"
    return ""


def _write(destination: Path, name: str, content: IO[bytes], *, executable: bool) -> str:
    """Write a file, at once and without following a link below the destination; return why it cannot be written.

    Raises:
        OSError: the disk is full.
    """
    # The user named the destination, so links on the way to it are followed.
    root = (destination if name else destination.resolve().parent).absolute()
    *folders, last = name.split("/") if name else [destination.resolve().name]
    temporary = f".foundry-{uuid.uuid4().hex}"
    place = -1
    try:
        root.mkdir(parents=True, exist_ok=True)
        place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for folder in folders:
            with suppress(FileExistsError):
                os.mkdir(folder, dir_fd=place)
            if not stat.S_ISDIR(os.stat(folder, dir_fd=place, follow_symlinks=False).st_mode):
                return f"{folder} is no folder on this machine, but a file or a link"
            place, outer = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place), place
            os.close(outer)
            if _is_protected(place):
                return f"{folder} is an environment or a repository on this machine"
        mode = 0
        with suppress(FileNotFoundError):
            mode = os.stat(last, dir_fd=place, follow_symlinks=False).st_mode
        if mode and not stat.S_ISREG(mode):
            return "it is a folder or a link on this machine, and a file in the container"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=place)
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(content, file)
            mode = stat.S_IMODE(mode or os.fstat(handle).st_mode) & 0o777
            os.fchmod(handle, mode | (stat.S_IXUSR if executable else 0))
        os.replace(temporary, last, src_dir_fd=place, dst_dir_fd=place)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return error.strerror or str(error)
    finally:
        if place >= 0:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=place)
            os.close(place)
    return ""


def is_protected(folder: Path) -> bool:
    """Return whether a folder of this machine is an environment of Python, or a repository of git itself."""
    with suppress(FileNotFoundError, NotADirectoryError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return _is_protected(handle)
        finally:
            os.close(handle)
    return False


def _is_protected(folder: int) -> bool:
    def has(name: str) -> bool:
        with suppress(FileNotFoundError):
            return bool(os.stat(name, dir_fd=folder, follow_symlinks=False))
        return False

    return has("pyvenv.cfg") or (has("HEAD") and has("objects"))


def patterns() -> list[str]:
    """Return the patterns of executed.toml."""
    table = tomllib.loads(Path(__file__).with_name("executed.toml").read_text(encoding="utf-8"))
    return [pattern for row in table.values() for pattern in row]


def print_executed(names: Collection[str]) -> None:
    """Print which new and changed files tools of this machine execute because they are there; see executed."""
    if shown_names := executed(names):
        print(
            f"new or changed, and tools may execute it because it is there: {', '.join(shown_names)}", file=sys.stderr
        )


def executed(names: Collection[str]) -> list[str]:
    """Return those of the names that tools of this machine execute because they are there, for people.

    For each pattern of executed.toml, the first name stands for all, so that many names do not hide another.
    """
    known = patterns()
    names_by_pattern: dict[str, list[str]] = {}
    for name in names:
        parts = name.casefold().split("/")
        module = re.fullmatch(r"(?:.*/)?([^/.]+)(?:/__init__)?\.py", name)
        if module and module[1] in sys.stdlib_module_names:
            names_by_pattern.setdefault("Python", []).append(name)
        for pattern in known:
            if any(fnmatchcase(part, pattern) for part in parts):
                names_by_pattern.setdefault(pattern, []).append(name)
                break
    return [shown(first) + (f" and {len(rest)} like it" if rest else "") for first, *rest in names_by_pattern.values()]
