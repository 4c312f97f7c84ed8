"""The origins of a source tree, one class per kind, with the tree's name in errors, its identity and its entries."""

from __future__ import annotations

import io
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from toolchains.archives import prefix
from toolchains.config.projects import GitPin, SourcePackagePin
from toolchains.fetch import git
from toolchains.fetch.git import Checkout, TreeEntry
from toolchains.fetch.store import Store
from toolchains.fromsource import source_tar
from toolchains.fromsource.source_tar import Selection, SourceEntry
from toolchains.lockfile.lock import Artifact, LockedSource
from toolchains.system.console import Console
from toolchains.system.errors import FileError, OfflineError, PinError, UsageError
from toolchains.system.paths import scratch

_ORIG = re.compile(r"[^_]+_[^_]+\.orig(?:-(?P<component>[A-Za-z0-9-]+))?\.tar\.(?:gz|bz2|xz|lzma)")
_FOLDER = "give the topmost folder of the sources: --source NAME=PATH"
_console = Console(stderr=True, highlight=False, soft_wrap=True)


class Origin(Protocol):
    """A kind of source.

    Attributes:
        called: its name in errors.
        commit: identifies its content; see tree.Described.
        digest: the expected source_tar.Packed.digest; empty if the commit is sufficient.
        selection: the files to take.
    """

    @property
    def called(self) -> str: ...
    @property
    def commit(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def selection(self) -> Selection: ...

    def entries(self, store: Store) -> Iterator[SourceEntry]:
        """Yield its entries, fetched if necessary; entries that are not taken may have only their names."""


@dataclass(frozen=True)
class SourcePackage:
    """Upstream's archives in a Debian source package."""

    selection: Selection
    pin: SourcePackagePin
    locked: LockedSource
    digest: str = ""

    @property
    def called(self) -> str:
        return f"{self.pin.suite}'s {self.pin.package} {self.locked.version}"

    @property
    def commit(self) -> str:
        return " ".join([self.locked.version, *(file.sha256 for file in self._archives.values())])

    def entries(self, store: Store) -> Iterator[SourceEntry]:
        # Fetch the whole package, with Debian's part: the store then has complete packages, which can be passed on.
        store.fetch(self.locked.files, suite=self.pin.suite, python="")
        for component, file in self._archives.items():
            yield from source_tar.read_tree(store.path(file), file.filename, below=component)

    @property
    def _archives(self) -> dict[str, Artifact]:
        """Return upstream's archives by the folder that they are unpacked to; the main one is first, at the top."""
        matches = {file: _ORIG.fullmatch(file.filename) for file in self.locked.files}
        archives = {match["component"] or "": file for file, match in matches.items() if match}
        if "" not in archives:
            raise PinError(
                f"{self.called} has no archive of upstream's",
                why=f"it consists of {', '.join(file.filename for file in self.locked.files)}",
                next="pin a package that is made from a release of upstream's: its files have .orig.tar in their names",
            )
        return dict(sorted(archives.items()))


@dataclass(frozen=True)
class GitCommit:
    """A commit that is fetched, with its pinned submodules."""

    selection: Selection
    pin: GitPin
    commit: str
    tree: str = ""
    digest: str = ""

    @property
    def called(self) -> str:
        return f"{self.pin.urls[0]} at {self.commit[:12]}"

    def entries(self, store: Store) -> Iterator[SourceEntry]:
        repository = self._repository(self.commit, self.pin.urls, self.pin.ref, "toolchains/upstreams", store)
        if self.tree:
            git.check_tree(repository, self.commit, self.tree)
        used: set[str] = set()
        yield from self._entries_below(repository, self.commit, self.pin.urls, "", used, store)
        unused = sorted(self.pin.submodules.keys() - used)
        if unused:
            raise PinError(
                f"{self.called} has no submodule {', '.join(unused)} that is taken",
                next="remove it from submodules in toolchains/upstreams",
            )

    def _entries_below(
        self, repository: Path, commit: str, urls: Sequence[str], below: str, used: set[str], store: Store
    ) -> Iterator[SourceEntry]:
        """Yield the entries of a commit and of its submodules; add the names of these to `used`."""
        tree = git.commit_entries(commit, repository=repository)
        yield from _commit_files(repository, tree, below, self.selection, self.called)
        submodules = _submodules(tree, below, self.selection)
        addresses = git.submodule_urls(repository, commit, urls) if submodules else {}
        for path, submodule in submodules:
            name, inner = posixpath.join(below, path), submodule.hash
            pinned = self.pin.submodules.get(name)
            if pinned is None:
                raise PinError(
                    f"{self.called} has a submodule that is not pinned: {name}",
                    why=f"it is at {inner}",
                    next=f'in toolchains/upstreams, submodules."{name}" = "{inner}" if it is needed, '
                    f'or left-out = ["{name}/*"] if not',
                )
            if pinned != inner:
                raise PinError(
                    f"{self.called} has its submodule {name} at another commit than the pinned one",
                    why=f"in the tree {inner}\npinned      {pinned}",
                    next="correct submodules in toolchains/upstreams",
                )
            used.add(name)
            if path not in addresses:
                raise PinError(f".gitmodules of {self.called} does not say where its submodule {name} is")
            known = addresses[path]
            fetched = self._repository(inner, known, "", f".gitmodules of {self.called}", store)
            yield from self._entries_below(fetched, inner, known, name, used, store)

    def _repository(self, commit: str, urls: Sequence[str], ref: str, where: str, store: Store) -> Path:
        """Return a repository with this commit, from the store or fetched now."""
        if store.offline and not store.has_part("git", commit):
            raise OfflineError(
                f"commit {commit} is not in the store {store.root}",
                why=f"it is fetched from {urls[0]}",
                next="the same command without --offline, or a checkout: --source NAME=PATH",
            )

        def fetch(folder: Path) -> None:
            # Brackets in git's messages are not our markup.
            git.fetch(urls, commit, folder, ref=ref, where=where, say=_console.print)

        return store.part("git", commit, fetch)


@dataclass(frozen=True)
class CleanCheckout:
    """The commit of a user's working tree, with submodules."""

    selection: Selection
    checkout: Checkout
    digest: str = ""

    @property
    def called(self) -> str:
        return str(self.checkout.path)

    @property
    def commit(self) -> str:
        return self.checkout.commit

    def entries(self, store: Store) -> Iterator[SourceEntry]:
        yield from self._entries_below(self.checkout, "")

    def _entries_below(self, checkout: Checkout, below: str) -> Iterator[SourceEntry]:
        with TemporaryDirectory(prefix="foundry-", dir=scratch()) as folder:
            repository = Path(folder, "repository")
            git.create(repository, alternate=checkout.objects, format=checkout.format)
            tree = git.commit_entries(checkout.commit, repository=repository)
            yield from _commit_files(repository, tree, below, self.selection, self.called)
        for path, _ in _submodules(tree, below, self.selection):
            inner = git.checkout(checkout.path / path)
            assert inner is not None, "describe_folder has looked"
            yield from self._entries_below(inner, posixpath.join(below, path))


@dataclass(frozen=True)
class Files:
    """A folder as it is: for a working tree the files that git does not ignore, otherwise all files.

    Attributes:
        why: the reason why it is not taken from a commit, for the user.
    """

    selection: Selection
    path: Path
    names: Mapping[str, Path] = field(repr=False)

    @property
    def called(self) -> str:
        return str(self.path)

    @property
    def commit(self) -> str:
        return f"folder-{self.digest}"

    @cached_property
    def digest(self) -> str:
        nowhere = Path(os.devnull)
        with nowhere.open("r+b") as out:
            return source_tar.write_tree(self.entries(), out, called=self.called, selection=self.selection).digest

    def entries(self, store: Store | None = None) -> Iterator[SourceEntry]:
        for name in sorted(self.names):
            path = self.names[name]
            if name not in self.selection:
                yield SourceEntry(name)
                continue
            try:
                entry = prefix.path_entry(path)
                if entry.link:
                    yield SourceEntry(name, link=entry.link)
                else:
                    with entry.open() as content:
                        yield SourceEntry(name, content, entry.size, entry.executable)
            except OSError as error:
                raise FileError(f"{path} cannot be read", why=str(error)) from error


def describe_folder(folder: Path, selection: Selection) -> CleanCheckout | Files:
    """Describe a user's folder: by its commit if it is a clean checkout, otherwise by its files, with a notice.

    Raises:
        UsageError: it is not a folder, or lacks files to take. FileError: it cannot be read.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder" if folder.exists() else f"{folder} does not exist",
            why="a source tree is wanted; an archive would have to be unpacked first",
            next=_FOLDER,
        )
    folder = folder.resolve()
    try:
        checkout = git.checkout(folder)
        if checkout and checkout.commit:
            changes, names = _state(checkout, "", selection)
            if not changes:
                source_tar.check_selection(names, selection, called=str(folder))
                return CleanCheckout(selection, checkout)
            shown = ", ".join(changes[:3]) + (f" and {len(changes) - 3} more" if len(changes) > 3 else "")
            _print_once(f"not a commit: {folder} is taken as it is; {checkout.commit[:12]} has other {shown}")
        tree = Files(selection, folder, dict(_files(folder)))
        source_tar.check_selection([name for name in tree.names if name in selection], selection, called=str(folder))
    except PinError as error:
        raise UsageError(error.what, why=error.why, next=_FOLDER) from error
    except OSError as error:
        raise FileError(f"{folder} cannot be read", why=str(error)) from error
    return tree


@cache
def _print_once(text: str) -> None:
    """Print the notice about a folder once, although the folder is examined several times."""
    _console.print(text)


def _state(checkout: Checkout, below: str, selection: Selection) -> tuple[list[str], list[str]]:
    """Return the changed files to take, and all files to take, of a working tree and its submodules."""
    changes = [name for name in (posixpath.join(below, path) for path in checkout.changes) if selection.reaches(name)]
    tree = git.commit_entries(checkout.commit, work=checkout.path)
    names = [posixpath.join(below, path) for path, entry in tree.items() if not entry.submodule]
    for path, submodule in _submodules(tree, below, selection):
        name = posixpath.join(below, path)
        inner = git.checkout(checkout.path / path)
        if inner is None:
            raise UsageError(
                f"the submodule {name} of {checkout.path} is not checked out",
                next=f"git -C {checkout.path} submodule update --init {path}",
            )
        if inner.commit != submodule.hash:
            changes.append(name)
            continue
        inside = _state(inner, name, selection)
        changes += inside[0]
        names += inside[1]
    return changes, [name for name in names if name in selection]


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield files and links below a folder, without repositories' own data and the files that they ignore."""
    if git.checkout(folder):
        for name in git.working_files(folder):
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                yield from ((f"{name}/{inner}", at) for inner, at in _files(path))
            else:
                yield name, path
        return

    def fail(error: OSError) -> None:
        raise error

    for top, folders, files in os.walk(folder, onerror=fail):
        # In a submodule, .git is a file.
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*folders, *files):
            path = Path(top, name)
            if name == ".git":
                continue
            if path.is_symlink() or not path.is_dir():
                yield path.relative_to(folder).as_posix(), path


def _submodules(tree: Mapping[str, TreeEntry], below: str, selection: Selection) -> list[tuple[str, TreeEntry]]:
    """Return the submodules of a tree that have files to take, by path."""
    return [
        (path, entry)
        for path, entry in sorted(tree.items())
        if entry.submodule and selection.reaches(posixpath.join(below, path))
    ]


def _commit_files(
    repository: Path, tree: Mapping[str, TreeEntry], below: str, selection: Selection, called: str
) -> Iterator[SourceEntry]:
    """Yield the files and links of a commit, each compared with its hash in the tree."""
    named = {posixpath.join(below, path): entry for path, entry in tree.items()}
    # Entries that are not taken are yielded without content.
    yield from (SourceEntry(name) for name in named if name not in selection)
    wanted = {name: entry for name, entry in named.items() if name in selection and not entry.submodule}
    for name, content in git.contents(repository, wanted, called):
        if wanted[name].link:
            yield SourceEntry(name, link=os.fsdecode(content))
        else:
            yield SourceEntry(name, io.BytesIO(content), len(content), wanted[name].executable)
