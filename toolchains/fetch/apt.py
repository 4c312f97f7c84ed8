"""Resolve and fetch Debian packages and source packages by apt in a separate root.

apt uses the machine's archives, proxies and keys, and not its packages: these have no influence on what is resolved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from filelock import FileLock

from toolchains.fetch import apt_sources
from toolchains.fetch.apt_sources import Archive
from toolchains.fetch.source import Report
from toolchains.lockfile.lock import Artifact
from toolchains.system.children import run
from toolchains.system.errors import CommandError, FetchError, GoneError, PinError

# The end of a suite's name in the archive of its security updates.
_SECURITY = "-security"
# The packages of every system: those that mmdebstrap's variant minbase installs.
_BASE = ("?essential", "?priority(required)")
# Hooks of the host's apt (index refreshes, cache cleaning) are for the host, and its preferences are for its suite.
_CONFIGURATION = """\
Dir::Etc::SourceList "{root}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{root}";
Dir::State::Lists "{root}/lists";
Dir::State::Status "{root}/status";
Dir::Cache "{root}/cache";
#clear APT::Architectures;
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Default-Release "";
#clear APT::Update;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
Acquire::Languages "none";
"""
# As root, apt downloads as another user, who may not enter root's cache folder.
_AS_ROOT = 'APT::Sandbox::User "root";\n'


class _Apt:
    """apt-get and apt-cache with a separate index.

    Args:
        suite: "trixie".
        root: folder for apt's own state; kept between runs so that an unchanged index is not fetched again.
        archives: the archives to use; by default those of the machine's own apt configuration.
        extra: further suites: "trixie-backports".
        architecture: Debian's name for it.
    """

    # The word before an archive in apt's list of sources.
    kind = "deb"

    def __init__(
        self,
        suite: str,
        root: Path,
        archives: Sequence[Archive] | None = None,
        extra: Sequence[str] = (),
        architecture: str = "amd64",
    ) -> None:
        self._suite = suite
        self._architecture = architecture
        self._extra = extra
        self._root = root
        self._archives = archives
        self._lock = FileLock(root.with_suffix(".lock"))
        self._updated = False

    def _used_archives(self) -> Sequence[Archive]:
        return apt_sources.archives() if self._archives is None else self._archives

    def _update(self) -> None:
        """Update the index, once.

        Raises:
            FetchError: the archive did not answer.
        """
        if self._updated:
            return
        for folder in ("lists/partial", "cache/archives/partial"):
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        # An empty list of installed packages, so that apt resolves a whole system.
        (self._root / "status").write_text("")
        sources = apt_sources.sources_list(self._suite, self._used_archives(), self.kind, self._extra)
        (self._root / "sources.list").write_text(sources)
        configuration = _CONFIGURATION.format(root=self._root, architecture=self._architecture)
        configuration += _AS_ROOT * (os.geteuid() == 0)
        (self._root / "apt.conf").write_text(configuration)
        try:
            self._run("apt-get", "update", "-o", "APT::Update::Error-Mode=any", log="update-apt")
        except CommandError as error:
            raise FetchError(
                f"the Debian archive did not answer for {' and '.join((self._suite, *self._extra))}",
                why=error.why,
                next="check the network and the machine's apt configuration: apt-get update",
            ) from error
        self._updated = True

    def _run(
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

    def _download(self, *words: str, artifacts: Sequence[Artifact], into: Path, report: Report, log: str) -> None:
        """Download artifacts with apt-get; the words are its verb and arguments.

        Raises:
            FetchError: the archive did not answer.
        """
        total = sum(artifact.size for artifact in artifacts)

        def line(text: str) -> None:
            # apt's status lines are "dlstatus:7:41.5:Retrieving file 7 of 12".
            match = re.match(r"dlstatus:\d+:([\d.]+):", text)
            if match:
                report(int(total * float(match[1]) / 100))

        try:
            self._run("apt-get", *words, "-o", "APT::Status-Fd=1", log=log, cwd=into, line=line)
        except CommandError as error:
            raise FetchError(
                "apt could not fetch packages", why=error.why, next="try again: what arrived is kept"
            ) from error


class Debs(_Apt):
    """The packages of one suite, and of further suites for packages that name them, for one architecture.

    Debian marks its backports so that apt takes a package from them only if it is asked for, or if another package of
    theirs requires it.
    """

    def resolve(self, packages: Sequence[str]) -> list[Artifact]:
        """Return a whole system with these packages: base, packages and their dependencies, without recommendations.

        Args:
            packages: names; that of a package of a further suite is "NAME/SUITE".

        Raises:
            PinError: a package that the suite does not have, or that cannot be installed with the others.
            FetchError: the archive did not answer.
        """
        return self._resolved("install", *_BASE, *packages)

    def find(self, packages: Sequence[str]) -> list[Artifact]:
        """Return these packages alone, without what they depend on.

        Raises:
            PinError: a package that the suite does not have.
            FetchError: the archive did not answer.
        """
        return self._resolved("download", *packages) if packages else []

    def _resolved(self, *words: str) -> list[Artifact]:
        """Return what apt-get would fetch for these words, its verb and packages."""
        with self._lock:
            self._update()
            try:
                printed = self._run("apt-get", "-q", "--print-uris", *words, log="resolve-debs")
            except CommandError as error:
                raise PinError(
                    f"the packages cannot be resolved in {self._suite}",
                    why=error.why,
                    next="correct the packages in toolchains/pins, then: ./foundry pin --update",
                ) from error
            # The format is: 'URI' name_version_arch.deb size hash. A colon of the version is written %3a.
            files = [line.split()[1] for line in printed.splitlines() if line.startswith("'")]
            wanted = [(unquote(name), unquote(version)) for name, version, *_ in (file.split("_") for file in files)]
            names = [name for name, _ in wanted]
            carried = self._carried(names)
            # The suite of each version that only a further suite has.
            suites: dict[tuple[str, str], set[str]] = {}
            for name, version, suite in self._madison(names) if self._extra else ():
                suites.setdefault((name, version), set()).add(suite)
            others = {key: min(known) for key, known in suites.items() if known <= set(self._extra)}
        resolved = [replace(carried[key], suite=others.get(key, "")) for key in wanted]
        return sorted(resolved, key=lambda artifact: artifact.name)

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download by name and version; see ArtifactSource.fetch."""
        with self._lock:
            self._update()
            carried = self._carried([artifact.name for artifact in artifacts])
            gone = [artifact for artifact in artifacts if (artifact.name, artifact.version) not in carried]
            if gone:
                raise GoneError(
                    f"{self._suite} no longer carries {len(gone)} of the locked packages",
                    why="\n".join(f"{artifact}: superseded or removed" for artifact in gone),
                    next="--allow-drift to take the current versions this once, or: ./foundry pin --update",
                )
            try:
                names = [f"{artifact.name}={artifact.version}" for artifact in artifacts]
                self._download("download", *names, artifacts=artifacts, into=into, report=report, log="fetch-debs")
            finally:
                # In apt's name for a file, an epoch's colon is written %3a.
                for artifact in artifacts:
                    for file in into.glob(f"{artifact.name}_{artifact.version.replace(':', '%3a')}_*.deb"):
                        file.rename(into / artifact.filename)

    def newer(self, artifacts: Sequence[Artifact]) -> dict[str, tuple[str, bool]]:
        """Return the newest version of each package that is locked at another one, and whether security asks for it.

        Raises:
            FetchError: the archive did not answer.
            PinError: the machine's apt has no archive of security updates for the suite.
        """
        if not any(archive.pocket == _SECURITY for archive in self._used_archives()):
            raise PinError(
                f"apt knows no archive of security updates for {self._suite}",
                why="without one, nobody can say that there are none",
                next=f"add the archive {self._suite}-security to this machine's apt sources",
            )
        with self._lock:
            self._update()
            rows = self._madison([artifact.name for artifact in artifacts])
        newer = {}
        for artifact in artifacts:
            # madison prints the newest version first. A further suite counts for what was taken from it.
            others = set(self._extra) - {artifact.suite}
            versions = [
                (version, suite) for name, version, suite in rows if name == artifact.name and suite not in others
            ]
            known = [version for version, _ in versions]
            behind = known.index(artifact.version) if artifact.version in known else len(known)
            if behind:
                newer[artifact.name] = known[0], any(suite.endswith(_SECURITY) for _, suite in versions[:behind])
        return newer

    def _madison(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return name, version and suite of all versions of these packages, the newest one of a package first."""
        # The format is: NAME | VERSION | URI SUITE/COMPONENT ARCHITECTURE Packages
        printed = self._run("apt-cache", "madison", *sorted(set(names)), log="suites-debs", check=False)
        rows = [[column.strip() for column in row.split("|")] for row in printed.splitlines()]
        return [(name, version, place.split()[1].partition("/")[0]) for name, version, place in rows]

    def _carried(self, names: Sequence[str]) -> dict[tuple[str, str], Artifact]:
        """Return every version of these packages in the archive, by name and version."""
        records = self._run("apt-cache", "show", *sorted(set(names)), log="show-debs", check=False)
        carried = {}
        for record in records.split("\n\n"):
            field = dict(re.findall(r"^([\w-]+): (.*)$", record, re.MULTILINE))
            if field:
                key = field["Package"], field["Version"]
                filename = field["Filename"].rpartition("/")[2]
                carried[key] = Artifact("deb", *key, filename, int(field["Size"]), field["SHA256"])
        return carried


class SourcePackages(_Apt):
    """The source packages of one suite: the files that `apt-get source` would fetch.

    Its root is another one than for the suite's binary packages, because the index of the sources is fetched only
    together with sources.
    """

    kind = "deb-src"

    def resolve(self, package: str) -> list[Artifact]:
        """Return the files of a package in the newest version that the suite has: .dsc, .orig.tar.*, .debian.tar.*.

        Raises:
            PinError: the suite has no source package of this name.
            FetchError: the archive did not answer.
        """

        def unknown(why: str) -> PinError:
            return PinError(
                f"{self._suite} has no source package {package}",
                why=why,
                next="correct the package in toolchains/upstreams, then: ./foundry pin --update",
            )

        with self._lock:
            self._update()
            carried = self._carried([package])
            try:
                words = ("-q", "source", "--print-uris", "--only-source", package)
                printed = self._run("apt-get", *words, log="resolve-source")
            except CommandError as error:
                raise unknown(error.why) from error
        # The format is: 'URI' file-name size hash.
        chosen = {line.split()[1] for line in printed.splitlines() if line.startswith("'")}
        for files in carried.values():
            if chosen and chosen == {file.filename for file in files}:
                return sorted(files, key=lambda file: file.filename)
        raise unknown(f"apt would fetch {sorted(chosen)}, which no source package of this name consists of")

    def fetch(self, artifacts: Sequence[Artifact], into: Path, report: Report) -> None:
        """Download the files of packages by name and version; see ArtifactSource.fetch."""
        wanted = sorted({(artifact.name, artifact.version) for artifact in artifacts})
        with self._lock:
            self._update()
            carried = self._carried([name for name, _ in wanted])
            gone = [
                f"{name} {version}: superseded or removed" for name, version in wanted if (name, version) not in carried
            ]
            if gone:
                raise GoneError(
                    f"{self._suite} no longer carries {len(gone)} of the locked source packages",
                    why="\n".join(gone),
                    next="./foundry pin --update",
                )
            words = ["source", "--download-only", "--only-source", *(f"{name}={version}" for name, version in wanted)]
            self._download(*words, artifacts=artifacts, into=into, report=report, log="fetch-sources")

    def _carried(self, packages: Sequence[str]) -> dict[tuple[str, str], list[Artifact]]:
        """Return every version of these packages in the archive, by name and version, with its files."""
        # For a binary package's name, apt-cache prints its source package; for an unknown name it fails.
        records = self._run("apt-cache", "showsrc", *sorted(set(packages)), log="show-sources", check=False)
        carried = {}
        for record in re.split(r"\n{2,}", records):
            field = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", record, re.MULTILINE))
            if field.get("Package") in packages:
                key = field["Package"], field["Version"]
                entries = map(str.split, field["Checksums-Sha256"].strip().splitlines())
                carried[key] = [Artifact("source", *key, name, int(size), sha256) for sha256, size, name in entries]
        return carried
