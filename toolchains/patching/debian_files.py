"""Apply our patch series to files of Debian packages; the changed files are a part that is unpacked over the packages.

The package is neither rebuilt nor repacked: the files are taken from the locked .deb, the series is applied as strictly
as Triton's (series.py), and the result is a tar of only these files.
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

# The revision of how a series becomes files: raise it whenever that changes. It is part of the part's identity.
FORMAT = 1


@dataclass(frozen=True)
class PackageTree:
    """The files of an unpacked package by their path in the source tree that the series is for: a layout.Tree."""

    root: Path

    def read(self, path: str) -> str | None:
        place = self.root / path
        # A package's link leads to an installed path, which in this folder would be a path of this machine.
        if not place.is_symlink():
            confine.path_below(self.root, path, "a patch", error=PatchTargetError)
        return None if place.is_symlink() or not place.is_file() else place.read_bytes().decode()

    def paths(self) -> Iterator[str]:
        for file in sorted(self.root.rglob("*.py")):
            yield file.relative_to(self.root).as_posix()


def identity(what: Patched, target: LockedTarget) -> str:
    """Return the digest of all inputs of the part: the package, the series, and the target folder."""
    return digest(
        {
            "deb": package(what, target).sha256,
            "series": load_series(what).digest,
            "root": what.root,
            "format": [FORMAT, folders.FORMAT],
        }
    )


def part(what: Patched, target: LockedTarget, store: Store) -> Path:
    """Return a tar of the changed files by their names in the image, from the store or written now.

    Args:
        target: its packages must be in the store.

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
    """Yield the package's files, unpacked as long as the context exists."""
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        run(["dpkg-deb", "--extract", store.path(package(what, target)), work], log="dpkg-deb")
        yield PackageTree(Path(work, what.root.strip("/")))


def package(what: Patched, target: LockedTarget) -> Artifact:
    """Return the locked package of the target.

    Raises:
        PinError: the target has no package of this name.
    """
    locked = next((deb for deb in target.debs if deb.name == what.package), None)
    if locked is None:
        raise PinError(
            f"{target.name} has no package {what.package} to patch",
            next=f"correct toolchains/pins/{what.component}.toml, then: ./foundry pin --update {what.component}",
        )
    return locked


def load_series(what: Patched) -> Series:
    """Return the patches of the package."""
    return Series.load(paths.PATCHES / what.series)
