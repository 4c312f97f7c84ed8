"""What can be built from source: one TOML file a project, with the sources that it may be taken from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolchains.lockfile.lock import digest
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError


@dataclass(frozen=True)
class GitPin:
    """A commit of a git repository.

    Attributes:
        urls: where it is; the first is the origin, the others are mirrors, tried in this order.
        commit: 40 hexadecimal digits; empty where only a ref is known.
        ref: a tag or a branch, that the commit is resolved from if it is not given.
        tree: git's hash of the tree, compared if given: it tells a commit that was made again from the same files.
        submodules: path to commit; one that is not named here is refused.
    """

    urls: tuple[str, ...]
    commit: str = ""
    ref: str = ""
    tree: str = ""
    submodules: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> str:
        """A digest of what is wanted, wherever it is fetched from."""
        return digest(["git", self.commit, self.ref, self.tree, dict(self.submodules)])

    def __str__(self) -> str:
        return f"git {self.commit[:12] or self.ref}"


@dataclass(frozen=True)
class SourcePackagePin:
    """A Debian source package, in the version that the suite has when it is resolved."""

    suite: str
    package: str

    @property
    def wanted(self) -> str:
        """A digest of what is wanted."""
        return digest(["debian", self.suite, self.package])

    def __str__(self) -> str:
        return f"{self.suite}'s {self.package}"


@dataclass(frozen=True)
class FolderPin:
    """Nothing that everybody can fetch: the user gives a folder, --source NAME=PATH."""

    def __str__(self) -> str:
        return "--source"


SourcePin = GitPin | SourcePackagePin | FolderPin


@dataclass(frozen=True)
class Profile:
    """One source of a project.

    Attributes:
        name: "debian-13".
        version: the project's own, and that of the package that is made: "13.0.1".
        source: where it comes from.
        patches: the series below patches/ that is applied, "upmem-llvm/13.0.1"; empty for none.
        take: the topmost folders and files of the tree that are needed; all if empty.
        left_out: patterns (fnmatch) of paths in the tree that are not needed: "llvm/test/*".
        llvm_hash: of a Triton, the commit of the LLVM that it goes with.
        assertions: of an LLVM, whether it checks itself while it runs.
    """

    name: str
    version: str
    source: SourcePin
    patches: str = ""
    take: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    llvm_hash: str = ""
    assertions: bool = False


@dataclass(frozen=True)
class Upstream:
    """A project.

    Attributes:
        default: the profile that is built unless another is asked for.
        gigabytes: what the tree and everything compiled take on a disk, with room to spare.
        beside: recipes of ours whose sources are compiled into it.
    """

    name: str
    default: str
    profiles: Mapping[str, Profile]
    gigabytes: float
    beside: tuple[str, ...] = ()

    def profile(self, name: str = "") -> Profile:
        """A profile, the default one for an empty name.

        Raises:
            UsageError: there is none of this name.
        """
        try:
            return self.profiles[name or self.default]
        except KeyError:
            known = ", ".join(self.profiles)
            raise UsageError(
                f"{self.name} has no profile {name}", why=f"known: {known}", next="./foundry upstream"
            ) from None


def names(folder: Path = paths.UPSTREAMS) -> list[str]:
    """The projects that can be built from source."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = paths.UPSTREAMS) -> Upstream:
    """Read one project.

    Raises:
        UsageError: no such project.
        PinError: malformed.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        raise UsageError(
            f"there is no upstream {name}", why=f"known: {', '.join(names(folder))}", next="./foundry upstream"
        )
    try:
        data = tomllib.loads(path.read_text())
    except ValueError as error:
        raise PinError(f"not TOML: {path}", why=str(error), next=f"correct {path}") from error
    match data:
        case {"default": str(default), "profile": {**entries}, "gigabytes": int() | float() as size, **rest} if (
            default in entries
            and not rest.keys() - {"beside", "common"}
            and _is_list(beside := rest.get("beside", []))
            and isinstance(common := rest.get("common", {}), dict)
        ):
            profiles = {str(key): _profile(str(key), common, entry, path) for key, entry in entries.items()}
            return Upstream(name, default, profiles, size, tuple(beside))
    raise PinError(
        f"not an upstream file: {path}",
        why='it has default = "PROFILE", gigabytes, maybe beside = ["RECIPE"], and [profile."NAME"] for each, that\n'
        "default among them; [common] has what is the same in all of them",
        next=f"correct {path}",
    )


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# What a profile says beside its source, and what it says for each kind of source.
_COMMON = {"version", "source", "patches", "take", "left-out", "llvm-hash", "assertions"}
_OF_SOURCE = {"git": {"urls", "commit", "ref", "tree", "submodules"}, "debian": {"suite", "package"}, "folder": set()}
_HASH = re.compile("[0-9a-f]{40}")


def _profile(name: str, common: dict[str, Any], own: Any, path: Path) -> Profile:
    """One profile out of its table, and what it has in common with the others."""

    def wrong(what: str) -> PinError:
        return PinError(
            f"profile {name} of {path}: {what}",
            why='it has version, source, and maybe patches = "series", take = [...], left-out = [...], llvm-hash,\n'
            "assertions = true;\n"
            'with source = "git": urls = [...], commit (40 digits) or ref, maybe tree, and submodules.PATH = commit;\n'
            'with source = "debian": suite and package; with source = "folder" nothing more',
            next=f"correct {path}",
        )

    def word(key: str, *, needed: bool = False) -> str:
        value = data.get(key, "")
        if not isinstance(value, str) or (needed and not value):
            raise wrong(f"{key} is no text")
        return value

    def words(key: str, *, needed: bool = False) -> tuple[str, ...]:
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value) or (needed and not value):
            raise wrong(f"{key} is no list of texts")
        return tuple(value)

    def hashed(key: str) -> str:
        value = word(key)
        if value and not _HASH.fullmatch(value):
            raise wrong(f"{key} is no commit of 40 hexadecimal digits")
        return value

    if not isinstance(own, dict):
        raise wrong("no table")
    data = common | own
    if not isinstance(data.get("assertions", False), bool):
        raise wrong("assertions is neither true nor false")
    kind = word("source", needed=True)
    if kind not in _OF_SOURCE:
        raise wrong(f"there is no source {kind}")
    unknown = data.keys() - _COMMON - _OF_SOURCE[kind]
    if unknown:
        raise wrong(f"unknown to a source {kind}: {', '.join(sorted(unknown))}")
    source: SourcePin
    if kind == "git":
        commit, ref = hashed("commit"), word("ref")
        if not (commit or ref):
            raise wrong("neither commit nor ref")
        submodules = data.get("submodules", {})
        if not isinstance(submodules, dict) or not all(_HASH.fullmatch(str(value)) for value in submodules.values()):
            raise wrong("submodules are no commits of 40 hexadecimal digits")
        source = GitPin(words("urls", needed=True), commit, ref, hashed("tree"), submodules)
    elif kind == "debian":
        source = SourcePackagePin(word("suite", needed=True), word("package", needed=True))
    else:
        source = FolderPin()
    return Profile(
        name,
        word("version", needed=True),
        source,
        word("patches"),
        words("take"),
        words("left-out"),
        hashed("llvm-hash"),
        data.get("assertions", False),
    )
