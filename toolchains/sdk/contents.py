"""Read a vendor's SDK: an archive, or a folder with single files that may be elsewhere.

An archive's identity is its own sha256. A folder's identity is the sha256 of its normalised tar (prefix.py), with the
other files at their places: it depends only on names, contents, links and execute permissions.
"""

from __future__ import annotations

import hashlib
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from toolchains.archives import prefix
from toolchains.archives.prefix import PrefixEntry
from toolchains.archives.tar_file import HashedWriter
from toolchains.config.vendors import VendorSdk
from toolchains.system import foreign
from toolchains.system.errors import HashMismatchError, SdkError

_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Supply:
    """The place of an SDK.

    Attributes:
        path: an archive or a folder.
        files: files that are elsewhere, by their names in the SDK; only with a folder.
    """

    path: Path
    files: Mapping[str, Path] = field(default_factory=dict)

    def __str__(self) -> str:
        return " + ".join([str(self.path), *(f"{name}={path}" for name, path in sorted(self.files.items()))])

    def sha256(self) -> str:
        """Return the SDK's identity.

        Raises:
            UnsafeArchiveError: see prefix.folder_entries.
            FileError: it is neither a folder nor a plain file.
            SdkError: it cannot be read.
        """
        try:
            if not self.path.is_dir():
                with foreign.open_file(self.path) as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
            tar = HashedWriter()
            prefix.write(self._folder(), cast(IO[bytes], tar))
            return tar.sha256
        except OSError as error:
            raise self._unreadable(error) from error

    @contextmanager
    def opened(self, kind: VendorSdk) -> Iterator[tuple[str, dict[str, PrefixEntry]]]:
        """Yield the name of the SDK's own folder, and its files and links by their names in this folder.

        In an archive, this is the folder with the first of the files that we need.

        Raises:
            UnsafeArchiveError: an entry leads out of the SDK.
            SdkError: the SDK cannot be read.
        """
        try:
            if self.path.is_dir():
                yield self.path.name, self._folder()
                return
            with prefix.open_seekable(self.path) as tar:
                names = [f"/{name}" for name in prefix.tar_entries(tar, self.path.name)]
                # The others that we need are expected there too.
                first = (name.removesuffix(need) for need in kind.needs for name in names if name.endswith(f"/{need}"))
                below = next(first, "").strip("/")
                yield posixpath.basename(below), prefix.tar_entries(tar, self.path.name, below)
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise self._unreadable(error) from error

    def write(self, kind: VendorSdk, sha256: str, target: Path) -> None:
        """Write a normalised tar of the SDK's files.

        Raises:
            HashMismatchError: the SDK has changed.
            SdkError, UnsafeArchiveError: see opened.
        """
        with self.opened(kind) as (_, entries), target.open("wb") as file:
            prefix.write(entries, file)
        # The user may have changed a file in the meantime.
        with (target if self.path.is_dir() else self.path).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != sha256:
            raise HashMismatchError(
                f"{self} changed while it was read",
                why=f"sha256 {actual}\nbefore {sha256}",
                next="the same command again, when nothing changes it any more",
            )

    def _folder(self) -> dict[str, PrefixEntry]:
        entries = prefix.folder_entries(self.path)
        entries |= {name: prefix.path_entry(path, follow_links=True) for name, path in self.files.items()}
        prefix.refuse_paths_through_links(entries, str(self.path))
        return entries

    def _unreadable(self, error: Exception) -> SdkError:
        if self.path.is_dir():
            return SdkError(f"{self} cannot be read", why=str(error), next=f"check its permissions: ls -lR {self.path}")
        why = str(error)
        with suppress(OSError), self.path.open("rb") as file:
            if file.read(len(_ZSTD)) == _ZSTD:
                why = "it is compressed by zstd; gzip, bzip2 and xz can be read"
        return SdkError(
            f"{self.path} cannot be read as a tar archive",
            why=why,
            next="give the archive as the vendor packed it, or the folder that it was unpacked to",
        )
