"""Run apt in a separate root: with the machine's archives, proxies and keys, and without its packages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from toolchains.fetch.source import Report
from toolchains.system.children import run
from toolchains.system.errors import CommandError, FetchError


class Apt:
    """apt-get and apt-cache with a separate index, amd64.

    Args:
        suite: "trixie", for messages.
        root: folder for apt's own state; kept between runs so that an unchanged index is not fetched again.
        sources: gives the content of sources.list; called when the index is to be fetched.
    """

    def __init__(self, suite: str, root: Path, sources: Callable[[], str]) -> None:
        self._suite = suite
        self._root = root
        self._sources = sources
        self.lock = FileLock(root.with_suffix(".lock"))
        self._updated = False

    def update(self) -> None:
        """Bring the index up to date, once.

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
                f"the Debian archive did not answer for {self._suite}",
                why=error.why,
                next="check the network and the machine's apt configuration: apt-get update",
            ) from error
        self._updated = True

    def run(
        self,
        program: str,
        *words: str,
        log: str,
        cwd: Path | None = None,
        check: bool = True,
        line: Callable[[str], None] | None = None,
    ) -> str:
        """Run one of apt's programs; what it printed."""
        # -c is read after the machine's own configuration, so its proxies stay and the rest is replaced.
        argv = [program, "-c", str(self._root / "apt.conf"), *words]
        return run(argv, log=log, cwd=cwd, network=True, check=check, line=line).stdout

    def _prepare(self) -> None:
        for folder in ("lists/partial", "cache/archives/partial"):
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        # Nothing is installed: apt works out a whole system.
        (self._root / "status").write_text("")
        (self._root / "sources.list").write_text(self._sources())
        (self._root / "apt.conf").write_text(_CONFIGURATION.format(root=self._root))


# The hooks of the host's apt (index refreshes, cache cleaning) are about the host, its preferences about its suite.
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
        # root's apt downloads as a user who may not enter root's cache folder.
        'APT::Sandbox::User "root";\n' if os.geteuid() == 0 else ""
    )
)


def progress(report: Report, total: int) -> Callable[[str], None]:
    """Return a reader of apt's status lines, "dlstatus:7:41.5:Retrieving file 7 of 12"."""

    def line(text: str) -> None:
        match = re.match(r"dlstatus:\d+:([\d.]+):", text)
        if match:
            report(int(total * float(match[1]) / 100))

    return line
