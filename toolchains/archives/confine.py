"""Refuse names that lead out of their folder.

Code that takes a path or a file name from outside checks it here before use: patches, the lock, wheels, tars, SDKs,
source trees, files from a container. All of them follow one rule, which looks only at the text of the name. Use
path_below() to write into a folder that may contain links: it checks the folder as well.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from toolchains.system.errors import FoundryError, UnsafeArchiveError

_SHA256 = re.compile("[0-9a-f]{64}")
_HASH = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_WORD = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+~:!-]*")


def relative_path(
    path: str, called: str, *, error: type[FoundryError] = UnsafeArchiveError, backslash: bool = False
) -> str:
    """Return a relative path in its normal form, "a/b" for "./a//b".

    Args:
        called: where the path came from, for the message.
        backslash: accept names with a backslash. Only whole file systems have such names; a tool that takes the
            backslash for a separator would leave the folder.

    Raises:
        error: it is empty or absolute, or has "..", NUL, or a backslash.
    """
    why = (
        "it is empty"
        if not path
        else "it is absolute"
        if path.startswith("/")
        else "it has .. in it"
        if ".." in path.split("/")
        else "it has a NUL in it"
        if "\0" in path
        else "it has a backslash in it"
        if "\\" in path and not backslash
        else ""
    )
    if why:
        raise error(
            f"{called} has a path that leaves its folder: {path if path.isprintable() else repr(path)}",
            why=why,
            next="do not use it, and find out who made it; a path must be relative and without ..",
        )
    return posixpath.normpath(path)


def name(text: str, called: str, *, error: type[FoundryError] = UnsafeArchiveError) -> str:
    """Return the name of a file or folder: one part of a path.

    Raises:
        error: see relative_path; or the name has a separator, or is ".".
    """
    relative_path(text, called, error=error)
    if "/" in text or text == ".":
        raise error(
            f"{called} has a name that is not the name of one file: {text!r}", next="a name must not have a / in it"
        )
    return text


def word(text: str, called: str, *, error: type[FoundryError] = UnsafeArchiveError) -> str:
    """Return a name or a version that is passed to other programs on their command line.

    Raises:
        error: see name; or it has a blank or a control character, or could be taken for an option.
    """
    name(text, called, error=error)
    if not _WORD.fullmatch(text):
        raise error(
            f"{called} has {text!r} where a name or a version is expected",
            next="it must consist of letters, digits and . _ + ~ : ! - and start with a letter or a digit",
        )
    return text


def sha256(text: str, called: str, *, error: type[FoundryError] = UnsafeArchiveError) -> str:
    """Return a sha256 in hexadecimal; raise the error if it is malformed."""
    return _matched(_SHA256, text, "sha256", called, error)


def commit(text: str, called: str, *, error: type[FoundryError] = UnsafeArchiveError) -> str:
    """Return the hash of a git object, in hexadecimal; raise the error if it is malformed."""
    return _matched(_HASH, text, "hash of git", called, error)


def _matched(pattern: re.Pattern[str], text: str, what: str, called: str, error: type[FoundryError]) -> str:
    if not pattern.fullmatch(text):
        raise error(f"{called} has a malformed {what}: {text!r}", next="it must be in lower-case hexadecimal digits")
    return text


def path_below(folder: Path, path: str, called: str, *, error: type[FoundryError] = UnsafeArchiveError) -> Path:
    """Return the path of an entry inside a folder of this machine.

    Raises:
        error: see relative_path; or a link in the folder leads out of it.
    """
    place = folder / relative_path(path, called, error=error)
    if not place.resolve().is_relative_to(folder.resolve()):
        raise error(
            f"{called} has a path that leaves {folder} through a link: {path}",
            why=f"it leads to {place.resolve()}",
            next="remove the link, or give a folder without it",
        )
    return place


def refuse_entries_through_links(links: Collection[str], names: Collection[str], called: str) -> None:
    """Refuse entries that would be written through a link of the same archive.

    Raises:
        UnsafeArchiveError: a parent folder of one of the names is a link.
    """
    for name in names:
        if any(folder in links for folder in parent_folders(name)):
            raise UnsafeArchiveError(
                f"{called} has an entry that would be written through a link: {name}",
                next="do not use it, and find out who made it",
            )


def parent_folders(name: str) -> Iterator[str]:
    """Yield the folders that a name is in, the innermost first."""
    at = name.rfind("/")
    while at > 0:
        yield name[:at]
        at = name.rfind("/", 0, at)
