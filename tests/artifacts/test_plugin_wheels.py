"""Plugins: a wheel is named by its sources, and has the same bytes each time."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path

import pytest

from toolchains.archives import wheel_file
from toolchains.artifacts import plugin_wheels
from toolchains.fetch.store import Store
from toolchains.system import paths
from toolchains.system.errors import UsageError

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "toy"
version = "1.0"
[tool.hatch.build.targets.wheel]
packages = ["src/toy"]
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "backends" / "toy"
    (folder / "src/toy").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "src/toy/__init__.py").write_text("A = 1\n")
    monkeypatch.setattr(paths, "BACKENDS", tmp_path / "backends")
    return folder


def test_tests_of_core_that_run_on_the_host_are_no_part_of_its_identity() -> None:
    assert {inner.split("/")[0] for inner in plugin_wheels._sources("core") if "/" in inner} == {"src"}


def test_only_sources_of_the_wheel_change_the_identity(toy: Path) -> None:
    before = plugin_wheels.identity("toy")
    (toy / "tests").mkdir()
    (toy / "tests/test_toy.py").write_text("def test(): pass\n")
    assert plugin_wheels.identity("toy") == before
    (toy / "src/toy/__init__.py").write_text("A = 2\n")
    assert plugin_wheels.identity("toy") != before
    # Nor does a folder that the package excludes.
    (toy / "pyproject.toml").write_text(PROJECT + '[tool.hatch.build.targets.sdist]\nexclude = ["notes"]\n')
    before = plugin_wheels.identity("toy")
    for name, same in (("notes", True), ("other", False)):
        (toy / name).mkdir()
        (toy / name / "text").touch()
        assert (plugin_wheels.identity("toy") == before) == same
    with pytest.raises(UsageError, match="backends/nothing"):
        plugin_wheels.identity("nothing")


@pytest.mark.slow
def test_two_stores_at_two_times_hold_the_same_bytes(toy: Path, tmp_path: Path) -> None:
    one = plugin_wheels.wheel("toy", Store(tmp_path / "one"))
    time.sleep(1.1)
    source = toy / "src/toy/__init__.py"
    os.utime(source)
    source.chmod(0o600)
    other = plugin_wheels.wheel("toy", Store(tmp_path / "other"))
    assert one.path.read_bytes() == other.path.read_bytes()
    assert one.identity == other.identity == plugin_wheels.identity("toy")


def test_wheel_holds_what_was_digested_and_keeps_executables(toy: Path, tmp_path: Path) -> None:
    (toy / "src/toy/__pycache__").mkdir()
    (toy / "src/toy/__pycache__/left.pyc").write_text("")
    with zipfile.ZipFile(plugin_wheels.wheel("toy", Store(tmp_path / "store")).path) as archive:
        names = {name for name in archive.namelist() if ".dist-info" not in name}
        assert names == {"toy/__init__.py"}
        assert archive.read("toy/__init__.py") == b"A = 1\n"
    (toy / "src/toy/run").write_text("#!/bin/sh\n")
    (toy / "src/toy/run").chmod(0o755)
    assert wheel_file.executables(plugin_wheels.wheel("toy", Store(tmp_path / "store")).path) == {"toy/run"}


HOOK = """
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        raise Exception("no SDK is named")
"""


def test_wheel_for_an_image_is_built_without_hooks(toy: Path, tmp_path: Path) -> None:
    (toy / "hatch_build.py").write_text(HOOK)
    (toy / "pyproject.toml").write_text(PROJECT + "[tool.hatch.build.targets.wheel.hooks.custom]\n")
    with zipfile.ZipFile(plugin_wheels.wheel("toy", Store(tmp_path / "store")).path) as archive:
        assert "toy/__init__.py" in archive.namelist()
    (toy / "pyproject.toml").write_text(PROJECT + "[tool.hatch.build.targets.wheel.hooks.custom]\n")
    (toy / "hatch_build.py").write_text("raise SystemExit('where is your SDK?')\n")
    assert plugin_wheels.wheel("toy", Store(tmp_path / "store")).path.is_file()
