"""Fetch Python distributions that are published only as sources; a build image turns them into wheels.

pip asks a source for its metadata whenever it uses one, which runs the source's own setup. It does so only with the
setuptools of requirements.lock and, on a fetch, after the comparison of the hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchains.fetch.pip import Pip, Reported, marker_values, progress
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact


class Sdists:
    """The sources of distributions for one Python version on x86-64 Linux.

    Args:
        python: the target's version, "3.11".
    """

    def __init__(self, python: str) -> None:
        self._python = python

    def resolve(self, pins: Mapping[str, str], *, into: Path) -> tuple[list[Artifact], list[str]]:
        """Fetch the sources of these distributions at these versions; return them and the distributions that they need.

        Args:
            pins: distribution to exact version.
            into: the folder for the files.

        Returns:
            The artifacts, and requirements for wheels, without markers.

        Raises:
            PinError: no such version.
        """
        entries = _pip(pins).report(
            "--no-deps", *(f"{name}=={version}" for name, version in sorted(pins.items())), missing="no such sources"
        )
        self.fetch([entry.artifact("sdist") for entry in entries], into, lambda done: None)
        found = [entry.artifact("sdist", (into / entry.filename).stat().st_size) for entry in entries]
        needs = sorted({need for entry in entries for need in self._needs(entry, pins)})
        return sorted(found, key=lambda artifact: artifact.name), needs

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name, version and hash; see ArtifactSource.fetch."""
        _pip(artifact.name for artifact in artifacts).download(artifacts, into, progress(report))

    def _needs(self, source: Reported, pins: Mapping[str, str]) -> Iterator[str]:
        """Yield a source's requirements on the target, except those that are sources themselves."""
        own = {canonicalize_name(name) for name in pins}
        for text in source.requires:
            need = Requirement(text)
            wanted = need.marker is None or need.marker.evaluate({**marker_values(self._python), "extra": ""})
            if wanted and canonicalize_name(need.name) not in own:
                need.marker = None
                yield str(need)


def _pip(names: Iterable[str]) -> Pip:
    # Without build isolation, pip does not fetch a setuptools that it chooses itself.
    return Pip("sdists", "--no-build-isolation", "--no-binary", ",".join(sorted(names)))
