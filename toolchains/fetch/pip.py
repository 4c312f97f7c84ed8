"""Resolve and fetch wheels and sources by the pip of our own Python, for the target's Python.

pip asks a source for its metadata whenever it uses one, which runs the source's own setup. It does so only with the
setuptools of requirements.lock and, on a fetch, after the comparison of the hash. A build image makes wheels
of sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import executable
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchains.config import platforms
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import AMD64, Artifact
from toolchains.system.children import run
from toolchains.system.errors import CommandError, FetchError, FoundryError, GoneError, HashMismatchError, PinError
from toolchains.system.paths import scratch


@dataclass(frozen=True)
class Reported:
    """One entry of pip's installation report. It has no size."""

    name: str
    version: str
    filename: str
    sha256: str
    requires: tuple[str, ...]

    def artifact(self, kind: str, size: int = 0) -> Artifact:
        """Return the entry in the form of the lock."""
        return Artifact(kind, self.name, self.version, self.filename, size, self.sha256)


class Pip:
    """pip, with options that restrict what it may use.

    Args:
        what: "wheels" or "sdists", for the names of logs.
    """

    def __init__(self, what: str, *options: str) -> None:
        self._what = what
        self._options = options

    def report(self, *words: str, missing: str) -> list[Reported]:
        """Return what pip would install.

        Args:
            words: options and requirements.
            missing: the text of the PinError that is raised if the index lacks one of them.

        Raises:
            PinError: the index lacks one of them.
            FetchError: the index did not answer.
        """
        options = ("--dry-run", "--ignore-installed", "--quiet", "--report", "-")
        # PIP_FIND_LINKS is cleared: files from a folder of this machine must not get into a lock for everybody.
        how = {"log": f"resolve-{self._what}", "env": {"PIP_FIND_LINKS": ""}}
        try:
            answer = self._run("install", *options, *words, **how)
        except CommandError as error:
            explained = _explain(error)
            if isinstance(explained, GoneError):
                raise PinError(
                    missing, why=error.why, next="change the version in toolchains/pins, then: ./foundry pin --update"
                ) from error
            raise explained from error
        reported = []
        for entry in json.loads(answer)["install"]:
            metadata, info = entry["metadata"], entry["download_info"]
            reported.append(
                Reported(
                    name=canonicalize_name(metadata["name"]),
                    version=metadata["version"],
                    filename=unquote(urlsplit(info["url"]).path.rpartition("/")[2]),
                    sha256=info["archive_info"]["hashes"]["sha256"],
                    requires=tuple(metadata.get("requires_dist", ())),
                )
            )
        return reported

    def download(self, artifacts: Sequence[Artifact], into: Path, line: Callable[[str], None]) -> None:
        """Download by name, version and hash, at most one version of each name.

        Raises:
            HashMismatchError, GoneError, FetchError: other bytes arrived, the index has no such file, or nothing
                arrived.
        """
        into.mkdir(parents=True, exist_ok=True)
        listing = into / "requirements.txt"
        listing.write_text("".join(f"{a.name}=={a.version} --hash=sha256:{a.sha256}\n" for a in artifacts))
        options = ("--no-deps", "--require-hashes", "--progress-bar", "raw", "--resume-retries", "5")
        files = ("--dest", into, "--requirement", listing)
        try:
            self._run("download", *options, *files, log=f"fetch-{self._what}", line=line)
        except CommandError as error:
            raise _explain(error) from error
        finally:
            listing.unlink()

    def _run(self, verb: str, *words: str | Path, **how: Any) -> str:
        argv = [executable, "-m", "pip", verb, "--disable-pip-version-check", "--no-input", *self._options, *words]
        return run(argv, network=True, **how).stdout


def _marker_values(python: str, platform: str) -> dict[str, str]:
    """Return the values of the environment markers on a platform with this version of Python."""
    full = f"{python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": platforms.load(platform).machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": python,
        "sys_platform": "linux",
    }


