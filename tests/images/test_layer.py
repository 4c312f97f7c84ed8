"""In which order a Dockerfile's result becomes an image, and what an error leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from image_archives import NAME, entry, save
from image_archives import layer as packed_layer

from toolchains.archives import docker_archive
from toolchains.engine.client import ImageInfo
from toolchains.fetch.store import Store
from toolchains.images import layer
from toolchains.system.errors import EngineError


class Builder(FakeEngine):
    """An engine whose builds all give one archive.

    Attributes:
        done: what it did, in order.
        refused: how many archives it refuses to load.
    """

    def __init__(self, archive: Path, refused: int = 0) -> None:
        super().__init__({"": ImageInfo("sha256:1", (), {}, 1, ())}, archive=archive)
        self.done: list[str] = []
        self.refused = refused

    @contextmanager
    def build(self, context: Any, **_: object) -> Iterator[str]:
        self.done.append("build")
        try:
            yield "built"
        finally:
            self.done.append("remove steps")

    def load(self, path: Path) -> None:
        super().load(path)
        self.done.append("load")
        if len(self.loaded) <= self.refused:
            raise EngineError("a layer is missing")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return save(tmp_path / "saved.tar", [packed_layer(entry("a", b"x"))])


def make(engine: Any, tmp_path: Path) -> ImageInfo:
    return layer.layer(engine, NAME, b"FROM scratch", {}, {}, [], (), store=Store(tmp_path / "store"))


def test_images_of_steps_are_removed_before_the_image_is_loaded(archive: Path, tmp_path: Path) -> None:
    engine = Builder(archive)
    make(engine, tmp_path)
    assert engine.done == ["build", "remove steps", "load"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_failure_while_normalising_removes_the_steps_and_loads_nothing(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    engine = Builder(archive)
    with monkeypatch.context() as patched, pytest.raises(error):
        patched.setattr(docker_archive, "normalise", fail)
        make(engine, tmp_path)
    assert engine.done == ["build", "remove steps"]
    make(engine, tmp_path)
    assert engine.done[2:] == ["build", "remove steps", "load"]


def test_refused_archive_is_loaded_whole(archive: Path, tmp_path: Path) -> None:
    """An engine with the containerd store refuses an archive without the layers that it has: that is no failure."""
    engine = Builder(archive, refused=1)
    make(engine, tmp_path)
    assert engine.done.count("load") == 2
    with pytest.raises(EngineError, match="a layer is missing"):
        make(Builder(archive, refused=2), tmp_path)
