"""A folder of packed kernels on this machine: reads what its manifest says, and compares it with the files.

The folder is a user's: it may be damaged, or made by somebody else. Nothing that the manifest says is used before it
was checked, and no file is read that it does not list with its size and sha256.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from toolchains.config import components
from toolchains.system import foreign, json_text
from toolchains.system.errors import FileError, UsageError

MANIFEST = "foundry.json"
# The format that this version writes and reads; FOUNDRY_PACKED_FORMAT of foundry_packed.h.
FORMAT = 1
# Where a user builds the library.
BUILT = "build"
# Bytes of a folder, and files in it.
_MOST = 1 << 30
_MOST_FILES = 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_AGAIN = "copy the folder again, or pack the kernels again"


@dataclass(frozen=True)
class ListedFile:
    bytes: int
    sha256: str


@dataclass(frozen=True)
class _Version:
    format: int
    version: str = ""


@dataclass(frozen=True)
class PackedFolder:
    """What the manifest of a folder says, checked.

    Attributes:
        name: of the folder's library and example.
        target: which device the kernels are for.
        files: by path in the folder.
    """

    name: str
    target: str
    files: dict[str, ListedFile]

    @property
    def example(self) -> str:
        """The path of the program that launches the kernels as recorded."""
        return f"bin/{self.name}_example"


def is_packed(folder: Path) -> bool:
    """Return whether a folder has a manifest."""
    return (folder / MANIFEST).is_file()


def read(folder: Path) -> tuple[PackedFolder, dict[str, Path]]:
    """Return what a folder's manifest says, and its files by path, all of which are as it says.

    Raises:
        FileError: the manifest or a file is damaged, there are other files, or the folder has links, pipes or devices.
        UsageError: another version wrote it.
    """
    manifest = folder / MANIFEST
    written = json_text.read(manifest, _Version)
    if written.format != FORMAT:
        raise UsageError(
            f"{folder} is of another version",
            why=f"its format is {written.format}, and this version of Foundry reads {FORMAT}",
            next="pack the kernels again, or run them with the version that packed them",
        )
    known = json_text.read(manifest, PackedFolder)
    if not _NAME.fullmatch(known.name) or known.target not in components.names():
        raise FileError(f"{manifest} is damaged", why="it names no kernels of a target", next=_AGAIN)
    if len(known.files) > _MOST_FILES:
        raise FileError(f"{manifest} is damaged", why=f"it lists more than {_MOST_FILES} files", next=_AGAIN)
    for path, listed in known.files.items():
        plain = PurePosixPath(path)
        if plain.is_absolute() or ".." in plain.parts or plain.as_posix() != path or not path.isprintable():
            raise FileError(f"{manifest} is damaged", why=f"{path!r} is no path in the folder", next=_AGAIN)
        if not 0 <= listed.bytes <= _MOST or not _SHA256.fullmatch(listed.sha256):
            raise FileError(f"{manifest} is damaged", why=f"of {path} it lists no size and sha256", next=_AGAIN)
    plain_files = foreign.plain_files(folder, _MOST, without=BUILT)
    # Python writes caches where a user imports the loader.
    found = {path: file for path, file in plain_files.items() if "__pycache__" not in PurePosixPath(path).parts}
    del found[MANIFEST]
    for path in sorted({*known.files} ^ {*found}):
        why = "the manifest does not list it" if path in found else "it is not there"
        raise FileError(f"{folder / path} is not as it was packed", why=why, next=_AGAIN)
    for path, listed in known.files.items():
        content = foreign.read_file(found[path], _MOST)
        if len(content) != listed.bytes or hashlib.sha256(content).hexdigest() != listed.sha256:
            raise FileError(f"{folder / path} is damaged", why="its sha256 is not the manifest's", next=_AGAIN)
    if known.example not in found:
        raise FileError(
            f"{folder} has no program to run",
            why="it was packed where there was no C compiler",
            next="build it: docs/packed.md",
        )
    return known, found
