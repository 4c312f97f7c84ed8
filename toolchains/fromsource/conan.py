"""Conan in a container of the locked builder: it exports this checkout's recipes, and its packages become parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import prefix
from toolchains.artifacts import native
from toolchains.engine.container import Container
from toolchains.system import paths

# The folders of this checkout in the container, and Conan's settings for upstream's projects.
SOURCES = "/foundry/src"
RECIPES, PROFILE = f"{SOURCES}/recipes", f"{SOURCES}/cmake/upstream.profile"


class Conan:
    """Conan with a cache that only has what is put into it.

    Args:
        environment: variables besides those that Conan itself needs.
    """

    def __init__(self, container: Container, environment: Mapping[str, str] | None = None) -> None:
        self.container = container
        self.environment = {"CONAN_HOME": "/foundry/conan", "LC_ALL": "C.UTF-8", **(environment or {})}
        container.copy_into(paths.CMAKE / "upstream.profile", PROFILE)

    def call(self, *words: str) -> str:
        """Run Conan without a remote; return stdout.

        Raises:
            CommandError: it failed.
        """
        return self.container.call(["conan", *words], env=self.environment)

    def export(self, recipe: str, version: str = "") -> str:
        """Export a recipe of this checkout to the cache; return its reference, "NAME/VERSION"."""
        file = f"{RECIPES}/{recipe}/conanfile.py"
        self.container.copy_into(paths.RECIPES / recipe / "conanfile.py", file)
        text = self.call("export", file, "--format", "json", *(["--version", version] if version else []))
        return str(json.loads(text)["reference"]).partition("#")[0]

    def extract(self, reference: str, folder: Path) -> None:
        """Write NAME.tar, the files that a package installs, and NAME.tgz, which `conan cache restore` reads.

        Args:
            reference: the package, "NAME/VERSION#RECIPE-REVISION:PACKAGE-ID".

        Raises:
            CommandError: Conan does not have the package.
            UnsafeArchiveError: an entry is neither a file nor a link, or leads out of the package.
        """
        name, inside = reference.partition("/")[0], self.call("cache", "path", reference).strip()
        self.container.call(["tar", "--create", "--file", "/foundry/package.tar", "--directory", inside, "."])
        with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
            packed = Path(work, "package.tar")
            self.container.copy_out("/foundry/package.tar", packed, only="file")
            prefix.normalise(packed, folder / f"{name}.tar", without=native.NOTES)
        self.call("cache", "save", reference, "--file", f"/foundry/{name}.tgz")
        self.container.copy_out(f"/foundry/{name}.tgz", folder / f"{name}.tgz", only="file")


def option_words(pattern: str, options: Mapping[str, str]) -> Iterable[str]:
    """Yield the words of Conan's command line that set options of the packages that a pattern names: "llvm/*"."""
    for name, value in sorted(options.items()):
        yield from ("-o", f"{pattern}:{name}={value}")
