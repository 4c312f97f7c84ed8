"""No name leads out of its folder, wherever it comes from: one rule, and all code that applies it."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from toolchains.archives import confine, docker_archive, wheel_file
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedSource, LockedTarget, Patched
from toolchains.patching import layout, series
from toolchains.patching.layout import FolderTree
from toolchains.system import paths
from toolchains.system.errors import MalformedPatchError, PatchTargetError, PinError, UnsafeArchiveError

LEADING_OUT = (
    "",
    "/etc/passwd",
    "..",
    "../x",
    "a/..",
    "a/../b",
    "python/triton/../../../x",
    "a/..\\x",
    "a\\b",
    "a\0b",
    "\0",
)
FIELDS = "Subject: s\nWhy: w\nUpstream: u\nUntil: u\n\n"


@pytest.mark.parametrize("path", LEADING_OUT)
def test_path_that_may_leave_its_folder_is_refused_with_the_reason(path: str) -> None:
    with pytest.raises(UnsafeArchiveError, match=r"sdk\.tar has a path that leaves its folder") as caught:
        confine.relative_path(path, "sdk.tar")
    assert caught.value.why and caught.value.next


@pytest.mark.parametrize("path", ["a", "a/b", "./a/b", "a//b/", "..a/b..", "a/.../b", "ü/ b"])
def test_path_inside_its_folder_is_normalised(path: str) -> None:
    assert confine.relative_path(path, "x") == str(Path(path))


@pytest.mark.parametrize("text", ["a/b", ".", "..", "", "/a", "a\0"])
def test_a_file_name_is_one_part_of_a_path(text: str) -> None:
    with pytest.raises(UnsafeArchiveError):
        confine.name(text, "x")


def test_a_link_in_a_folder_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "tree/inner").mkdir(parents=True)
    (tmp_path / "tree/out").symlink_to(tmp_path)
    (tmp_path / "tree/in").symlink_to("inner")
    assert confine.path_below(tmp_path / "tree", "in/new.py", "x") == tmp_path / "tree/in/new.py"
    with pytest.raises(UnsafeArchiveError, match=r"through a link: out/new\.py"):
        confine.path_below(tmp_path / "tree", "out/new.py", "x")


OUT = "python/triton/../../../../escaped.py"


@pytest.mark.parametrize(
    "diff",
    [
        f"--- /dev/null\n+++ b/{OUT}\n@@ -0,0 +1,1 @@\n+x\n",
        f"--- a/{OUT}\n+++ b/{OUT}\n@@ -1,1 +1,1 @@\n-x\n+y\n",
        "--- /etc/passwd\n+++ /etc/passwd\n@@ -1,1 +1,1 @@\n-x\n+y\n",
        "--- a//etc/passwd\n+++ b//etc/passwd\n@@ -1,1 +1,1 @@\n-x\n+y\n",
        f"--- a/python/triton/x.py\n+++ b/{OUT}\n@@ -1,1 +1,1 @@\n-x\n+y\n",
        f"--- a/python/triton/x.py\n+++ ./{OUT}\n@@ -1,1 +1,1 @@\n-x\n+y\n",
        "--- /dev/null\n+++ b/python/triton/a\\..\\x.py\n@@ -0,0 +1,1 @@\n+x\n",
    ],
)
def test_a_patch_that_leaves_the_tree_is_refused_when_it_is_read(diff: str) -> None:
    with pytest.raises(MalformedPatchError, match=r"has a path that leaves its folder|does not simply change"):
        series.parse("0001.patch", FIELDS + diff)


@pytest.mark.parametrize("path", [OUT, "third_party/x/backend/../../../../y.py", "/python/triton/x.py"])
@pytest.mark.parametrize("kind", ["source", "wheel"])
def test_no_tree_has_a_place_outside_of_it(tmp_path: Path, path: str, kind: layout.Layout) -> None:
    with pytest.raises(PatchTargetError, match="has a path that leaves its folder"):
        FolderTree(tmp_path, kind).write(path, "x")


def test_a_tree_is_not_written_nor_read_through_a_link_that_leads_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "tree/python/triton").mkdir(parents=True)
    (tmp_path / "secret.py").write_text("x")
    (tmp_path / "tree/python/triton/out").symlink_to(tmp_path)
    (tmp_path / "tree/python/triton/file.py").symlink_to(tmp_path / "secret.py")
    tree = FolderTree(tmp_path / "tree", "source")
    for path in ("python/triton/out/new.py", "python/triton/file.py"):
        with pytest.raises(PatchTargetError, match="through a link"):
            tree.write(path, "y")
        with pytest.raises(PatchTargetError, match="through a link"):
            tree.read(path)
    assert (tmp_path / "secret.py").read_text() == "x" and not (tmp_path / "new.py").exists()


def test_a_series_names_patches_of_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "evil.patch").write_text(FIELDS + "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-x\n+y\n")
    (tmp_path / "1.0").mkdir()
    (tmp_path / "1.0/series").write_text("../evil.patch\n")
    with pytest.raises(MalformedPatchError, match="leaves its folder"):
        series.Series.load(tmp_path / "1.0")


@pytest.mark.parametrize(
    "change",
    [
        {"filename": "../../x.whl"},
        {"filename": "/x.whl"},
        {"filename": "a/x.whl"},
        {"filename": "a\\x.whl"},
        {"filename": "x\0.whl"},
        {"filename": ""},
        {"sha256": "../" + "a" * 61},
        {"sha256": "a" * 63},
        {"sha256": "A" * 64},
        {"sha256": "/" + "a" * 63},
        {"name": "-o=Dir::Etc=/tmp"},
        {"name": "a/b"},
        {"name": "a\nb"},
        {"version": "1 --hash=x"},
        {"version": "../1"},
    ],
)
def test_lock_with_an_unsafe_name_is_malformed(tmp_path: Path, change: dict[str, str]) -> None:
    data = json.loads(paths.LOCK.read_text())
    data["targets"]["spirv"]["wheels"][0].update(change)
    (tmp_path / "lock.json").write_text(json.dumps(data))
    with pytest.raises(PinError, match="the lock is malformed"):
        lock.load(tmp_path / "lock.json")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda target: replace(target, backend="../x"), r"target 'spirv' has a path that leaves its folder: \.\./x"),
        (
            lambda target: replace(target, recipes=("a/b",)),
            "target 'spirv' has a name that is not the name of one file",
        ),
        (lambda target: replace(target, suite="-x"), "target 'spirv' has '-x' where a name or a version is expected"),
        (lambda target: replace(target, sdk=".."), r"target 'spirv' has a path that leaves its folder: \.\."),
        (lambda _: LockedSource("git", commit="--output=x"), "a source has a malformed hash of git: '--output=x'"),
        (lambda _: Patched("c", "p", "../s", "/usr"), r"component 'c' has a path that leaves its folder: \.\./s"),
        (lambda _: Patched("c", "p", "s/1", "/usr/../../x"), "component 'c' has a path that leaves its folder: usr/"),
    ],
)
def test_targets_sources_and_patched_packages_are_checked_too(
    make: Callable[[LockedTarget], object], said: str
) -> None:
    with pytest.raises(PinError, match=said):
        make(lock.load().targets["spirv"])


@pytest.mark.parametrize("path", ["../x", "a/../../x", "a/.."])
def test_neither_a_layer_nor_a_wheel_has_an_entry_outside(tmp_path: Path, path: str) -> None:
    with tarfile.open(tmp_path / "layer.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(path))
    with tarfile.open(tmp_path / "layer.tar") as tar, pytest.raises(UnsafeArchiveError, match="a layer"):
        docker_archive._entries(tar)
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as file:
        file.writestr(path, "")
    with zipfile.ZipFile(tmp_path / "x.whl") as file, pytest.raises(UnsafeArchiveError, match=r"x\.whl"):
        list(wheel_file.wheel_files(file))
