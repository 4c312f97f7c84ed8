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
from dataclasses import dataclass

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
        link = next((path for path in (name, *_above(name)) if path in entries and entries[path].link), None)
        if link is None:
            return name
        inner = name.removeprefix(link).lstrip("/")
        name = posixpath.normpath(posixpath.join(posixpath.dirname(link), entries[link].link, inner))
    return ""


class _Check:
    def __init__(
        self, kind: VendorSdk, entries: Mapping[str, PrefixEntry], home: str, provided: Provided, python: str
    ) -> None:
        self._kind = kind
        self._entries = entries
        self._home = home
        self._provided = provided
        self._python = python
        self._elfs: dict[str, Elf | None] = {}
        # The paths in the SDK of the files with each base name.
        self._places: dict[str, list[str]] = {}
        for name in sorted(entries):
            self._places.setdefault(posixpath.basename(name), []).append(name)

    def findings(self) -> Iterator[Finding]:
        used = []
        for need in self._kind.needs:
            found = resolve_links(self._entries, need)
            if found is None and self._of_image(need):
                yield Finding(need, f"is a link to the image's own {self._of_image(need)}", fatal=False)
            elif found is None:
                yield Finding("", f"it has no {need}{self._leads(need)}")
            else:
                used.append(found)
                yield from self._usable(need, self._entries[found])
        for folder, functions in self._kind.defines.items():
            defining = list(self._defining(folder, functions))
            used += defining
            linked = [name for name in sorted(self._inside(folder)) if self._of_image(name)]
            for name in linked:
                yield Finding(name, f"is a link to the image's own {self._of_image(name)}", fatal=False)
            if not defining and not linked:
                yield Finding("", f"it has no library in {folder}/ that defines {' or '.join(functions)}")
        reached = self._reached(used)
        for name in sorted({*reached, *filter(self._on_host, self._entries)}):
            yield from self._runs(name, used=name in reached)

    def _leads(self, name: str) -> str:
        entry = self._entries.get(name)
        return f", only a link to {entry.link}, which is not in it" if entry else ""

    def _of_image(self, name: str) -> str:
        """Return the library of the image that a link leads to, or ""."""
        folder, library = posixpath.split(_followed(self._entries, name))
        return library if folder in _LIBRARIES and self._provided.has(library) else ""

    def _inside(self, folder: str) -> list[str]:
        return [name for name in self._entries if posixpath.dirname(name) == folder]

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
        words = start[2:].partition(b"\n")[0].decode(errors="replace").split()
        program = next(iter(words), "")
        if posixpath.basename(program) == "env":
            program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        elif program.startswith("/") and posixpath.dirname(program) not in ("/bin", "/usr/bin"):
            inside = posixpath.relpath(program, self._home)
            if resolve_links(self._entries, inside) is None:
                yield Finding(need, f"is a script for {program}, which this image does not have")
            return
        known = (*_INTERPRETERS, f"python{self._python}")
        if posixpath.basename(program) not in (*known, "python"):
            yield Finding(need, f"is a script for {program or 'nothing'}; this image has {', '.join(known)}")

    def _defining(self, folder: str, functions: Iterable[str]) -> Iterator[str]:
        """Yield the libraries directly in a folder, or that its links lead to, which define one of the functions."""
        names = {resolve_links(self._entries, name) for name in self._inside(folder)}
        for name in sorted(filter(None, names)):
            with self._entries[name].open() as file:
                if file.read(len(elf.MAGIC)) != elf.MAGIC:
                    continue
                file.seek(0)
                try:
                    found = elf.read(file, functions)
                except DamagedElfError:
                    continue
            if found.exports:
                yield name

    def _reached(self, used: Iterable[str]) -> set[str]:
        """Return the used files, and the files of the SDK that the loader loads for them."""
        reached: set[str] = set()
        waiting = list(used)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                found = self._elf(name)
                inside = (self._library(name, found, soname) for soname in found.needed) if found else ()
                waiting += filter(None, inside)
        return reached

    def _on_host(self, name: str) -> bool:
        return posixpath.dirname(name) in self._kind.host and not self._entries[name].link

    def _elf(self, name: str) -> Elf | None:
        """Return the content of a file's headers; None if it is not an ELF file.

        For a damaged file it is None too; the damage is reported where the file is checked.
        """
        if name not in self._elfs:
            try:
                self._elfs[name] = self._read(name)
            except DamagedElfError:
                self._elfs[name] = None
        return self._elfs[name]

    def _read(self, name: str) -> Elf | None:
        with self._entries[name].open() as file:
            if file.read(len(elf.MAGIC)) != elf.MAGIC:
                return None
            file.seek(0)
            return elf.read(file)

    def _runs(self, name: str, *, used: bool) -> Iterator[Finding]:
        found = self._elf(name)
        if found is None:
            try:
                self._read(name)
            except DamagedElfError as error:
                yield Finding(name, f"is a damaged ELF file: {error}")
            return
        # A process does not run objects and kernel modules.
        if found.kind not in ("ET_EXEC", "ET_DYN"):
            return
        if (found.machine, found.bits, found.little) != ("x64", 64, True):
            order = "" if found.little else ", big-endian"
            yield Finding(name, f"is for {found.machine} with {found.bits} bits{order}; this image is x86-64")
            return
        if found.abi not in _ABIS:
            system = found.abi.removeprefix("ELFOSABI_")
            yield Finding(name, f"is for another system than Linux: its OS ABI is {system}")
            return
        if found.hidden:
            yield Finding(name, "has no section headers: which versions it needs was not seen", fatal=False)
        loader = posixpath.basename(found.interpreter)
        if loader and not self._provided.has(loader):
            yield Finding(name, f"asks for the loader {found.interpreter}, which this image does not have")
        for soname in found.needed:
            yield from self._needed(name, found, soname, used=used)

    def _needed(self, name: str, found: Elf, soname: str, *, used: bool) -> Iterator[Finding]:
        inside = self._library(name, found, soname)
        if inside is not None:
            giver = self._elf(inside)
            # If a library defines no versions at all, the loader only warns.
            if giver and giver.defined and (missing := set(found.versions.get(soname, ())) - giver.defined):
                yield Finding(name, f"needs {_list(missing)} of {soname}, which the SDK's {inside} does not define")
            return
        if not self._provided.has(soname):
            elsewhere = self._places.get(soname)
            if elsewhere:
                looked = ":".join([*found.search, *(f"{self._home}/{folder}" for folder in self._kind.search)])
                where = f"is at {elsewhere[0]}, where the loader does not look ({looked})"
                yield Finding(name, f"needs {soname}, which {where}", fatal=False)
            else:
                yield Finding(name, f"needs {soname}, which neither the SDK nor this image has", fatal=used)
            return
        defined = self._provided.versions(soname)
        if defined is not None:
            missing = set(found.versions.get(soname, ())) - defined
            for version in _highest_of_each(missing):
                known = highest(defined, version)
                has = f"up to {known}" if known else "none like it"
                yield Finding(name, f"needs {version} of {soname}; this image has {has} ({self._provided.runtime})")

    def _library(self, name: str, found: Elf, soname: str) -> str | None:
        """Return the file of the SDK that the loader would use for a library; None if it uses none of them."""
        folders = (*(self._folder(name, folder) for folder in found.search), *self._kind.search)
        for folder in folders:
            if folder is not None:
                inside = resolve_links(
                    self._entries, posixpath.normpath(posixpath.join(folder, posixpath.basename(soname)))
                )
                if inside is not None:
                    return inside
        return None

    def _folder(self, name: str, folder: str) -> str | None:
        """Return a folder of DT_RUNPATH as a folder of the SDK, or None if it is elsewhere."""
        own = posixpath.join(self._home, posixpath.dirname(name))
        path = posixpath.normpath(folder.replace("${ORIGIN}", own).replace("$ORIGIN", own))
        inside = posixpath.relpath(path, self._home) if path.startswith("/") else ".."
        return None if inside == ".." or inside.startswith("../") else inside


def _highest_of_each(versions: Iterable[str]) -> list[str]:
    """Return the highest version of each name: for GLIBC_2.98, GLIBC_2.99 and CXXABI_9, the last two."""
    best = {version.rpartition("_")[0]: version for version in sorted(versions, key=version_key)}
    return sorted(best.values())


def _list(versions: Iterable[str]) -> str:
    return ", ".join(sorted(versions, key=version_key))


def _above(name: str) -> Iterator[str]:
    """Yield the parent folders of a file, the innermost first."""
    folder = posixpath.dirname(name)
    while folder and folder != "/":
        yield folder
        folder = posixpath.dirname(folder)
