"""Read what others made within limits: files of folders that users name, bodies of HTTP, archives that are unpacked.

A name in a folder may stand for a FIFO, for which a reader waits for ever, for a device without an end, or for a file
larger than memory. A server may send a byte every second for ever, and a small archive may unpack to more than a disk.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable
from io import BufferedReader
from pathlib import Path
from typing import IO, TypeVar

from toolchains.system.errors import FileError

# Bytes of a text that is read into memory: results of a run, a report. Reading JSON takes up to forty times as much.
TEXT = 64 << 20
# Bytes that a compressed archive may unpack to: twice the largest SDK that is known.
UNPACKED = 64 << 30
_CHUNK = 4 << 20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}
T = TypeVar("T")


def open_file(path: Path, most: int | None = None) -> BufferedReader:
    """Open a plain file for reading. A link to one is followed.

    Args:
        most: bytes that it may have.

    Raises:
        FileError: it is no plain file, or is larger.
        OSError: there is no such file, or it cannot be opened.
    """
    try:
        # A pipe would wait for its writer, and a terminal would become this process's.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise _no_file(path, stat.S_IFSOCK) from error
        raise
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _no_file(path, status.st_mode)
        if most is not None and status.st_size > most:
            raise _too_large(str(path), most)
        # So that its name is in errors of what reads it.
        return open(path, "rb", opener=lambda *_: handle)
    except BaseException:
        os.close(handle)
        raise


def read_file(path: Path, most: int = TEXT) -> bytes:
    """Return the content of a plain file.

    Raises:
        FileError, OSError: see open_file.
    """
    with open_file(path, most) as file:
        # It may grow meanwhile.
        return read(file, most, str(path))


def read(file: IO[bytes], most: int, what: str) -> bytes:
    """Return the rest of an open file, which `what` names in the error.

    Raises:
        FileError: it has more than `most` bytes.
    """
    content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(what, most)
    return content


def plain_files(folder: Path, most: int | None = None, *, without: str = "") -> dict[str, Path]:
    """Return the files below a folder by their relative names.

    Args:
        most: bytes that they may have together.
        without: the name of a file or folder that is left out.

    Raises:
        FileError: there is something else in it than files and folders, or they are larger.
        OSError: a folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    files_by_name, size = {}, 0
    for top, folders, files in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if name != without)
        for path in (Path(top, name) for name in (*folders, *sorted(files)) if name != without):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                files_by_name[path.relative_to(folder).as_posix()] = path
                size += status.st_size
            elif not stat.S_ISDIR(status.st_mode):
                raise _no_file(path, status.st_mode)
            if most is not None and size > most:
                raise _too_large(str(folder), most)
    return files_by_name


def copy(source: IO[bytes], target: IO[bytes], what: str, most: int = UNPACKED) -> None:
    """Copy all of a file, such as one that is unpacked while it is read.

    Args:
        what: names the source in the error.

    Raises:
        FileError: it has more than `most` bytes.
    """
    remaining = most
    while chunk := source.read(min(_CHUNK, remaining + 1)):
        remaining -= len(chunk)
        if remaining < 0:
            raise _too_large(f"{what}, unpacked,", most)
        target.write(chunk)


def collect(chunks: Iterable[bytes], most: int, what: str) -> bytes:
    """Return the bytes that arrive in chunks.

    Raises:
        FileError: there are more than `most`.
    """
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > most:
            raise _too_large(what, most)
    return bytes(content)


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what a function returns, which may wait for another machine.

    Raises:
        TimeoutError: it took longer. It is left behind in a thread that ends with this process.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    worker = threading.Thread(target=call, daemon=True)
    worker.start()
    worker.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer after {seconds:g} seconds")
    return done[0]


def _no_file(path: Path, mode: int) -> FileError:
    kind = _KINDS.get(stat.S_IFMT(mode), "something else")
    return FileError(f"{path} is not a plain file", why=f"it is {kind}", next="remove it, or name another file")


def _too_large(what: str, most: int) -> FileError:
    size = f"{most >> 20} MiB" if most >> 20 else f"{most} bytes"
    return FileError(f"{what} has more than {size}", next="do not use it, and find out who made it")
