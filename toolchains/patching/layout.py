"""Read Triton's files by their path in the source tree, from a checkout, an unpacked wheel or a wheel file.

python/triton/X of the source tree is triton/X in a wheel, and third_party/B/backend/X is triton/backends/B/X.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol

from toolchains.archives import confine
from toolchains.system.errors import PatchTargetError, UsageError

Layout = Literal["source", "wheel"]


class Tree(Protocol):
    """Text files by their path in the source tree."""

    def read(self, path: str) -> str | None:
        """Return the file's text, or None if the tree has no such file."""

    def paths(self) -> Iterator[str]:
        """Yield every Python file of the tree that is also in a wheel."""


class FolderTree:
    """A source checkout, or a wheel unpacked into a folder."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self.root = root
        self.layout = layout

    @classmethod
    def detect(cls, root: Path) -> FolderTree:
        """Return the tree at `root`, in the layout that it has.

        Raises:
            UsageError: it has neither layout.
        """
        if (root / "python" / "triton").is_dir():
            return cls(root, "source")
        if (root / "triton").is_dir():
            return cls(root, "wheel")
        raise UsageError(
            f"{root} is not a Triton tree",
            why="it has neither python/triton (a checkout) nor triton (an unpacked wheel)",
            next="./foundry patch apply --triton=RELEASE, which unpacks a wheel under build/",
        )

    def place(self, path: str) -> Path | None:
        """Return the path of a file in the tree, or None for a file that a wheel does not have.

        Raises:
            PatchTargetError: the path leaves the tree, or a link in the tree does.
        """
        inside = path if self.layout == "source" else wheel_path(path)
        return None if inside is None else confine.path_below(self.root, inside, "a patch", error=PatchTargetError)

    def read(self, path: str) -> str | None:
        place = self.place(path)
        return place.read_bytes().decode() if place is not None and place.is_file() else None

    def write(self, path: str, text: str) -> None:
        """Replace the text of a file, or create the file."""
        place = self.place(path)
        assert place is not None, f"a wheel does not carry {path}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())

    def paths(self) -> Iterator[str]:
        for file in sorted(self.root.rglob("*.py")):
            inside = file.relative_to(self.root).as_posix()
            path = source_path(inside) if self.layout == "wheel" else inside
            if path is not None and wheel_path(path) is not None:
                yield path


class WheelTree:
    """A wheel file, read in place, so that 300 MB need not be unpacked for a few files."""

    def __init__(self, wheel: Path) -> None:
        self._zip = zipfile.ZipFile(wheel)
        self._names = set(self._zip.namelist())

    def read(self, path: str) -> str | None:
        inside = wheel_path(path)
        return self._zip.read(inside).decode() if inside in self._names else None

    def paths(self) -> Iterator[str]:
        for name in sorted(self._names):
            path = source_path(name)
            if path is not None and path.endswith(".py"):
                yield path


def wheel_path(path: str) -> str | None:
    """Return the path in a wheel of a file of the source tree, or None: a wheel has only some of them.

    Raises:
        PatchTargetError: the path leaves the tree.
    """
    match confine.relative_path(path, "a patch", error=PatchTargetError).split("/"):
        case ["python", "triton", *rest]:
            return "/".join(["triton", *rest])
        case ["third_party", backend, "backend", *rest]:
            return "/".join(["triton", "backends", backend, *rest])
    return None


def source_path(name: str) -> str | None:
    """Return the path in the source tree of a wheel's file, or None for a file that the build adds."""
    match name.split("/"):
        case ["triton", "backends", backend, first, *rest]:
            return "/".join(["third_party", backend, "backend", first, *rest])
        case ["triton", *rest]:
            return "/".join(["python", "triton", *rest])
    return None
