"""Write a source tree as a plain tar: the selected files, checked, with a patch series applied.

Entries are read one after the other, each once: a tree of LLVM's size is 1.4 GB in 110 000 files, most of which are not
selected. The tar has only files and links, owned by root, dated tar_file.EPOCH, with modes 755 and 644, in the order of
the input; the files that the series changes come last.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from toolchains.archives import confine, tar_file
from toolchains.archives.tar_file import TarWriter, padding
from toolchains.patching.series import Series
from toolchains.system.errors import PatchTargetError, PinError, UnsafeArchiveError

# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: a pointer starts with this and is shorter than 1024 bytes.
_LFS, _LFS_SIZE = b"version https://git-lfs.github.com/spec/v1\n", 1024
_PROJECT = "CMakeLists.txt"
# The characters by which tarfile and fetch/git.py replace bytes that are not UTF-8.
_NOT_UTF_8 = re.compile("[\ud800-\udfff\ufffd]")


@dataclass(frozen=True)
class SourceEntry:
    """A file or a link of a tree, while it is copied.

    Attributes:
        name: its path in the tree.
        content: read before the next entry is requested.
        size: in bytes.
        link: the target of a symbolic link; empty for files.
        same_as: for a hard link, the name of an earlier entry.
    """

    name: str
    content: IO[bytes] | None = None
    size: int = 0
    executable: bool = False
    link: str = ""
    same_as: str = ""


@dataclass(frozen=True)
class Selection:
    """The wanted part of a tree: everything in `take`, or everything if it is empty, except the patterns `left_out`."""

    take: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return (not self.take or any(is_below(name, top) for top in self.take)) and not self._pattern.fullmatch(name)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Without patterns: an expression that matches nothing, not even the empty name.
        return re.compile("|".join(map(fnmatch.translate, self.left_out)) or r"(?!)")

    def reaches(self, folder: str) -> bool:
        """Return whether a folder may contain selected entries."""
        taken = not self.take or any(is_below(folder, top) or is_below(top, folder) for top in self.take)
        return taken and not self._pattern.fullmatch(folder) and not self._pattern.fullmatch(folder + "/")


def is_below(name: str, folder: str) -> bool:
    """Return whether a path is a folder or below it."""
    folder = folder.rstrip("/")
    return name == folder or name.startswith(folder + "/")


@dataclass(frozen=True)
class Packed:
    """The result of writing a tree.

    Attributes:
        digest: sha256 over names, modes and contents of the input, without patches.
        kept: the contents of the requested files by name, with patches.
    """

    digest: str
    kept: dict[str, bytes]


def write_tree(
    entries: Iterable[SourceEntry],
    out: IO[bytes],
    *,
    called: str,
    selection: Selection,
    series: Series | None = None,
    keep: Sequence[str] = (),
) -> Packed:
    """Write a tree.

    Args:
        out: a new file, which is open for reading as well.
        called: the tree's name in errors.
        series: patches to apply.
        keep: names of files whose contents are also returned.

    Raises:
        UnsafeArchiveError: an entry leaves the tree, or is written through a link; a name occurs twice; a Git LFS
            pointer replaces a file.
        PinError: a selected file or folder does not exist, or the tree has no CMake project.
        PatchTargetError, HunkError: the series does not fit.
    """
    with TarWriter(out) as tar:
        changed = (path for patch in (series.patches if series else ()) for path in patch.files)
        packing = _Packing(out, tar, called, selection, frozenset(keep).union(changed))
        try:
            for entry in entries:
                packing.add(entry)
        except tar_file.DAMAGED as error:
            raise UnsafeArchiveError(f"{called} cannot be read", why=str(error)) from error
        return packing.finish(series)


def check_selection(names: Iterable[str], selection: Selection, *, called: str) -> None:
    """Check that a tree has the selected files and folders, and a CMake project.

    Raises:
        PinError: it does not.
    """
    present = set(names)
    missing = [top for top in selection.take if not any(is_below(name, top) for name in present)]
    if missing:
        raise PinError(
            f"{called} has no {' and no '.join(missing)}",
            why="take and left-out of its profile say what of the tree is needed",
            next="correct the profile in toolchains/upstreams",
        )
    tops = selection.take or ("",)
    if not any(posixpath.join(top, _PROJECT) in present for top in tops):
        raise PinError(
            f"{called} is not a source tree that can be built",
            why=f"there is no {_PROJECT} in {' or '.join(top or 'its topmost folder' for top in tops)}",
            next="correct the profile in toolchains/upstreams",
        )


@dataclass
class _Packing:
    """A tar that is being written."""

    out: IO[bytes]
    tar: TarWriter
    called: str
    selection: Selection
    held: frozenset[str]
    links: dict[str, str] = field(default_factory=dict)
    # The position of a file's content in the tar, its size, and whether the file is executable.
    places: dict[str, tuple[int, int, bool]] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    # Names of held files (for the series, or to keep) that the tree has, but that are not selected.
    unseen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.digest = hashlib.sha256()

    def add(self, entry: SourceEntry) -> None:
        name = confine.relative_path(entry.name, self.called)
        if name not in self.selection:
            if name in self.held:
                self.unseen.add(name)
            return
        if any(map(_NOT_UTF_8.search, (name, entry.link))):
            raise self._unsafe(f"a name that is not UTF-8: {name!r}")
        if name in self.places or name in self.links:
            raise self._unsafe(f"two entries of one name: {name}")
        self.folders.update(confine.parent_folders(name))
        if entry.link:
            self.links[name] = entry.link
            self._note(name, "l", hashlib.sha256(entry.link.encode()).hexdigest())
            self.tar.link(name, entry.link)
        elif entry.same_as:
            # A hard link: the same file again.
            if entry.same_as not in self.places:
                what = f"{name} -> {entry.same_as}"
                raise self._unsafe(f"a link to a file that it does not have, or that is left out: {what}")
            place, size, executable = self.places[entry.same_as]
            content = self.contents.get(entry.same_as)
            if content is None:
                end = self.out.tell()
                self.out.seek(place)
                content = self.out.read(size)
                self.out.seek(end)
            self._file(name, io.BytesIO(content), size, executable)
        else:
            assert entry.content is not None
            self._file(name, entry.content, entry.size, entry.executable)

    def finish(self, series: Series | None) -> Packed:
        """Write the files that were held back."""
        check_selection((*self.places, *self.links), self.selection, called=self.called)
        for name in self.links:
            if not self._stays(name):
                raise self._unsafe(f"a link that leaves the tree: {name} -> {self.links[name]}")
        digest = self.digest.hexdigest()
        if series:
            for name, text in series.changes(_Held(self.contents, self.called)).items():
                if name in self.unseen or name in self.links:
                    raise PatchTargetError(
                        f"a patch adds {name}, which {self.called} has",
                        why="the profile leaves it out" if name in self.unseen else "there it is a link",
                    )
                self.folders.update(confine.parent_folders(name))
                self.contents[name] = text.encode()
                mode = self.places[name][2] if name in self.places else False
                self.places[name] = 0, len(self.contents[name]), mode
        confine.refuse_entries_through_links(self.links, (*self.places, *self.links), self.called)
        for name in (*self.places, *self.links):
            if name in self.folders:
                raise self._unsafe(f"an entry that would be written through another: {name}")
        for name in sorted(self.contents):
            self.tar.file(name, self.contents[name], executable=self.places[name][2])
        return Packed(digest, self.contents)

    def _file(self, name: str, content: IO[bytes], size: int, executable: bool) -> None:
        data = content.read() if size < _LFS_SIZE or name in self.held else None
        if size < _LFS_SIZE and data and data.startswith(_LFS):
            raise UnsafeArchiveError(
                f"{self.called} has a Git LFS pointer in the place of a file: {name}",
                why="what is in Git LFS is not in the repository, and is not fetched",
                next="leave it out of the profile in toolchains/upstreams if it is not needed, or give a checkout that "
                "has the file: --source NAME=PATH",
            )
        hashed = _Hashed(content if data is None else io.BytesIO(data))
        if data is not None and name in self.held:
            self.contents[name] = hashed.read(len(data))
        else:
            self.tar.file(name, cast(IO[bytes], hashed), size, executable=executable)
        self.places[name] = self.out.tell() - size - len(padding(size)), size, executable
        self._note(name, "x" if executable else "f", hashed.hash.hexdigest())

    def _note(self, name: str, kind: str, sha256: str) -> None:
        self.digest.update(f"{name}\0{kind}\0{sha256}\n".encode())

    def _stays(self, name: str) -> bool:
        """Return whether a link leads to a place in the tree; other links on the way are followed."""
        at: list[str] = name.split("/")[:-1]
        steps = self.links[name].split("/")[::-1]
        if self.links[name].startswith("/"):
            return False
        for _ in range(1000):
            if not steps:
                return True
            step = steps.pop()
            if step == "..":
                if not at:
                    return False
                at.pop()
            elif step not in ("", "."):
                at.append(step)
                link = self.links.get("/".join(at))
                if link is not None:
                    if link.startswith("/"):
                        return False
                    at.pop()
                    steps += link.split("/")[::-1]
        # Links that form a circle lead nowhere.
        return True

    def _unsafe(self, what: str) -> UnsafeArchiveError:
        return UnsafeArchiveError(f"{self.called} has {what}")


class _Hashed:
    """A content, and the sha256 of the bytes that were read from it."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._content.read(size)
        self.hash.update(data)
        return data


