"""Builds the project's own Python packages, the folders under backends/, into wheels."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from . import paths, trees
from .errors import UsageError
from .lock import digest
from .run import run
from .store import Store

# Beside a package's sources, and no part of its wheel: an edit there leaves the image alone.
_NOT_BUILT = ("tests", "examples")


def identity(name: str) -> str:
    """The digest of all that goes into the wheel of backends/<name>."""
    return digest({"hatchling": metadata.version("hatchling"), "sources": trees.digest(_sources(name))})


def wheel(name: str, store: Store) -> Path:
    """The wheel of backends/<name>, from the store or built now; without a network, and the same bytes each time.

    Raises:
        UsageError: there is no such package.
        CommandError: hatchling refused; its output says why.
    """
    folder = store.part("plugin", identity(name), lambda folder: _build(name, folder))
    (result,) = folder.glob("*.whl")
    return result


def _build(name: str, folder: Path) -> None:
    # From a copy, so that exactly what was digested is built.
    with TemporaryDirectory() as work:
        for inner, source in _sources(name).items():
            copy = Path(work, inner)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
        run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
            cwd=Path(work), env={"SOURCE_DATE_EPOCH": str(trees.EPOCH)}, log=f"wheel-{name}",
        )  # fmt: skip


def _sources(name: str) -> dict[str, Path]:
    folder = paths.BACKENDS / name
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(f"there is no package in backends/{name}", why="it has no pyproject.toml")
    found = trees.files(folder)
    return {inner: path for inner, path in found.items() if inner.split("/")[0] not in _NOT_BUILT}
