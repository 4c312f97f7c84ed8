"""Read a patch series, apply it strictly, and find which patches a tree already has.

A series is a folder, patches/<component>/<version>/:

    series              names of patches, one per line, in order; # starts a comment
    NNNN-what.patch     a header (Subject, Why, Upstream, Until; a continued line starts with a blank), an empty line, a
                        unified diff with the source tree's paths; each patch has one purpose
    revision.toml       the N of X+foundry.N and the digest of its series: two different series never have the same name

Strict means: a hunk is applied at the line that its header names, or not at all. `git apply` and GNU patch accept a
hunk that has moved, but it may have moved into a similar function instead of the intended one. So unidiff reads the
patches, and this module applies them by comparing lists of lines. Everything happens in memory; a tree is written only
if the whole series fits, so a conflict in the last patch leaves all files unchanged.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from unidiff.constants import LINE_TYPE_NO_NEWLINE
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from toolchains.archives import confine
from toolchains.patching.layout import FolderTree, Tree
from toolchains.system import paths
from toolchains.system.errors import HunkError, MalformedPatchError, PatchError, PatchTargetError

# The name of a missing file in a unified diff.
_NOTHING = "/dev/null"
FIELDS = ("Subject", "Why", "Upstream", "Until")


@dataclass(frozen=True)
class Hunk:
    """A changed place in a file: its lines before and after, and the line numbers (from 1) at which they start."""

    number: int
    before_start: int
    before: tuple[str, ...]
    after_start: int
    after: tuple[str, ...]

    def reversed(self) -> Hunk:
        return Hunk(self.number, self.after_start, self.after, self.before_start, self.before)


@dataclass(frozen=True)
class Patch:
    """A patch with one purpose: its header, and hunks by the path of the file that they change.

    Attributes:
        added: paths of files that it creates, each from one hunk. They must not exist before.
        removed: paths of files that it deletes, each with one hunk that is the whole file. Only the reverse of a patch
            that adds files has any.
    """

    name: str
    header: str
    fields: dict[str, str]
    files: dict[str, tuple[Hunk, ...]]
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def reversed(self) -> Patch:
        files = {path: tuple(hunk.reversed() for hunk in hunks) for path, hunks in self.files.items()}
        return replace(self, files=files, added=self.removed, removed=self.added)


@dataclass(frozen=True)
class PatchState:
    """The state of a patch for a tree: applied, applies, conflicts (and why), or waits for one that conflicts."""

    patch: Patch
    state: Literal["applied", "applies", "conflicts", "waits"]
    error: PatchError | None = None


@dataclass
class Overlay:
    """A tree and its changes: patches are tried in it, and nothing is written.

    Attributes:
        changed: new texts by path; None for a deleted file.
    """

    tree: Tree
    changed: dict[str, str | None] = field(default_factory=dict)

    def read(self, path: str) -> str | None:
        return self.changed[path] if path in self.changed else self.tree.read(path)

    def apply(self, patch: Patch) -> None:
        """Apply every hunk of a patch at its own line.

        Raises:
            PatchTargetError: a file is missing, or a file that the patch adds exists. HunkError: a hunk does not fit.
        """
        for path, hunks in patch.files.items():
            if self.made_or_gone(patch, path):
                continue
            lines = split(self.target(patch, path))
            result: list[str] = []
            done = 0
            for hunk in hunks:
                start = hunk.before_start - 1
                if lines[start : start + len(hunk.before)] != list(hunk.before):
                    raise misfit_error(patch, path, hunk, lines)
                result += [*lines[done:start], *hunk.after]
                done = start + len(hunk.before)
            self.changed[path] = "".join(result + lines[done:])

    def made_or_gone(self, patch: Patch, path: str) -> bool:
        """Create a file that a patch adds, or delete one that it removes; return False for all other files.

        Raises:
            PatchTargetError: a file to create exists, or one to delete does not. HunkError: the one to delete has
                changed.
        """
        if path in patch.added:
            if self.read(path) is not None:
                raise PatchTargetError(
                    f"{patch.name} adds {path}, which this tree has",
                    why="the release has a file of that name now, or the patch was applied by hand",
                )
            self.changed[path] = "".join(patch.files[path][0].after)
        elif path in patch.removed:
            if split(self.target(patch, path)) != list(patch.files[path][0].before):
                raise HunkError(f"{patch.name} adds {path}, which this tree has with other lines")
            self.changed[path] = None
        else:
            return False
        return True

    def target(self, patch: Patch, path: str) -> str:
        """Return the text of a file that a patch changes, or raise PatchTargetError."""
        text = self.read(path)
        if text is None:
            raise PatchTargetError(
                f"{patch.name} changes {path}, which this tree does not have",
                why="the patch is for another release, or for a file that a wheel does not carry",
            )
        return text


@dataclass(frozen=True)
class Series:
    """The patches of one version of one component, in order, and a digest over all of them."""

    folder: Path
    patches: tuple[Patch, ...]
    digest: str

    @classmethod
    def load(cls, folder: Path) -> Series:
        """Read a series.

        Raises:
            MalformedPatchError: no series file; a listed patch is missing or unreadable; a patch is not listed.
        """
        listing = folder / "series"
        if not listing.is_file():
            known = ", ".join(sorted(entry.parent.name for entry in folder.parent.glob("*/series")))
            raise MalformedPatchError(
                f"{listing} does not exist",
                why=f"there are series for: {known or 'nothing'}",
                next=f"copy the series of the release that is nearest: cp -r {folder.parent}/RELEASE {folder}",
            )
        try:
            lines = listing.read_bytes().decode().splitlines()
        except UnicodeDecodeError as error:
            raise MalformedPatchError(f"{listing} cannot be read", why=str(error)) from None
        names = [line for line in (line.split("#")[0].strip() for line in lines) if line]
        strays = sorted({entry.name for entry in folder.glob("*.patch")} - set(names))
        if strays:
            raise MalformedPatchError(f"{listing} does not name {', '.join(strays)}", next="add it there, or remove it")
        digest = hashlib.sha256()
        patches = []
        for name in names:
            confine.name(name, str(listing), error=MalformedPatchError)
            try:
                text = (folder / name).read_bytes().decode()
            except (OSError, UnicodeDecodeError) as error:
                raise MalformedPatchError(f"{name}, named in {listing}, cannot be read", why=str(error)) from None
            digest.update(f"{name}\0{len(text)}\0{text}".encode())
            patches.append(parse(name, text))
        return cls(folder, tuple(patches), digest.hexdigest())

    def revision(self) -> int:
        """Return the N of X+foundry.N.

        Raises:
            PatchError: revision.toml is for other patches than these.
        """
        number, digest = read_revision(self.folder)
        if digest != self.digest:
            raise PatchError(
                f"the patches in {self.folder} are not those of its revision {number}",
                why="they changed since; two different series must not make wheels of the same name",
                next=f"./foundry patch refresh --triton {self.folder.name}",
            )
        return number

    def applied(self, tree: Tree) -> int:
        """Return how many patches, from the first, a tree already has.

        It is the largest number of patches that can be reverted, the last one first. A patch cannot be tested alone,
        because a later patch may have changed lines near its own.
        """
        for count in range(len(self.patches), 0, -1):
            overlay = Overlay(tree)
            try:
                for patch in reversed(self.patches[:count]):
                    overlay.apply(patch.reversed())
            except PatchError:
                continue
            return count
        return 0

    def states(self, tree: Tree) -> list[PatchState]:
        """Return the state of each patch for a tree, in order."""
        applied = self.applied(tree)
        result = [PatchState(patch, "applied") for patch in self.patches[:applied]]
        overlay = Overlay(tree)
        for position, patch in enumerate(self.patches[applied:], applied):
            try:
                overlay.apply(patch)
            except PatchError as error:
                result.append(PatchState(patch, "conflicts", error))
                result += [PatchState(behind, "waits") for behind in self.patches[position + 1 :]]
                break
            result.append(PatchState(patch, "applies"))
        return result

    def changes(self, tree: Tree) -> dict[str, str]:
        """Return the changed files that complete the series in a tree, by path; none for a tree that has all patches.

        Raises:
            PatchTargetError: a file is missing. HunkError: a hunk does not fit.
        """
        overlay = Overlay(tree)
        for patch in self.patches[self.applied(tree) :]:
            overlay.apply(patch)
        return {path: text for path, text in overlay.changed.items() if text is not None}

    def apply(self, tree: FolderTree) -> int:
        """Apply the missing patches to a tree; nothing is written to a tree that has all patches.

        Returns:
            The number of patches applied now.

        Raises:
            PatchTargetError: a file is missing, or a patch adds a file that a wheel does not have. HunkError: a hunk
                does not fit. In all cases nothing was written.
        """
        missing = len(self.patches) - self.applied(tree)
        changes = self.changes(tree)
        for path in changes:
            if tree.place(path) is None:
                raise PatchTargetError(f"{self.folder} adds {path}, which is in no wheel")
        for path, text in changes.items():
            tree.write(path, text)
        return missing


def series_folder(version: str, component: str = "triton") -> Path:
    """Return the folder of a release's series."""
    return paths.PATCHES / component / version


