"""Build the project's own Python packages, the folders under backends/, into wheels."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import folders, wheel_file
from toolchains.archives.tar_file import EPOCH
from toolchains.contents import component as contents
from toolchains.contents import packages
from toolchains.contents.component import Component, properties, purl
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import digest
from toolchains.system import paths
from toolchains.system.children import run
from toolchains.system.errors import UsageError

# The revision of how sources become a wheel: raise it whenever that changes. It is part of the wheel's identity.
FORMAT = 2
# Folders that are not part of a wheel: an edit in them does not change the image. A package names more folders in its
# pyproject.toml: [tool.hatch.build.targets.sdist] exclude.
_NOT_BUILT = ("tests", "examples")


@dataclass(frozen=True)
class PluginWheel:
    """A built package and the digest of its inputs."""

    path: Path
    identity: str


def names() -> list[str]:
    """Return the names of all packages."""
    return sorted(project.parent.name for project in paths.BACKENDS.glob("*/pyproject.toml"))


def version() -> str:
    """Return the version that all packages have."""
    return paths.VERSION.read_text(encoding="utf-8").strip()


def identity(name: str) -> str:
    """Return the digest of all inputs of the wheel of backends/<name>.

    Raises:
        UsageError: there is no such package.
    """
    return _identity(_sources(name))


def wheel(name: str, store: Store) -> PluginWheel:
    """Return the wheel of backends/<name>, from the store or built now, without a network and reproducibly.

    Raises:
        UsageError: there is no such package.
        CommandError: hatchling failed; its output has the reason.
    """
    with TemporaryDirectory(dir=paths.scratch()) as work:
        inputs = _identity(folders.copy(_sources(name), Path(work)))

        def build(folder: Path) -> None:
            built = Path(work) / "built"
            run(
                [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", built],
                # A plugin's own hooks put files of a user's SDK into a wheel for that user; in an image, the SDK is
                # outside the wheel.
                cwd=Path(work),
                env={"SOURCE_DATE_EPOCH": str(EPOCH), "HATCH_BUILD_NO_HOOKS": "true"},
                log=f"wheel-{name}",
            )
            (wheel,) = built.glob("*.whl")
            info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
            files = wheel_file.read_files(wheel) | packages.wheel_documents(_component(wheel, inputs), info)
            wheel_file.write_files(folder / wheel.name, info, files, wheel_file.executables(wheel))

        (result,) = store.part("plugin", inputs, build).glob("*.whl")
    return PluginWheel(result, inputs)


def component(wheel: PluginWheel, *, parts: Sequence[Component] = (), requires: Sequence[str] = ()) -> Component:
    """Return a built package as a component.

    Args:
        parts: what is put into it.
        requires: distributions that it then requires in addition.
    """
    return _component(wheel.path, wheel.identity, parts, requires)


def _component(wheel: Path, identity: str, parts: Sequence[Component] = (), requires: Sequence[str] = ()) -> Component:
    with wheel.open("rb") as file:
        read = packages.read_wheel(file)
    version = metadata.version("hatchling")
    hatchling = Component("wheel", "hatchling", version, purl=purl("pypi", "hatchling", version))
    facts = properties(inputs=identity, requires=requires)
    return replace(read, parts=tuple(parts), tools=(hatchling,), properties=facts)


def _identity(sources: Mapping[str, Path]) -> str:
    return digest(
        {
            "format": [FORMAT, wheel_file.FORMAT, contents.FORMAT],
            "hatchling": metadata.version("hatchling"),
            "sources": folders.files_digest(sources),
        }
    )


def _sources(name: str) -> dict[str, Path]:
    folder = paths.BACKENDS / name
    project = folder / "pyproject.toml"
    if not project.is_file():
        raise UsageError(f"there is no package in backends/{name}", why="it has no pyproject.toml")
    table = tomllib.loads(project.read_text())
    for key in ("tool", "hatch", "build", "targets", "sdist"):
        table = table.get(key, {})
    left_out = {*_NOT_BUILT, *table.get("exclude", ())}
    return {inner: path for inner, path in folders.files(folder).items() if inner.split("/")[0] not in left_out}
