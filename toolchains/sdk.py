"""A vendor SDK that the user supplies as an archive: checked, and put into the image in place of a native part of ours.

Nothing here fetches one, and an image that has one is labelled as not for pushing. The steps of given():
    1. the archive's sha256 against the one that the user gives, or against the one written down at its first use
    2. at its first use, the files that we need of it: there, and for x86-64
    3. its version, from the name of its folder
    4. path, sha256 and version are written down in build/sdk.json, which git ignores
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import tarfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from . import paths, prefix, trees
from .errors import HashMismatchError, PinError, SdkError, UsageError
from .lock import LockedTarget, digest
from .steps import step
from .store import Store

_VERSION = r"[0-9][0-9A-Za-z.]*"
# ELF64 for x86-64: the class in byte 4, the machine in bytes 18 and 19.
_ELF, _CLASS_64, _X86_64 = b"\x7fELF", 2, 62
_console = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Given:
    """What a user says of an SDK: the archive, its sha256, and its version where the archive does not say it."""

    path: Path
    sha256: str = ""
    version: str = ""


@dataclass(frozen=True)
class Kind:
    """What we know of a vendor's SDK.

    Attributes:
        key: the file under toolchains/sdks.
        name: for people.
        replaces: the recipe that it stands in for.
        folders: names that its topmost folder may have, with {version}.
        home: where it lies in an image, with {version}.
        needs: the files that must be in it.
    """

    key: str
    name: str
    replaces: str
    folders: tuple[str, ...]
    home: str
    needs: tuple[str, ...]

    @classmethod
    def read(cls, key: str) -> Kind:
        """Read toolchains/sdks/<key>.toml.

        Raises:
            PinError: there is no such file, or it is malformed.
        """
        path = paths.SDKS / f"{key}.toml"
        try:
            data = tomllib.loads(path.read_text())
            return cls(key, **(data | {"folders": tuple(data["folders"]), "needs": tuple(data["needs"])}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PinError(f"not the description of an SDK: {path}", why=repr(error), next=f"correct {path}") from error


@dataclass(frozen=True)
class Sdk:
    """An SDK that was checked."""

    kind: Kind
    path: Path
    sha256: str
    version: str

    @property
    def replaces(self) -> str:
        """The recipe that it stands in for."""
        return self.kind.replaces

    @property
    def folder(self) -> str:
        """What its tar is called among the parts of an image."""
        return f"{self.kind.key}-{self.version}"

    @property
    def home(self) -> str:
        """Where it lies in an image."""
        return self.kind.home.format(version=self.version)

    @property
    def arguments(self) -> dict[str, str]:
        """Values of the Dockerfile's ARG."""
        return {"SDK": self.folder, "SDK_HOME": self.home}

    @property
    def labels(self) -> dict[str, str]:
        """What the image says of it."""
        return {"sdk": f"{self.kind.key} {self.version}", "sdk-sha256": self.sha256, "redistributable": "false"}

    @property
    def identity(self) -> str:
        """The digest of all that goes into the tar of it."""
        code = trees.digest({"prefix.py": Path(prefix.__file__)})
        return digest({"sha256": self.sha256, "home": self.home, "recipe": code})

    def part(self, store: Store) -> Path:
        """A tar of its files, from the store or made now.

        Raises:
            UnsafeArchiveError: the archive has an entry that leaves its folder.
        """

        def make(folder: Path) -> None:
            with step(f"{self.kind.name} {self.version}"):
                below, _ = _look(self.kind, self.path)
                prefix.normalise(self.path, folder / "sdk.tar", below=below)

        return store.part("sdk", self.identity, make) / "sdk.tar"


