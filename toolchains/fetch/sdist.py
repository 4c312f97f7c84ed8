"""Python distributions that are published as sources only, fetched by pip; they become wheels inside a build image.

pip asks a source for its metadata whenever it touches one, which runs the source's own setup: with the setuptools of
requirements.lock and no other, and, on a fetch, after the hash was compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from sys import executable
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchains.fetch.source import Report
from toolchains.fetch.wheel import explain, marker_values, progress
from toolchains.lockfile.lock import Artifact
from toolchains.system.children import run
from toolchains.system.errors import CommandError, GoneError, PinError


class Sdists:
    """The sources of distributions for one Python version on x86-64 Linux.

    Args:
        python: the target's version, "3.11".
    """

    def __init__(self, python: str) -> None:
        self._python = python

    def resolve(self, pins: Mapping[str, str], *, into: Path) -> tuple[list[Artifact], list[str]]:
        """Return the sources of these distributions at these versions, fetched, and the distributions that they need.

        Args:
            pins: distribution to exact version.
            into: where the files are put.

        Returns:
            The artifacts, and requirements for wheels, without markers.

        Raises:
            PinError: no such version.
        """
        try:
            answer = self._pip(
                "install",
                pins,
                "--dry-run",
                "--ignore-installed",
                "--quiet",
                "--report",
                "-",
                *(f"{name}=={version}" for name, version in sorted(pins.items())),
                log="resolve-sdists",
            )
        except CommandError as error:
            explained = explain(error)
            if isinstance(explained, GoneError):
                raise PinError(
                    "no such sources",
                    why=error.why,
                    next="change the version in toolchains/pins, then: ./foundry pin --update",
                ) from error
            raise explained from error
        entries = json.loads(answer)["install"]
        found = [_artifact(entry) for entry in entries]
        self.fetch(found, into, lambda done: None)
        sized = [
            Artifact("sdist", a.name, a.version, a.filename, (into / a.filename).stat().st_size, a.sha256)
            for a in found
        ]
        needs = sorted({need for entry in entries for need in self._needs(entry["metadata"], pins)})
        return sorted(sized, key=lambda artifact: artifact.name), needs

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name, version and hash; see Source.fetch."""
        into.mkdir(parents=True, exist_ok=True)
        listing = into / "requirements.txt"
        listing.write_text("".join(f"{a.name}=={a.version} --hash=sha256:{a.sha256}\n" for a in artifacts))
        try:
            self._pip(
                "download",
                {a.name: a.version for a in artifacts},
                "--require-hashes",
                "--dest",
                into,
                "--requirement",
                listing,
                "--progress-bar",
                "raw",
                log="fetch-sdists",
                line=progress(report),
            )
        except CommandError as error:
            raise explain(error) from error
        finally:
            listing.unlink()

    def _needs(self, metadata: Mapping[str, Any], pins: Mapping[str, str]) -> Iterator[str]:
        """Yield what a source requires on the target and does not come as a source too."""
        own = {canonicalize_name(name) for name in pins}
        for text in metadata.get("requires_dist", ()):
            need = Requirement(text)
            wanted = need.marker is None or need.marker.evaluate({**marker_values(self._python), "extra": ""})
            if wanted and canonicalize_name(need.name) not in own:
                need.marker = None
                yield str(need)

    def _pip(self, verb: str, names: Mapping[str, str], *words: str | Path, log: str, **how: Any) -> str:
        # Without build isolation pip does not fetch a setuptools of its own choice.
        argv = [
            executable,
            "-m",
            "pip",
            verb,
            "--disable-pip-version-check",
            "--no-input",
            "--no-deps",
            "--no-build-isolation",
            "--no-binary",
            ",".join(sorted(names)),
            *words,
        ]
        # A folder of this machine's must not end up in a lock for everybody.
        return run(argv, log=log, env={"PIP_FIND_LINKS": ""}, network=True, **how).stdout


def _artifact(entry: Mapping[str, Any]) -> Artifact:
    """One entry of pip's installation report, its size not known yet."""
    metadata, info = entry["metadata"], entry["download_info"]
    filename = unquote(urlsplit(info["url"]).path.rpartition("/")[2])
    sha256 = info["archive_info"]["hashes"]["sha256"]
    return Artifact("sdist", canonicalize_name(metadata["name"]), metadata["version"], filename, 0, sha256)