@dataclass(frozen=True)
class _Held:
    """The files that a series changes: a layout.Tree."""

    contents: dict[str, bytes]
    called: str

    def read(self, path: str) -> str | None:
        content = self.contents.get(path)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise PatchTargetError(f"{path} of {self.called} is not UTF-8 text", why=str(error)) from None

    def paths(self) -> Iterator[str]:
        yield from self.contents


def read_tree(tar: Path, called: str, *, below: str = "") -> Iterator[SourceEntry]:
    """Yield the entries of a tar, plain or compressed, in order, without the topmost folder.

    Args:
        below: a folder to prepend to their names.

    Raises:
        UnsafeArchiveError: an entry is neither a file, a folder nor a link; or there are two topmost folders.
        tar_file.DAMAGED: it cannot be read.
    """
    top = ""

    def inside(name: str) -> str:
        first, _, rest = name.partition("/")
        if first != top:
            raise UnsafeArchiveError(
                f"{called} has more than one topmost folder: {top} and {first}",
                why="the topmost folder of such an archive is taken away",
            )
        return posixpath.join(below, rest)

    with tar_file.opened(tar, "r|*") as archive:
        while (member := archive.next()) is not None:
            # Otherwise tarfile would keep every entry in memory until the end.
            archive.members = []  # type: ignore[attr-defined]
            name = confine.relative_path(member.name, called)
            if name == ".":
                continue
            top = top or name.partition("/")[0]
            name = inside(name)
            if member.isdir():
                continue
            if member.issym():
                yield SourceEntry(name, link=member.linkname)
            elif member.islnk():
                yield SourceEntry(name, same_as=inside(confine.relative_path(member.linkname, called)))
            elif member.isreg():
                yield SourceEntry(name, archive.extractfile(member), member.size, bool(member.mode & 0o100))
            else:
                raise UnsafeArchiveError(f"{called} has an entry that is neither a file nor a link: {member.name}")
