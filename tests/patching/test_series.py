"""A patch series: strict, idempotent, and regenerated without loss."""

from __future__ import annotations

from pathlib import Path

import patch_series
import pytest

from toolchains.patching import series as patches
from toolchains.patching.layout import FolderTree
from toolchains.patching.refresh import refresh
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.errors import HunkError, MalformedPatchError, PatchError, PatchTargetError, UsageError

HEADER = "Subject: {subject}\nWhy: because\n it is so\nUpstream: none\nUntil: never\n\n"
MODULE = [f"line {number}\n" for number in range(1, 31)]
PATH = "python/triton/module.py"
FIRST = """\
--- a/python/triton/module.py
+++ b/python/triton/module.py
@@ -4,7 +4,7 @@
 line 4
 line 5
 line 6
-line 7
+line seven
 line 8
 line 9
 line 10
"""
# Its context is a line that the first patch adds: it cannot be checked without the first patch.
SECOND = """\
--- a/python/triton/module.py
+++ b/python/triton/module.py
@@ -5,6 +5,7 @@
 line 5
 line 6
 line seven
+line seven and a half
 line 8
 line 9
 line 10
"""


@pytest.fixture
def series(tmp_path: Path) -> Series:
    folder = tmp_path / "patches" / "triton" / "1.0"
    write(folder, {"0001-first.patch": FIRST, "0002-second.patch": SECOND})
    return Series.load(folder)


@pytest.fixture
def tree(tmp_path: Path) -> FolderTree:
    file = tmp_path / "source" / PATH
    file.parent.mkdir(parents=True)
    file.write_text("".join(MODULE))
    return FolderTree.detect(tmp_path / "source")


def write(folder: Path, bodies: dict[str, str]) -> None:
    patch_series.write(folder, {name: HEADER.format(subject=name) + body for name, body in bodies.items()})


def text(tree: FolderTree) -> str:
    return (tree.root / PATH).read_text()


def test_applying_twice_changes_nothing_the_second_time(series: Series, tree: FolderTree) -> None:
    assert series.apply(tree) == 2
    once, stamp = text(tree), (tree.root / PATH).stat().st_mtime_ns
    assert "line seven\nline seven and a half\nline 8\n" in once
    assert series.apply(tree) == 0
    assert text(tree) == once
    assert (tree.root / PATH).stat().st_mtime_ns == stamp


def test_a_half_applied_series_is_continued(series: Series, tree: FolderTree) -> None:
    Series(series.folder, series.patches[:1], "").apply(tree)
    assert [state.state for state in series.states(tree)] == ["applied", "applies"]
    assert series.apply(tree) == 1
    assert [state.state for state in series.states(tree)] == ["applied", "applied"]


def test_wheel_gets_the_same_lines_at_its_own_paths(series: Series, tree: FolderTree, tmp_path: Path) -> None:
    wheel = tmp_path / "wheel" / "triton"
    wheel.mkdir(parents=True)
    (wheel / "module.py").write_text("".join(MODULE))
    series.apply(FolderTree.detect(tmp_path / "wheel"))
    series.apply(tree)
    assert (wheel / "module.py").read_text() == text(tree)
    place = FolderTree(tmp_path, "wheel").place
    assert place("third_party/spirv/backend/driver.py") == tmp_path / "triton/backends/spirv/driver.py"
    assert place("third_party/spirv/CMakeLists.txt") is None


def test_a_hunk_that_does_not_fit_is_refused_with_its_place_and_its_lines(series: Series, tree: FolderTree) -> None:
    (tree.root / PATH).write_text("new first line\n" + "".join(MODULE))
    before = text(tree)
    with pytest.raises(HunkError, match=r"0001-first\.patch, hunk 1 of python/triton/module\.py") as caught:
        series.apply(tree)
    assert "line 5 instead of 4" in caught.value.why
    assert text(tree) == before
    (tree.root / PATH).write_text("".join(MODULE).replace("line 9\n", "line nine\n"))
    with pytest.raises(HunkError) as caught:
        series.apply(tree)
    assert "line 9\n" in caught.value.why
    assert "found:    line nine" in caught.value.why
    (tree.root / PATH).unlink()
    with pytest.raises(PatchTargetError, match=r"0001-first\.patch changes python/triton/module\.py"):
        series.apply(tree)


