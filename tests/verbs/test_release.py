"""One version for all packages, and what `./foundry release --check` finds wrong in a commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import Repository

from toolchains.artifacts import plugin_wheels
from toolchains.lockfile import lock
from toolchains.resolve import agreement, conan_lock
from toolchains.system import paths
from toolchains.system.errors import CheckError
from toolchains.verbs import release

VERSION = "9.8.7"
CHANGELOG = f"# Changelog\n\nAbout it.\n\n## {VERSION} - 2026-01-31\n\n- New.\n\n## 9.8.6 - 2025-01-31\n\n- Old.\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that takes the place of this repository's, with its own version and changelog."""
    (tmp_path / "VERSION").write_text(f"{VERSION}\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "VERSION", tmp_path / "VERSION")
    monkeypatch.setattr(release, "CHANGELOG", tmp_path / "CHANGELOG.md")
    return tmp_path


@pytest.mark.slow
def test_all_wheels_have_the_version_of_the_one_file(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(paths.BACKENDS, tree / "backends", symlinks=True)
    monkeypatch.setattr(paths, "BACKENDS", tree / "backends")
    assert {"core", "spirv", "dpu", "dpu-dialect", "vsi"} <= {*plugin_wheels.names()}
    (tree / "backends/core/VERSION").unlink()
    (tree / "backends/core/VERSION").write_text("1.0.0\n")
    assert list(release.wrong_wheels()) == [f"the wheel of backends/core has version 1.0.0, and VERSION is {VERSION}"]


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1", ""])
def test_a_version_has_three_numbers(version: str, tree: Path) -> None:
    paths.VERSION.write_text(f"{version}\n")
    (said,) = release.wrong_version()
    assert f"VERSION is {version!r}" in said


def test_a_version_is_released_once_and_only_from_what_is_committed(tree: Path) -> None:
    repository = Repository(tree)
    repository.commit()
    assert list(release.wrong_version()) == list(release.uncommitted()) == []
    repository.git("tag", f"v{VERSION}")
    assert list(release.wrong_version()) == []
    (tree / "VERSION").write_text(f"{VERSION}\n\n")
    assert list(release.uncommitted()) == ["1 files are not committed, such as VERSION"]
    repository.commit()
    (said,) = release.wrong_version()
    assert f"{VERSION} was released already" in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2026-01-31", "unreleased", f"the section of {VERSION} in CHANGELOG.md has no date, it says 'unreleased'"),
        ("- New.\n", "", f"the section of {VERSION} in CHANGELOG.md is empty"),
    ],
)
def test_the_changelog_says_what_is_new_and_since_when(old: str, new: str, said: str, tree: Path) -> None:
    assert list(release.wrong_changelog()) == []
    release.CHANGELOG.write_text(CHANGELOG.replace(old, new))
    assert list(release.wrong_changelog()) == [said]


def test_release_prints_only_the_newest_changelog_section(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release.release(check=False)
    assert capsys.readouterr().out == f"{VERSION} - 2026-01-31\n\n- New.\n"
    release.CHANGELOG.write_text(CHANGELOG.replace(f"## {VERSION}", "## 9.8.5"))
    with pytest.raises(CheckError, match=rf"the first section of CHANGELOG\.md is not that of {VERSION}"):
        release.release(check=False)


def test_a_lock_that_was_not_made_from_the_pins_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(release.wrong_locks()) == []
    for module, name in ((agreement, "disagreements"), (agreement, "contradictions"), (conan_lock, "disagreements")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, lambda *_: iter(["they differ"]))
            said = list(release.wrong_locks())
            assert said and all("they differ" in each for each in said)
            locked = [platform for platform in lock.load_all() if any(platform in each for each in said)]
            assert locked == (["linux/amd64", "linux/arm64"] if module is agreement else [])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("docs/reference.md", "python -m toolchains.cli.reference"),
        ("docs/tutorials/README.md", "python -m toolchains.cli.tutorials"),
        ("toolchains/schemas/target.json", "python -m toolchains.config.schema"),
        ("ci/docker-bake.json", "./foundry ci --write=bake"),
    ],
)
def test_edited_generated_file_is_named(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def edited(path: Path, encoding: str | None = None) -> str:
        return read(path, encoding) + " " * (path == paths.ROOT / name)

    monkeypatch.setattr(Path, "read_text", edited)
    assert list(release.stale()) == [f"{name} is not current: {command}"]


def test_all_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> list[str]:
        raise CheckError("it does not build", next="mend it")

    checks: dict[str, Callable[[], list[str]]] = {"one": lambda: ["first"], "two": list, "three": fail}
    monkeypatch.setattr(release, "CHECKS", checks)
    with pytest.raises(CheckError) as caught:
        release.release(check=True)
    assert capsys.readouterr().out == "wrong  one\nok     two\nwrong  three\n"
    assert caught.value.why == "first\nit does not build\n  next: mend it"
    monkeypatch.setattr(release, "CHECKS", {"two": list})
    release.release(check=True)
    assert f"can be released as {plugin_wheels.version()}" in capsys.readouterr().out


def test_changelog_locks_and_files_of_this_tree_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    release.release(check=False)
    assert capsys.readouterr().out.startswith(plugin_wheels.version())
    assert [*release.wrong_locks(), *release.stale()] == []
