"""Read tars strictly, and write tars whose bytes depend only on their content. No other module opens or writes tars.

The modules that use this one have FORMAT revisions, which cover these bytes too; tests/artifacts/test_format.py
compares them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, Self, cast

from toolchains.system.errors import FileError, FoundryError, UnsafeArchiveError

# The date of all files that we build: 2026-01-01 in seconds. Older files keep their own date.
EPOCH = 1767225600
# A tar ends with two empty blocks.
END = bytes(2 * tarfile.BLOCKSIZE)
_CHUNK = 4 << 20
# What tarfile, zipfile and json do not catch in damaged headers and files. zipfile's word for a compression or an
# encryption that it does not know is RuntimeError.
_WRONG = (ValueError, ArithmeticError, LookupError, RuntimeError, struct.error)
# What reading a damaged archive raises.
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, *_WRONG)
# Headers that are followed by more of the next entry's, such as a long name; Linux's longest names have 4 KiB.
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_LONGEST_HEADER = 1 << 16


@contextmanager
def reading(what: str, *, error: type[FoundryError] = UnsafeArchiveError) -> Iterator[None]:
    """Raise an error with this message if an archive from outside is damaged."""
    try:
        yield
    except DAMAGED as damage:
        raise error(what, why=repr(damage)) from damage


class _Entry(tarfile.TarInfo):
    """An entry of a tar that is read. A damaged header is an error: tarfile takes it for the end of the tar."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError):  # type: ignore[attr-defined]
            raise
        except (tarfile.HeaderError, *_WRONG) as error:
            raise tarfile.ReadError(f"a damaged header: {error}") from error

    def _block(self, count: int) -> int:
        """Return the bytes that this many need with their padding. tarfile calls this for each size in a header.

        A negative size would lead back to an earlier header for ever: CVE-2025-8194. A header that says that it is
        long would be read into memory, and searched in quadratic time.
        """
        if count < 0 or (self.type in _EXTENDED and count > _LONGEST_HEADER):
            raise tarfile.ReadError(f"{count} is no size of {self.name[:100]!r}")
        return count + -count % tarfile.BLOCKSIZE


def opened(source: Path | IO[bytes], mode: Literal["r", "r:", "r|", "r|*"] = "r") -> tarfile.TarFile:
    """Open a tar for reading; the modes are those of tarfile.open.

    Raises:
        tarfile.TarError: also later: it is damaged.
    """
    if isinstance(source, Path):
        return tarfile.open(source, mode, tarinfo=_Entry)  # noqa: TID251
    return tarfile.open(fileobj=source, mode=mode, tarinfo=_Entry)  # noqa: TID251


class TarWriter:
    """Writes a plain tar: entries as they are added, and the end when the context is left without an error.

    PAX headers express what ustar cannot, such as long names. Unlike tarfile, this class keeps no written entry in
    memory: a tree of 100 000 files needs no more memory than one of ten.

    Args:
        out: a file that is open for writing.
        owner: number of the user and of the group that own files, links and folders.
    """

    def __init__(self, out: IO[bytes], *, owner: int = 0) -> None:
        self._out = out
        self._owner = owner
        self._size = 0

    def __enter__(self) -> TarWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write(END)
            self._write(bytes(-self._size % tarfile.RECORDSIZE))

    def file(
        self, name: str, content: bytes | IO[bytes], size: int = 0, *, executable: bool = False, date: int = EPOCH
    ) -> None:
        """Add a file with mode 755 or 644. If the content is a file object, its size must be given."""
        if isinstance(content, bytes):
            size, content = len(content), io.BytesIO(content)
        self.add(self._entry(name, date, 0o755 if executable else 0o644, size=size), content)

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        self.add(self._entry(name, EPOCH, 0o777, type=tarfile.SYMTYPE, linkname=target))

    def folder(self, name: str, *, date: int = EPOCH) -> None:
        """Add a folder with mode 755."""
        self.add(self._entry(name, date, 0o755, type=tarfile.DIRTYPE))

    def add(self, entry: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
        """Add an entry unchanged, with its content if it has one.

        Raises:
            FileError: the content is shorter than the entry's size.
        """
        self._write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if content is None:
            return
        missing = entry.size
        while missing:
            chunk = content.read(min(missing, _CHUNK))
            if not chunk:
                raise FileError(f"{entry.name} became shorter while it was read", next="the same command again")
            self._write(chunk)
            missing -= len(chunk)
        self._write(padding(entry.size))

    def _entry(self, name: str, date: int, mode: int, **fields: object) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(name)
        fields |= {"mtime": date, "mode": mode, "uid": self._owner, "gid": self._owner}
        for field, value in fields.items():
            setattr(entry, field, value)
        return entry

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._size += len(data)


class HashedWriter:
    """A file that computes the sha256 of what is written to it; the bytes go on to another file if one is given."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        return self._file.write(data) if self._file else len(data)


def section(file: IO[bytes], start: int, size: int) -> IO[bytes]:
    """Return a part of a seekable file as a file of its own."""
    return cast(IO[bytes], _Section(file, start, size))


class _Section(io.RawIOBase):
    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file, self._start, self._size, self._at = file, start, size, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        rest = max(self._size - self._at, 0)
        self._file.seek(self._start + self._at)
        data = self._file.read(rest if size < 0 else min(size, rest))
        self._at += len(data)
        return data


def padding(size: int) -> bytes:
    """Return the padding after a content of this size in bytes."""
    return bytes(-size % tarfile.BLOCKSIZE)
