"""Check a vendor SDK that the user supplies, and put it into the image in place of one of our native parts.

Nothing here fetches one, and an image that has one is labelled as not for pushing. The steps of given():
    1. its sha256 (supply.py) against the one that the user gives, or against the one written down at its first use
    2. whether it will run in the target's image (preflight.py), unless that was found out before of the same two
    3. its version, from the name of its folder, where an image's path needs one
    4. place, sha256, version and what it was checked for are written down in build/sdk.json, which git ignores
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

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
from toolchains.system.errors import HashMismatchError, SdkError, UsageError
from toolchains.system.steps import step

# What decides whether an SDK is taken. A change here has it looked at again.
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
        """Return the recipe that it stands in for."""
        return self.kind.replaces

    @property
    def folder(self) -> str:
        """Return what its tar is called among the parts of an image."""
        return f"{self.kind.key}-{self.version or self.sha256[:12]}"

    @property
    def home(self) -> str:
        """Return where it lies in an image."""
        return self.kind.home.format(version=self.version)

    @property
    def arguments(self) -> dict[str, str]:
        """Values of the Dockerfile's ARG."""
        return {"SDK": self.folder, "SDK_HOME": self.home}

    @property
    def labels(self) -> dict[str, str]:
        """Return what the image says of it."""
        name = f"{self.kind.key} {self.version}".strip()
        return {"sdk": name, "sdk-sha256": self.sha256, "redistributable": "false"}

    @property
    def identity(self) -> str:
        """Return the digest of all that goes into the tar of it."""
        return digest({"sha256": self.sha256, "home": self.home, "format": prefix.FORMAT})

    def part(self, store: Store) -> Path:
        """Return a tar of its files, from the store or made now.

        Raises:
            UnsafeArchiveError: it has an entry that leaves its folder.
            HashMismatchError: it changed since it was checked.
        """

        def make(folder: Path) -> None:
            with step(f"{self.kind.name} {self.version}".strip()):
                self.supply.write(self.kind, self.sha256, folder / "sdk.tar")

        return store.part("sdk", self.identity, make) / "sdk.tar"


def check_given_sdk(target: LockedTarget, what: Given, store: Store) -> Sdk:
    """Check what a user gives as a target's SDK.

    Args:
        target: as locked.
        what: the user gives.
        store: has the packages of the image's libraries, or fetches them.

    Raises:
        UsageError: the target takes none, or there is nothing at that path.
        HashMismatchError: it is not what was given before, or has another sha256 than was said.
        SdkError: it lacks what we need, will not run in the image, or does not tell its version; lists all
            that is wrong.
        OfflineError, GoneError, FetchError: a package with the image's libraries is not available.
    """
    if not target.sdk:
        raise UsageError(f"{target.name} takes no vendor SDK", next="leave out --sdk")
    kind = VendorSdk.read(target.sdk)
    supply = Supply(what.path.expanduser().absolute(), what.files)
    if not supply.path.exists():
        raise UsageError(f"there is no archive or folder {supply.path}", next="--sdk=PATH of it")
    if not (supply.path.is_file() or supply.path.is_dir()):
        # To open a pipe would be to wait for whoever writes to it.
        raise UsageError(
            f"{supply.path} is neither a file nor a folder",
            why="it is a pipe, a device or a socket",
            next="--sdk=PATH of an archive, or of the folder that it was unpacked to",
        )
    records = _records()
    record = records.get(str(supply), {})
    found = supply.sha256()
    _compare(supply, found, what.sha256, record.get("sha256", ""))
    known = record.get("sha256") == found
    version = what.version or (record.get("version", "") if known else "")
    checked = _checked(kind, target)
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
    entry = {"sha256": found, "version": version, "checked": checked}
    if record != entry:
        _write({**records, str(supply): entry})
        name = f"{kind.name} {version}".strip()
        _console.print(f"{supply}\n  is {name}, sha256 {found}; written down in {_file()}")
    return Sdk(kind, supply, found, version)


def _compare(supply: Supply, found: str, said: str, recorded: str) -> None:
    if said and said != found:
        raise HashMismatchError(
            f"{supply} does not have the sha256 that you gave",
            why=f"sha256 {found}\ngiven  {said}",
            next="check where it comes from",
        )
    if recorded and recorded != found and not said:
        raise HashMismatchError(
            f"{supply} changed since it was last used",
            why=f"sha256 {found}\nbefore {recorded}",
            next=f"find out who changed it; if you did, accept it: --sdk-sha256={found}",
        )


def _preflight(
    kind: VendorSdk,
    supply: Supply,
    target: LockedTarget,
    home: str,
    entries: Mapping[str, prefix.PrefixEntry],
    store: Store,
) -> None:
    """See that it will run in the target's image, and say what else was seen.

    Raises:
        SdkError: it will not; lists every reason.
    """
    found = preflight.check_sdk(kind, entries, home, Provided(target, store), target.python)
    fatal = [finding for finding in found if finding.fatal]
    if fatal:
        raise SdkError(
            f"{supply} is not {kind.name} for the image of {target.name}, or not all of it",
            why="\n".join(map(str, fatal)),
            next=_advice(kind, fatal),
        )
    for finding in found:
        _console.print(f"[yellow]remark:[/] {finding}")


def _advice(kind: VendorSdk, fatal: Sequence[Finding]) -> str:
    advice = "give it as the vendor packed it, for x86-64 Linux and no newer than the image"
    elsewhere = [f"it has no {name}" for name in kind.environment.values() if name]
    if any(str(finding) in elsewhere for finding in fatal):
        variables = ", ".join(kind.environment)
        advice += f"; if files of it lie elsewhere, set {variables} and give --sdk=environment"
    return advice


def _checked(kind: VendorSdk, target: LockedTarget) -> str:
    """Return the digest of all that the preflight goes by, the SDK aside."""
    return digest(
        {
            "kind": trees.files_digest({"kind": vendors.file(kind.key)}),
            "debs": sorted(deb.sha256 for deb in target.debs),
            "preflight": PREFLIGHT,
        }
    )


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


def _write(records: Mapping[str, Mapping[str, str]]) -> None:
    durable.write(_file(), json.dumps(records, indent=1, sort_keys=True) + "\n")
