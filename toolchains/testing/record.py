"""Keep which suites of a run of checks passed, on which inputs, and how long each of them took.

A suite that passed is not run again by `test --continue` if nothing that its result depends on has changed since.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from toolchains.archives import folders
from toolchains.fetch import git
from toolchains.system import durable, json_text, paths
from toolchains.system.errors import FoundryError
from toolchains.testing.junit import Count

# The seconds of suites on another machine, for machines that have not run it; the file says how it was measured.
_MEASURED = Path(__file__).with_name("measured_seconds.toml")
# Variables that tests read.
_VARIABLES = ("DOCKER_", "FOUNDRY_")


class RunInputs(msgspec.Struct, frozen=True):
    """What the result of a suite depends on.

    Attributes:
        commit: the commit that is checked out; "" if that is unknown.
        files: a sha256 over the names, permissions and contents of all files that git does not ignore.
        options: the options of the verb, as words.
        machine: a sha256 over the Python, the packages in its environment, and the variables that tests read.
    """

    commit: str
    files: str
    options: tuple[str, ...]
    machine: str

    @classmethod
    def read(cls, options: Sequence[str]) -> RunInputs:
        """Return the inputs as they are now; without git, or while files come and go, no commit is known."""
        commit = files = ""
        try:
            if checkout := git.checkout(paths.ROOT):
                entries = {name: paths.ROOT / name for name in git.working_files(paths.ROOT)}
                files = folders.files_digest({name: path for name, path in entries.items() if path.is_file()})
                commit = checkout.commit
        except (FoundryError, OSError):
            commit = ""
        packages = sorted(f"{package.name} {package.version}" for package in metadata.distributions())
        variables = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_VARIABLES))
        machine = hashlib.sha256("\n".join([sys.version, *packages, *variables]).encode(errors="replace")).hexdigest()
        return cls(commit, files, tuple(options), machine)

    def differences(self, now: RunInputs) -> list[str]:
        """Return in words what of these inputs is another now; nothing if they are the same."""
        if not (self.commit and now.commit):
            return ["git does not know the files of this checkout"]
        compared = {
            "the commit": self.commit == now.commit,
            "files of this checkout": self.files == now.files,
            "the options": self.options == now.options,
            "Python, its packages, or the variables FOUNDRY_* and DOCKER_*": self.machine == now.machine,
        }
        return [words for words, same in compared.items() if not same]


class Passed(msgspec.Struct, frozen=True):
    """A suite that passed: when it ended, and its tests."""

    ended: str
    count: Count


class Record(msgspec.Struct):
    """What is kept of a run.

    Attributes:
        inputs: those of all suites in `passed`.
        passed: the suites that passed, by the names of their files.
        seconds: how long each suite took when it passed last, on whichever inputs.
    """

    inputs: RunInputs | None = None
    passed: dict[str, Passed] = {}
    seconds: dict[str, float] = {}

    @classmethod
    def read(cls, file: Path) -> Record:
        """Return the record in a file; an empty one if there is none, or if it is damaged."""
        try:
            return json_text.read(file, cls)
        except (FoundryError, OSError):
            return cls()

    def write(self, file: Path) -> None:
        """Write the record, so that a run that is killed leaves the one before or this one."""
        durable.write(file, msgspec.json.format(msgspec.json.encode(self)).decode() + "\n")


class Estimate:
    """How long suites will take: as in the last run on this machine, otherwise as measured elsewhere.

    Args:
        seconds: those of a record.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._last = seconds
        self._measured: dict[str, float] = tomllib.loads(_MEASURED.read_text(encoding="utf-8"))["seconds"]

    def is_of_last_run(self, suites: Sequence[str]) -> bool:
        """Return whether the last run on this machine had all of these suites."""
        return self._last.keys() >= {*suites}

    def seconds(self, suite: str) -> float:
        """Return the expected seconds of a suite; for an unknown one, the mean of those with the same first word."""
        known = self._last.get(suite) or self._measured.get(suite)
        if known is None:
            first = suite.partition("-")[0]
            alike = [value for name, value in self._measured.items() if name.partition("-")[0] == first]
            values = alike or [*self._measured.values()]
            known = sum(values) / len(values)
        return known