def _progress(report: Report) -> Callable[[str], None]:
    """Return a reader of pip's raw progress, "Progress 1024 of 4096", which pip prints for files over half a megabyte.

    Files come one after another; if the count decreases, the next file has begun.
    """
    finished = current = 0

    def line(text: str) -> None:
        nonlocal finished, current
        match text.split():
            case ["Progress", done, "of", _]:
                if int(done) < current:
                    finished += current
                current = int(done)
                report(finished + current)

    return line


def _explain(error: CommandError) -> FoundryError:
    """Return the error of ours that fits a failure of pip, from its output."""
    text = "\n".join(line for line in error.why.splitlines() if not line.startswith("Progress "))
    if "DO NOT MATCH THE HASHES" in text:
        return HashMismatchError(
            "a wheel does not have the sha256 that the lock gives",
            why=text,
            next="look at the index that pip is configured for: it serves other bytes than those that were locked",
        )
    # pip's last try to reach an index failed. It then knows the files of other indexes and folders only.
    unreached = "Retry(total=0," in text
    if "No matching distribution" in text and "from versions: none" not in text and not unreached:
        return GoneError("the index no longer carries a locked wheel", why=text, next="./foundry pin --update")
    return FetchError(
        "pip could not fetch wheels",
        why=text,
        next="check the network, the proxy (https_proxy) and pip's configuration: pip config list",
    )


class ConflictError(PinError):
    """The distributions cannot keep their versions."""


