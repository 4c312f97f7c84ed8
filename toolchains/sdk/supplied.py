"""Check a vendor SDK that the user supplies, and put it into the image instead of one of our native parts.

This module fetches no SDK, and an image with one has a label that it must not be pushed. The steps of
check_given_sdk():
    1. compare its sha256 (contents.py) with the one that the user gives, or with the one recorded at its first use
    2. check whether it will run in the target's image (preflight.py), unless that was checked for the same two before
    3. read its version from the name of its folder, if an image's path needs one
    4. record path, sha256, version and the checked image in build/sdk.json, which git ignores
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchains.archives import folders as trees
from toolchains.archives import prefix
from toolchains.config import vendors
from toolchains.config.vendors import VendorSdk
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import LockedTarget, digest
from toolchains.sdk import preflight
from toolchains.sdk.contents import Supply
from toolchains.sdk.libraries import Provided
from toolchains.sdk.preflight import Finding
from toolchains.sdk.selection import Given
from toolchains.system import durable, paths
from toolchains.system.console import Console
from toolchains.system.errors import HashMismatchError, SdkError, UsageError
from toolchains.system.steps import step

# The revision of the checks: raise it if they change, so that every SDK is checked again.
PREFLIGHT = 1
_VERSION = r"[0-9][0-9A-Za-z.]*"
_console = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Sdk:
    """An SDK that was checked."""

    kind: VendorSdk
    supply: Supply
    sha256: str
    version: str

    @property
    def replaces(self) -> str:
        """Return the recipe that it replaces."""
        return self.kind.replaces

    @property
    def folder(self) -> str:
        """Return the name of its tar among the parts of an image."""
        return f"{self.kind.key}-{self.version or self.sha256[:12]}"

    @property
    def home(self) -> str:
        """Return its path in an image."""
        return self.kind.home.format(version=self.version)

    @property
    def arguments(self) -> dict[str, str]:
        """Return the values of the Dockerfile's ARGs."""
        return {"SDK": self.folder, "SDK_HOME": self.home}

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of the image about it."""
        name = f"{self.kind.key} {self.version}".strip()
        return {"sdk": name, "sdk-sha256": self.sha256, "redistributable": "false"}

    @property
    def identity(self) -> str:
        """Return the digest of all inputs of its tar."""
        return digest({"sha256": self.sha256, "home": self.home, "format": prefix.FORMAT})

    def part(self, store: Store) -> Path:
        """Return a tar of its files, from the store or written now.

        Raises:
            UnsafeArchiveError: it has an entry that leaves its folder.
            HashMismatchError: it changed since it was checked.
        """

        def make(folder: Path) -> None:
            with step(f"{self.kind.name} {self.version}".strip()):
                self.supply.write(self.kind, self.sha256, folder / "sdk.tar")

        return store.part("sdk", self.identity, make) / "sdk.tar"


def check_given_sdk(target: LockedTarget, what: Given, store: Store) -> Sdk:
    """Check the SDK that a user supplies for a target.

    Args:
        target: the locked target.
        what: the user's options.
        store: has the packages of the image's libraries, or fetches them.

    Raises:
        UsageError: the target takes no SDK, or nothing exists at that path.
        HashMismatchError: it differs from the SDK of an earlier use, or has another sha256 than the given one.
        SdkError: it lacks files that we need, will not run in the image, or has no recognisable version; lists all
            reasons.
        OfflineError, GoneError, FetchError: a package with the image's libraries is not available.
    """
    kind, supply = _supply(target, what)
    records = _records()
    record = records.get(str(supply), {})
    sha256 = supply.sha256()
    if what.sha256 and what.sha256 != sha256:
        raise HashMismatchError(
            f"{supply} does not have the sha256 that you gave",
            why=f"sha256 {sha256}\ngiven  {what.sha256}",
            next="check where it comes from",
        )
    recorded = record.get("sha256", "")
    if recorded not in ("", sha256) and not what.sha256:
        raise HashMismatchError(
            f"{supply} changed since it was last used",
            why=f"sha256 {sha256}\nbefore {recorded}",
            next=f"find out who changed it; if you did, accept it: --sdk-sha256={sha256}",
        )
    known = recorded == sha256
    version = what.version or (record.get("version", "") if known else "")
    # All inputs of the preflight, except the SDK.
    inputs = {
        "kind": trees.files_digest({"kind": vendors.file(kind.key)}),
        "debs": sorted(deb.sha256 for deb in target.debs),
        "preflight": PREFLIGHT,
    }
    checked = digest(inputs)
    if not known or record.get("checked") != checked or (kind.versioned and not version):
        with supply.opened(kind) as (folder, entries), step(f"looking whether {kind.name} runs in the image"):
            version = version or _version(kind.folders, folder)
            _preflight(kind, supply, target, kind.home.format(version=version or "VERSION"), entries, store)
    if not re.fullmatch(_VERSION, version) and (version or kind.versioned):
        raise SdkError(
            f"the version of {kind.name} in {supply} is not known" if not version else f"not a version: {version}",
            why=f"its folder is not called {' or '.join(kind.folders)}" * bool(kind.folders),
            next="--sdk-version=2023.1.0, as it may be",
        )
    entry = {"sha256": sha256, "version": version, "checked": checked}
    if record != entry:
        durable.write(_file(), json.dumps({**records, str(supply): entry}, indent=1, sort_keys=True) + "\n")
        name = f"{kind.name} {version}".strip()
        _console.print(f"{supply}\n  is {name}, sha256 {sha256}; written down in {_file()}")
    return Sdk(kind, supply, sha256, version)


def find(target: LockedTarget, what: Given, store: Store) -> list[Finding]:
    """Return what keeps an SDK from running in a target's image, and remarks; nothing is recorded.

    Raises:
        UsageError, SdkError, OfflineError, GoneError, FetchError: see check_given_sdk.
    """
    kind, supply = _supply(target, what)
    with supply.opened(kind) as (folder, entries):
        home = kind.home.format(version=what.version or _version(kind.folders, folder) or "VERSION")
        return preflight.check_sdk(kind, entries, home, Provided(target, store), target.python)


def _supply(target: LockedTarget, what: Given) -> tuple[VendorSdk, Supply]:
    """Return what SDK a target takes, and the place of the given one.

    Raises:
        UsageError: the target takes none, or there is nothing at that path.
    """
    if not target.sdk:
        raise UsageError(f"{target.name} takes no vendor SDK", next="leave out --sdk")
    kind = VendorSdk.read(target.sdk)
    supply = Supply(what.path.expanduser().absolute(), what.files)
    if not supply.path.exists():
        raise UsageError(f"there is no archive or folder {supply.path}", next="--sdk=PATH of it")
    if not (supply.path.is_file() or supply.path.is_dir()):
        # Opening a pipe would wait for a writer.
        raise UsageError(
            f"{supply.path} is neither a file nor a folder",
            why="it is a pipe, a device or a socket",
            next="--sdk=PATH of an archive, or of the folder that it was unpacked to",
        )
    return kind, supply


def _preflight(
    kind: VendorSdk,
    supply: Supply,
    target: LockedTarget,
    home: str,
    entries: Mapping[str, prefix.PrefixEntry],
    store: Store,
) -> None:
    """Check that it will run in the target's image, and print other findings.

    Raises:
        SdkError: it will not run; lists every reason.
    """
    findings = preflight.check_sdk(kind, entries, home, Provided(target, store), target.python)
    fatal = [finding for finding in findings if finding.fatal]
    if fatal:
        advice = "give it as the vendor packed it, for x86-64 Linux and no newer than the image"
        elsewhere = [f"it has no {name}" for name in kind.environment.values() if name]
        if any(str(finding) in elsewhere for finding in fatal):
            variables = ", ".join(kind.environment)
            advice += f"; if files of it lie elsewhere, set {variables} and give --sdk=environment"
        raise SdkError(
            f"{supply} is not {kind.name} for the image of {target.name}, or not all of it",
            why="\n".join(map(str, fatal)),
            next=advice,
        )
    for finding in findings:
        _console.notice(f"remark: {finding}")


def _version(folders: Sequence[str], name: str) -> str:
    for folder in folders:
        before, after = map(re.escape, folder.split("{version}"))
        match = re.fullmatch(f"{before}({_VERSION}){after}", name)
        if match:
            return match[1]
    return ""


def _file() -> Path:
    return paths.BUILD / "sdk.json"


def _records() -> dict[str, dict[str, str]]:
    try:
        records: dict[str, dict[str, str]] = json.loads(_file().read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise SdkError(f"the record of SDKs is malformed: {_file()}", why=str(error), next=f"rm {_file()}") from error
    if not isinstance(records, dict) or not all(isinstance(record, dict) for record in records.values()):
        raise SdkError(
            f"the record of SDKs is malformed: {_file()}", why="it has no records of SDKs", next=f"rm {_file()}"
        )
    return records
