"""Read ar archives, the form of Debian packages and of static libraries."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

MAGIC = b"!<arch>\n"
# The fields of a member's header: name, date, user, group, mode in octal, size, end.
_HEADER = struct.Struct("16s12s6s6s8s10s2s")
_END = "`"


@dataclass(frozen=True)
class ArMember:
    """A member: the fields of its header as they are written, and where its content is."""

    name: str
    date: str
    user: str
    group: str
    mode: str
    start: int
    size: int


def members(file: IO[bytes]) -> Iterator[ArMember]:
    """Yield the members of a seekable archive; while one is yielded, the file may be read at any place.

    Raises:
        ValueError: it is no archive, or damaged.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it is no ar archive")
    while header := file.read(_HEADER.size):
        here = file.tell() - len(header)
        if len(header) < _HEADER.size:
            raise ValueError(f"it ends within the header at byte {here}")
        name, date, user, group, mode, size, end = (
            field.decode("latin-1").rstrip() for field in _HEADER.unpack(header)
        )
        # A negative size would lead back to this header for ever.
        if end != _END or not size.isdecimal():
            raise ValueError(f"an ar archive has no header at byte {here}")
        start = here + _HEADER.size
        yield ArMember(name, date, user, group, mode, start, int(size))
        # Each header is at an even byte.
        file.seek(start + int(size) + int(size) % 2)