def series_digest(version: str) -> str:
    """Return the digest of Triton's series for a release; with the original wheel, it identifies a patched wheel."""
    return Series.load(series_folder(version)).digest


def parse(name: str, text: str) -> Patch:
    """Read one patch.

    Raises:
        MalformedPatchError: no header, a field is missing, no unified diff, files are removed or renamed, or a path
            leaves the tree.
    """
    header, separator, body = text.partition("\n--- ")
    header = header.rstrip("\n") + "\n"
    body = separator.lstrip("\n") + body
    fields: dict[str, str] = {}
    key = ""
    for line in header.splitlines():
        if line.startswith(" ") and key:
            fields[key] += line
        elif line.strip():
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    missing = [key for key in FIELDS if not fields.get(key)]
    if missing:
        raise MalformedPatchError(
            f"the header of {name} does not say {', '.join(missing)}", why=f"it must have {', '.join(FIELDS)}"
        )
    try:
        diff = PatchSet.from_string(body)
    except UnidiffParseError as error:
        raise MalformedPatchError(f"{name} is not a unified diff", why=str(error)) from None
    # unidiff skips lines that it does not understand; a hunk lost in this way would leave a patch partly applied.
    if not diff or _contents(str(diff)) != _contents(body):
        raise MalformedPatchError(
            f"{name} is not a unified diff",
            why="it has no hunk at all" if not diff else "some of its lines belong to no hunk",
        )
    files: dict[str, tuple[Hunk, ...]] = {}
    added = set()
    for file in diff:
        is_added = file.source_file == _NOTHING and file.target_file.startswith("b/") and len(file) == 1
        names = file.source_file, file.target_file
        changed = file.is_modified_file and names == (f"a/{file.path}", f"b/{file.path}")
        if not (is_added or changed) or file.path in files:
            raise MalformedPatchError(
                f"{name} does not simply change {file.path}",
                why="a series changes files or adds them, each once a patch; it removes and renames none",
            )
        confine.relative_path(file.path, name, error=MalformedPatchError)
        if is_added:
            added.add(file.path)
        if any(line.line_type == LINE_TYPE_NO_NEWLINE for hunk in file for line in hunk):
            raise MalformedPatchError(f"{name}: {file.path} has no newline at its end")
        files[file.path] = tuple(
            Hunk(
                number=number,
                before_start=hunk.source_start,
                before=tuple(line.value for line in hunk.source_lines()),
                after_start=hunk.target_start,
                after=tuple(line.value for line in hunk.target_lines()),
            )
            for number, hunk in enumerate(file, 1)
        )
    return Patch(name, header, fields, files, frozenset(added))


