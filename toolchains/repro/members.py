"""Read containers of files as lists of entries that can be compared: folders, tars, zips and wheels, ar archives.

What a container does not keep, such as the owner in a zip, is "" for all of its entries.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, cast

from toolchains.archives import ar_file, tar_file

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# The member that has long names; "/12" names the one at its byte 12.
_AR_NAMES = "//"
_TAR_MAGIC = 257, b"ustar"
_TAR_KINDS = {
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.LNKTYPE: "hard link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "pipe",
}


@dataclass(frozen=True)
class Member:
    """An entry of a container, with its metadata as text for people.

    Attributes:
        name: its path in the container.
        kind: "file", "folder", "symbolic link", "hard link", "device", "pipe".
        open: returns its content as a seekable file; only called for files.
        more: further properties by their names, such as extended attributes.
    """

    name: str
    kind: str = "file"
    open: Callable[[], IO[bytes]] = io.BytesIO
    mode: str = ""
    owner: str = ""
    time: str = ""
    link: str = ""
    more: Mapping[str, str] = field(default_factory=dict)


def read(file: IO[bytes], closing: ExitStack) -> tuple[str, list[Member]] | None:
    """Return the kind of an archive, and its entries in their order; None for a file that is no archive.

    Args:
        file: the archive, seekable; it must stay open as long as the entries are used.
        closing: closes what was opened.

    Raises:
        Exception: the archive is damaged: what tarfile, zipfile and int raise for that.
    """
    file.seek(0)
    start = file.read(_TAR_MAGIC[0] + len(_TAR_MAGIC[1]))
    file.seek(0)
    if start.startswith(_ZIP):
        return "zip", list(_zip_entries(closing.enter_context(zipfile.ZipFile(file))))
    if start.startswith(ar_file.MAGIC):
        return "ar", list(_ar_entries(file))
    if start[_TAR_MAGIC[0] :] == _TAR_MAGIC[1]:
        return "tar", list(_tar_entries(closing.enter_context(tar_file.opened(file, "r:"))))
    return None


def of_folder(folder: Path, without: Collection[str] = ()) -> list[Member]:
    """Return the files, links and empty folders below a folder, sorted. Owners, times and modes are this machine's own.

    Args:
        without: names of topmost files to leave out.
    """
    entries = []
    for top, folders, files in os.walk(folder):
        linked = [name for name in folders if Path(top, name).is_symlink()]
        if not folders and not files and Path(top) != folder:
            entries.append(Member(Path(top).relative_to(folder).as_posix(), "folder"))
        for path in (Path(top, name) for name in (*files, *linked)):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink():
                entries.append(Member(name, "symbolic link", link=os.readlink(path)))  # noqa: PTH115
            elif not stat.S_ISREG(path.stat().st_mode):
                entries.append(Member(name, "pipe or device"))
            elif name not in without:
                entries.append(Member(name, open=partial(_of_folder, path)))
    return sorted(entries, key=lambda entry: entry.name)


def _of_folder(path: Path) -> IO[bytes]:
    return path.open("rb")


def _tar_entries(tar: tarfile.TarFile) -> Iterator[Member]:
    for member in tar:
        kind = _TAR_KINDS.get(member.type, "file")
        own = {"path", "linkpath", "size", "uid", "gid", "uname", "gname", "mtime"}
        more = {key: value for key, value in member.pax_headers.items() if key not in own}
        if kind == "device":
            more["device"] = f"{member.devmajor},{member.devminor}"
        yield Member(
            member.name,
            kind,
            partial(_of_tar, tar, member),
            mode=f"{member.mode:04o}",
            owner=f"{member.uid}:{member.gid}" + (f" ({member.uname}:{member.gname})" * bool(member.uname)),
            time=_time(member.mtime),
            link=member.linkname,
            more=more,
        )


def _of_tar(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    return cast(IO[bytes], tar.extractfile(member))


def _zip_entries(archive: zipfile.ZipFile) -> Iterator[Member]:
    for member in archive.infolist():
        more = {"compression": str(member.compress_type), "made on": str(member.create_system)}
        more |= {"extra field": member.extra.hex(), "comment": repr(member.comment), "flags": str(member.flag_bits)}
        year, month, day, hour, minute, second = member.date_time
        yield Member(
            member.filename,
            "folder" if member.is_dir() else "file",
            partial(archive.open, member),
            mode=f"{member.external_attr >> 16:06o}",
            time=f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}",
            more=more,
        )


def _ar_entries(file: IO[bytes]) -> Iterator[Member]:
    names = b""
    for member in ar_file.members(file):
        name = member.name
        if name == _AR_NAMES:
            names = file.read(member.size)
        elif name[:1] == "/" and name[1:].isdecimal():
            name = names[int(name[1:]) :].partition(b"\n")[0].decode("latin-1")
        time = _time(int(member.date)) if member.date else ""
        owner = f"{member.user}:{member.group}" if member.user else ""
        content = partial(_piece, file, member.start, member.size)
        yield Member(name.rstrip("/") or name, "file", content, member.mode, owner, time)


def _piece(file: IO[bytes], start: int, size: int) -> IO[bytes]:
    file.seek(start)
    return io.BytesIO(file.read(size))


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(" ").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return str(seconds)
