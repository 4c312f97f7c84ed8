"""The verb `patch`: show the state of each release's series, apply it, and turn edits into patches.

The status includes the series of Debian packages, such as torch's; these are edited by hand.
CONTRIBUTING.md says how the series of a new release begins.
"""

from __future__ import annotations

import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import msgspec
from rich.table import Table
from rich.text import Text

from toolchains.archives import wheel_file
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.patching import debian_files
from toolchains.patching import series as patches
from toolchains.patching.layout import FolderTree, Tree, WheelTree
from toolchains.patching.refresh import refresh
from toolchains.patching.series import Series
from toolchains.system import document, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import PatchError, UsageError

_COLOURS = {"applied": "green", "applies": "green", "conflicts": "red", "waits": "yellow", "not fetched": "yellow"}


class ListedPatch(msgspec.Struct, frozen=True):
    """A patch.

    Attributes:
        name: its file.
        purpose: its subject.
        state: "applied" to the tree; "applies" to it; "conflicts" with it; "waits" for a patch that conflicts; or "not
            fetched", if the store does not have what it patches.
    """

    name: str
    purpose: str
    state: Literal["applied", "applies", "conflicts", "waits", "not fetched"]


class ListedSeries(msgspec.Struct, frozen=True):
    """The patches to a release of Triton, or to a Debian package.

    Attributes:
        of: what they are for.
        revision: the number of the series; null for a Debian package.
        edited: whether patches changed since the series got its number.
        patches: the patches in order.
    """

    of: str
    revision: int | None
    edited: bool
    patches: list[ListedPatch]


class Patches(ShownDocument, kw_only=True, tag="patch status"):
    """The state of each patch: `patch status`.

    Attributes:
        series: each series.
    """

    series: list[ListedSeries]

    def render(self, console: Console) -> None:
        for series in self.series:
            revision = "" if series.revision is None else f", revision {series.revision}"
            edited = ", edited since: ./foundry patch refresh" if series.edited else ""
            table = Table(title=f"{series.of}{revision}{edited}", title_justify="left")
            table.add_column("patch", no_wrap=True)
            table.add_column("purpose")
            table.add_column("state", no_wrap=True)
            for patch in series.patches:
                table.add_row(patch.name, patch.purpose, Text(patch.state, _COLOURS[patch.state]))
            console.print(table)


def patch(action: str, *, release: str, tree: str, into: str) -> None:
    """Run the verb `patch`.

    Raises:
        UsageError: no such release. PatchError: the series does not fit.
    """
    match action:
        case "status":
            status(release, Path(tree) if tree else None)
        case "apply":
            apply(release, Path(tree) if tree else None)
        case "refresh":
            rewrite_patches(release, Path(tree) if tree else None, into or None)


def status(release: str, tree: Path | None) -> None:
    """Show each release's patches, and whether the release's wheel or a tree has them.

    Without a release and a tree, show the same for the patched Debian packages.

    Raises:
        PatchError: a patch conflicts.
    """
    store = Store(paths.cache())
    shown: list[ListedSeries] = []
    failed: PatchError | None = None

    def add(of: str, series: Series, tree: Tree | None, revision: int | None = None, edited: bool = False) -> None:
        nonlocal failed
        states = series.states(tree) if tree else []
        failed = failed or next((state.error for state in states if state.error), None)
        found = {state.patch.name: state.state for state in states}
        listed = [
            ListedPatch(patch.name, patch.fields["Subject"], found.get(patch.name, "not fetched"))
            for patch in series.patches
        ]
        shown.append(ListedSeries(of, revision, edited, listed))

    releases = _releases(release) if tree is None else dict([_one(release)])
    for version, (_, locked) in releases.items():
        series = Series.load(patches.series_folder(version))
        number, digest = patches.read_revision(series.folder)
        wheel = WheelTree(store.path(locked.wheel)) if tree is None and store.has(locked.wheel) else None
        patched = FolderTree.detect(tree) if tree else wheel
        add(f"Triton {version}", series, patched, number, digest != series.digest)
    if not release and tree is None:
        # Each patched package, with a target that has it.
        packages = {what: target for target in lock.load().targets.values() for what in target.patched}
        for what, target in packages.items():
            series, deb = debian_files.load_series(what), debian_files.package(what, target)
            with debian_files.unpack_package(what, target, store) if store.has(deb) else nullcontext() as package:
                add(f"{deb}, a Debian package", series, package)
    document.show(Patches(series=shown))
    if failed:
        raise failed


def apply(release: str, tree: Path | None) -> None:
    """Apply the rest of the series to a tree; without a tree, unpack the release's wheel first."""
    version, (target, locked) = _one(release)
    if tree is None:
        tree = paths.BUILD / f"triton-{version}"
        if not tree.exists():
            # A series changes only Python files, and the rest is a gigabyte.
            with zipfile.ZipFile(_wheel(target, locked)) as archive:
                for entry in wheel_file.wheel_files(archive):
                    if entry.filename.endswith(".py"):
                        archive.extract(entry, tree)
    applied = Series.load(patches.series_folder(version)).apply(FolderTree.detect(tree))
    print(f"{tree}: {applied or 'no'} patches applied{'' if applied else ', it has all of them'}")
    print(f"to edit one: change files there; then ./foundry patch refresh --triton {version} --tree {tree} --into NAME")


def rewrite_patches(release: str, tree: Path | None, into: str | None) -> None:
    """Rewrite a release's patches to fit its wheel, including the edits of a tree if one is given."""
    version, (target, locked) = _one(release)
    pristine = WheelTree(_wheel(target, locked))
    edited = FolderTree.detect(tree) if tree else None
    series = refresh(Series.load(patches.series_folder(version)), pristine, edited=edited, into=into)
    print(f"{series.folder}: {len(series.patches)} patches, revision {series.revision()}, digest {series.digest[:12]}")


def _releases(release: str) -> dict[str, tuple[LockedTarget, LockedTriton]]:
    """Return the locked releases of Triton, or only the one asked for, each with a target that has it."""
    targets = lock.load().targets.values()
    by_version = {version: (target, locked) for target in targets for version, locked in target.tritons.items()}
    if release and release not in by_version:
        raise UsageError(
            f"Triton {release} is not locked", why=f"locked: {', '.join(by_version)}", next="./foundry pin"
        )
    return {release: by_version[release]} if release else by_version


def _one(release: str) -> tuple[str, tuple[LockedTarget, LockedTriton]]:
    if not release:
        raise UsageError("a release of Triton is needed", next=f"add --triton {' or --triton '.join(_releases(''))}")
    return release, _releases(release)[release]


def _wheel(target: LockedTarget, locked: LockedTriton) -> Path:
    store = Store(paths.cache())
    store.fetch([locked.wheel], suite=target.suite, python=target.python, platform=target.platform)
    return store.path(locked.wheel)
