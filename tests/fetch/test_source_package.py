"""Debian source packages are fetched with a real apt, from an archive in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from archive_files import DebianArchive

from toolchains.fetch.apt import SourcePackages
from toolchains.fetch.apt_sources import Archive
from toolchains.fetch.store import Store
from toolchains.system.errors import FetchError, GoneError, HashMismatchError, OfflineError, PinError

FILES = {"tool_1.0.orig.tar.xz": b"upstream's", "tool_1.0-1.debian.tar.xz": b"Debian's"}


@pytest.fixture
def packages(archive: DebianArchive, tmp_path: Path) -> SourcePackages:
    return SourcePackages(archive.suite, tmp_path / "apt" / "trixie", [archive.archive])


@pytest.fixture
def store(packages: SourcePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(Store, "source_packages", lambda self, suite: packages)
    return Store(tmp_path / "store")


def test_package_resolves_to_files_with_sizes_and_hashes(archive: DebianArchive, packages: SourcePackages) -> None:
    made = archive.add_source("tool", "1:1.0-1", FILES)
    archive.add_source("other", "2", {"other_2.tar.xz": b"native"})
    assert packages.resolve("tool") == made
    assert [file.filename for file in made] == [
        "tool_1.0-1.debian.tar.xz",
        "tool_1.0-1.dsc",
        "tool_1.0.orig.tar.xz",
    ]
    assert {file.version for file in made} == {"1:1.0-1"}


def test_the_newest_version_of_all_pockets_is_taken(archive: DebianArchive, tmp_path: Path) -> None:
    security = DebianArchive(tmp_path / "security", "trixie-security")
    archive.add_source("tool", "1.0-9", {"tool_1.0.orig.tar.xz": b"a"})
    newest = security.add_source("tool", "1.0-10", {"tool_1.0.orig.tar.xz": b"a"})
    both = [archive.archive, Archive(security.archive.uri, "-security", security.archive.options)]
    assert SourcePackages("trixie", tmp_path / "apt", both).resolve("tool") == newest


def test_a_package_that_the_suite_does_not_have_is_named(archive: DebianArchive, packages: SourcePackages) -> None:
    archive.add_source("tool", "1", FILES, binary="libtool, tool-doc")
    with pytest.raises(PinError, match="trixie has no source package tool-doc"):
        packages.resolve("tool-doc")
    archive.add_source("tool", "1", FILES)
    with pytest.raises(PinError, match="trixie has no source package nowhere"):
        packages.resolve("nowhere")


def test_files_arrive_and_nothing_is_unpacked(archive: DebianArchive, packages: SourcePackages, tmp_path: Path) -> None:
    made = archive.add_source("tool", "1:1.0-1", FILES)
    into = tmp_path / "into"
    into.mkdir()
    packages.fetch(made, into, lambda done: None)
    assert sorted(file.name for file in into.iterdir()) == [file.filename for file in made]
    assert (into / "tool_1.0.orig.tar.xz").read_bytes() == b"upstream's"


def test_a_superseded_package_is_gone(archive: DebianArchive, packages: SourcePackages, tmp_path: Path) -> None:
    old = archive.add_source("tool", "1.0-1", FILES)
    archive.add_source("tool", "1.0-2", FILES)
    with pytest.raises(GoneError, match=r"(?s)1 of the locked source packages.*tool 1\.0-1.*./foundry pin --update"):
        packages.fetch(old, tmp_path, lambda done: None)


def test_an_archive_that_does_not_answer_is_a_fetch_error(tmp_path: Path) -> None:
    nowhere = Archive(f"copy:{tmp_path}/nowhere", "", "trusted=yes")
    with pytest.raises(FetchError, match="did not answer"):
        SourcePackages("trixie", tmp_path / "apt", [nowhere]).resolve("tool")


def test_the_store_keeps_them_checked_and_offline_names_what_is_missing(archive: DebianArchive, store: Store) -> None:
    made = archive.add_source("tool", "1.0-1", FILES)
    offline = Store(store.root, offline=True)
    with pytest.raises(OfflineError, match=r"tool_1\.0\.orig\.tar\.xz"):
        offline.fetch(made, suite="trixie", python="")
    assert store.fetch(made, suite="trixie", python="") == made
    assert [offline.path(file).name for file in made] == [file.filename for file in made]


def test_a_file_that_changed_since_it_was_locked_is_refused(archive: DebianArchive, store: Store) -> None:
    locked = archive.add_source("tool", "1.0-1", FILES)
    archive.add_source("tool", "1.0-1", {**FILES, "tool_1.0.orig.tar.xz": b"somebody's"})
    with pytest.raises(HashMismatchError, match=r"tool_1\.0\.orig\.tar\.xz is not the file that was locked"):
        store.fetch(locked, suite="trixie", python="")
    assert not store.has(next(file for file in locked if "orig" in file.filename))
