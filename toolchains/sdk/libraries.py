"""Find the shared libraries that an image will have, from its locked Debian packages, before the image exists.

The versions that the libraries of C and C++ define are read from the libraries, so no table of releases is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact, LockedTarget
from toolchains.sdk import elf
from toolchains.system import paths
from toolchains.system.children import run, tool

# Nearly every program needs these, and an SDK is "too new" if it needs versions that they do not define.
_RUNTIME = ("libc6", "libstdc++6")


class Provided:
    """The libraries of a target's image.

    Args:
        target: the locked target.
        store: has the packages, or fetches them: those of C and C++ immediately, others when one of their libraries is
            needed.

    Raises:
        OfflineError, GoneError, FetchError: a package is not available; see Store.fetch.
        CommandError, MissingToolError: dpkg-deb cannot unpack it, or is not installed.
    """

    def __init__(self, target: LockedTarget, store: Store) -> None:
        self._target = target
        self._store = store
        runtime = self._fetch([deb for deb in target.debs if deb.name in _RUNTIME])
        used = [deb for deb in runtime if deb.name in _RUNTIME]
        self._versions = {library: versions for deb in used for library, versions in _defined(store.path(deb))}
        self.runtime = f"{target.suite}: {', '.join(map(str, used))}"

    def versions(self, soname: str) -> frozenset[str] | None:
        """Return the versions that a library of C or C++ defines; None for other libraries."""
        return self._versions.get(soname)

    def has(self, soname: str) -> bool:
        """Return whether one of the packages has a library of this name in a folder that the loader searches."""
        return soname in self._versions or soname in self._declared

    @cached_property
    def _declared(self) -> frozenset[str]:
        """Return the libraries in the packages' `shlibs`, where Debian lists each library that others may link with."""
        dpkg = tool("dpkg-deb", package="dpkg")
        names: set[str] = set()
        for deb in self._fetch(self._target.debs):
            shlibs = run([dpkg, "--info", self._store.path(deb), "shlibs"], log="dpkg-deb", check=False).stdout
            for words in map(str.split, shlibs.splitlines()):
                # Lines "udeb: ..." are for Debian's installer. shlibs does not give the form of the soname, so both are
                # added.
                if len(words) >= 2 and not words[0].endswith(":"):
                    names |= {f"{words[0]}.so.{words[1]}", f"{words[0]}-{words[1]}.so"}
        return frozenset(names)

    def _fetch(self, debs: Sequence[Artifact]) -> list[Artifact]:
        return self._store.fetch(debs, suite=self._target.suite, python=self._target.python)


def _defined(deb: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the libraries of a package by soname, with the versions that they define."""
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        run([tool("dpkg-deb", package="dpkg"), "--extract", deb, work], log="dpkg-deb")
        for folder in Path(work).glob("**/x86_64-linux-gnu"):
            for path in folder.glob("*.so*"):
                with path.open("rb") as file:
                    # Some of these files are texts for the linker.
                    library = None if path.is_symlink() else elf.find(file)
                if library:
                    yield library.soname or path.name, library.defined


def highest(versions: frozenset[str], like: str) -> str:
    """Return the highest version with the same name as another: for "GLIBC_2.99" perhaps "GLIBC_2.41"; or ""."""
    name = like.rpartition("_")[0]
    return max((version for version in versions if version.rpartition("_")[0] == name), key=version_key, default="")


def version_key(version: str) -> tuple[str, tuple[int, ...]]:
    """Return the sort key of a version: name, then numbers, so that "GLIBC_2.9" comes before "GLIBC_2.10"."""
    name, _, numbers = version.rpartition("_")
    return name, tuple(int(part) if part.isdigit() else 0 for part in numbers.split("."))
