"""What the result of a suite depends on, and how long suites are expected to take."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchains.system import paths
from toolchains.testing.record import Estimate, RunInputs


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one commit, in the place of ours."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "file.py").write_text("1")
    (tmp_path / ".gitignore").write_text("/build/\n")
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "--allow-empty", "-m", "change")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *words], cwd=folder, check=True)


def build(folder: Path) -> None:
    (folder / "build").mkdir()
    (folder / "build" / "log").touch()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / "file.py").write_text("2"), ["files of this checkout"]),
        (lambda folder: (folder / "file.py").chmod(0o755), ["files of this checkout"]),
        (lambda folder: (folder / "new.py").touch(), ["files of this checkout"]),
        (lambda folder: (folder / "file.py").unlink(), ["files of this checkout"]),
        (commit, ["the commit"]),
        (build, []),
    ],
    ids=["content", "permissions", "new file", "removed file", "commit", "ignored file"],
)
def test_change_of_the_checkout_is_named(checkout: Path, change: Callable[[Path], None], named: list[str]) -> None:
    before = RunInputs.read([])
    assert before.differences(RunInputs.read([])) == []
    change(checkout)
    assert before.differences(RunInputs.read([])) == named


def test_options_and_variables_of_tests_are_inputs(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = RunInputs.read([])
    assert before.differences(RunInputs.read(["--quick"])) == ["the options"]
    monkeypatch.setenv("UNKNOWN", "1")
    assert before.differences(RunInputs.read([])) == []
    monkeypatch.setenv("DOCKER_HOST", "ssh://other")
    (named,) = before.differences(RunInputs.read([]))
    assert "DOCKER_*" in named


def test_nothing_is_the_same_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    inputs = RunInputs.read([])
    assert inputs.differences(inputs)


def test_suite_is_expected_to_take_as_long_as_in_the_last_run() -> None:
    estimate = Estimate({"host": 7})
    assert estimate.seconds("host") == 7
    assert estimate.is_of_last_run(["host"])
    assert not estimate.is_of_last_run(["host", "mypy"])
    assert estimate.seconds("mypy") == Estimate({}).seconds("mypy")
    assert estimate.seconds("e2e-of_a_new_target-3.9.0") > 0
