"""Run the pip of our own Python: the code that fetching wheels and fetching sources share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import executable
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.children import run
from toolchains.system.errors import CommandError, FetchError, FoundryError, GoneError, HashMismatchError, PinError


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
        return [_reported(entry) for entry in json.loads(answer)["install"]]

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


def _reported(entry: Mapping[str, Any]) -> Reported:
    metadata, info = entry["metadata"], entry["download_info"]
    return Reported(
        name=canonicalize_name(metadata["name"]),
        version=metadata["version"],
        filename=unquote(urlsplit(info["url"]).path.rpartition("/")[2]),
        sha256=info["archive_info"]["hashes"]["sha256"],
        requires=tuple(metadata.get("requires_dist", ())),
    )


def marker_values(python: str) -> dict[str, str]:
    """Return the values of the environment markers on x86-64 Linux with this version of Python."""
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


def progress(report: Report) -> Callable[[str], None]:
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
