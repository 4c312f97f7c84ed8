"""Check a vendor's SDK before anything is built: list what is missing or will not run in a target's image.

    files      the files that we need exist and are executable
    machine    files that run on the host are for x86-64 Linux, with glibc's loader
    versions   the libraries of C and C++ in the image define all versions that the SDK needs
    libraries  every other library that the SDK needs is in the SDK or in the image

Programs and libraries are checked in the folders that run on the host; other folders may be for the device. The files
that we use, and those that they need, must have their libraries; for other files there is only a notice.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from toolchains.archives.prefix import PrefixEntry
from toolchains.config.vendors import VendorSdk
from toolchains.sdk import elf
from toolchains.sdk.elf import DamagedElfError, Elf
from toolchains.sdk.libraries import Provided, highest, version_key

# The ABI of glibc, and that of its extensions.
_ABIS = ("ELFOSABI_SYSV", "ELFOSABI_LINUX")
# The interpreters that Debian's essential packages and Python's packages have in /usr/bin and that scripts ask for.
_INTERPRETERS = ("sh", "dash", "bash", "perl", "python3")
_LONGEST_LINE = 256
# The folders with the libraries of Debian's packages for x86-64; /lib is a link.
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu")
# The number of links that Linux follows.
_LINKS = 40


@dataclass(frozen=True, order=True)
class Finding:
    """A finding about a file; fatal if the SDK cannot be used because of it."""

    file: str
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.file} {self.text}" if self.file else self.text


def check_sdk(
    kind: VendorSdk, entries: Mapping[str, PrefixEntry], home: str, provided: Provided, python: str
) -> list[Finding]:
    """Return all findings about an SDK.

    Args:
        kind: the description of the expected SDK.
        entries: its files by their names in it.
        home: its path in the image.
        provided: the image's libraries.
        python: the version of the image's Python, "3.13".
    """
    return sorted(set(_Check(kind, entries, home, provided, python).findings()))


def resolve_links(entries: Mapping[str, PrefixEntry], name: str) -> str | None:
    """Return the file that a name leads to through links inside the SDK, or None."""
    end = _followed(entries, name)
    return end if end in entries else None


def _followed(entries: Mapping[str, PrefixEntry], name: str) -> str:
    """Follow links from a name: return a file of the SDK, a path that it does not have, or "" for a circle of links."""
    for _ in range(_LINKS):
        paths = [name, *map(str, PurePosixPath(name).parents)]
        link = next((path for path in paths if path in entries and entries[path].link), None)
        if link is None:
            return name
        inner = name.removeprefix(link).lstrip("/")
        name = posixpath.normpath(posixpath.join(posixpath.dirname(link), entries[link].link, inner))
    return ""


@dataclass
class _Check:
    """The findings about one SDK; for the attributes see check_sdk."""

    kind: VendorSdk
    entries: Mapping[str, PrefixEntry]
    home: str
    provided: Provided
    python: str
    # The headers of the files that were read so far: None for a file that is not an ELF file.
    _headers: dict[str, Elf | DamagedElfError | None] = field(default_factory=dict)

    def findings(self) -> Iterator[Finding]:
        used = []
        for need in self.kind.needs:
            name = resolve_links(self.entries, need)
            if name is not None:
                used.append(name)
                yield from self._usable(need, self.entries[name])
            elif library := self._of_image(need):
                yield Finding(need, f"is a link to the image's own {library}", fatal=False)
            else:
                entry = self.entries.get(need)
                link = f", only a link to {entry.link}, which is not in it" if entry else ""
                yield Finding("", f"it has no {need}{link}")
        for folder, functions in self.kind.defines.items():
            inside = [name for name in self.entries if posixpath.dirname(name) == folder]
            defining = list(self._defining(inside, functions))
            used += defining
            linked = [name for name in sorted(inside) if self._of_image(name)]
            for name in linked:
                yield Finding(name, f"is a link to the image's own {self._of_image(name)}", fatal=False)
            if not defining and not linked:
                yield Finding("", f"it has no library in {folder}/ that defines {' or '.join(functions)}")
        reached = self._reached(used)
        on_host = {
            name for name, entry in self.entries.items() if posixpath.dirname(name) in self.kind.host and not entry.link
        }
        for name in sorted(reached | on_host):
            yield from self._runs(name, used=name in reached)

    def _of_image(self, name: str) -> str:
        """Return the library of the image that a link leads to, or ""."""
        folder, library = posixpath.split(_followed(self.entries, name))
        return library if folder in _LIBRARIES and self.provided.has(library) else ""

    def _usable(self, need: str, entry: PrefixEntry) -> Iterator[Finding]:
        """Check that needed programs are executable files, and needed libraries ELF files."""
        with entry.open() as file:
            start = file.read(_LONGEST_LINE)
        if need.startswith("bin/"):
            if not entry.executable:
                yield Finding(need, "may not be executed: its mode lacks that right")
            if start.startswith(b"#!"):
                yield from self._interpreted(need, start)
            elif not start.startswith(elf.MAGIC):
                yield Finding(need, "is neither an ELF file nor a script")
        elif re.search(r"\.so(\.|$)", need) and not start.startswith(elf.MAGIC):
            yield Finding(need, "is not an ELF file")

    def _interpreted(self, need: str, start: bytes) -> Iterator[Finding]:
        """Check that the image has the interpreter of a script, which starts with these bytes."""
        words = start[2:].partition(b"\n")[0].decode(errors="replace").split()
        program = next(iter(words), "")
        if posixpath.basename(program) == "env":
            program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        elif program.startswith("/") and posixpath.dirname(program) not in ("/bin", "/usr/bin"):
            if resolve_links(self.entries, posixpath.relpath(program, self.home)) is None:
                yield Finding(need, f"is a script for {program}, which this image does not have")
            return
        known = (*_INTERPRETERS, f"python{self.python}")
        if posixpath.basename(program) not in (*known, "python"):
            yield Finding(need, f"is a script for {program or 'nothing'}; this image has {', '.join(known)}")

    def _defining(self, inside: Iterable[str], functions: Iterable[str]) -> Iterator[str]:
        """Yield those of these files, or of the files that they are links to, that define one of the functions."""
        names = {resolve_links(self.entries, name) for name in inside}
        for name in sorted(filter(None, names)):
            with self.entries[name].open() as file, suppress(DamagedElfError):
                header = elf.find(file, functions)
                if header and header.exports:
                    yield name

    def _reached(self, used: Iterable[str]) -> set[str]:
        """Return the used files, and the files of the SDK that the loader loads for them."""
        reached: set[str] = set()
        waiting = list(used)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                header = self._header(name)
                if isinstance(header, Elf):
                    waiting += filter(None, (self._library(name, header, soname) for soname in header.needed))
        return reached

    def _header(self, name: str) -> Elf | DamagedElfError | None:
        if name not in self._headers:
            with self.entries[name].open() as file:
                try:
                    self._headers[name] = elf.find(file)
                except DamagedElfError as error:
                    self._headers[name] = error
        return self._headers[name]

    def _runs(self, name: str, *, used: bool) -> Iterator[Finding]:
        """Check that a file runs in the image, or can be loaded there."""
        header = self._header(name)
        if isinstance(header, DamagedElfError):
            yield Finding(name, f"is a damaged ELF file: {header}")
        # A process does not run objects and kernel modules.
        elif header is None or header.kind not in ("ET_EXEC", "ET_DYN"):
            return
        elif (header.machine, header.bits, header.little) != ("x64", 64, True):
            order = "" if header.little else ", big-endian"
            yield Finding(name, f"is for {header.machine} with {header.bits} bits{order}; this image is x86-64")
        elif header.abi not in _ABIS:
            system = header.abi.removeprefix("ELFOSABI_")
            yield Finding(name, f"is for another system than Linux: its OS ABI is {system}")
        else:
            if header.hidden:
                yield Finding(name, "has no section headers: which versions it needs was not seen", fatal=False)
            loader = posixpath.basename(header.interpreter)
            if loader and not self.provided.has(loader):
                yield Finding(name, f"asks for the loader {header.interpreter}, which this image does not have")
            for soname in header.needed:
                yield from self._needed(name, header, soname, used=used)

    def _needed(self, name: str, header: Elf, soname: str, *, used: bool) -> Iterator[Finding]:
        """Check that there is a library which a file needs, with the versions that it needs."""
        wanted = set(header.versions.get(soname, ()))
        inside = self._library(name, header, soname)
        if inside is not None:
            library = self._header(inside)
            # If a library defines no versions at all, the loader only warns.
            if isinstance(library, Elf) and library.defined and (missing := wanted - library.defined):
                versions = ", ".join(sorted(missing, key=version_key))
                yield Finding(name, f"needs {versions} of {soname}, which the SDK's {inside} does not define")
            return
        if not self.provided.has(soname):
            elsewhere = min((path for path in self.entries if posixpath.basename(path) == soname), default=None)
            if elsewhere:
                looked = ":".join([*header.search, *(f"{self.home}/{folder}" for folder in self.kind.search)])
                where = f"is at {elsewhere}, where the loader does not look ({looked})"
                yield Finding(name, f"needs {soname}, which {where}", fatal=False)
            else:
                yield Finding(name, f"needs {soname}, which neither the SDK nor this image has", fatal=used)
            return
        defined = self.provided.versions(soname)
        if defined is not None:
            # Of each name the highest one: of GLIBC_2.98, GLIBC_2.99 and CXXABI_9, the last two.
            missing_by_name = {
                version.rpartition("_")[0]: version for version in sorted(wanted - defined, key=version_key)
            }
            for version in sorted(missing_by_name.values()):
                known = highest(defined, version)
                has = f"up to {known}" if known else "none like it"
                yield Finding(name, f"needs {version} of {soname}; this image has {has} ({self.provided.runtime})")

    def _library(self, name: str, header: Elf, soname: str) -> str | None:
        """Return the file of the SDK that the loader would use for a library; None if it uses none of them."""
        own = posixpath.join(self.home, posixpath.dirname(name))
        folders = []
        for folder in header.search:
            path = posixpath.normpath(folder.replace("${ORIGIN}", own).replace("$ORIGIN", own))
            inside = posixpath.relpath(path, self.home) if path.startswith("/") else ".."
            if inside != ".." and not inside.startswith("../"):
                folders.append(inside)
        for folder in (*folders, *self.kind.search):
            place = posixpath.normpath(posixpath.join(folder, posixpath.basename(soname)))
            if (library := resolve_links(self.entries, place)) is not None:
                return library
        return None
