"""Resolve and fetch wheels by pip for the target's Python, independent of our own Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchains.fetch.pip import Pip, Reported, marker_values, progress
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.errors import FoundryError, PinError
from toolchains.system.paths import scratch

# pip takes a --platform literally and does not add older tags. These are the tags in use up to glibc 2.28, which is
# older than the C library of any suite that we build on. A wheel that needs a newer glibc is not found; then add its
# tag.
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


class ConflictError(PinError):
    """The distributions cannot keep their versions."""


class Wheels:
    """The wheels of one Python version on x86-64 Linux.

    Args:
        python: the target's version, "3.13".
    """

    def __init__(self, python: str) -> None:
        self._python = python
        platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
        cpython = ("--implementation", "cp", "--python-version", python)
        self._pip = Pip("wheels", "--only-binary=:all:", *cpython, *platforms)

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
        found = [wheel.artifact("wheel", sizes[wheel.sha256]) for wheel in needed]
        return sorted(found, key=lambda artifact: artifact.name)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name, version and hash; see ArtifactSource.fetch."""
        # pip reports two versions of one distribution as a conflict, even if they only go into a folder.
        rounds: list[dict[str, Artifact]] = []
        for artifact in artifacts:
            free = next((batch for batch in rounds if artifact.name not in batch), None)
            if free is None:
                rounds.append(free := {})
            free[artifact.name] = artifact
        line = progress(report)
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
                    missing=f"no such wheel for Python {self._python} on x86-64 Linux",
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
        target = marker_values(self._python)
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
