"""Run apt in a separate root: with the machine's archives, proxies and keys, and without its packages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from toolchains.fetch import apt_sources
from toolchains.fetch.apt_sources import Archive
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.children import run
from toolchains.system.errors import CommandError, FetchError


class Apt:
    """apt-get and apt-cache with a separate index, amd64.

    Args:
        suite: "trixie", for messages.
        root: folder for apt's own state; kept between runs so that an unchanged index is not fetched again.
        archives: the archives to use; those of the machine's own apt configuration if None.
        kind: "deb" or "deb-src".
        extra: further suites: "trixie-backports".
    """

    def __init__(
        self,
        suite: str,
        root: Path,
        archives: Sequence[Archive] | None,
        kind: str = "deb",
        extra: Sequence[str] = (),
    ) -> None:
        self._suite = suite
        self._extra = extra
        self._root = root
        self._archives = archives
        self._kind = kind
        self.lock = FileLock(root.with_suffix(".lock"))
        self._updated = False

    def update(self) -> None:
        """Update the index, once.

        Raises:
            FetchError: the archive did not answer.
        """
        if self._updated:
            return
        self._prepare()
        try:
            self.run("apt-get", "update", "-o", "APT::Update::Error-Mode=any", log="update-apt")
        except CommandError as error:
            raise FetchError(
                f"the Debian archive did not answer for {' and '.join((self._suite, *self._extra))}",
                why=error.why,
                next="check the network and the machine's apt configuration: apt-get update",
            ) from error
        self._updated = True

    def archives(self) -> Sequence[Archive]:
        """Return the archives that are used."""
        return apt_sources.archives() if self._archives is None else self._archives

    def run(
        self,
        program: str,
        *words: str,
        log: str,
        cwd: Path | None = None,
        check: bool = True,
        line: Callable[[str], None] | None = None,
    ) -> str:
        """Run one of apt's programs and return its output."""
        # -c is read after the machine's own configuration: the machine's proxies stay, and the other settings are
        # replaced.
        argv = [program, "-c", str(self._root / "apt.conf"), *words]
        return run(argv, log=log, cwd=cwd, network=True, check=check, line=line).stdout

    def download(self, *words: str, artifacts: Sequence[Artifact], into: Path, report: Report, log: str) -> None:
        """Download artifacts with apt-get; the words are its verb and arguments.

        Raises:
            FetchError: the archive did not answer.
        """
        line = _progress(report, sum(artifact.size for artifact in artifacts))
        try:
            self.run("apt-get", *words, "-o", "APT::Status-Fd=1", log=log, cwd=into, line=line)
        except CommandError as error:
            raise FetchError(
                "apt could not fetch packages", why=error.why, next="try again: what arrived is kept"
            ) from error

    def _prepare(self) -> None:
        for folder in ("lists/partial", "cache/archives/partial"):
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        # An empty list of installed packages, so that apt resolves a whole system.
        (self._root / "status").write_text("")
        sources = apt_sources.sources_list(self._suite, self.archives(), self._kind, self._extra)
        (self._root / "sources.list").write_text(sources)
        (self._root / "apt.conf").write_text(_CONFIGURATION.format(root=self._root))


# Hooks of the host's apt (index refreshes, cache cleaning) are for the host, and its preferences are for its suite.
_CONFIGURATION = (
    """\
Dir::Etc::SourceList "{root}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{root}";
Dir::State::Lists "{root}/lists";
Dir::State::Status "{root}/status";
Dir::Cache "{root}/cache";
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false";
APT::Default-Release "";
#clear APT::Update;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
Acquire::Languages "none";
"""
    + (
        # As root, apt downloads as another user, who may not enter root's cache folder.
        'APT::Sandbox::User "root";\n' if os.geteuid() == 0 else ""
    )
)


def _progress(report: Report, total: int) -> Callable[[str], None]:
    """Return a function that reads apt's status lines, "dlstatus:7:41.5:Retrieving file 7 of 12"."""

    def line(text: str) -> None:
        match = re.match(r"dlstatus:\d+:([\d.]+):", text)
        if match:
            report(int(total * float(match[1]) / 100))

    return line
