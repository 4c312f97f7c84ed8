"""Read a wheel's entries, and write a wheel whose bytes depend only on its content."""

from __future__ import annotations

import base64
import configparser
import csv
import errno
import hashlib
import io
import re
import shutil
import stat
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from toolchains.archives import confine
from toolchains.archives.tar_file import reading
from toolchains.system.errors import UnsafeArchiveError

# The revision of the bytes written: raise it whenever they change. It is part of the identity of artifacts.
FORMAT = 1
# The earliest date that zip can express.
_DATE = (1980, 1, 1, 0, 0, 0)
_RECORD = re.compile(r"[^/]+\.dist-info/RECORD")


@contextmanager
def opened(wheel: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a wheel for reading.

    Raises:
        UnsafeArchiveError: it is damaged.
    """
    with reading(f"{wheel if isinstance(wheel, Path) else 'a wheel'} is damaged"), zipfile.ZipFile(wheel) as archive:
        try:
            yield archive
        except OSError as error:
            # A damaged table makes zipfile seek even to before the file, and bz2 reports damage as OSError.
            raise zipfile.BadZipFile(str(error)) if error.errno in (None, errno.EINVAL) else error from error


def wheel_files(wheel: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """Yield the files of a wheel.

    Raises:
        UnsafeArchiveError: an entry would be installed outside its folder, or is a link.
    """
    for entry in wheel.infolist():
        # The unchanged name from the archive: entry.filename is cut at a NUL.
        confine.relative_path(entry.orig_filename, str(wheel.filename))
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise UnsafeArchiveError(f"{wheel.filename} has an entry that is a link: {entry.filename}")
        if not entry.is_dir():
            yield entry


class WheelWriter:
    """Writes a wheel: files as they are added, RECORD at the end.

    Files are stored, not compressed: deflate's output differs between versions of zlib, and nobody downloads them.

    Args:
        path: of the new wheel.
        info: name of the wheel's .dist-info folder.
    """

    def __init__(self, path: Path, info: str) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)
        self._record = f"{info}/RECORD"
        self._rows: list[tuple[str, str, int | str]] = []

    def add(self, name: str, content: bytes | Path, *, executable: bool = False) -> None:
        """Add a file; the caller must add files in sorted order."""
        entry = self._entry(name, executable)
        if isinstance(content, Path):
            with content.open("rb") as source:
                digest = hashlib.file_digest(source, "sha256")
                entry.file_size = source.tell()
                source.seek(0)
                with self._writing(), self._zip.open(entry, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        else:
            digest = hashlib.sha256(content)
            with self._writing():
                self._zip.writestr(entry, content)
        encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        self._rows.append((name, f"sha256={encoded}", entry.file_size))

    def close(self) -> None:
        """Write RECORD, which lists itself without a hash, and finish the file."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([*self._rows, (self._record, "", "")])
        with self._writing():
            self._zip.writestr(self._entry(self._record, False), text.getvalue())
            self._zip.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Otherwise a ZipFile writes its end when it is deleted, and prints a traceback if the disk is full.
            self._zip.fp = None
            raise

    def _entry(self, name: str, executable: bool) -> zipfile.ZipInfo:
        entry = zipfile.ZipInfo(name, _DATE)
        entry.create_system = 3  # Unix; Python's default is the system it runs on
        entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        return entry


def read_files(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel by their names, without RECORD."""
    with opened(wheel) as archive:
        names = [entry.filename for entry in wheel_files(archive)]
        return {name: archive.read(name) for name in names if not _RECORD.fullmatch(name)}


def executables(wheel: Path) -> set[str]:
    """Return the names of a wheel's executable files."""
    with opened(wheel) as archive:
        return {entry.filename for entry in wheel_files(archive) if entry.external_attr >> 16 & 0o111}


def write_files(path: Path, info: str, files: Mapping[str, bytes | Path], executable: Collection[str]) -> None:
    """Write a wheel of these files, some of which are executable."""
    writer = WheelWriter(path, info)
    for name in sorted(files):
        writer.add(name, files[name], executable=name in executable)
    writer.close()


def drop_missing_entry_points(text: str, names: Collection[str]) -> str:
    """Return the text of entry_points.txt without entries for modules that are not among a wheel's files."""
    old = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    new = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    # Entry points are case-sensitive; ConfigParser by default is not.
    old.optionxform = new.optionxform = str  # type: ignore[assignment,method-assign]
    old.read_string(text)

    def exists(module: str) -> bool:
        path = module.strip().replace(".", "/")
        return f"{path}.py" in names or f"{path}/__init__.py" in names

    for section in old.sections():
        kept = {name: value for name, value in old[section].items() if exists(value.partition(":")[0])}
        if kept:
            new[section] = kept
    result = io.StringIO()
    new.write(result)
    return result.getvalue()
