"""Find the machine's sources of Debian packages: read its apt configuration for use with another suite."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolchains.system.errors import MissingToolError, UsageError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_APT = Path("/etc/apt")
_VARIABLE = "FOUNDRY_DEBIAN_SOURCES"
# One-line entries, and deb822.
_SUFFIXES = (".list", ".sources")
_ADVICE = (
    f"set {_VARIABLE} to a file of apt sources (.list or .sources) that names a Debian archive, "
    "and install debian-archive-keyring"
)


@dataclass(frozen=True)
class Archive:
    """A Debian archive.

    Attributes:
        uri: the archive's root.
        pocket: the text after the suite's name: "", "-updates" or "-security".
        options: apt's options in brackets, including the key that signs the archive.
    """

    uri: str
    pocket: str
    options: str

    def line(self, suite: str, kind: str = "deb") -> str:
        """Return the archive's line in sources.list for a suite: for packages, or for sources ("deb-src")."""
        return f"{kind} [{self.options}] {self.uri} {suite}{self.pocket} main"


def archives() -> list[Archive]:
    """Return the Debian archives that this machine uses, each with its pocket.

    A machine that is not Debian has none: its apt sources look the same, but have another distribution's packages. Only
    entries with the component main that are signed by Debian's keys are used, because a vendor's repository for the
    same suite has other packages. FOUNDRY_DEBIAN_SOURCES names a file to read instead.

    Raises:
        UsageError: no archive was found.
        MissingToolError: Debian's keys are not installed.
    """
    named = named_file()
    files: list[Path] = []
    # Derived distributions have other archives.
    is_debian = False
    with suppress(OSError):
        is_debian = platform.freedesktop_os_release()["ID"] == "debian"
    if named:
        files = [named]
    elif is_debian:
        files = [_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))]
    known: dict[tuple[str, str], Archive] = {}
    for file in files:
        if file.is_file() and file.suffix in _SUFFIXES:
            for uri, pocket in _entries(file.read_text(), deb822=file.suffix == ".sources"):
                known[uri, pocket] = Archive(uri, pocket, f"signed-by={KEYRING}")
    if not any(pocket == "" for _, pocket in known):
        raise UsageError("no Debian archive is known to this machine", next=_ADVICE)
    if not KEYRING.is_file():
        raise MissingToolError(
            f"Debian's archive keys are not installed: {KEYRING}", next="apt-get install debian-archive-keyring"
        )
    return list(known.values())


def named_file() -> Path | None:
    """Return the file that FOUNDRY_DEBIAN_SOURCES names; None if the variable is not set.

    Raises:
        UsageError: there is no such file, or its name does not say which form it has.
    """
    text = os.environ.get(_VARIABLE)
    if not text:
        return None
    file = Path(text)
    if not file.is_file():
        raise UsageError(f"{_VARIABLE}={text}: there is no such file", next=_ADVICE)
    if file.suffix not in _SUFFIXES:
        raise UsageError(f"{_VARIABLE}={text}: its name must end with {' or '.join(_SUFFIXES)}", next=_ADVICE)
    return file


def _entries(text: str, *, deb822: bool) -> Iterator[tuple[str, str]]:
    """Yield URI and pocket of each usable entry."""
    for entry in _deb822(text) if deb822 else _one_line(text):
        signed_by = entry.get("signed-by", "")
        usable = (
            "deb" in entry["types"].split()
            and "main" in entry["components"].split()
            and entry.get("enabled", "yes").lower() not in ("no", "false")
            and (not signed_by or "debian-archive" in signed_by)
        )
        if not usable:
            continue
        for suite in entry["suites"].split():
            match = re.fullmatch(r"[a-z]+(|-updates|-security)", suite)
            if match:
                yield from ((uri, match[1]) for uri in entry["uris"].split())


def _deb822(text: str) -> Iterator[dict[str, str]]:
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        fields = re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE)
        entry = {name.lower(): value.strip() for name, value in fields}
        if {"types", "uris", "suites", "components"} <= entry.keys():
            yield entry


def _one_line(text: str) -> Iterator[dict[str, str]]:
    for match in re.finditer(r"^(deb)\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+([^#\n]+)", text, re.MULTILINE):
        types, options, uris, suites, components = match.groups(default="")
        signed_by = re.search(r"signed-by=(\S+)", options)
        yield {
            "types": types,
            "uris": uris,
            "suites": suites,
            "components": components,
            "signed-by": signed_by[1] if signed_by else "",
        }


def sources_list(suite: str, archives: Sequence[Archive], kind: str = "deb", extra: Sequence[str] = ()) -> str:
    """Return the complete sources.list for a suite; see Archive.line.

    Args:
        extra: further suites: "trixie-backports". They are in the archives that have the suite itself, and not in those
            of its updates.
    """
    lines = [archive.line(suite, kind) for archive in archives]
    lines += [archive.line(other, kind) for other in extra for archive in archives if not archive.pocket]
    return "".join(f"{line}\n" for line in lines)
