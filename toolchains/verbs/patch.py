"""The verb `patch`: show the state of each release's series, apply it, and turn edits into patches.

The status includes the series of Debian packages, such as torch's; these are edited by hand.
CONTRIBUTING.md says how the series of a new release begins.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from toolchains.archives import wheel_file
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.patching import debian_files
from toolchains.patching import series as patches
from toolchains.patching.layout import FolderTree, WheelTree
from toolchains.patching.refresh import refresh
from toolchains.patching.series import Patch, Series
from toolchains.system import paths
from toolchains.system.errors import PatchError, UsageError
from toolchains.system.terminal import make_console

_COLOURS = {"applied": "green", "applies": "green", "conflicts": "red", "waits": "yellow", "not fetched": "yellow"}


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
    """Print a table per release: each patch, its purpose, and whether the release's wheel or a tree has it.

    Without a release and a tree, print the same for the patched Debian packages.
    """
    console = make_console()
    store = Store(paths.cache())
    failed: PatchError | None = None
    releases = _releases(release) if tree is None else dict([_one(release)])
    for version, (_, locked) in releases.items():
        series = Series.load(patches.series_folder(version))
        if tree is None and not store.has(locked.wheel):
            states = [(patch, "not fetched") for patch in series.patches]
        else:
            checked = series.states(FolderTree.detect(tree) if tree else WheelTree(store.path(locked.wheel)))
            failed = next((state.error for state in checked if state.error), failed)
            states = [(state.patch, state.state) for state in checked]
        number, digest = patches.read_revision(series.folder)
        edited = "" if digest == series.digest else ", edited since: ./foundry patch refresh"
        console.print(_table(f"Triton {version}, revision {number}{edited}", states))
    if not release and tree is None:
        # Each patched package, with a target that has it.
        packages = {what: target for target in lock.load().targets.values() for what in target.patched}
        for what, target in packages.items():
            series = debian_files.load_series(what)
            if not store.has(debian_files.package(what, target)):
                states = [(patch, "not fetched") for patch in series.patches]
            else:
                with debian_files.unpack_package(what, target, store) as package:
                    checked = series.states(package)
                failed = next((state.error for state in checked if state.error), failed)
                states = [(state.patch, state.state) for state in checked]
            console.print(_table(f"{debian_files.package(what, target)}, a Debian package", states))
    if failed:
        raise failed


def _table(title: str, states: Sequence[tuple[Patch, str]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("patch", no_wrap=True)
    table.add_column("purpose")
    table.add_column("state", no_wrap=True)
    for patch, state in states:
        table.add_row(patch.name, patch.fields["Subject"], Text(state, _COLOURS[state]))
    return table


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
    store.fetch([locked.wheel], suite=target.suite, python=target.python)
    return store.path(locked.wheel)
