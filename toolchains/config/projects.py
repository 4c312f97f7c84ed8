"""Read the projects that can be built from source: one TOML file each, with their possible sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from toolchains.config.reading import Commit, File, OptionalCommit, Text, convert, read_table
from toolchains.lockfile.lock import digest
from toolchains.system import paths
from toolchains.system.errors import UsageError


class GitPin(File, tag_field="source", tag="git", frozen=True):
    """A commit of a git repository.

    Attributes:
        urls: addresses of the repository: the origin, then mirrors. They are tried in this order.
        commit: the commit, or "" if only a ref is known.
        ref: a tag or a branch. The commit is resolved from it if no commit is given.
        tree: git's hash of the tree. It is compared if it is given.
        submodules: the commit of each submodule that is taken, by path. A submodule that is not named is refused.
    """

    urls: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    commit: OptionalCommit = ""
    ref: str = ""
    tree: OptionalCommit = ""
    submodules: Mapping[str, Commit] = {}

    def __post_init__(self) -> None:
        if not (self.commit or self.ref):
            raise ValueError("neither commit nor ref")

    @property
    def wanted(self) -> str:
        """Return a digest of what is wanted, independent of where it is fetched from."""
        return digest(["git", self.commit, self.ref, self.tree, dict(self.submodules)])

    def __str__(self) -> str:
        return f"git {self.commit[:12] or self.ref}"


class SourcePackagePin(File, tag_field="source", tag="debian", frozen=True):
    """A Debian source package, in the version that the suite has when the pin is resolved.

    Attributes:
        suite: the Debian suite.
        package: the source package.
    """

    suite: Text
    package: Text

    @property
    def wanted(self) -> str:
        """Return a digest of what is wanted."""
        return digest(["debian", self.suite, self.package])

    def __str__(self) -> str:
        return f"{self.suite}'s {self.package}"


class FolderPin(File, tag_field="source", tag="folder", frozen=True):
    """No source that everybody can fetch: the user gives a folder, --source NAME=PATH."""

    def __str__(self) -> str:
        return "--source"


SourcePin = GitPin | SourcePackagePin | FolderPin


class Profile(File, frozen=True):
    """One source of a project.

    Attributes:
        name: the name of the profile, such as "debian-13".
        version: the project's version, and the version of the package that is built, such as "13.0.1".
        source: where the source comes from.
        patches: the series below patches/ that is applied, such as "upmem-llvm/13.0.1", or "" for none.
        take: the topmost folders and files of the tree that are needed; empty for all.
        left_out: patterns (fnmatch) of paths in the tree that are not needed, such as "llvm/test/*".
        llvm_hash: for Triton, the commit of the LLVM that it must be built with.
        assertions: for LLVM, whether its assertions are compiled in.
    """

    name: str
    version: Text
    source: SourcePin
    patches: str = ""
    take: tuple[Text, ...] = ()
    left_out: tuple[Text, ...] = ()
    llvm_hash: OptionalCommit = ""
    assertions: bool = False


class ProjectFile(File, frozen=True):
    """What the file of a project says.

    Attributes:
        default: the profile that is built unless another is asked for.
        gigabytes: the disk space in GB that a build needs for the tree and everything compiled.
        beside: folders in toolchains/recipes whose sources are compiled into the project.
        common: keys that all profiles have in common. A profile may override them.
        profile: the profiles by name.
    """

    default: Text
    gigabytes: Annotated[float, msgspec.Meta(gt=0)]
    profile: Mapping[str, dict[str, Any]]
    beside: tuple[Text, ...] = ()
    common: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        if self.default not in self.profile:
            raise ValueError(f"default is {self.default}, and there is no [profile.{self.default!r}]")


@dataclass(frozen=True)
class Upstream:
    """A project; see ProjectFile."""

    name: str
    default: str
    profiles: Mapping[str, Profile]
    gigabytes: float
    beside: tuple[str, ...] = ()

    def profile(self, name: str = "") -> Profile:
        """Return a profile; the default one for an empty name.

        Raises:
            UsageError: there is no profile with this name.
        """
        try:
            return self.profiles[name or self.default]
        except KeyError:
            known = ", ".join(self.profiles)
            raise UsageError(
                f"{self.name} has no profile {name}", why=f"known: {known}", next="./foundry upstream"
            ) from None


def names(folder: Path = paths.UPSTREAMS) -> list[str]:
    """Return the names of the projects that can be built from source."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = paths.UPSTREAMS) -> Upstream:
    """Read one project.

    Raises:
        UsageError: no such project.
        PinError: the file has a key or a value that a project cannot have.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        raise UsageError(
            f"there is no upstream {name}", why=f"known: {', '.join(names(folder))}", next="./foundry upstream"
        )
    file: ProjectFile = convert(read_table(path), ProjectFile, path)
    # In the file, the keys of a profile's source are next to its own keys.
    own = {field.encode_name for field in msgspec.structs.fields(Profile)} - {"source"}
    profiles = {}
    for profile, keys in file.profile.items():
        keys = {**file.common, **keys}
        table = {key: keys[key] for key in keys if key in own}
        table["source"] = {key: keys[key] for key in keys if key not in own}
        profiles[profile] = convert(table, Profile, path, below=f"profile.{profile}", name=profile)
    return Upstream(name, file.default, profiles, file.gigabytes, file.beside)
