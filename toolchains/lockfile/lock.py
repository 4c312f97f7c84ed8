"""The lock: what the pins resolved to, every file by name, version, size and sha256, and a digest over all of it.

The file has no addresses: the bytes may come from a mirror, another store, or the archive itself.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from toolchains.archives import confine
from toolchains.system import durable, paths
from toolchains.system.errors import PinError

_RESOLVE = "./foundry pin --update"
# The platform that the lock has always; others are in it under "platforms".
AMD64 = "linux/amd64"


@dataclass(frozen=True)
class Artifact:
    """A file to fetch.

    Attributes:
        kind: "wheel", "deb", "sdist", or "source" for a file of a Debian source package.
        name: the distribution's or package's name.
        version: the whole version, including a Debian epoch.
        filename: the archive's name of the file.
        size: in bytes.
        sha256: of the whole file, hexadecimal.
        suite: of a deb, the suite that has it, if that is not the system's own: "trixie-backports".

    Raises:
        PinError: a name, a version or the sha256 is malformed. They are used as names in the store and on command
            lines.
    """

    kind: str
    name: str
    version: str
    filename: str
    size: int
    sha256: str
    suite: str = ""

    def __post_init__(self) -> None:
        called = f"the {self.kind} {self.filename!r}"
        confine.word(self.name, called, error=PinError)
        confine.word(self.version, called, error=PinError)
        confine.name(self.filename, called, error=PinError)
        confine.sha256(self.sha256, called, error=PinError)
        if self.suite:
            confine.word(self.suite, called, error=PinError)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class LockedTriton:
    """One release of Triton: its wheel, and the LLVM commit that must be compiled into it.

    Attributes:
        llvm_version: the LLVM version in a wheel that was built without its LLVM commit; empty for the others.
    """

    version: str
    llvm_hash: str
    wheel: Artifact
    llvm_version: str = ""


@dataclass(frozen=True)
class Patched:
    """Files of a Debian package that a patch series of ours changes.

    Attributes:
        component: the pin that names the series.
        package: the package whose files are changed.
        series: the folder below patches/, "torch/2.6.0".
        root: the folder in the image to which the series' paths are relative.
    """

    component: str
    package: str
    series: str
    root: str

    def __post_init__(self) -> None:
        called = f"component {self.component!r}"
        confine.word(self.package, called, error=PinError)
        confine.relative_path(self.series, called, error=PinError)
        confine.relative_path(self.root.strip("/"), called, error=PinError)


@dataclass(frozen=True)
class Linked:
    """A program that is linked on this machine with files of Debian packages that the image does not have.

    Attributes:
        recipe: the folder in toolchains/recipes with its sources.
        debs: the packages that are unpacked for it.
        left_out: patterns of files in them that are not unpacked.
    """

    recipe: str
    debs: tuple[Artifact, ...]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        confine.word(self.recipe, "a linked program", error=PinError)


@dataclass(frozen=True)
class LockedTarget:
    """The result of resolving one target.

    Attributes:
        backend: the plugin, a folder in backends/; also selects docker/<backend>.Dockerfile.
        suite: the Debian suite of the base image.
        python: version of the image's Python, "3.13".
        debs: the whole base image, including dependencies.
        wheels: the Python packages other than Triton, including dependencies.
        tritons: every pinned release.
        default_triton: the release that is built unless another is asked for.
        left_out: files of the debs that the image does not need, as patterns for dpkg's path-exclude.
        kept: needed files that match a pattern of left_out, as patterns for dpkg's path-include.
        sdists: Python packages that are published as sources.
        recipes: the native parts, folders in toolchains/recipes.
        builder: the image in which the recipes are built, as a target without a Triton.
        sdk: the vendor SDK that a user may supply, a file in toolchains/sdks.
        patched: the packages whose files are changed, and the patches.
        linked: the programs that are linked on this machine.
        digest: sha256 over all of the above.
        pins: digest of the pins that debs, wheels and tritons were resolved from; shows whether a pin changed since.
        platform: Docker's name for the platform that the files are for.
    """

    name: str
    backend: str
    suite: str
    python: str
    debs: tuple[Artifact, ...]
    wheels: tuple[Artifact, ...]
    tritons: Mapping[str, LockedTriton]
    default_triton: str
    left_out: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sdists: tuple[Artifact, ...] = ()
    recipes: tuple[str, ...] = ()
    builder: LockedTarget | None = None
    sdk: str = ""
    patched: tuple[Patched, ...] = ()
    linked: tuple[Linked, ...] = ()
    digest: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)
    platform: str = AMD64

    def __post_init__(self) -> None:
        # These values are names of folders, files and images.
        for word in (self.name, self.suite, self.python, *self.recipes, *filter(None, (self.backend, self.sdk))):
            confine.word(word, f"target {self.name!r}", error=PinError)

    @property
    def variant(self) -> bool:
        """Return whether it is a variant: its backend's own target with more, or other, components."""
        return self.name != self.backend

    @property
    def label(self) -> str:
        """Return the name in images, results and published IDs: "spirv", and for another platform "spirv-arm64"."""
        return self.name + self.suffix

    @property
    def suffix(self) -> str:
        """Return what tells names of the target's platform from those of linux/amd64: "-arm64"."""
        return "" if self.platform == AMD64 else f"-{self.platform.partition('/')[2]}"

    def own(self) -> tuple[Artifact, ...]:
        """Return all files of the target, including every Triton, without those of its builder."""
        linked = (deb for program in self.linked for deb in program.debs)
        wheels = (triton.wheel for triton in self.tritons.values())
        return tuple(dict.fromkeys((*self.debs, *self.wheels, *self.sdists, *linked, *wheels)))

    def artifacts(self) -> tuple[Artifact, ...]:
        """Return all files of the target and of its builder, each once."""
        return tuple(dict.fromkeys((*self.own(), *(self.builder.own() if self.builder else ()))))


