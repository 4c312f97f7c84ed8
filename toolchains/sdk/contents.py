"""The bytes of a vendor's SDK as a user has them: an archive, or a folder with single files that may lie elsewhere.

An archive's identity is its own sha256. That of a folder is the sha256 of the normalised tar of it (prefix.py), with
the other files at their places: it depends on names, contents, links and the right to execute, and on nothing else.
"""

from __future__ import annotations

import hashlib
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from toolchains.archives import prefix
from toolchains.archives.prefix import PrefixEntry
from toolchains.config.vendors import VendorSdk
from toolchains.system.errors import HashMismatchError, SdkError

_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Supply:
    """Where an SDK is.

    Attributes:
        path: an archive or a folder.
        files: files that are somewhere else, by their names in the SDK; with a folder only.
    """

    path: Path
    files: Mapping[str, Path] = field(default_factory=dict)

    def __str__(self) -> str:
        return " + ".join([str(self.path), *(f"{name}={path}" for name, path in sorted(self.files.items()))])

    def sha256(self) -> str:
        """Its identity.

        Raises:
            UnsafeArchiveError: see prefix.folder_entries.
            SdkError: it cannot be read.
        """
        try:
            if not self.path.is_dir():
                with self.path.open("rb") as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
            whole = _Hash()
            prefix.write(self._folder(), cast(IO[bytes], whole))
            return whole.hash.hexdigest()
        except OSError as error:
            raise self._unreadable(error) from error

    @contextmanager
    def opened(self, kind: VendorSdk) -> Iterator[tuple[str, dict[str, PrefixEntry]]]:
        """The name of the SDK's own folder, and its files and links by their names in that.

        In an archive that folder is where the first of the files that we need is.

        Raises:
            UnsafeArchiveError: an entry leads out of it.
            SdkError: it cannot be read.
        """
        try:
            if self.path.is_dir():
                yield self.path.name, self._folder()
                return
            with prefix.open_seekable(self.path) as tar:
                below = _below(kind, self._read(tar))
                yield posixpath.basename(below), prefix.tar_entries(tar, self.path.name, below)
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise self._unreadable(error) from error

    def write(self, kind: VendorSdk, sha256: str, target: Path) -> None:
        """Write a normalised tar of its files.

        Raises:
            HashMismatchError: it is not what it was any more.
            SdkError, UnsafeArchiveError: see opened.
        """
        with self.opened(kind) as (_, entries), target.open("wb") as file:
            prefix.write(entries, file)
        # Somebody may be at work in there.
        with (target if self.path.is_dir() else self.path).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise HashMismatchError(
                f"{self} changed while it was read",
                why=f"sha256 {found}\nbefore {sha256}",
                next="the same command again, when nothing changes it any more",
            )

    def _read(self, tar: tarfile.TarFile) -> dict[str, PrefixEntry]:
        try:
            return prefix.tar_entries(tar, self.path.name)
        except (ValueError, ArithmeticError, LookupError) as error:
            # What tarfile lets through of headers that are no headers.
            raise self._unreadable(error) from error

    def _folder(self) -> dict[str, PrefixEntry]:
        entries = prefix.folder_entries(self.path)
        entries |= {name: prefix.file_entry(path) for name, path in self.files.items()}
        prefix.refuse_paths_through_links(entries, str(self.path))
        return entries

    def _unreadable(self, error: Exception) -> SdkError:
        if self.path.is_dir():
            return SdkError(f"{self} cannot be read", why=str(error), next=f"check its permissions: ls -lR {self.path}")
        return SdkError(
            f"{self.path} cannot be read as a tar archive",
            why=self._compression() or str(error),
            next="give the archive as the vendor packed it, or the folder that it was unpacked to",
        )

    def _compression(self) -> str:
        """Return what is wrong with an archive that is compressed as we cannot read it."""
        try:
            with self.path.open("rb") as file:
                zstd = file.read(len(_ZSTD)) == _ZSTD
        except OSError:
            return ""
        return "it is compressed by zstd; gzip, bzip2 and xz can be read" if zstd else ""


class _Hash:
    """Takes what is written to it into a sha256."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)


def _below(kind: VendorSdk, names: Mapping[str, PrefixEntry]) -> str:
    """Return where in an archive the first of the files that we need is; there the others are expected, too."""
    for need in kind.needs:
        ends = (f"/{name}".partition(f"/{need}") for name in names)
        for before, found, after in ends:
            if found and not after:
                return before.strip("/")
    return ""