class Wheels:
    """The wheels of one Python version on a platform.

    Args:
        python: the target's version, "3.13".
        platform: "linux/amd64".
    """

    def __init__(self, python: str, platform: str = AMD64) -> None:
        self._python = python
        self._platform = platform
        tags = [word for tag in platforms.load(platform).wheels for word in ("--platform", tag)]
        cpython = ("--implementation", "cp", "--python-version", python)
        self._pip = Pip("wheels", "--only-binary=:all:", *cpython, *tags)

    def resolve(
        self,
        pins: Mapping[str, str],
        *,
        dependencies: bool,
        known: Mapping[str, int],
        into: Path,
        also: Sequence[str] = (),
        keep: Mapping[str, str] | None = None,
    ) -> list[Artifact]:
        """Return the wheels of these distributions at these versions, with their dependencies.

        Args:
            pins: distribution to exact version.
            dependencies: include the wheels' requirements; otherwise return only these distributions.
            known: size by sha256 of wheels whose size is known. pip reports hashes but no sizes, so any other wheel is
                fetched.
            into: the folder for such wheels.
            also: more distributions, as requirements: "urllib3<3".
            keep: distribution to the version that it must have if it is needed.

        Raises:
            ConflictError: the distributions do not fit together at these versions, or one is gone; only with `keep`.
            PinError: no such version for this Python and platform, or a dependency that pip did not report.
        """
        wanted = [*(f"{name}=={version}" for name, version in sorted(pins.items())), *also]
        wheels = self._report(wanted, dependencies, keep or {})
        needed = self._closure(wanted, wheels) if dependencies else list(wheels.values())
        unknown = [wheel.artifact("wheel") for wheel in needed if wheel.sha256 not in known]
        if unknown:
            self.fetch(unknown, into, lambda done: None)
        sizes = {**known, **{item.sha256: (into / item.filename).stat().st_size for item in unknown}}
        resolved = [wheel.artifact("wheel", sizes[wheel.sha256]) for wheel in needed]
        return sorted(resolved, key=lambda artifact: artifact.name)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name, version and hash; see ArtifactSource.fetch."""
        # pip reports two versions of one distribution as a conflict, even if they only go into a folder.
        rounds: list[dict[str, Artifact]] = []
        for artifact in artifacts:
            free = next((batch for batch in rounds if artifact.name not in batch), None)
            if free is None:
                rounds.append(free := {})
            free[artifact.name] = artifact
        line = _progress(report)
        for batch in rounds:
            self._pip.download(list(batch.values()), into, line)

    def newest(self, names: Sequence[str]) -> dict[str, str]:
        """Return the newest version of each of these distributions that runs on the target, by canonical name.

        Raises:
            PinError: the index does not have one of them.
            FetchError: the index did not answer.
        """
        return {name: wheel.version for name, wheel in self._report(names, False, {}).items()}

    def _report(self, wanted: Sequence[str], dependencies: bool, keep: Mapping[str, str]) -> dict[str, Reported]:
        """Return what pip would install, by canonical name."""
        with NamedTemporaryFile("w", suffix=".txt", dir=scratch()) as constraints:
            constraints.writelines(f"{name}=={version}\n" for name, version in sorted(keep.items()))
            constraints.flush()
            try:
                wheels = self._pip.report(
                    *([] if dependencies else ["--no-deps"]),
                    "--constraint",
                    constraints.name,
                    *wanted,
                    missing=f"no such wheel for Python {self._python} on {self._platform}",
                )
            except FoundryError as error:
                if keep and (isinstance(error, PinError) or "ResolutionImpossible" in error.why):
                    raise ConflictError("the locked versions do not fit", why=error.why) from error
                raise
        return {wheel.name: wheel for wheel in wheels}

    def _closure(self, wanted: Sequence[str], wheels: Mapping[str, Reported]) -> list[Reported]:
        """Return the wheels that the pinned distributions need on the target.

        pip evaluates the markers of dependencies for the Python that runs it, not for --python-version
        (https://github.com/pypa/pip/issues/11664), so its report may have too many or too few entries.
        """
        target = _marker_values(self._python, self._platform)
        needed: dict[str, Reported] = {}
        pending = [(Requirement(text), "the pins") for text in wanted]
        while pending:
            requirement, wanted_by = pending.pop()
            name = canonicalize_name(requirement.name)
            if name not in wheels:
                raise PinError(
                    f"{wanted_by} needs {requirement} on Python {self._python}, and pip did not resolve it",
                    why="pip looked at the dependencies of another Python version, the one that runs it",
                    next=f"add {name} to the component's packages in toolchains/pins, then: ./foundry pin --update",
                )
            if name in needed:
                continue
            needed[name] = wheels[name]
            for text in wheels[name].requires:
                child = Requirement(text)
                extras = requirement.extras or {""}
                if child.marker is None or any(child.marker.evaluate({**target, "extra": extra}) for extra in extras):
                    pending.append((child, name))
        return list(needed.values())


class Sdists:
    """The sources of distributions that are published only as sources, for one Python version on a platform.

    Args:
        python: the target's version, "3.11".
        platform: "linux/amd64".
    """

    def __init__(self, python: str, platform: str = AMD64) -> None:
        self._python = python
        self._platform = platform

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
        entries = self._pip(pins).report(
            "--no-deps", *(f"{name}=={version}" for name, version in sorted(pins.items())), missing="no such sources"
        )
        self.fetch([entry.artifact("sdist") for entry in entries], into, lambda done: None)
        sources = [entry.artifact("sdist", (into / entry.filename).stat().st_size) for entry in entries]
        # A source's requirements on the target, except those that are sources themselves.
        needs, own = set(), {canonicalize_name(name) for name in pins}
        for requirement in (Requirement(text) for entry in entries for text in entry.requires):
            marker = requirement.marker
            wanted = marker is None or marker.evaluate({**_marker_values(self._python, self._platform), "extra": ""})
            if wanted and canonicalize_name(requirement.name) not in own:
                requirement.marker = None
                needs.add(str(requirement))
        return sorted(sources, key=lambda artifact: artifact.name), sorted(needs)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name, version and hash; see ArtifactSource.fetch."""
        self._pip(artifact.name for artifact in artifacts).download(artifacts, into, _progress(report))

    def _pip(self, names: Iterable[str]) -> Pip:
        # Without build isolation, pip does not fetch a setuptools that it chooses itself.
        return Pip("sdists", "--no-build-isolation", "--no-binary", ",".join(sorted(names)))
