"""Wheels, resolved and fetched by pip for the target's Python, whatever Python runs us."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import executable
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.children import run
from toolchains.system.errors import CommandError, FetchError, FoundryError, GoneError, HashMismatchError, PinError
from toolchains.system.paths import scratch

# pip takes a --platform literally and infers no older tags from it: those in use up to glibc 2.28 are named, which is
# older than the C library of any suite that we build on. A wheel for a newer one only is not found; add its tag then.
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


@dataclass(frozen=True)
class _Wheel:
    """One entry of pip's installation report."""

    name: str
    version: str
    filename: str
    sha256: str
    requires: tuple[str, ...]


class ConflictError(PinError):
    """Distributions that were to be kept at their versions cannot be."""


class Wheels:
    """The wheels of one Python version on x86-64 Linux.

    Args:
        python: the target's version, "3.13".
    """

    def __init__(self, python: str) -> None:
        self._python = python

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
        """Return the wheels of these distributions at these versions, with what they need.

        Args:
            pins: distribution to exact version.
            dependencies: follow what the wheels require; otherwise take just these.
            known: size by sha256, of wheels whose size need not be asked for. pip reports hashes and no sizes, so
                a wheel seen for the first time is fetched.
            into: where such a wheel is put.
            also: more distributions, as requirements: "urllib3<3".
            keep: distribution to the version that it must have if it is needed.

        Raises:
            ConflictError: the distributions do not go together at these versions, or one is gone; only with `keep`.
            PinError: no such version for this Python and platform, or a dependency that pip did not report.
        """
        wanted = [*(f"{name}=={version}" for name, version in sorted(pins.items())), *also]
        wheels = self._report(wanted, dependencies, keep or {})
        needed = self._closure(wanted, wheels) if dependencies else list(wheels.values())
        unknown = [_artifact(wheel, size=0) for wheel in needed if wheel.sha256 not in known]
        if unknown:
            self.fetch(unknown, into, lambda done: None)
        sizes = {**known, **{item.sha256: (into / item.filename).stat().st_size for item in unknown}}
        found = [_artifact(wheel, size=sizes[wheel.sha256]) for wheel in needed]
        return sorted(found, key=lambda artifact: artifact.name)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name, version and hash; see Source.fetch."""
        into.mkdir(parents=True, exist_ok=True)
        # To pip, two versions of one distribution are a conflict, wherever they are to lie.
        rounds: list[dict[str, Artifact]] = []
        for artifact in artifacts:
            free = next((batch for batch in rounds if artifact.name not in batch), None)
            if free is None:
                rounds.append(free := {})
            free[artifact.name] = artifact
        line = progress(report)
        for batch in rounds:
            self._fetch(list(batch.values()), into, line)

    def _fetch(self, artifacts: Sequence[Artifact], into: Path, line: Callable[[str], None]) -> None:
        listing = into / "requirements.txt"
        listing.write_text("".join(f"{a.name}=={a.version} --hash=sha256:{a.sha256}\n" for a in artifacts))
        try:
            self._pip(
                "download",
                "--no-deps",
                "--require-hashes",
                "--dest",
                into,
                "--requirement",
                listing,
                "--progress-bar",
                "raw",
                "--resume-retries",
                "5",
                log="fetch-wheels",
                line=line,
            )
        except CommandError as error:
            raise explain(error) from error
        finally:
            listing.unlink()

    def _report(self, wanted: Sequence[str], dependencies: bool, keep: Mapping[str, str]) -> dict[str, _Wheel]:
        """Return what pip would install, by canonical name."""
        try:
            with NamedTemporaryFile("w", suffix=".txt", dir=scratch()) as constraints:
                constraints.writelines(f"{name}=={version}\n" for name, version in sorted(keep.items()))
                constraints.flush()
                # A folder of local wheels that this machine's pip looks into must not end up in a lock for everybody.
                answer = self._pip(
                    "install",
                    "--dry-run",
                    "--ignore-installed",
                    "--quiet",
                    "--report",
                    "-",
                    *([] if dependencies else ["--no-deps"]),
                    "--constraint",
                    constraints.name,
                    *wanted,
                    log="resolve-wheels",
                    env={"PIP_FIND_LINKS": ""},
                )
        except CommandError as error:
            explained = explain(error)
            if keep and (isinstance(explained, GoneError) or "ResolutionImpossible" in error.why):
                raise ConflictError("the locked versions do not fit", why=explained.why) from error
            if isinstance(explained, GoneError):
                raise PinError(
                    f"no such wheel for Python {self._python} on x86-64 Linux",
                    why=error.why,
                    next="change the version in toolchains/pins, then: ./foundry pin --update",
                ) from error
            raise explained from error
        return {wheel.name: wheel for wheel in map(_wheel, json.loads(answer)["install"])}

    def _closure(self, wanted: Sequence[str], wheels: Mapping[str, _Wheel]) -> list[_Wheel]:
        """Return what the pinned distributions need on the target.

        pip evaluates the markers of dependencies for the Python that runs it, not for --python-version
        (https://github.com/pypa/pip/issues/11664), so its report may hold too much or too little.
        """
        target = marker_values(self._python)
        needed: dict[str, _Wheel] = {}
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

    def _pip(
        self,
        *words: str | Path,
        log: str,
        env: Mapping[str, str] | None = None,
        line: Callable[[str], None] | None = None,
    ) -> str:
        """Run the pip of the Python that runs us, for the target's Python; what it printed."""
        verb, *rest = words
        platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
        argv = [
            executable,
            "-m",
            "pip",
            verb,
            "--disable-pip-version-check",
            "--no-input",
            "--only-binary=:all:",
            "--implementation",
            "cp",
            "--python-version",
            self._python,
            *platforms,
            *rest,
        ]
        return run(argv, log=log, env=env, network=True, line=line).stdout


def marker_values(python: str) -> dict[str, str]:
    """Return the values of the markers on x86-64 Linux with this version of Python."""
    full = f"{python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": python,
        "sys_platform": "linux",
    }


def _wheel(entry: dict[str, Any]) -> _Wheel:
    metadata, info = entry["metadata"], entry["download_info"]
    return _Wheel(
        name=canonicalize_name(metadata["name"]),
        version=metadata["version"],
        filename=unquote(urlsplit(info["url"]).path.rpartition("/")[2]),
        sha256=info["archive_info"]["hashes"]["sha256"],
        requires=tuple(metadata.get("requires_dist", ())),
    )


def _artifact(wheel: _Wheel, *, size: int) -> Artifact:
    return Artifact("wheel", wheel.name, wheel.version, wheel.filename, size, wheel.sha256)


def progress(report: Report) -> Callable[[str], None]:
    """A reader of pip's raw progress lines, "Progress 1024 of 4096", which it prints for files over half a megabyte.

    Files come one after another; a count that went back belongs to the next one.
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


def explain(error: CommandError) -> FoundryError:
    """Return which of our errors a failure of pip is, from what it printed."""
    text = "\n".join(line for line in error.why.splitlines() if not line.startswith("Progress "))
    if "DO NOT MATCH THE HASHES" in text:
        return HashMismatchError(
            "a wheel does not have the sha256 that the lock gives",
            why=text,
            next="look at the index that pip is configured for: it serves other bytes than those that were locked",
        )
    if "No matching distribution" in text and "from versions: none" not in text:
        return GoneError("the index no longer carries a locked wheel", why=text, next="./foundry pin --update")
    return FetchError(
        "pip could not fetch wheels", why=text, next="check the network and pip's configuration: pip config list"
    )
