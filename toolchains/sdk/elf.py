"""Read the headers of an ELF file: its machine, its needs of other libraries, and its definitions for them.

pyelftools reads the file. The names are those of the ELF specification and of the System V ABI.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, cast

from elftools.elf.dynamic import DynamicSection, DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.segments import InterpSegment

MAGIC = b"\x7fELF"
# vna_flags: the loader only warns if such a version is missing. vd_flags: not a version, but the file's own name.
_WEAK, _BASE = 2, 1
# A file may be read this often, and once more for each of its bytes. libstdc++ needs one read for eight bytes.
_READS = 1 << 16


class DamagedElfError(ValueError):
    """A file that starts like an ELF file but cannot be read as one."""


@dataclass(frozen=True)
class Elf:
    """One ELF file.

    Attributes:
        machine: pyelftools' name, such as "x64" or "AArch64".
        bits: 32 or 64.
        little: whether it is little-endian.
        abi: the OS ABI, "ELFOSABI_SYSV".
        kind: the object file type, "ET_DYN".
        interpreter: the loader that a program requests.
        soname: the name by which other files need it.
        needed: the sonames of the libraries that it needs.
        search: the folders in which it looks for them: DT_RUNPATH, or otherwise DT_RPATH.
        versions: by soname, the versions that it needs of that library; without weak ones.
        defined: the versions that it defines.
        exports: the requested functions that it defines.
        hidden: whether it needs versions that cannot be read, because it has no section headers.
    """

    machine: str
    bits: int
    little: bool
    abi: str
    kind: str
    interpreter: str = ""
    soname: str = ""
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defined: frozenset[str] = frozenset()
    exports: frozenset[str] = frozenset()
    hidden: bool = False


def read(stream: IO[bytes], functions: Iterable[str] = ()) -> Elf:
    """Read an ELF file.

    Args:
        stream: the file, seekable.
        functions: the functions to look for in its exports.

    Raises:
        DamagedElfError: it is not an ELF file, or it is damaged.
    """
    try:
        return _read(ELFFile(cast(IO[bytes], _Limited(stream))), functions)
    except Exception as error:
        # In a damaged file, each table may point anywhere; pyelftools does not catch the resulting exceptions of
        # Python.
        raise DamagedElfError(str(error) or type(error).__name__) from error


def find(stream: IO[bytes], functions: Iterable[str] = ()) -> Elf | None:
    """Read a file like read(); return None if it does not start like an ELF file."""
    start = stream.read(len(MAGIC))
    stream.seek(0)
    return read(stream, functions) if start == MAGIC else None


class _Limited:
    """A file that can be read a limited number of times.

    A table of a damaged file may have 2^64 entries, each of which is the same one; pyelftools would read them all.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._size = stream, stream.seek(0, io.SEEK_END)
        self._left = _READS + self._size
        self.seek, self.tell = stream.seek, stream.tell
        self.seek(0)

    def read(self, size: int = -1) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise ValueError("its tables have no end")
        # Python allocates as much as is asked for.
        return self._stream.read(min(size, self._size))


def _read(file: ELFFile, functions: Iterable[str]) -> Elf:
    # A loader finds the dynamic section through its segment: a file may have no section headers.
    segment = next((part for part in file.iter_segments() if isinstance(part, DynamicSegment)), None)
    dynamic = segment or next((part for part in file.iter_sections() if isinstance(part, DynamicSection)), None)
    tags: dict[str, list[str]] = {}
    versioned = False
    if dynamic:
        for tag in dynamic.iter_tags():
            versioned |= tag.entry.d_tag == "DT_VERNEED"
            # Only strings are needed; which attribute has the string depends on the tag.
            for attribute in ("needed", "soname", "runpath", "rpath"):
                if hasattr(tag, attribute):
                    tags.setdefault(attribute, []).append(getattr(tag, attribute))
    search = [folder for path in tags.get("runpath") or tags.get("rpath") or () for folder in path.split(":") if folder]
    programs = [segment for segment in file.iter_segments() if isinstance(segment, InterpSegment)]
    needed = [section for section in file.iter_sections() if isinstance(section, GNUVerNeedSection)]
    defined = [section for section in file.iter_sections() if isinstance(section, GNUVerDefSection)]
    return Elf(
        machine=file.get_machine_arch(),
        bits=file.elfclass,
        little=file.little_endian,
        abi=file["e_ident"]["EI_OSABI"],
        kind=file["e_type"],
        interpreter=programs[0].get_interp_name() if programs else "",
        soname=next(iter(tags.get("soname", ())), ""),
        needed=tuple(tags.get("needed", ())),
        search=tuple(search),
        versions={
            str(library.name): tuple(version.name for version in versions if not version["vna_flags"] & _WEAK)
            for section in needed
            for library, versions in section.iter_versions()
        },
        # The first name of an entry is the version's; the others are versions that it inherits.
        defined=frozenset(
            next(iter(names)).name
            for section in defined
            for entry, names in section.iter_versions()
            if not entry["vd_flags"] & _BASE
        ),
        exports=frozenset(
            name
            for name in functions
            if segment and any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in segment.get_symbol_by_name(name) or ())
        ),
        hidden=versioned and not needed,
    )