@dataclass(frozen=True)
class LockedSource:
    """The result of resolving one profile of an upstream project.

    Attributes:
        kind: "git" or "debian".
        version: the version of the Debian source package; for git the ref, if there is one.
        commit: the git commit.
        tree: git's hash of the tree, if it is known.
        files: the files of the Debian source package: .dsc, .orig.tar.*, .debian.tar.*.
        pin: digest of the pin that it was resolved from; shows whether the pin changed since.
    """

    kind: str
    version: str = ""
    commit: str = ""
    tree: str = ""
    files: tuple[Artifact, ...] = ()
    pin: str = ""

    def __post_init__(self) -> None:
        for hash in filter(None, (self.commit, self.tree)):
            confine.commit(hash, "a source", error=PinError)


@dataclass(frozen=True)
class Lock:
    """All that is locked, and one digest over it.

    Attributes:
        targets: by name.
        sources: the sources of projects, by project and profile: "upmem-llvm/debian-13".
        builders: the images in which projects are built, by suite; targets without a Triton.
        tools: what is copied into containers and is in no image, by name; targets with wheels only.
        platform: the platform of all of these. Sources and builders are in the lock of linux/amd64 only.
    """

    targets: Mapping[str, LockedTarget]
    digest: str
    sources: Mapping[str, LockedSource] = field(default_factory=dict)
    builders: Mapping[str, LockedTarget] = field(default_factory=dict)
    tools: Mapping[str, LockedTarget] = field(default_factory=dict)
    platform: str = AMD64

    def systems(self) -> tuple[LockedTarget, ...]:
        """Return the targets, each followed by its builder if it has one; then the projects' builders, and tools."""
        pairs = ((target, target.builder) for target in self.targets.values())
        return (*(system for pair in pairs for system in pair if system), *self.builders.values(), *self.tools.values())

    def artifacts(self) -> tuple[Artifact, ...]:
        """Return all files that the lock names, each once."""
        files = [artifact for system in self.systems() for artifact in system.own()]
        files += [file for source in self.sources.values() for file in source.files]
        return tuple(dict.fromkeys(files))

    def proven(self) -> list[LockedTarget]:
        """Return the targets for which all checks are run.

        A variant is included if it has its own native part, patched files or Triton, which may be wrong. A variant that
        only has more packages proves nothing beyond its backend's own target.
        """

        def of_its_own(target: LockedTarget) -> bool:
            plain = next(
                other
                for other in self.targets.values()
                if (other.name, other.platform) == (target.backend, target.platform)
            )
            return bool(
                set(target.recipes) - set(plain.recipes)
                or set(target.patched) - set(plain.patched)
                or target.tritons.keys() - plain.tritons.keys()
            )

        return [target for target in self.targets.values() if not target.variant or of_its_own(target)]


def builder_name(suite: str) -> str:
    """Return the name of the image in which a suite's upstream projects are built."""
    return f"build-{suite}"


