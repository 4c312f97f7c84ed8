"""Build the project's own Python packages, the folders under backends/, into wheels."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import folders
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import digest
from toolchains.system import paths
from toolchains.system.children import run
from toolchains.system.errors import UsageError

# The revision of how sources become a wheel: raise it with every change of that. It is part of what names the wheel.
FORMAT = 1
# Folders next to a package's sources that are not part of its wheel: an edit there does not change the image.
_NOT_BUILT = ("tests", "examples", "tritonpim")


@dataclass(frozen=True)
class Wheel:
    """A built package and the identity of what it was built from."""

    path: Path
    identity: str


def identity(name: str) -> str:
    """The digest of all that goes into the wheel of backends/<name>.

    Raises:
        UsageError: there is no such package.
    """
    return _identity(_sources(name))


def wheel(name: str, store: Store) -> Wheel:
    """The wheel of backends/<name>, from the store or built now; without a network, and the same bytes each time.

    Raises:
        UsageError: there is no such package.
        CommandError: hatchling refused; its output says why.
    """
    # From a copy: somebody may be editing, and what was digested is what must be built.
    with TemporaryDirectory(dir=paths.scratch()) as work:
        copies = {}
        for inner, source in _sources(name).items():
            copies[inner] = Path(work, inner)
            copies[inner].parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copies[inner])
        found = _identity(copies)
        folder = store.part("plugin", found, lambda folder: _build(Path(work), folder, log=f"wheel-{name}"))
    (result,) = folder.glob("*.whl")
    return Wheel(result, found)


def _identity(sources: Mapping[str, Path]) -> str:
    return digest({"format": FORMAT, "hatchling": metadata.version("hatchling"), "sources": folders.digest(sources)})


def _build(sources: Path, folder: Path, *, log: str) -> None:
    run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        # A plugin's own hooks put files of a user's SDK into a wheel for that user; in an image the SDK is beside it.
        cwd=sources,
        env={"SOURCE_DATE_EPOCH": str(folders.EPOCH), "HATCH_BUILD_NO_HOOKS": "true"},
        log=log,
    )


def _sources(name: str) -> dict[str, Path]:
    folder = paths.BACKENDS / name
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(f"there is no package in backends/{name}", why="it has no pyproject.toml")
    found = folders.files(folder)
    return {inner: path for inner, path in found.items() if inner.split("/")[0] not in _NOT_BUILT}
