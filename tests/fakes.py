"""Engines for tests on the host: one that has images and no containers, and one that must not be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from toolchains.engine.client import ImageInfo


class FakeEngine:
    """An engine with images.

    Attributes:
        images: by their names; the one named "" has every other name.
        archive: what it saves of any image.
        asked: each request, with the name of its image.
        loaded: the archives that were loaded.
    """

    def __init__(self, images: Mapping[str, ImageInfo] | None = None, *, archive: Path = Path("/dev/null")) -> None:
        self.images = {**(images or {})}
        self.archive = archive
        self.asked: list[tuple[str, str]] = []
        self.loaded: list[bytes] = []

    def image(self, name: str) -> ImageInfo | None:
        self.asked.append(("image", name))
        return self.images.get(name, self.images.get(""))

    def tag(self, image: str, name: str) -> None:
        self.asked.append(("tag", name))

    def remove(self, name: str) -> None:
        self.asked.append(("remove", name))

    def pull(self, name: str) -> None:
        self.asked.append(("pull", name))

    def load(self, path: Path) -> None:
        self.loaded.append(path.read_bytes())

    def save(self, image: str, file: IO[bytes]) -> None:
        file.write(self.archive.read_bytes())

    def asked_to(self, request: str) -> list[str]:
        """Return the names that it was asked to do this with."""
        return [name for what, name in self.asked if what == request]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the engine was asked to {name}")


class _NoEngine:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the engine was asked to {name}")


# An engine that must not be used.
NO_ENGINE: Any = _NoEngine()