def tool_name(component: str, suite: str) -> str:
    """Return the name of a tool for the Python of a suite."""
    return f"{component}-{suite}"


def digest(value: Any) -> str:
    """Return the sha256 of a value's canonical JSON: the same for the same content, independent of its formatting."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def seal(
    targets: Mapping[str, LockedTarget],
    sources: Mapping[str, LockedSource] | None = None,
    builders: Mapping[str, LockedTarget] | None = None,
    tools: Mapping[str, LockedTarget] | None = None,
    platform: str = AMD64,
) -> Lock:
    """Return a lock over these, with all digests computed."""
    sealed = {}
    for name in sorted(targets):
        target = targets[name]
        if target.builder:
            target = replace(target, builder=_sealed(target.builder))
        sealed[name] = _sealed(target)
    sources = dict(sorted((sources or {}).items()))
    builders = {suite: _sealed(builder) for suite, builder in sorted((builders or {}).items())}
    tools = {name: _sealed(tool) for name, tool in sorted((tools or {}).items())}
    contents = {name: asdict(source) for name, source in sources.items()}
    for file in (file for content in contents.values() for file in content["files"]):
        del file["suite"]
    contents_of_lock = {
        "targets": {name: _wanted(target) for name, target in sealed.items()},
        "sources": contents,
        "builders": {suite: _wanted(builder) for suite, builder in builders.items()},
        "tools": {name: _wanted(tool) for name, tool in tools.items()},
        **({} if platform == AMD64 else {"platform": platform}),
    }
    return Lock(sealed, digest(contents_of_lock), sources, builders, tools, platform)


def _sealed(target: LockedTarget) -> LockedTarget:
    content = _to_json(target)
    del content["digest"], content["pins"]
    # The builder's digest covers its content, so only the digest is included.
    if target.builder:
        content["builder"] = target.builder.digest
    return replace(target, digest=digest({"name": target.name, **content}))


def _wanted(target: LockedTarget) -> list[Any]:
    return [target.digest, dict(target.pins), *([dict(target.builder.pins)] if target.builder else [])]


def load(path: Path = paths.LOCK, platform: str = AMD64) -> Lock:
    """Read the lock of a platform.

    Raises:
        PinError: it is missing or malformed, lacks the platform, or a digest in it does not match its content.
    """
    locked = load_all(path)
    if platform not in locked:
        raise PinError(f"the lock has nothing for {platform}", next=f"{_RESOLVE} --platform={platform}")
    return locked[platform]


def load_all(path: Path = paths.LOCK) -> Mapping[str, Lock]:
    """Read the locks of all platforms in the file, that of linux/amd64 first; see load."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise PinError(f"there is no lock at {path}", next=_RESOLVE) from None
    return _parsed(text, path)


def everything(path: Path = paths.LOCK) -> Lock:
    """Read the locks of all platforms as one: each target, tool and builder by its label; see load."""
    locks = load_all(path)
    others = [lock for platform, lock in locks.items() if platform != AMD64]
    return replace(
        locks[AMD64],
        targets={target.label: target for lock in (locks[AMD64], *others) for target in lock.targets.values()},
        tools={tool.label: tool for lock in (locks[AMD64], *others) for tool in lock.tools.values()},
    )


# A verb reads the lock in many places, and reading it and computing its digests takes half a second.
@functools.lru_cache(maxsize=4)
def _parsed(text: bytes, path: Path) -> Mapping[str, Lock]:
    try:
        data = json.loads(text)
        entries = {AMD64: data, **data.get("platforms", {})}
        locks = {platform: _lock(platform, entry) for platform, entry in entries.items()}
    except PinError as error:
        raise PinError(f"the lock is malformed: {path}", why=str(error), next=_RESOLVE) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PinError(f"the lock is malformed: {path}", why=repr(error), next=_RESOLVE) from error
    if any(
        seal(lock.targets, lock.sources, lock.builders, lock.tools, lock.platform) != lock for lock in locks.values()
    ):
        raise PinError(
            f"the digests in the lock do not match its content: {path}",
            why="the file was edited by hand, or two changes were merged line by line",
            next=_RESOLVE,
        )
    return locks


