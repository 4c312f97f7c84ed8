"""An installation prefix as a tar: what a recipe packaged or a user supplied, the same bytes for the same content.

It may come as a tar or as a folder; the bytes are the same.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import posixpath
import shutil
import stat
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from .errors import UnsafeArchiveError
from .paths import scratch
from .trees import EPOCH

_COMPRESSED: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


@dataclass(frozen=True)
class Entry:
    """A file of a prefix, or a link.

    Attributes:
        open: gives the file's content, at its start.
        size: in bytes.
        executable: whether its owner may execute it.
        link: where a link leads; a file has none.
    """

    open: Callable[[], IO[bytes]]
    size: int = 0
    executable: bool = False
    link: str = ""


def normalise(source: Path, target: Path, *, below: str = "", without: Collection[str] = ()) -> None:
    """Write a tar anew; see write.

    Args:
        source: a tar, plain or compressed.
        target: the plain tar to write.
        below: take only what is in this folder, and take its name away.
        without: names of files at the top that are left out.

    Raises:
        UnsafeArchiveError: an entry would be written outside the prefix, or is neither a file nor a link.
    """
    with opened(source) as tar, target.open("wb") as file:
        found = of_tar(tar, source.name, below)
        write({name: entry for name, entry in found.items() if name not in without}, file)


def write(entries: Mapping[str, Entry], out: IO[bytes]) -> None:
    """Write a tar of files and links only, sorted, owned by root, dated EPOCH, modes 755 and 644."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as result:
        for name in sorted(entries):
            entry = entries[name]
            clean = tarfile.TarInfo(name)
            clean.mtime = EPOCH
            if entry.link:
                clean.type, clean.linkname, clean.mode = tarfile.SYMTYPE, entry.link, 0o777
                result.addfile(clean)
                continue
            clean.size, clean.mode = entry.size, 0o755 if entry.executable else 0o644
            with entry.open() as content:
                result.addfile(clean, content)


def of_tar(tar: tarfile.TarFile, called: str, below: str = "") -> dict[str, Entry]:
    """The files and links of a prefix by their names in it; errors call the tar by the given name.

    Args:
        below: take only what is in this folder, and take its name away.

    Raises:
        UnsafeArchiveError: see normalise.
    """
    found: dict[str, Entry] = {}
    for member in tar:
        name = posixpath.normpath(member.name)
        if member.name.startswith("/") or ".." in name.split("/"):
            raise UnsafeArchiveError(f"{called} has an entry that leaves its folder: {member.name}")
        inside = posixpath.relpath(name, below) if below else name
        if member.isdir() or inside.startswith(".."):
            continue
        if not (member.isreg() or member.issym() or member.islnk()):
            raise UnsafeArchiveError(f"{called} has an entry that is neither a file nor a link: {member.name}")
        found[inside] = _member(tar, member, called)
    refuse_paths_through_links(found, called)
    return found


def of_folder(folder: Path) -> dict[str, Entry]:
    """The files and links below a folder by their names in it. Links are kept as they are, not followed.

    Raises:
        UnsafeArchiveError: something there is neither a file nor a link.
        OSError: it cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    found: dict[str, Entry] = {}
    for top, folders, files in os.walk(folder, onerror=fail):
        for path in (Path(top, name) for name in (*folders, *files)):
            if path.is_dir() and not path.is_symlink():
                continue
            found[path.relative_to(folder).as_posix()] = _of_path(path, path.lstat())
    return found


def of_file(path: Path) -> Entry:
    """A file that a user names; a link to it is followed.

    Raises:
        UnsafeArchiveError: it is no regular file.
        OSError: it cannot be read.
    """
    return _of_path(path, path.stat())


def _of_path(path: Path, status: os.stat_result) -> Entry:
    if stat.S_ISLNK(status.st_mode):
        # As it is: Path would shorten "./lib".
        return Entry(partial(_opened, path), link=os.readlink(path))  # noqa: PTH115
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeArchiveError(f"neither a file nor a link: {path}")
    return Entry(partial(_opened, path), status.st_size, bool(status.st_mode & 0o100))


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb")


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo, called: str) -> Entry:
    def content() -> IO[bytes]:
        file = tar.extractfile(member)
        assert file is not None
        return file

    if member.issym():
        return Entry(content, link=member.linkname)
    try:
        # A hard link has no size; the file that it leads to does.
        origin = tar.getmember(member.linkname) if member.islnk() else member
    except KeyError:
        raise UnsafeArchiveError(f"{called} has a link to a file that it does not have: {member.name}") from None
    return Entry(content, origin.size, bool(origin.mode & 0o100))


def refuse_paths_through_links(found: Mapping[str, Entry], called: str) -> None:
    """Refuse entries that whoever unpacks them would write where a link leads.

    Raises:
        UnsafeArchiveError: there is one.
    """
    links = {name for name, entry in found.items() if entry.link}
    for name in found:
        if links.intersection(_parents(name)):
            raise UnsafeArchiveError(f"{called} has an entry that would be written through a link: {name}")


@contextmanager
def opened(source: Path) -> Iterator[tarfile.TarFile]:
    """A tar, plain or compressed, that can be read in any order without being decompressed time and again."""
    with source.open("rb") as file:
        magic = file.read(8)
    opener = next((opener for start, opener in _COMPRESSED.items() if magic.startswith(start)), None)
    if opener is None:
        with tarfile.open(source, "r:") as tar:
            yield tar
        return
    with cast(IO[bytes], TemporaryFile(dir=scratch())) as plain:
        with opener(source) as packed:
            shutil.copyfileobj(packed, plain, 4 << 20)
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:") as tar:
            yield tar


def _parents(name: str) -> set[str]:
    parts = name.split("/")[:-1]
    return {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
