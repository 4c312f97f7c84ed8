"""Debian packages with a patch series of ours: the files that it changes, as a part that is laid over the packages.

A package is neither rebuilt nor repacked: the files are taken from the .deb that the lock names, the series is
applied as strictly as Triton's (patches.py), and what comes out is a tar of these files alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import confine, folders
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact, LockedTarget, Patched, digest
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.children import run
from toolchains.system.errors import PatchTargetError, PinError
from toolchains.system.steps import step

# The revision of how a series becomes files: raise it with every change of that. It is part of what names the part.
FORMAT = 1


@dataclass(frozen=True)
class PackageTree:
    """The files of an unpacked package by their path in the source tree that the series is for: a layout.Tree."""

    root: Path

    def read(self, path: str) -> str | None:
        place = self.root / path
        # A link of a package leads to where it is installed, which here is this machine.
        if not place.is_symlink():
            confine.path_below(self.root, path, "a patch", error=PatchTargetError)
        return None if place.is_symlink() or not place.is_file() else place.read_bytes().decode()

    def paths(self) -> Iterator[str]:
        for file in sorted(self.root.rglob("*.py")):
            yield file.relative_to(self.root).as_posix()


def identity(what: Patched, target: LockedTarget) -> str:
    """Return the digest of all that goes into the part: the package, the series, where it goes."""
    return digest(
        {
            "deb": package(what, target).sha256,
            "series": load_series(what).digest,
            "root": what.root,
            "format": [FORMAT, folders.FORMAT],
        }
    )


def part(what: Patched, target: LockedTarget, store: Store) -> Path:
    """Return a tar of the changed files by their names in the image, from the store or made now.

    Args:
        target: with packages that are in the store.

    Raises:
        PinError: the target does not have the package.
        PatchTargetError, HunkError: the series does not fit the package.
    """

    def make(folder: Path) -> None:
        with step(f"patches of {what.package}"), unpack_package(what, target, store) as tree:
            changed = load_series(what).changes(tree)
            root = what.root.strip("/")
            with (folder / "files.tar").open("wb") as file:
                folders.write_tar(file, {f"{root}/{path}": text.encode() for path, text in changed.items()})

    return store.part("patched", identity(what, target), make) / "files.tar"


@contextmanager
def unpack_package(what: Patched, target: LockedTarget, store: Store) -> Iterator[PackageTree]:
    """The package's files, unpacked for as long as the context lasts."""
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        run(["dpkg-deb", "--extract", store.path(package(what, target)), work], log="dpkg-deb")
        yield PackageTree(Path(work, what.root.strip("/")))


def package(what: Patched, target: LockedTarget) -> Artifact:
    """Return the package as the target has it.

    Raises:
        PinError: it has none of this name.
    """
    found = next((deb for deb in target.debs if deb.name == what.package), None)
    if found is None:
        raise PinError(
            f"{target.name} has no package {what.package} to patch",
            next=f"correct toolchains/pins/{what.component}.toml, then: ./foundry pin --update {what.component}",
        )
    return found


def load_series(what: Patched) -> Series:
    """Return the patches, in order."""
    return Series.load(paths.PATCHES / what.series)