def save(lock: Lock, path: Path = paths.LOCK) -> None:
    """Write the lock of one platform: sorted, one artifact per line, so that a diff is a readable list of changes.

    What the file has for other platforms stays. If it cannot be read, it is lost.
    """
    try:
        locks = dict(load_all(path))
    except PinError:
        locks = {}
    locks[lock.platform] = lock
    if AMD64 not in locks:
        raise PinError(f"there is no lock of {AMD64} at {path}", next=_RESOLVE)
    data = _lock_to_json(locks.pop(AMD64))
    if locks:
        data["platforms"] = {platform: _lock_to_json(other) for platform, other in locks.items()}
    durable.write(path, _format(data) + "\n")


def _lock(platform: str, data: dict[str, Any]) -> Lock:
    lock = Lock(
        {name: _target(name, entry) for name, entry in data["targets"].items()},
        data["digest"],
        {
            name: LockedSource(**(entry | {"files": _artifacts("source", entry.get("files", ()))}))
            for name, entry in data["sources"].items()
        },
        {suite: _target(builder_name(suite), entry) for suite, entry in data["builders"].items()},
        {name: _target(name, entry) for name, entry in data["tools"].items()},
        platform,
    )
    if foreign := [system.name for system in lock.systems() if system.platform != platform]:
        raise PinError(f"{', '.join(foreign)}: of another platform than {platform}")
    return lock


def _lock_to_json(lock: Lock) -> dict[str, Any]:
    sources = {}
    for name, source in lock.sources.items():
        content = asdict(source)
        for file in content["files"]:
            del file["kind"], file["suite"]
        content["files"] = list(content["files"])
        sources[name] = {key: value for key, value in content.items() if value}
    return {
        "digest": lock.digest,
        "targets": {name: _to_json(target) for name, target in lock.targets.items()},
        "sources": sources,
        "builders": {suite: _to_json(builder) for suite, builder in lock.builders.items()},
        "tools": {name: _to_json(tool) for name, tool in lock.tools.items()},
    }


def _to_json(target: LockedTarget) -> dict[str, Any]:
    """Return the target in the form of the file, without values that a key or a list already has."""
    data = asdict(target)
    if target.builder:
        data["builder"] = _to_json(target.builder)
    del data["name"]
    tritons = data["tritons"].values()
    for program in data["linked"]:
        program["debs"], program["left_out"] = list(program["debs"]), list(program["left_out"])
    linked = (deb for program in data["linked"] for deb in program["debs"])
    wheels = (triton["wheel"] for triton in tritons)
    for artifact in (*data["debs"], *data["wheels"], *data["sdists"], *linked, *wheels):
        del artifact["kind"]
        if not artifact["suite"]:
            del artifact["suite"]
    for triton in tritons:
        del triton["version"]
        if not triton["llvm_version"]:
            del triton["llvm_version"]
    # Keys that few targets have are written only if they have a value.
    for key in ("sdists", "recipes", "builder", "sdk", "patched", "linked"):
        if not data[key]:
            del data[key]
    if target.platform == AMD64:
        del data["platform"]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def _artifacts(kind: str, entries: Iterable[dict[str, Any]]) -> tuple[Artifact, ...]:
    return tuple(Artifact(kind=kind, **entry) for entry in entries)


def _target(name: str, data: dict[str, Any]) -> LockedTarget:
    builder = data.get("builder")
    tritons = {
        version: LockedTriton(version=version, **(entry | {"wheel": Artifact(kind="wheel", **entry["wheel"])}))
        for version, entry in data["tritons"].items()
    }
    changed = {
        "debs": _artifacts("deb", data["debs"]),
        "wheels": _artifacts("wheel", data["wheels"]),
        "tritons": tritons,
        "left_out": tuple(data["left_out"]),
        "kept": tuple(data["kept"]),
        "sdists": _artifacts("sdist", data.get("sdists", [])),
        "recipes": tuple(data.get("recipes", ())),
        "patched": tuple(Patched(**entry) for entry in data.get("patched", ())),
        "linked": tuple(
            Linked(entry["recipe"], _artifacts("deb", entry["debs"]), tuple(entry["left_out"]))
            for entry in data.get("linked", ())
        ),
        "builder": _target(f"{name}-build", builder) if builder else None,
    }
    return LockedTarget(name=name, **(data | changed))


def _format(value: Any, indent: str = "") -> str:
    """Return JSON with sorted keys, in which a mapping of plain values takes one line."""
    inner = indent + "  "
    if isinstance(value, dict) and any(isinstance(item, dict | list) for item in value.values()):
        lines = [f"{inner}{json.dumps(key)}: {_format(value[key], inner)}" for key in sorted(value)]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + _format(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, sort_keys=True)
