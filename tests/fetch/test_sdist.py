"""Sources are fetched with a real pip from an index in a folder; this machine's setuptools computes their metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from archive_files import Index, tar

from toolchains.fetch.pip import Sdists
from toolchains.lockfile.lock import Artifact
from toolchains.system.errors import GoneError, HashMismatchError, PinError

# Each test starts pip, some several times.
pytestmark = pytest.mark.slow

SETUP = "from setuptools import setup\nsetup(name={name!r}, version={version!r}, install_requires={requires!r})\n"


def publish(index: Index, name: str, version: str, requires: list[str] | None = None) -> Artifact:
    """Add an sdist to the index, next to its other files of that name."""
    project = index.folder / name
    project.mkdir(parents=True, exist_ok=True)
    file = project / f"{name}-{version}.tar.gz"
    setup = SETUP.format(name=name, version=version, requires=requires or []).encode()
    inside = {"setup.py": setup, "PKG-INFO": b"Metadata-Version: 1.0\n"}
    tar(file, {f"{name}-{version}/{inner}": content for inner, content in inside.items()}, "w:gz")
    return index.list(file, "sdist", name, version)


def test_sources_are_resolved_and_what_they_need_is_told(index: Index, tmp_path: Path) -> None:
    other_python = ["old; python_version < '3.11'", "new>1; python_version >= '3.11'"]
    requires = ["other", "leaf>=2", *other_python, "x; extra == 'x'"]
    made = [publish(index, "top", "1.0", requires), publish(index, "other", "2.0")]
    found, needs = Sdists("3.11").resolve({"top": "1.0", "other": "2.0"}, into=tmp_path / "into")
    assert found == sorted(made, key=lambda artifact: artifact.name)
    assert needs == ["leaf>=2", "new>1"]
    assert all((tmp_path / "into" / artifact.filename).is_file() for artifact in found)


def test_wheel_is_not_taken_and_a_missing_version_is_a_pin_error(index: Index, tmp_path: Path) -> None:
    index.add("top", "1.0")
    made = publish(index, "top", "1.0")
    assert Sdists("3.11").resolve({"top": "1.0"}, into=tmp_path / "into") == ([made], [])
    publish(index, "top", "1.0")
    with pytest.raises(PinError, match=r"top==2\.0"):
        Sdists("3.11").resolve({"top": "2.0"}, into=tmp_path / "into")


def test_locked_sdist_is_fetched_and_not_the_newest_or_is_gone(index: Index, tmp_path: Path) -> None:
    locked = publish(index, "top", "1.0")
    publish(index, "top", "2.0")
    Sdists("3.11").fetch([locked], tmp_path / "into", lambda done: None)
    assert [file.name for file in (tmp_path / "into").iterdir()] == [locked.filename]
    index.remove("top")
    publish(index, "top", "2.0")
    with pytest.raises(GoneError, match=r"top==1\.0"):
        Sdists("3.11").fetch([locked], tmp_path / "into", lambda done: None)


def test_other_bytes_under_the_locked_name_are_refused_unrun(index: Index, tmp_path: Path) -> None:
    locked = publish(index, "top", "1.0")
    index.remove("top")
    publish(index, "top", "1.0", ["changed"])
    with pytest.raises(HashMismatchError):
        Sdists("3.11").fetch([locked], tmp_path / "into", lambda done: None)
