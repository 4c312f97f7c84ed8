"""Regenerate a patch series from trees: find hunks again that a release moved, and add edits to a patch."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from toolchains.patching.layout import Tree
from toolchains.patching.series import Overlay, Patch, Series, find_block, misfit_error, read_revision, split
from toolchains.system.errors import UsageError


@dataclass
class _MovedOverlay(Overlay):
    """An overlay that finds a hunk by its lines; if they occur more than once, it takes the nearest place."""

    def apply(self, patch: Patch) -> None:
        for path, hunks in patch.files.items():
            if self.made_or_gone(patch, path):
                continue
            lines = split(self.target(patch, path))
            shift = 0
            for hunk in hunks:
                expected = hunk.before_start - 1 + shift
                places = find_block(lines, hunk.before)
                if not places:
                    raise misfit_error(patch, path, hunk, lines)
                start = min(places, key=lambda place: abs(place - expected))
                lines[start : start + len(hunk.before)] = hunk.after
                shift = start - (hunk.before_start - 1) + len(hunk.after) - len(hunk.before)
            self.changed[path] = "".join(lines)


def refresh(series: Series, pristine: Tree, *, edited: Tree | None = None, into: str | None = None) -> Series:
    """Rewrite a series' patches so that they fit `pristine` exactly; headers are kept, the revision gets a number.

    Args:
        pristine: the release without any patch.
        edited: a tree with the whole series applied, and the edits to add.
        into: the patch that gets the edits; the last one by default.

    Raises:
        HunkError: the file does not have the lines of a hunk. UsageError: there is no patch `into`.
    """
    names = [patch.name for patch in series.patches]
    if into is not None and into not in names:
        raise UsageError(f"there is no patch {into}", why=f"the series has {', '.join(names)}")
    takes = names[-1] if into is None else into
    tree = _MovedOverlay(pristine)
    bodies = {}
    for position, patch in enumerate(series.patches):
        before = Overlay(tree.tree, dict(tree.changed))
        if edited is not None and patch.name == takes:
            wanted = _MovedOverlay(edited)
            for later in reversed(series.patches[position + 1 :]):
                wanted.apply(later.reversed())
            for path in edited.paths():
                text = wanted.read(path)
                if text is not None and text != tree.read(path):
                    tree.changed[path] = text
        else:
            tree.apply(patch)
        body = ""
        for path in sorted(tree.changed):
            old, new = before.read(path), tree.read(path)
            # A file that the patch adds has no text before.
            origin = "/dev/null" if old is None else f"a/{path}"
            body += "".join(difflib.unified_diff(split(old or ""), split(new or ""), origin, f"b/{path}"))
        bodies[patch.name] = body
    for patch in series.patches:
        (series.folder / patch.name).write_bytes((patch.header + "\n" + bodies[patch.name]).encode())
    result = Series.load(series.folder)
    number, digest = read_revision(series.folder)
    # A changed series gets the next number; an unchanged one keeps its number.
    if digest != result.digest:
        (series.folder / "revision.toml").write_text(
            "# The N of X+foundry.N, and the series it stands for. Written by `./foundry patch refresh`.\n"
            f'number = {number + 1}\ndigest = "{result.digest}"\n'
        )
    return result
