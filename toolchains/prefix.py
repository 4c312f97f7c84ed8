"""An installation prefix as a tar: what a recipe packaged or a user supplied, the same bytes for the same content."""

from __future__ import annotations

import bz2
import gzip
import lzma
import posixpath
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from .errors import UnsafeArchiveError
from .paths import scratch
from .trees import EPOCH

_COMPRESSED: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


def normalise(source: Path, target: Path, *, below: str = "", without: Collection[str] = ()) -> None:
    """Write a tar anew: files and links only, sorted, owned by root, dated EPOCH, modes 755 and 644.

    Args:
        source: a tar, plain or compressed.
        target: the plain tar to write.
        below: take only what is in this folder, and take its name away.
        without: names of files at the top that are left out.

    Raises:
        UnsafeArchiveError: an entry would be written outside the prefix, or is neither a file nor a link.
    """
    with opened(source) as tar, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as result:
        found = entries(tar, source.name, below)
        for name in sorted(found.keys() - set(without)):
            entry = found[name]
            clean = tarfile.TarInfo(name)
            clean.mtime = EPOCH
            if entry.issym():
                clean.type, clean.linkname, clean.mode = tarfile.SYMTYPE, entry.linkname, 0o777
                result.addfile(clean)
                continue
            content = tar.extractfile(entry)
            assert content is not None
            # A hard link has no size; the file that it leads to does.
            origin = tar.getmember(entry.linkname) if entry.islnk() else entry
            clean.size, clean.mode = origin.size, 0o755 if origin.mode & 0o100 else 0o644
            result.addfile(clean, content)


def entries(tar: tarfile.TarFile, called: str, below: str = "") -> dict[str, tarfile.TarInfo]:
    """The files and links of a prefix by their names in it; see normalise. Errors call the tar by the given name."""
    found: dict[str, tarfile.TarInfo] = {}
    for entry in tar:
        name = posixpath.normpath(entry.name)
        if entry.name.startswith("/") or ".." in name.split("/"):
            raise UnsafeArchiveError(f"{called} has an entry that leaves its folder: {entry.name}")
        inside = posixpath.relpath(name, below) if below else name
        if entry.isdir() or inside.startswith(".."):
            continue
        if not (entry.isreg() or entry.issym() or entry.islnk()):
            raise UnsafeArchiveError(f"{called} has an entry that is neither a file nor a link: {entry.name}")
        found[inside] = entry
    links = {name for name, entry in found.items() if entry.issym()}
    for name in found:
        if links.intersection(_parents(name)):
            raise UnsafeArchiveError(f"{called} has an entry that would be written through a link: {name}")
    return found


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
