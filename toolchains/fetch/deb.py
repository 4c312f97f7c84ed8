"""Resolve and fetch Debian packages by apt in a separate root, so that the host's packages have no influence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from toolchains.fetch.apt import Apt
from toolchains.fetch.apt_sources import Archive
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.errors import CommandError, GoneError, PinError

# The end of a suite's name in the archive of its security updates.
_SECURITY = "-security"
# The packages of every system: those that mmdebstrap's variant minbase installs.
_BASE = ("?essential", "?priority(required)")


class Debs:
    """The packages of one suite, and of further suites for packages that name them, amd64.

    Args:
        suite: "trixie".
        root: folder for apt's own state; kept between runs so that an unchanged index is not fetched again.
        archives: the archives to use; by default those of the machine's own apt configuration.
        extra: further suites: "trixie-backports". Debian marks its backports so that apt takes a package from them only
            if it is asked for, or if another package of theirs requires it.
    """

    def __init__(
        self, suite: str, root: Path, archives: Sequence[Archive] | None = None, extra: Sequence[str] = ()
    ) -> None:
        self._suite = suite
        self._extra = extra
        self._apt = Apt(suite, root, archives, extra=extra)

    def resolve(self, packages: Sequence[str]) -> list[Artifact]:
        """Return a whole system with these packages: base, packages and their dependencies, without recommendations.

        Args:
            packages: names; that of a package of a further suite is "NAME/SUITE".

        Raises:
            PinError: a package that the suite does not have, or that cannot be installed with the others.
            FetchError: the archive did not answer.
        """
        return self._resolved("install", *_BASE, *packages)

    def find(self, packages: Sequence[str]) -> list[Artifact]:
        """Return these packages alone, without what they depend on.

        Raises:
            PinError: a package that the suite does not have.
            FetchError: the archive did not answer.
        """
        return self._resolved("download", *packages) if packages else []

    def _resolved(self, *words: str) -> list[Artifact]:
        """Return what apt-get would fetch for these words, its verb and packages."""
        with self._apt.lock:
            self._apt.update()
            try:
                printed = self._apt.run("apt-get", "-q", "--print-uris", *words, log="resolve-debs")
            except CommandError as error:
                raise PinError(
                    f"the packages cannot be resolved in {self._suite}",
                    why=error.why,
                    next="correct the packages in toolchains/pins, then: ./foundry pin --update",
                ) from error
            # The format is: 'URI' name_version_arch.deb size hash. A colon of the version is written %3a.
            files = [line.split()[1] for line in printed.splitlines() if line.startswith("'")]
            wanted = [(unquote(name), unquote(version)) for name, version, *_ in (file.split("_") for file in files)]
            names = [name for name, _ in wanted]
            carried, others = self._carried(names), self._from_extra(names)
        found = [replace(carried[key], suite=others.get(key, "")) for key in wanted]
        return sorted(found, key=lambda artifact: artifact.name)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name and version; see ArtifactSource.fetch."""
        with self._apt.lock:
            self._apt.update()
            carried = self._carried([artifact.name for artifact in artifacts])
            gone = [artifact for artifact in artifacts if (artifact.name, artifact.version) not in carried]
            if gone:
                raise GoneError(
                    f"{self._suite} no longer carries {len(gone)} of the locked packages",
                    why="\n".join(f"{artifact}: superseded or removed" for artifact in gone),
                    next="--allow-drift to take the current versions this once, or: ./foundry pin --update",
                )
            try:
                names = [f"{artifact.name}={artifact.version}" for artifact in artifacts]
                self._apt.download("download", *names, artifacts=artifacts, into=into, report=report, log="fetch-debs")
            finally:
                for artifact in artifacts:
                    _rename(artifact, into)

    def newer(self, artifacts: Sequence[Artifact]) -> dict[str, tuple[str, bool]]:
        """Return the newest version of each package that is locked at another one, and whether security asks for it.

        Raises:
            FetchError: the archive did not answer.
            PinError: the machine's apt has no archive of security updates for the suite.
        """
        if not any(archive.pocket == _SECURITY for archive in self._apt.archives()):
            raise PinError(
                f"apt knows no archive of security updates for {self._suite}",
                why="without one, nobody can say that there are none",
                next=f"add the archive {self._suite}-security to this machine's apt sources",
            )
        with self._apt.lock:
            self._apt.update()
            rows = self._madison([artifact.name for artifact in artifacts])
        found = {}
        for artifact in artifacts:
            # madison prints the newest version first. A further suite counts for what was taken from it.
            others = set(self._extra) - {artifact.suite}
            versions = [
                (version, suite) for name, version, suite in rows if name == artifact.name and suite not in others
            ]
            known = [version for version, _ in versions]
            behind = known.index(artifact.version) if artifact.version in known else len(known)
            if behind:
                found[artifact.name] = known[0], any(suite.endswith(_SECURITY) for _, suite in versions[:behind])
        return found

    def _madison(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return name, version and suite of all versions of these packages, the newest one of a package first."""
        # The format is: NAME | VERSION | URI SUITE/COMPONENT ARCHITECTURE Packages
        printed = self._apt.run("apt-cache", "madison", *sorted(set(names)), log="suites-debs", check=False)
        rows = [[column.strip() for column in row.split("|")] for row in printed.splitlines()]
        return [(name, version, place.split()[1].partition("/")[0]) for name, version, place in rows]

    def _carried(self, names: Sequence[str]) -> dict[tuple[str, str], Artifact]:
        """Return every version of these packages in the archive, by name and version."""
        records = self._apt.run("apt-cache", "show", *sorted(set(names)), log="show-debs", check=False)
        carried = {}
        for record in records.split("\n\n"):
            field = dict(re.findall(r"^([\w-]+): (.*)$", record, re.MULTILINE))
            if field:
                key = field["Package"], field["Version"]
                filename = field["Filename"].rpartition("/")[2]
                carried[key] = Artifact("deb", *key, filename, int(field["Size"]), field["SHA256"])
        return carried

    def _from_extra(self, names: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return the suite of each version of these packages that only a further suite has, by name and version."""
        if not self._extra:
            return {}
        suites: dict[tuple[str, str], set[str]] = {}
        for name, version, suite in self._madison(names):
            suites.setdefault((name, version), set()).add(suite)
        return {key: min(found) for key, found in suites.items() if found <= set(self._extra)}


def _rename(artifact: Artifact, into: Path) -> None:
    """Rename a download from apt's name, in which an epoch's colon is written %3a, to the archive's own name."""
    version = artifact.version.replace(":", "%3a")
    for file in into.glob(f"{artifact.name}_{version}_*.deb"):
        file.rename(into / artifact.filename)