def _contents(diff: str) -> list[str]:
    """Return a diff's lines without the headers of hunks, in which "-1" and "-1,1" are equivalent."""
    return [line for line in split(diff) if not line.startswith("@@ ")]


def split(text: str) -> list[str]:
    """Return the lines of a file with their ends; only \\n ends a line, as in a diff."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def misfit_error(patch: Patch, path: str, hunk: Hunk, lines: Sequence[str]) -> HunkError:
    """Return the error for a hunk that does not fit: the lines that differ, or where else the hunk's lines are."""
    start = hunk.before_start - 1
    elsewhere = find_block(lines, hunk.before)
    if elsewhere:
        where = ", ".join(str(place + 1) for place in elsewhere)
        why = f"its lines are at line {where} instead of {hunk.before_start}"
    else:
        differences = []
        for offset, expected in enumerate(hunk.before):
            actual = lines[start + offset] if start + offset < len(lines) else "(end of file)"
            if actual != expected:
                differences.append(
                    f"line {start + offset + 1}\n  expected: {expected.rstrip()}\n  found:    {actual.rstrip()}"
                )
        why = "\n".join(differences[:3])
    return HunkError(
        f"{patch.name}, hunk {hunk.number} of {path} does not fit",
        why=why,
        next="./foundry patch refresh, if the lines only moved; otherwise rewrite the hunk for this release",
    )


def find_block(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return the indices at which a run of lines occurs."""
    length = len(block)
    return [index for index in range(len(lines) - length + 1) if list(lines[index : index + length]) == list(block)]


def read_revision(folder: Path) -> tuple[int, str]:
    """Return the number and the digest in revision.toml; (0, "") for a series that was never refreshed."""
    file = folder / "revision.toml"
    if not file.is_file():
        return 0, ""
    try:
        data = tomllib.loads(file.read_text())
        return int(data["number"]), str(data["digest"])
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise MalformedPatchError(f"{file} cannot be read", why=str(error)) from None