def given(target: LockedTarget, what: Given) -> Sdk:
    """Check what a user gives as a target's SDK.

    Raises:
        UsageError: the target takes none, or there is no such archive.
        HashMismatchError: the archive is not the one that was given before, or has another sha256 than was said.
        SdkError: it lacks what we need, is for another machine, or does not tell its version.
    """
    if not target.sdk:
        raise UsageError(f"{target.name} takes no vendor SDK", next="leave out --sdk")
    kind = Kind.read(target.sdk)
    path = what.path.expanduser().absolute()
    if not path.is_file():
        why = "it is a folder; the vendor's archive itself is needed, since its sha256 is checked" * path.is_dir()
        raise UsageError(f"there is no archive {path}", why=why, next="--sdk=PATH of the archive")
    records = _records()
    record = records.get(str(path), {})
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    _compare(path, found, what.sha256.lower(), record.get("sha256", ""))
    known = record.get("sha256") == found
    version = what.version or (record.get("version", "") if known else "")
    if not known or not version:
        _, told = _look(kind, path)
        version = version or told
    if not re.fullmatch(_VERSION, version):
        raise SdkError(
            f"the version of {kind.name} in {path} is not known" if not version else f"not a version: {version}",
            why=f"its folder is not called {' or '.join(kind.folders)}", next="--sdk-version=2023.1.0, as it may be",
        )  # fmt: skip
    entry = {"sha256": found, "version": version}
    if record != entry:
        _write({**records, str(path): entry})
        _console.print(f"{path}\n  is {kind.name} {version}, sha256 {found}; written down in {_file()}")
    return Sdk(kind, path, found, version)


def _compare(path: Path, found: str, said: str, recorded: str) -> None:
    if said and not re.fullmatch("[0-9a-f]{64}", said):
        raise UsageError(f"not a sha256: {said}", next="--sdk-sha256 with its 64 hexadecimal digits")
    if said and said != found:
        raise HashMismatchError(
            f"{path} does not have the sha256 that you gave", why=f"sha256 {found}\ngiven  {said}",
            next="look where the archive comes from",
        )  # fmt: skip
    if recorded and recorded != found and not said:
        raise HashMismatchError(
            f"{path} is not the file that was used before", why=f"sha256 {found}\nbefore {recorded}",
            next=f"find out who changed it; if you did: --sdk-sha256={found}",
        )  # fmt: skip


def _look(kind: Kind, path: Path) -> tuple[str, str]:
    """Which folder of the archive is the SDK's, and its version if that is in the folder's name.

    Raises:
        SdkError: what we need is not there, or for another machine; or it is no tar at all.
    """
    try:
        with prefix.opened(path) as tar:
            below = _folder(kind, prefix.entries(tar, path.name))
            found = prefix.entries(tar, path.name, below)
            missing = [need for need in kind.needs if _resolved(found, need) is None]
            if missing:
                raise SdkError(
                    f"{path} is not {kind.name}, or not all of it",
                    why="\n".join(f"it has no {name}" for name in missing),
                    next="give the archive as the vendor packed it",
                )
            foreign = [need for need in kind.needs if not _is_ours(tar, found[_resolved(found, need) or need])]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise SdkError(f"{path} cannot be read as a tar archive", why=str(error),
                       next="give the archive as the vendor packed it") from error  # fmt: skip
    if foreign:
        raise SdkError(
            f"{path} is for another machine than this image, which is x86-64 Linux",
            why="\n".join(f"{name} is an ELF file for something else" for name in foreign),
            next="give the archive for x86-64",
        )
    return below, _version(kind.folders, posixpath.basename(below))


def _folder(kind: Kind, names: Iterable[str]) -> str:
    """Where in the archive the first of the files that we need is; there the others are expected, too."""
    ends = (f"/{name}".partition(f"/{kind.needs[0]}") for name in names)
    return next((before.strip("/") for before, need, after in ends if need and not after), "")


def _resolved(found: Mapping[str, tarfile.TarInfo], name: str) -> str | None:
    """The file that a name leads to through links inside the SDK, or None."""
    seen = set()
    while name in found and found[name].issym():
        if name in seen:
            return None
        seen.add(name)
        name = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[name].linkname))
    return name if name in found else None


def _is_ours(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bool:
    """Whether a file runs on x86-64, as far as it can be told: scripts and headers do."""
    content = tar.extractfile(entry)
    start = content.read(20) if content else b""
    return not start.startswith(_ELF) or (start[4], int.from_bytes(start[18:20], "little")) == (_CLASS_64, _X86_64)


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
        raise SdkError(f"not what was written down: {_file()}", why=str(error), next=f"rm {_file()}") from error
    return records


def _write(records: Mapping[str, Mapping[str, str]]) -> None:
    _file().parent.mkdir(parents=True, exist_ok=True)
    _file().write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
