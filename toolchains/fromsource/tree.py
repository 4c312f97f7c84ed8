"""Turn the source of an upstream project into its tree: verified, reduced to what is needed, patched, a stored tar.

    git commit        fetched by git (fetch/git.py), stored as a repository; files are read from its objects
    source package    fetched by apt (fetch/apt.py); only upstream's archives, without debian/patches
    folder            a clean checkout's commit; otherwise the files as they are

A tree is named by its source, the selection, and the patches. So nothing needs to be fetched to know whether the store
has it, or to name what is compiled from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolchains.config.projects import GitPin, Profile, SourcePackagePin
from toolchains.fetch.store import Store
from toolchains.fromsource import llvmhash, origins, source_tar
from toolchains.fromsource.origins import Origin
from toolchains.fromsource.source_tar import Selection
from toolchains.lockfile.lock import LockedSource, digest
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.errors import FileError, PinError
from toolchains.system.steps import step

# The revision of the tar: raise it if the same source gives another tar.
FORMAT = 1


@dataclass(frozen=True)
class Described:
    """A tree's description, known before the tree exists.

    Attributes:
        name: of the project.
        identity: the digest of all inputs of the tree.
        commit: for git the commit; for a Debian package its version and the sha256 of upstream's archives; for a folder
            that is not a clean checkout "folder-" and a digest of the selected files.
        patches: the series' digest; empty without a series.
    """

    name: str
    identity: str
    commit: str
    patches: str


@dataclass(frozen=True)
class SourceTree(Described):
    """A tree.

    Attributes:
        path: a plain tar, with entries like "llvm/CMakeLists.txt"; the same bytes for the same identity.
    """

    path: Path


def describe_tree(upstream: str, profile: Profile, locked: LockedSource | None, *, folder: Path | None) -> Described:
    """Describe the tree of a profile; nothing is fetched, and only a folder is read.

    Args:
        locked: the profile's entry in the lock; not needed with a folder.
        folder: a tree on this machine that replaces the profile's source.

    Raises:
        PinError: the source is not locked, or its pin changed since.
        UsageError: it is not a folder, or not a source tree. FileError: it cannot be read.
    """
    return _described(upstream, profile, _origin(upstream, profile, locked, folder))


def prepare(
    upstream: str, profile: Profile, locked: LockedSource | None, *, folder: Path | None, store: Store
) -> SourceTree:
    """Return the tree of a profile, from the store or written now.

    Raises:
        the errors of describe_tree; and
        OfflineError, GoneError, FetchError, TruncatedError, HashMismatchError: the source is not available, or is not
            the locked one.
        UnsafeArchiveError: an entry or a link leaves the tree. PinError: it has a submodule that is not pinned.
        PatchError: the series does not fit.
        LlvmHashError: a Triton names another LLVM than the pinned one.
    """
    origin = _origin(upstream, profile, locked, folder)
    what = _described(upstream, profile, origin)

    def make(place: Path) -> None:
        with step(f"sources of {upstream}: {origin.called}"), (place / "tree.tar").open("w+b") as out:
            packed = source_tar.write_tree(
                origin.entries(store),
                out,
                called=origin.called,
                selection=origin.selection,
                series=_series(profile),
                keep=llvmhash.FILES if profile.llvm_hash else (),
            )
        if origin.digest and packed.digest != origin.digest:
            raise FileError(f"{origin.called} changed while it was read", next="the same command again")
        if profile.llvm_hash:
            llvmhash.check_commit(packed.kept, profile.llvm_hash, called=origin.called, profile=profile.name)

    part = store.part("source", what.identity, make)
    return SourceTree(what.name, what.identity, what.commit, what.patches, part / "tree.tar")


def _series(profile: Profile) -> Series | None:
    return Series.load(paths.PATCHES / profile.patches) if profile.patches else None


def _described(upstream: str, profile: Profile, origin: Origin) -> Described:
    series = _series(profile)
    patches = series.digest if series else ""
    return Described(
        upstream,
        digest(
            {
                "format": FORMAT,
                "commit": origin.commit,
                "take": sorted(profile.take),
                "left_out": sorted(profile.left_out),
                "patches": patches,
                # If another LLVM is pinned, an existing tree has to be checked again.
                **({"llvm_hash": profile.llvm_hash} if profile.llvm_hash else {}),
            }
        ),
        origin.commit,
        patches,
    )


def _origin(upstream: str, profile: Profile, locked: LockedSource | None, folder: Path | None) -> Origin:
    """Return the origin of the tree."""
    selection = Selection(profile.take, profile.left_out)
    if folder is not None:
        return origins.describe_folder(folder, selection)
    name = f"{upstream}/{profile.name}"
    source = profile.source
    if not isinstance(source, GitPin | SourcePackagePin):
        raise PinError(
            f"the source of {name} cannot be fetched",
            why="its profile has no address: only its owners have the source",
            next=f"--source={upstream}=PATH, the topmost folder of the sources",
        )
    if locked is None or locked.pin != source.wanted:
        unlocked = f"it is pinned to {source}"
        if isinstance(source, GitPin) and not source.commit:
            unlocked = (
                f"the commit of {source.ref} is not known: {source.urls[0]} was not reached when the lock was written"
            )
        raise PinError(
            f"the source of {name} is not locked" + ("" if locked is None else " as it is pinned"),
            why=unlocked,
            next=f"the same command with --source={upstream}=PATH, a folder with these sources; or, on a machine that "
            f"reaches the address, ./foundry pin --update={upstream}",
        )
    if isinstance(source, GitPin):
        return origins.GitCommit(selection, source, locked.commit, locked.tree)
    return origins.SourcePackage(selection, source, locked)
