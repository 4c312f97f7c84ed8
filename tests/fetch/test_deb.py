"""Debian packages are fetched with a real apt, from an archive in a folder."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest
from archive_files import DebianArchive

from toolchains.fetch import apt_sources
from toolchains.fetch.apt import Debs
from toolchains.fetch.apt_sources import Archive
from toolchains.system.errors import FetchError, GoneError, MissingToolError, PinError, UsageError


@pytest.fixture
def debs(archive: DebianArchive, tmp_path: Path) -> Debs:
    return Debs(archive.suite, tmp_path / "apt" / "trixie", [archive.archive])


def test_system_is_essential_required_and_asked_for_packages(archive: DebianArchive, debs: Debs) -> None:
    essential = archive.add("essential", "1", Essential="yes", Priority="required")
    required = archive.add("required", "2-1", Priority="required")
    tool = archive.add("tool", "3", Depends="library (>= 1)", Recommends="manual", Priority="optional")
    library = archive.add("library", "1:4.5+dfsg~rc1-1", Priority="optional")
    archive.add("manual", "1", Priority="optional")
    archive.add("other", "1", Priority="optional")
    assert debs.resolve(["tool"]) == [essential, library, required, tool]


def test_packages_that_the_suite_does_not_have_are_named(archive: DebianArchive, debs: Debs) -> None:
    archive.add("essential", "1", Essential="yes", Priority="required")
    archive.add("tool", "3", Depends="library")
    for asked, missing in (("nowhere", "nowhere"), ("tool", "library")):
        with pytest.raises(PinError, match=missing):
            debs.resolve([asked])


def test_files_arrive_under_names_without_an_epoch(archive: DebianArchive, debs: Debs, tmp_path: Path) -> None:
    plain, epoch = archive.add("plain", "1.0-1"), archive.add("epoch", "2:1.0~rc1+b1-1")
    into = tmp_path / "into"
    into.mkdir()
    debs.fetch([plain, epoch], into, lambda done: None)
    assert sorted(file.name for file in into.iterdir()) == ["epoch_1.0~rc1+b1-1_amd64.deb", "plain_1.0-1_amd64.deb"]
    assert (into / epoch.filename).stat().st_size == epoch.size


def test_superseded_packages_are_gone_and_all_named(archive: DebianArchive, debs: Debs, tmp_path: Path) -> None:
    old = [archive.add("first", "1"), archive.add("second", "1"), archive.add("third", "1")]
    archive.add("first", "2")
    archive.add("second", "2")
    with pytest.raises(GoneError, match=r"(?s)first 1.*second 1.*--allow-drift") as caught:
        debs.fetch(old, tmp_path, lambda done: None)
    assert "third" not in str(caught.value)


class TestBackports:
    """Backports, as Debian marks them: apt takes nothing from them that nobody asks for."""

    @pytest.fixture
    def backports(self, archive: DebianArchive) -> DebianArchive:
        return DebianArchive(archive.folder, "trixie-backports", DebianArchive.BACKPORTS)

    @pytest.fixture
    def debs(self, archive: DebianArchive, backports: DebianArchive, tmp_path: Path) -> Debs:
        return Debs("trixie", tmp_path / "apt", [archive.archive], ["trixie-backports"])

    def test_only_what_names_it_comes_from_it_and_says_so(
        self, archive: DebianArchive, backports: DebianArchive, debs: Debs, tmp_path: Path
    ) -> None:
        essential = archive.add("essential", "1", Essential="yes", Priority="required")
        archive.add("driver", "1", Priority="optional")
        library = archive.add("library", "1", Priority="optional")
        backports.add("essential", "2~bpo", Essential="yes", Priority="required")
        driver = backports.add("driver", "2~bpo", Depends="library, needed (>= 2~)", Priority="optional")
        backports.add("library", "2~bpo", Priority="optional")
        archive.add("needed", "1", Priority="optional")
        needed = backports.add("needed", "2~bpo", Priority="optional")
        later = [replace(deb, suite="trixie-backports") for deb in (driver, needed)]
        found = debs.resolve(["driver/trixie-backports"])
        assert found == [later[0], essential, library, later[1]]
        debs.fetch(found, tmp_path, lambda done: None)
        assert all((tmp_path / deb.filename).stat().st_size == deb.size for deb in found)

    def test_own_version_is_taken(self, archive: DebianArchive, backports: DebianArchive, debs: Debs) -> None:
        archive.add("driver", "1", Priority="optional")
        for suite in (archive, backports):
            tool = suite.add("tool", "1", Essential="yes", Priority="required")
        assert debs.resolve(["tool"]) == [tool]
        with pytest.raises(PinError, match="trixie-backports"):
            debs.resolve(["driver/trixie-backports"])

    def test_it_is_looked_for_in_the_archives_of_the_suite_and_not_in_those_of_its_updates(self) -> None:
        archives = [Archive("u:main", "", "o"), Archive("u:main", "-updates", "o"), Archive("u:sec", "-security", "o")]
        assert apt_sources.sources_list("trixie", archives, extra=["trixie-backports"]).splitlines() == [
            "deb [o] u:main trixie main",
            "deb [o] u:main trixie-updates main",
            "deb [o] u:sec trixie-security main",
            "deb [o] u:main trixie-backports main",
        ]


def test_newer_tells_security_updates_from_other_versions(archive: DebianArchive, tmp_path: Path) -> None:
    security = DebianArchive(archive.folder, "trixie-security")
    backports = DebianArchive(archive.folder, "trixie-backports", DebianArchive.BACKPORTS)
    locked = [archive.add(name, "1") for name in ("current", "gone", "fixed", "newer", "ported")]
    locked.append(replace(backports.add("taken", "2~bpo1"), suite="trixie-backports"))
    for name in ("newer", "gone"):
        archive.add(name, "2")
    security.add("fixed", "1+deb13u1")
    security.add("gone", "1.5")
    security.add("current", "0.9+deb12u1")
    backports.add("ported", "3~bpo1")
    backports.add("taken", "2~bpo2")
    pockets = [archive.archive, replace(archive.archive, pocket="-security")]
    assert Debs("trixie", tmp_path / "both", pockets, ["trixie-backports"]).newer(locked) == {
        "gone": ("2", True),
        "fixed": ("1+deb13u1", True),
        "newer": ("2", False),
        "taken": ("2~bpo2", False),
    }
    with pytest.raises(PinError, match="apt knows no archive of security updates for trixie"):
        Debs("trixie", tmp_path / "one", [archive.archive]).newer(locked)


def test_an_archive_that_does_not_answer_is_a_fetch_error(tmp_path: Path) -> None:
    nowhere = Archive(f"copy:{tmp_path}/nowhere", "", "trusted=yes")
    with pytest.raises(FetchError, match="did not answer"):
        Debs("trixie", tmp_path / "apt", [nowhere]).resolve(["tool"])


def test_the_machines_own_packages_play_no_part(archive: DebianArchive, debs: Debs) -> None:
    """dpkg is on the machine. If its status were used, apt would not list it."""
    dpkg = archive.add("dpkg", "1.0", Essential="yes", Priority="required")
    assert debs.resolve([]) == [dpkg]


class TestMachineSources:
    DEB822 = """\