def test_a_conflict_in_the_last_patch_leaves_the_tree_as_it_was(series: Series, tree: FolderTree) -> None:
    broken = SECOND.replace(" line 10", " line ten")
    write(series.folder, {"0001-first.patch": FIRST, "0002-second.patch": broken})
    before = text(tree)
    with pytest.raises(HunkError, match=r"0002-second\.patch"):
        Series.load(series.folder).apply(tree)
    assert text(tree) == before
    states = Series.load(series.folder).states(tree)
    assert [state.state for state in states] == ["applies", "conflicts"]


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [
        (HEADER + "nothing of a diff\n", "not a unified diff"),
        (HEADER + FIRST[: FIRST.index(" line 9")], "not a unified diff"),
        (HEADER + FIRST.replace("@@ -4,7 +4,7 @@", "@@ -4,7 +4,7"), "not a unified diff"),
        (HEADER + FIRST + "stray\n", "not a unified diff"),
        (FIRST, "does not say Subject, Why, Upstream, Until"),
        (HEADER.replace("Until: never\n", "") + FIRST, "does not say Until"),
        (HEADER + FIRST.replace("--- a/python/triton/module.py", "--- a/python/triton/other.py"), "not simply change"),
    ],
    ids=["text", "cut short", "broken hunk header", "stray line", "no header", "header incomplete", "rename"],
)
def test_a_patch_that_cannot_be_read_is_malformed(series: Series, patch: str, complaint: str) -> None:
    (series.folder / "0001-first.patch").write_text(patch)
    with pytest.raises(MalformedPatchError, match=complaint):
        Series.load(series.folder)


def test_series_that_is_absent_or_names_other_patches_is_refused(series: Series) -> None:
    missing = series.folder.with_name("9.9.9")
    with pytest.raises(MalformedPatchError) as refused:
        Series.load(missing)
    assert f"there are series for: {series.folder.name}" in str(refused.value)
    assert str(refused.value).endswith(f"cp -r {series.folder.parent}/RELEASE {missing}")
    (series.folder / "0003-forgotten.patch").write_text(HEADER + FIRST)
    with pytest.raises(MalformedPatchError, match=r"does not name 0003-forgotten\.patch"):
        Series.load(series.folder)
    (series.folder / "0003-forgotten.patch").unlink()
    (series.folder / "0002-second.patch").unlink()
    with pytest.raises(MalformedPatchError, match=r"0002-second\.patch"):
        Series.load(series.folder)


def test_refreshing_a_series_that_fits_changes_no_byte(series: Series, tree: FolderTree) -> None:
    before = {patch.name: (series.folder / patch.name).read_bytes() for patch in series.patches}
    again = refresh(series, tree)
    assert {patch.name: (series.folder / patch.name).read_bytes() for patch in again.patches} == before


def test_refreshing_anchors_moved_hunks_and_keeps_the_headers(series: Series, tree: FolderTree) -> None:
    (tree.root / PATH).write_text("new first line\n" + "".join(MODULE))
    again = refresh(series, tree)
    assert [patch.header for patch in again.patches] == [patch.header for patch in series.patches]
    assert again.apply(tree) == 2
    assert text(tree).startswith("new first line\n")
    assert "line seven\nline seven and a half\n" in text(tree)


def test_refreshing_takes_an_edit_into_the_named_patch(series: Series, tree: FolderTree, tmp_path: Path) -> None:
    file = tmp_path / "edited" / PATH
    file.parent.mkdir(parents=True)
    file.write_text("".join(MODULE))
    edited = FolderTree.detect(tmp_path / "edited")
    series.apply(edited)
    file.write_text(file.read_text().replace("line 20\n", "line twenty\n"))
    again = refresh(series, tree, edited=edited, into="0001-first.patch")
    assert [len(patch.files[PATH]) for patch in again.patches] == [2, 1]
    again.apply(tree)
    assert text(tree) == file.read_text()
    with pytest.raises(UsageError, match="no patch 0009"):
        refresh(again, tree, edited=edited, into="0009")


def test_a_changed_series_has_no_revision_until_it_is_refreshed(series: Series, tree: FolderTree) -> None:
    assert refresh(series, tree).revision() == 1
    assert refresh(Series.load(series.folder), tree).revision() == 1
    changed = series.folder / "0002-second.patch"
    changed.write_text(changed.read_text().replace("Why: because", "Why: for another reason"))
    with pytest.raises(PatchError, match="not those of its revision 1"):
        Series.load(series.folder).revision()
    assert refresh(Series.load(series.folder), tree).revision() == 2


