"""Write tars whose bytes depend on their content only. No other module writes one.

FORMAT of the modules that use this one covers these bytes, too; tests/test_format.py compares them.
"""

from __future__ import annotations

import io
import tarfile
from typing import IO

from toolchains.system.errors import FileError

# The date that everything built here carries: 2026-01-01 in seconds. Files that are older keep their own.
EPOCH = 1767225600
# Two empty blocks end a tar.
END = bytes(2 * tarfile.BLOCKSIZE)
_CHUNK = 4 << 20


class TarWriter:
    """Writes a plain tar: entries as they come, and the end when the context is left without an error.

    What ustar cannot express, such as long names, is in PAX headers. Unlike tarfile, it keeps nothing of an entry that
    is written: a tree of 100 000 files needs no more memory than one of ten.

    Args:
        out: open for writing.
        owner: number of the user and of the group that files, links and folders belong to.
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
        """Add a file with mode 755 or 644; a content that is to be read needs its size."""
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
        """Add an entry as it is, with its content if it has one.

        Raises:
            FileError: the content is shorter than the entry says.
        """
        self._write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if content is None:
            return
        left = entry.size
        while left:
            chunk = content.read(min(left, _CHUNK))
            if not chunk:
                raise FileError(f"{entry.name} became shorter while it was read", next="the same command again")
            self._write(chunk)
            left -= len(chunk)
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


def padding(size: int) -> bytes:
    """Return what comes after a content of so many bytes."""
    return bytes(-size % tarfile.BLOCKSIZE)
