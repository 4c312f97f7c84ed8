"""Programs linked with files of packages: named by their inputs, and with the same bytes each time."""

from __future__ import annotations

import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from toolchains.artifacts import linked
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Linked, LockedTarget
from toolchains.system import paths
from toolchains.system.errors import CommandError

SCRIPT = """\
busybox mkdir -p /out/bin
busybox ls /usr/share > /out/shared
busybox cat /recipe/words/hello > /out/hello
busybox ln -s ../hello /out/bin/hello
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "recipes" / "toy"
    (folder / "words").mkdir(parents=True)
    (folder / "link.sh").write_text(SCRIPT)
    (folder / "words" / "hello").write_text("hello\n")
    monkeypatch.setattr(paths, "RECIPES", tmp_path / "recipes")
    return folder


@pytest.fixture
def target() -> LockedTarget:
    """Return a target with a toy program; its package is a shell."""
    found = lock.load().targets["spirv"]
    shell = tuple(deb for each in found.linked for deb in each.debs if deb.name == "busybox-static")
    return replace(found, linked=(Linked("toy", shell, ("/usr/share/man*",)),))


def test_name_depends_on_recipe_packages_and_left_out_files(recipe: Path, target: LockedTarget, tmp_path: Path) -> None:
    store = Store(tmp_path / "store", offline=True)
    store.part("linked", linked.identity(target.linked[0]), lambda folder: None)
    assert linked.fetch_if_needed(target, store) == target
    (what,) = target.linked
    names = {
        linked.identity(each)
        for each in (what, replace(what, debs=(replace(what.debs[0], sha256="0" * 64),)), replace(what, left_out=()))
    }
    (recipe / "words" / "hello").write_text("good day\n")
    names.add(linked.identity(what))
    (recipe / "link.sh").write_text(SCRIPT + "\n")
    names.add(linked.identity(what))
    assert len(names) == 5


def store_with_packages(root: Path, target: LockedTarget) -> Store:
    """Return a store that has the user's own store's packages, with those of the target, and no parts."""
    own = Store(paths.cache())
    own.fetch(target.linked[0].debs, suite=target.suite, python=target.python)
    root.mkdir()
    (root / "artifacts").symlink_to(own.root / "artifacts")
    return Store(root, offline=True)


@pytest.mark.network
def test_linked_part_has_the_same_bytes_each_time(recipe: Path, target: LockedTarget, tmp_path: Path) -> None:
    parts = []
    for name in ("one", "other"):
        store = store_with_packages(tmp_path / name, target)
        parts.append(linked.part(target.linked[0], target.suite, store))
        time.sleep(1.1)
    with tarfile.open(parts[0]) as tar:
        found = {member.name: file.read() if (file := tar.extractfile(member)) else b"" for member in tar}
        assert tar.getmember("bin/hello").linkname == "../hello"
    assert found["hello"] == b"hello\n"
    # The pattern leaves man pages out, and nothing else; no other package is there.
    assert b"doc\n" in found["shared"]
    assert b"man\n" not in found["shared"]
    assert parts[0].read_bytes() == parts[1].read_bytes()


@pytest.mark.network
def test_an_error_of_the_recipe_is_shown_and_leaves_no_part(recipe: Path, target: LockedTarget, tmp_path: Path) -> None:
    (recipe / "link.sh").write_text("echo no linker >&2\nexit 3\n")
    store = store_with_packages(tmp_path / "store", target)
    with pytest.raises(CommandError, match="mmdebstrap") as caught:
        linked.part(target.linked[0], target.suite, store)
    assert "no linker" in caught.value.why
    assert not store.has_part("linked", linked.identity(target.linked[0]))