class TestAddedFile:
    NEW = "python/triton/new/module.py"
    ADD = f"--- /dev/null\n+++ b/{NEW}\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    CHANGE = f"--- a/{NEW}\n+++ b/{NEW}\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"

    @pytest.fixture
    def adding(self, series: Series) -> Series:
        bodies = {"0001-first.patch": FIRST, "0002-second.patch": self.ADD, "0003-third.patch": self.CHANGE}
        write(series.folder, bodies)
        return Series.load(series.folder)

    def test_is_made_and_may_be_changed_by_a_later_patch(self, adding: Series, tree: FolderTree) -> None:
        assert adding.apply(tree) == 3
        assert (tree.root / self.NEW).read_text() == "one\nthree\n"
        assert [state.state for state in adding.states(tree)] == ["applied"] * 3
        assert adding.apply(tree) == 0

    def test_is_seen_where_the_series_is_half_applied(self, adding: Series, tree: FolderTree) -> None:
        Series(adding.folder, adding.patches[:2], "").apply(tree)
        assert [state.state for state in adding.states(tree)] == ["applied", "applied", "applies"]
        assert adding.changes(tree) == {self.NEW: "one\nthree\n"}

    @pytest.mark.parametrize("content", ["one\n", "", "one\ntwo\nmore\n"])
    def test_must_not_be_there_before(self, adding: Series, tree: FolderTree, content: str) -> None:
        before = text(tree)
        tree.write(self.NEW, content)
        with pytest.raises(PatchTargetError, match=rf"0002-second\.patch adds {self.NEW}, which this tree has"):
            adding.apply(tree)
        assert (text(tree), (tree.root / self.NEW).read_text()) == (before, content)

    def test_keeps_its_bytes_when_the_series_is_refreshed(self, adding: Series, tree: FolderTree) -> None:
        before = {patch.name: (adding.folder / patch.name).read_bytes() for patch in adding.patches}
        again = refresh(adding, tree)
        assert {patch.name: (adding.folder / patch.name).read_bytes() for patch in again.patches} == before

    def test_comes_out_of_an_edited_tree(self, series: Series, tree: FolderTree, tmp_path: Path) -> None:
        edited = FolderTree(tmp_path / "edited", "source")
        edited.write(PATH, text(tree))
        series.apply(edited)
        edited.write(self.NEW, "one\n")
        again = refresh(series, tree, edited=edited)
        assert again.patches[1].added == {self.NEW}
        again.apply(tree)
        assert (tree.root / self.NEW).read_text() == "one\n"

    def test_of_a_wheel_it_must_be_one_that_a_wheel_carries(self, series: Series, tmp_path: Path) -> None:
        write(series.folder, {"0001-first.patch": self.ADD.replace(self.NEW, "lib/new.cpp")})
        (series.folder / "0002-second.patch").unlink()
        (tmp_path / "wheel" / "triton").mkdir(parents=True)
        with pytest.raises(PatchTargetError, match=r"adds lib/new\.cpp, which is in no wheel"):
            Series.load(series.folder).apply(FolderTree.detect(tmp_path / "wheel"))

    @pytest.mark.parametrize(
        "patch",
        [
            f"--- a/{NEW}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n",
            f"--- a/{NEW}\n+++ b/{NEW}\n@@ -0,0 +1,2 @@\n+one\n+two\n",
            f"--- /dev/null\n+++ {NEW}\n@@ -0,0 +1,2 @@\n+one\n+two\n",
            ADD + ADD,
        ],
        ids=["removed", "of an existing file", "without a prefix", "twice"],
    )
    def test_is_told_from_what_a_series_does_not_do(self, series: Series, patch: str) -> None:
        (series.folder / "0001-first.patch").write_text(HEADER + patch)
        with pytest.raises(MalformedPatchError, match="not simply change"):
            Series.load(series.folder)


@pytest.mark.parametrize(
    "folder", sorted(paths.PATCHES.glob("*/*/")), ids=lambda folder: f"{folder.parent.name}-{folder.name}"
)
def test_every_series_of_the_project_is_readable_and_those_that_name_wheels_are_numbered(folder: Path) -> None:
    series = patches.Series.load(folder)
    assert series.patches
    assert folder.parent.name != "triton" or series.revision() >= 1


@pytest.mark.parametrize("listing", [b"\xff\n", b"9" * 5000, b"."])
def test_a_list_of_patches_that_names_no_file_is_malformed(tmp_path: Path, listing: bytes) -> None:
    (tmp_path / "series").write_bytes(listing)
    with pytest.raises(MalformedPatchError, match="series"):
        Series.load(tmp_path)


@pytest.mark.parametrize("text", ["number = []\ndigest = ''", "number = inf\ndigest = ''", "a = " + "[" * 100_000])
def test_a_revision_that_is_no_number_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "revision.toml").write_text(text)
    with pytest.raises(MalformedPatchError, match=r"revision\.toml cannot be read"):
        patches.read_revision(tmp_path)
