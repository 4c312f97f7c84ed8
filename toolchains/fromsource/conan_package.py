"""A package in the Conan cache of a container, as the two files that a part of the store consists of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import prefix
from toolchains.artifacts import native
from toolchains.engine.container import Container
from toolchains.system import paths


def extract_package(container: Container, reference: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Write NAME.tar, the files that the package installs, and NAME.tgz, which `conan cache restore` takes.

    Args:
        reference: of the one package, "NAME/VERSION#RECIPE-REVISION:PACKAGE-ID".
        folder: where to write.
        environment: of Conan; says where its cache is.

    Raises:
        CommandError: Conan does not have it.
        UnsafeArchiveError: there is something in it that is neither a file nor a link, or that leads out of it.
    """
    name = reference.partition("/")[0]
    inside = container.call(["conan", "cache", "path", reference], env=environment).strip()
    container.call(["tar", "--create", "--file", "/foundry/package.tar", "--directory", inside, "."])
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        packed = Path(work, "package.tar")
        container.fetch("/foundry/package.tar", packed)
        prefix.normalise(packed, folder / f"{name}.tar", without=native.NOTES)
    container.call(["conan", "cache", "save", reference, "--file", f"/foundry/{name}.tgz"], env=environment)
    container.fetch(f"/foundry/{name}.tgz", folder / f"{name}.tgz")
