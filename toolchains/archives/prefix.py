"""Write an installation prefix, from a recipe or a user, as a tar: the same bytes for the same content.

The prefix may be given as a tar or as a folder; the bytes are the same.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import posixpath
import stat
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from toolchains.archives import confine, tar_file
from toolchains.archives.tar_file import TarWriter, reading
from toolchains.system import foreign
from toolchains.system.errors import UnsafeArchiveError
from toolchains.system.paths import scratch

# The revision of the bytes written: raise it whenever they change. It is part of the identity of artifacts.
FORMAT = 1
_OTHER = "give the archive as the vendor packed it, or the folder that it was unpacked to"
_COMPRESSED: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


@dataclass(frozen=True)
class PrefixEntry:
    """A file of a prefix, or a link.

    Attributes:
        open: returns a file object at the start of the content.
        size: in bytes.
        executable: whether the owner may execute the file.
        link: the target of a link; empty for a file.
    """

    open: Callable[[], IO[bytes]]
    size: int = 0
    executable: bool = False
    link: str = ""


def normalise(source: Path, target: Path, *, below: str = "", without: Collection[str] = ()) -> None:
    """Write a normalised copy of a tar; see write.

    Args:
        source: a tar, plain or compressed.
        target: the plain tar to write.
        below: take only the content of this folder, and remove the folder's name from the paths.
        without: names of topmost files to leave out.

    Raises:
        UnsafeArchiveError: an entry would be written outside the prefix, or is no file or link; or the tar is damaged.
    """
    with reading(f"{source.name} is damaged"), open_seekable(source) as tar, target.open("wb") as file:
        entries = tar_entries(tar, source.name, below)
        write({name: entry for name, entry in entries.items() if name not in without}, file)


def write(entries: Mapping[str, PrefixEntry], out: IO[bytes]) -> None:
    """Write a tar of files and links only, sorted, owned by root, dated EPOCH, modes 755 and 644."""
    with TarWriter(out) as tar:
        for name in sorted(entries):
            entry = entries[name]
            if entry.link:
                tar.link(name, entry.link)
                continue
            with entry.open() as content:
                tar.file(name, content, entry.size, executable=entry.executable)


def tar_entries(tar: tarfile.TarFile, called: str, below: str = "") -> dict[str, PrefixEntry]:
    """Return the files and links of a prefix by their names in it; errors call the tar by the given name.

    Args:
        below: take only the content of this folder, and remove the folder's name from the paths.

    Raises:
        UnsafeArchiveError: see normalise.
    """
    entries: dict[str, PrefixEntry] = {}
    files: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        name = confine.relative_path(member.name, called)
        inside = posixpath.relpath(name, below) if below else name
        if member.isdir() or inside.startswith(".."):
            continue
        if not (member.isreg() or member.issym() or member.islnk()):
            raise UnsafeArchiveError(
                f"{called} has an entry that is neither a file nor a link: {member.name}", next=_OTHER
            )
        if member.issym():
            entries[inside] = PrefixEntry(partial(_content, tar, member), link=member.linkname)
            continue
        # A hard link has no content; it is that of its file, which must come before the link.
        file = files.get(confine.relative_path(member.linkname, called)) if member.islnk() else member
        if file is None:
            raise UnsafeArchiveError(
                f"{called} has a hard link to a file that it does not have: {member.name}",
                why=f"it leads to {member.linkname}, which must come before it",
                next=_OTHER,
            )
        files[name] = file
        entries[inside] = PrefixEntry(partial(_content, tar, file), file.size, bool(file.mode & 0o100))
    refuse_paths_through_links(entries, called)
    return entries


def folder_entries(folder: Path) -> dict[str, PrefixEntry]:
    """Return the files and links below a folder by their relative names. Links are not followed.

    Raises:
        UnsafeArchiveError: an entry is neither a file nor a link.
        OSError: the folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    entries: dict[str, PrefixEntry] = {}
    for top, folders, files in os.walk(folder, onerror=fail):
        for path in (Path(top, name) for name in (*folders, *files)):
            if path.is_dir() and not path.is_symlink():
                continue
            entries[path.relative_to(folder).as_posix()] = path_entry(path)
    return entries


def path_entry(path: Path, *, follow_links: bool = False) -> PrefixEntry:
    """Return the entry of a file or of a link.

    Raises:
        UnsafeArchiveError: it is neither.
        OSError: it cannot be read.
    """
    status = path.stat(follow_symlinks=follow_links)
    if stat.S_ISLNK(status.st_mode):
        # readlink returns the target unchanged; Path would shorten "./lib".
        return PrefixEntry(partial(foreign.open_file, path), link=os.readlink(path))  # noqa: PTH115
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeArchiveError(f"neither a file nor a link: {path}", next="remove it, or give a folder without it")
    return PrefixEntry(partial(foreign.open_file, path), status.st_size, bool(status.st_mode & 0o100))


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file is not None
    return file


def refuse_paths_through_links(entries: Mapping[str, PrefixEntry], called: str) -> None:
    """Refuse entries that would be unpacked through a link.

    Raises:
        UnsafeArchiveError: there is such an entry.
    """
    confine.refuse_entries_through_links({name for name, entry in entries.items() if entry.link}, entries, called)


@contextmanager
def open_seekable(source: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar, plain or compressed, so that it can be read in any order; it is decompressed at most once.

    Raises:
        FileError: it is no plain file, or unpacks to too much.
    """
    with foreign.open_file(source) as file:
        magic = file.read(8)
    opener = next((opener for start, opener in _COMPRESSED.items() if magic.startswith(start)), None)
    if opener is None:
        with tar_file.opened(source, "r:") as tar:
            yield tar
        return
    with cast(IO[bytes], TemporaryFile(dir=scratch())) as plain:
        with opener(source) as packed:
            foreign.copy(packed, plain, source.name)
        plain.seek(0)
        with tar_file.opened(plain, "r:") as tar:
            yield tar
