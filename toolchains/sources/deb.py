"""Debian packages, resolved and fetched by apt in a root of its own, so that the host's packages play no part."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from filelock import FileLock

from ..errors import CommandError, FetchError, GoneError, PinError
from ..lock import Artifact
from ..run import run
from . import Report
from .debian import Archive, sources_list
from .debian import archives as host_archives

# What a system consists of before anything is asked for: the set that mmdebstrap's variant minbase installs.
_BASE = ("?essential", "?priority(required)")


class Debs:
    """The packages of one suite, amd64.

    Args:
        suite: "trixie".
        root: folder for apt's own state; kept between runs so that an unchanged index is not fetched again.
        archives: where from; by default the archives of the machine's own apt configuration.
    """

    def __init__(self, suite: str, root: Path, archives: Sequence[Archive] | None = None) -> None:
        self._suite = suite
        self._root = root
        self._archives = archives
        self._lock = FileLock(root.with_suffix(".lock"))
        self._updated = False

    def resolve(self, packages: Sequence[str]) -> list[Artifact]:
        """A whole system with these packages: base, packages, and what they depend on, recommendations left out.

        Raises:
            PinError: a package that the suite does not have, or that cannot be installed with the others.
            FetchError: the archive did not answer.
        """
        with self._lock:
            self._update()
            try:
                printed = self._apt("apt-get", "-q", "--print-uris", "install", *_BASE, *packages, log="resolve-debs")
            except CommandError as error:
                raise PinError(
                    f"the packages cannot be resolved in {self._suite}",
                    why=error.why,
                    next="correct the packages in toolchains/pins, then: invoke pin --update",
                ) from error
            # 'URI' name_version_arch.deb size hash; a colon of the version is written %3a.
            files = [line.split()[1] for line in printed.splitlines() if line.startswith("'")]
            wanted = [tuple(map(unquote, file.split("_")[:2])) for file in files]
            carried = self._carried([name for name, _ in wanted])
        found = [carried[name, version] for name, version in wanted]
        return sorted(found, key=lambda artifact: artifact.name)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name and version; see Source.fetch."""
        with self._lock:
            self._update()
            carried = self._carried([artifact.name for artifact in artifacts])
            gone = [artifact for artifact in artifacts if (artifact.name, artifact.version) not in carried]
            if gone:
                raise GoneError(
                    f"{self._suite} no longer carries {len(gone)} of the locked packages",
                    why="\n".join(f"{artifact}: superseded or removed" for artifact in gone),
                    next="--allow-drift to take the current versions this once, or: invoke pin --update",
                )
            try:
                self._apt(
                    "apt-get", "download", "-o", "APT::Status-Fd=1",
                    *(f"{artifact.name}={artifact.version}" for artifact in artifacts),
                    log="fetch-debs", cwd=into, line=_progress(report, sum(artifact.size for artifact in artifacts)),
                )  # fmt: skip
            except CommandError as error:
                raise FetchError(
                    "apt could not fetch packages", why=error.why, next="try again: what arrived is kept"
                ) from error
            finally:
                for artifact in artifacts:
                    _rename(artifact, into)

    def _update(self) -> None:
        """Bring the index up to date, once."""
        if self._updated:
            return
        self._prepare()
        try:
            self._apt("apt-get", "update", "-o", "APT::Update::Error-Mode=any", log="update-apt")
        except CommandError as error:
            raise FetchError(
                f"the Debian archive did not answer for {self._suite}",
                why=error.why,
                next="check the network and the machine's apt configuration: apt-get update",
            ) from error
        self._updated = True

    def _prepare(self) -> None:
        archives = host_archives() if self._archives is None else self._archives
        for folder in ("lists/partial", "cache/archives/partial"):
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        # Nothing is installed: apt works out a whole system.
        (self._root / "status").write_text("")
        (self._root / "sources.list").write_text(sources_list(self._suite, archives))
        (self._root / "apt.conf").write_text(_CONFIGURATION.format(root=self._root))

    def _carried(self, names: Sequence[str]) -> dict[tuple[str, str], Artifact]:
        """Every version that the archive has of these packages, by name and version."""
        records = self._apt("apt-cache", "show", *sorted(set(names)), log="show-debs", check=False)
        carried = {}
        for record in records.split("\n\n"):
            field = dict(re.findall(r"^([\w-]+): (.*)$", record, re.MULTILINE))
            if field:
                key = field["Package"], field["Version"]
                filename = field["Filename"].rpartition("/")[2]
                carried[key] = Artifact("deb", *key, filename, int(field["Size"]), field["SHA256"])
        return carried

    def _apt(
        self,
        program: str,
        *words: str,
        log: str,
        cwd: Path | None = None,
        check: bool = True,
        line: Callable[[str], None] | None = None,
    ) -> str:
        # -c is read after the machine's own configuration, so its proxies stay and the rest is replaced.
        argv = [program, "-c", str(self._root / "apt.conf"), *words]
        return run(argv, log=log, cwd=cwd, network=True, check=check, line=line).stdout


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


def _rename(artifact: Artifact, into: Path) -> None:
    """From the name that apt gives a download, an epoch's colon written %3a, to the archive's own."""
    version = artifact.version.replace(":", "%3a")
    for file in into.glob(f"{artifact.name}_{version}_*.deb"):
        file.rename(into / artifact.filename)


def _progress(report: Report, total: int) -> Callable[[str], None]:
    """A reader of apt's status lines, "dlstatus:7:41.5:Retrieving file 7 of 12"."""

    def line(text: str) -> None:
        match = re.match(r"dlstatus:\d+:([\d.]+):", text)
        if match:
            report(int(total * float(match[1]) / 100))

    return line
