"""Copy a package from the Conan cache of a container: the two files that are a part of the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import prefix
from toolchains.artifacts import native
from toolchains.engine.container import Container
from toolchains.system import paths


def extract_package(container: Container, reference: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Write NAME.tar, the files that the package installs, and NAME.tgz, which `conan cache restore` reads.

    Args:
        reference: the package, "NAME/VERSION#RECIPE-REVISION:PACKAGE-ID".
        folder: the folder to write to.
        environment: Conan's environment, which has the path of its cache.

    Raises:
        CommandError: Conan does not have the package.
        UnsafeArchiveError: an entry is neither a file nor a link, or leads out of the package.
    """
    name = reference.partition("/")[0]
    inside = container.call(["conan", "cache", "path", reference], env=environment).strip()
    container.call(["tar", "--create", "--file", "/foundry/package.tar", "--directory", inside, "."])
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        packed = Path(work, "package.tar")
        container.copy_out("/foundry/package.tar", packed, only="file")
        prefix.normalise(packed, folder / f"{name}.tar", without=native.NOTES)
    container.call(["conan", "cache", "save", reference, "--file", f"/foundry/{name}.tgz"], env=environment)
    container.copy_out(f"/foundry/{name}.tgz", folder / f"{name}.tgz", only="file")