# Debian's own
Types: deb deb-src
URIs: http://mirror.invalid/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.invalid/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://vendor.invalid/apt
Suites: bookworm
Components: main
Signed-By: /etc/apt/keyrings/vendor.asc

Types: deb
URIs: http://off.invalid/debian
Suites: bookworm
Components: main
Enabled: no
"""
    ONE_LINE = """\
# deb http://comment.invalid/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.invalid/debian bookworm main
deb http://mirror.invalid/debian-security bookworm-security main contrib
deb [signed-by=/etc/apt/keyrings/vendor.asc] http://vendor.invalid/apt bookworm main
deb http://vendor.invalid/debian bookworm stable
deb-src http://source.invalid/debian bookworm main
"""

    @pytest.fixture(autouse=True)
    def machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.apt = tmp_path / "etc"
        (self.apt / "sources.list.d").mkdir(parents=True)
        keyring = tmp_path / "keyring.gpg"
        keyring.touch()
        monkeypatch.setattr(apt_sources, "_APT", self.apt)
        monkeypatch.setattr(apt_sources, "KEYRING", keyring)
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian"})
        monkeypatch.delenv("FOUNDRY_DEBIAN_SOURCES", raising=False)

    def test_deb822_gives_debians_archives_and_no_vendors(self) -> None:
        (self.apt / "sources.list.d" / "debian.sources").write_text(self.DEB822)
        assert [(a.uri, a.pocket) for a in apt_sources.archives()] == [
            ("http://mirror.invalid/debian", ""),
            ("http://mirror.invalid/debian", "-updates"),
            ("http://mirror.invalid/debian-security", "-security"),
        ]

    def test_one_line_sources_give_the_same_with_debians_keys_alone(self) -> None:
        (self.apt / "sources.list").write_text(self.ONE_LINE)
        assert [(a.uri, a.pocket) for a in apt_sources.archives()] == [
            ("http://mirror.invalid/debian", ""),
            ("http://mirror.invalid/debian-security", "-security"),
        ]
        assert apt_sources.sources_list("trixie", apt_sources.archives()) == (
            f"deb [signed-by={apt_sources.KEYRING}] http://mirror.invalid/debian trixie main\n"
            f"deb [signed-by={apt_sources.KEYRING}] http://mirror.invalid/debian-security trixie-security main\n"
        )
        apt_sources.KEYRING.unlink()
        with pytest.raises(MissingToolError, match="apt-get install debian-archive-keyring"):
            apt_sources.archives()

    def test_a_machine_without_debians_archive_is_told_what_to_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(UsageError, match="FOUNDRY_DEBIAN_SOURCES"):
            apt_sources.archives()
        (self.apt / "sources.list").write_text("deb http://mirror.invalid/ubuntu noble main universe\n")
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "ubuntu", "ID_LIKE": "debian"})
        with pytest.raises(UsageError, match="FOUNDRY_DEBIAN_SOURCES"):
            apt_sources.archives()

    def test_the_variable_names_sources_to_use_instead(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (self.apt / "sources.list").write_text(self.ONE_LINE)
        other = tmp_path / "other.list"
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "ubuntu"})
        other.write_text("deb http://other.invalid/debian bookworm main\n")
        monkeypatch.setenv("FOUNDRY_DEBIAN_SOURCES", str(other))
        assert [a.uri for a in apt_sources.archives()] == ["http://other.invalid/debian"]
