"""Resolve and fetch Debian source packages by apt in a separate root: the files that `apt-get source` would fetch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from toolchains.fetch.apt import Apt
from toolchains.fetch.apt_sources import Archive
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.errors import CommandError, GoneError, PinError


class SourcePackages:
    """The source packages of one suite.

    Args:
        suite: "bookworm".
        root: folder for apt's own state; another one than for the suite's binary packages, because the index of the
            sources is fetched only together with sources.
        archives: the archives to use; by default those of the machine's own apt configuration.
    """

    def __init__(self, suite: str, root: Path, archives: Sequence[Archive] | None = None) -> None:
        self._suite = suite
        self._apt = Apt(suite, root, archives, "deb-src")

    def resolve(self, package: str) -> list[Artifact]:
        """Return the files of a package in the newest version that the suite has: .dsc, .orig.tar.*, .debian.tar.*.

        Raises:
            PinError: the suite has no source package of this name.
            FetchError: the archive did not answer.
        """
        with self._apt.lock:
            self._apt.update()
            carried = self._carried([package])
            try:
                printed = self._apt.run(
                    "apt-get", "-q", "source", "--print-uris", "--only-source", package, log="resolve-source"
                )
            except CommandError as error:
                raise self._unknown(package, error.why) from error
        # The format is: 'URI' file-name size hash.
        chosen = {line.split()[1] for line in printed.splitlines() if line.startswith("'")}
        for files in carried.values():
            if chosen and chosen == {file.filename for file in files}:
                return sorted(files, key=lambda file: file.filename)
        raise self._unknown(
            package, f"apt would fetch {sorted(chosen)}, which no source package of this name consists of"
        )

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download the files of packages by name and version; see ArtifactSource.fetch."""
        wanted = sorted({(artifact.name, artifact.version) for artifact in artifacts})
        with self._apt.lock:
            self._apt.update()
            carried = self._carried([name for name, _ in wanted])
            gone = [
                f"{name} {version}: superseded or removed" for name, version in wanted if (name, version) not in carried
            ]
            if gone:
                raise GoneError(
                    f"{self._suite} no longer carries {len(gone)} of the locked source packages",
                    why="\n".join(gone),
                    next="./foundry pin --update",
                )
            words = ["source", "--download-only", "--only-source", *(f"{name}={version}" for name, version in wanted)]
            self._apt.download(*words, artifacts=artifacts, into=into, report=report, log="fetch-sources")

    def _carried(self, packages: Sequence[str]) -> dict[tuple[str, str], list[Artifact]]:
        """Return every version of these packages in the archive, by name and version, with its files."""
        # For a binary package's name, apt-cache prints its source package; for an unknown name it fails.
        records = self._apt.run("apt-cache", "showsrc", *sorted(set(packages)), log="show-sources", check=False)
        carried = {}
        for record in re.split(r"\n{2,}", records):
            field = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", record, re.MULTILINE))
            if field.get("Package") in packages:
                key = field["Package"], field["Version"]
                entries = map(str.split, field["Checksums-Sha256"].strip().splitlines())
                carried[key] = [Artifact("source", *key, name, int(size), sha256) for sha256, size, name in entries]
        return carried

    def _unknown(self, package: str, why: str) -> PinError:
        return PinError(
            f"{self._suite} has no source package {package}",
            why=why,
            next="correct the package in toolchains/upstreams, then: ./foundry pin --update",
        )
