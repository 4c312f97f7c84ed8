"""What can be built from source: one TOML file a project, with the sources that it may be taken from."""

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
        urls: where it is; the first is the origin, the others are mirrors, tried in this order.
        commit: 40 hexadecimal digits; empty where only a ref is known.
        ref: a tag or a branch, that the commit is resolved from if it is not given.
        tree: git's hash of the tree, compared if given: it tells a commit that was made again from the same files.
        submodules: path to commit; one that is not named here is refused.
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
        """A digest of what is wanted, wherever it is fetched from."""
        return digest(["git", self.commit, self.ref, self.tree, dict(self.submodules)])

    def __str__(self) -> str:
        return f"git {self.commit[:12] or self.ref}"


class SourcePackagePin(File, tag_field="source", tag="debian", frozen=True):
    """A Debian source package, in the version that the suite has when it is resolved."""

    suite: Text
    package: Text

    @property
    def wanted(self) -> str:
        """A digest of what is wanted."""
        return digest(["debian", self.suite, self.package])

    def __str__(self) -> str:
        return f"{self.suite}'s {self.package}"


class FolderPin(File, tag_field="source", tag="folder", frozen=True):
    """Nothing that everybody can fetch: the user gives a folder, --source NAME=PATH."""

    def __str__(self) -> str:
        return "--source"


SourcePin = GitPin | SourcePackagePin | FolderPin


class Profile(File, frozen=True):
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
        gigabytes: what the tree and everything compiled take on a disk, with room to spare.
        beside: recipes of ours whose sources are compiled into it.
        common: keys of profiles that are the same in all of them; a profile may say otherwise.
        profile: the profiles by name; see Profile and the kinds of source.
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
        PinError: the file says what a project does not have.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        raise UsageError(
            f"there is no upstream {name}", why=f"known: {', '.join(names(folder))}", next="./foundry upstream"
        )
    file: ProjectFile = convert(read_table(path), ProjectFile, path)
    profiles = {key: _profile(key, {**file.common, **own}, path) for key, own in file.profile.items()}
    return Upstream(name, file.default, profiles, file.gigabytes, file.beside)


def _profile(name: str, table: dict[str, Any], path: Path) -> Profile:
    """Read a profile. In the file, the keys of its source lie among its own."""
    own = {field.encode_name for field in msgspec.structs.fields(Profile)} - {"source"}
    source = {key: value for key, value in table.items() if key not in own}
    profile: Profile = convert(
        {key: value for key, value in table.items() if key in own} | {"source": source},
        Profile,
        path,
        below=f"profile.{name}",
        name=name,
    )
    return profile
