"""What we want: components, one TOML file each, and what they make up: targets, and builders of upstream's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from toolchains.lockfile.lock import Patched, builder_name, digest
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError


@dataclass(frozen=True)
class DebPin:
    """Packages of the target's Debian suite, in the version that the suite has when it is resolved.

    Attributes:
        left_out: patterns of files that the image does without, from these packages and what they depend on.
        kept: patterns of files that are needed although one of left_out matches them.
        patched: which of their files are changed by a patch series of ours.
    """

    name: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    patched: Patched | None = None


@dataclass(frozen=True)
class WheelPin:
    """Python distributions at exact versions; what they depend on is resolved."""

    name: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class SdistPin:
    """Python distributions at exact versions that are published as sources only; what they need comes as wheels."""

    name: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class ReleasesPin:
    """A distribution kept in several releases, each with the LLVM commit compiled into it: Triton.

    Attributes:
        llvm_hashes: of each release.
        llvm_versions: of releases that were built without naming the commit, what they say instead.
    """

    name: str
    distribution: str
    default: str
    llvm_hashes: Mapping[str, str]
    llvm_versions: Mapping[str, str] = field(default_factory=dict)


Pin = DebPin | WheelPin | SdistPin | ReleasesPin


@dataclass(frozen=True)
class System:
    """What an image is made from: packages of a suite, and distributions for its Python."""

    name: str
    backend: str
    suite: str
    python: str
    pins: tuple[Pin, ...]

    @property
    def digests(self) -> dict[str, str]:
        """What is wanted of each part of a locked target, as a digest, however it is written and spread over files."""
        debs = [self.suite, sorted(self.packages), *([pin.left_out, pin.kept] for pin in self.debs)]
        # What sdists need is resolved with the wheels.
        wheels = [self.python, self.wheels, *([self.sdists] if self.sdists else [])]
        return {"debs": digest(debs), "wheels": digest(wheels)}

    @property
    def debs(self) -> tuple[DebPin, ...]:
        """The components that are Debian packages."""
        return tuple(pin for pin in self.pins if isinstance(pin, DebPin))

    @property
    def packages(self) -> tuple[str, ...]:
        """All Debian packages asked for."""
        return tuple(package for pin in self.debs for package in pin.packages)

    @property
    def wheels(self) -> dict[str, str]:
        """All Python distributions asked for beside Triton, with their versions."""
        return self._versions(WheelPin)

    @property
    def sdists(self) -> dict[str, str]:
        """All Python distributions asked for that come as sources, with their versions."""
        return self._versions(SdistPin)

    def _versions(self, kind: type[WheelPin] | type[SdistPin]) -> dict[str, str]:
        pins = [pin for pin in self.pins if isinstance(pin, kind)]
        return {name: version for pin in pins for name, version in pin.packages.items()}


@dataclass(frozen=True)
class Target(System):
    """A target as wanted: which plugin, on which suite and Python, of which components.

    Attributes:
        recipes: its native parts, folders under toolchains/recipes.
        build: components of the image that they are built in; none where there are no recipes.
        sdk: the vendor SDK that a user may supply, a file under toolchains/sdks; empty where there is none.
        upstreams: the projects that may be built from source for it, files under toolchains/upstreams. What is built by
            default is not changed by them, so they are no part of what is locked.
        llvm_targets: what LLVM generates code for in those, as LLVM_TARGETS_TO_BUILD takes them.
    """

    recipes: tuple[str, ...] = ()
    build: tuple[Pin, ...] = ()
    sdk: str = ""
    upstreams: tuple[str, ...] = ()
    llvm_targets: tuple[str, ...] = ()

    @property
    def builder(self) -> System | None:
        """The image that recipes are built in: of the same suite, so that what was linked there runs here."""
        return System(f"{self.name}-build", self.backend, self.suite, self.python, self.build) if self.build else None

    @property
    def digests(self) -> dict[str, str]:
        """As System's; and the Tritons."""
        triton = {key: value for key, value in asdict(self.triton).items() if value}
        return {**super().digests, "tritons": digest([self.python, triton])}

    @property
    def patched(self) -> tuple[Patched, ...]:
        """Which packages' files are changed, and by which patches."""
        return tuple(pin.patched for pin in self.debs if pin.patched)

    @property
    def triton(self) -> ReleasesPin:
        """The Triton releases asked for."""
        found = [pin for pin in self.pins if isinstance(pin, ReleasesPin)]
        if len(found) != 1:
            raise PinError(
                f"target {self.name} has {len(found)} components with releases; it needs one, Triton",
                next=f"correct the components in toolchains/targets/{self.name}.toml",
            )
        return found[0]


def component(name: str, folder: Path = paths.PINS) -> Pin:
    """Read one component.

    Raises:
        PinError: no such file, or not what a pin file holds.
    """
    path = folder / f"{name}.toml"
    data = _read(path)
    match data:
        case {"source": "deb", **rest} if rest.keys() <= {"packages", "left-out", "kept", "patched"}:
            lists = [rest.get(key, []) for key in ("packages", "left-out", "kept")]
            if all(isinstance(item, list) and all(isinstance(word, str) for word in item) for item in lists):
                packages, left_out, kept = map(tuple, lists)
                match rest.get("patched"):
                    case None:
                        return DebPin(name, packages, left_out, kept)
                    case {"package": str(package), "series": str(series), "root": str(root), **more} if not more:
                        return DebPin(name, packages, left_out, kept, Patched(name, package, series, root))
        case {"source": "wheel", "packages": dict(versions), **rest} if not rest and all(
            isinstance(version, str) for version in versions.values()
        ):
            return WheelPin(name, versions)
        case {"source": "sdist", "packages": dict(versions), **rest} if not rest and all(
            isinstance(version, str) for version in versions.values()
        ):
            return SdistPin(name, versions)
        case {
            "source": "wheel",
            "distribution": str(distribution),
            "default": str(default),
            "release": dict(releases),
            **rest,
        } if not rest and default in releases:
            hashes = {version: release.get("llvm-hash") for version, release in releases.items()}
            versions = {
                version: release["llvm-version"] for version, release in releases.items() if "llvm-version" in release
            }
            if all(isinstance(value, str) for value in (*hashes.values(), *versions.values())):
                return ReleasesPin(name, distribution, default, hashes, versions)
    raise PinError(
        f"not a pin file: {path}",
        why='it has source = "deb" and lists: packages, left-out, kept, and maybe [patched] package, series, root; or\n'
        'source = "wheel" or "sdist", and [packages] name = "version"; or\n'
        'source = "wheel", distribution, default, and [release."version"] with an llvm-hash each, and\n'
        "an llvm-version where that is all that the wheel says",
        next=f"correct {path}",
    )


def target(
    name: str, folder: Path = paths.TARGETS, components: Path = paths.PINS, *, above: tuple[str, ...] = ()
) -> Target:
    """Read one target; a file with `extends` makes a variant of the target that it names, see _variant.

    Args:
        above: the variants that are being read and extend this one.

    Raises:
        UsageError: no such target.
        PinError: malformed, or variants extend each other in a circle.
    """
    path = folder / f"{name}.toml"
    if name in above:
        raise PinError(
            f"targets extend each other in a circle: {' -> '.join([*above[above.index(name) :], name])}",
            next=f"correct extends in {path}",
        )
    if not path.is_file():
        known = ", ".join(names(folder))
        raise UsageError(f"there is no target {name}", why=f"known: {known}", next="./foundry pin")
    data = _read(path)
    match data:
        case {"extends": str(parent), **more} if more and all(
            isinstance(value, _VARIANT.get(key, ())) for key, value in more.items()
        ):
            return _variant(name, target(parent, folder, components, above=(*above, name)), more, components)
        case {"backend": str(backend), "suite": str(suite), "python": str(python), "components": [*listed], **rest}:
            pins = tuple(component(str(item), components) for item in listed)
            sourced = {key: tuple(rest.pop(key)) for key in ("upstreams", "llvm-targets") if _words(rest.get(key))}
            plain = Target(
                name,
                backend,
                suite,
                python,
                pins,
                upstreams=sourced.get("upstreams", ()),
                llvm_targets=sourced.get("llvm-targets", ()),
            )
            match {"sdk": "", **rest}:
                case {"sdk": ""} if not rest:
                    return plain
                case {"recipes": [*recipes], "build-components": [*build], "sdk": str(sdk), **more} if not more:
                    tools = tuple(component(str(item), components) for item in build)
                    return replace(plain, recipes=tuple(map(str, recipes)), build=tools, sdk=sdk)
    raise PinError(
        f"not a target file: {path}",
        why="it has backend, suite, python and components, and with native parts also recipes, build-components and\n"
        "maybe sdk; and, where it can be built from source, the lists upstreams and llvm-targets;\n"
        "or extends and some of: components, replaces, recipes, build-components",
        next=f"correct {path}",
    )


def _words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


# What a variant may say beside what it extends.
_VARIANT: dict[str, type] = {"components": list, "replaces": dict, "recipes": list, "build-components": list}


def _variant(name: str, below: Target, more: Mapping[str, Any], components: Path) -> Target:
    """A target with more than the one below it: components, recipes, and what these are built with.

    `replaces` names components that it has others in the place of.
    """

    def read(key: str) -> tuple[Pin, ...]:
        return tuple(component(str(item), components) for item in more.get(key, []))

    others = {old: component(str(new), components) for old, new in more.get("replaces", {}).items()}
    unknown = others.keys() - {pin.name for pin in below.pins}
    if unknown:
        raise PinError(
            f"{name} replaces {', '.join(sorted(unknown))}, which {below.name} does not have",
            why=f"its components: {', '.join(pin.name for pin in below.pins)}",
            next=f"correct toolchains/targets/{name}.toml",
        )
    pins = tuple(others.get(pin.name, pin) for pin in below.pins) + read("components")
    recipes = (*below.recipes, *map(str, more.get("recipes", [])))
    return replace(below, name=name, pins=pins, recipes=recipes, build=below.build + read("build-components"))


def names(folder: Path = paths.TARGETS) -> list[str]:
    """The targets that exist."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def suites(folder: Path = paths.BUILDERS) -> list[str]:
    """The suites that upstream's projects can be built for."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def builder(suite: str, folder: Path = paths.BUILDERS, components: Path = paths.PINS) -> System:
    """The image that upstream's projects are built in for targets on a suite; it belongs to no backend.

    Raises:
        UsageError: no such builder.
        PinError: malformed.
    """
    path = folder / f"{suite}.toml"
    if not path.is_file():
        raise UsageError(
            f"nothing can be built from source for {suite}",
            why=f"known: {', '.join(suites(folder))}",
            next="./foundry pin",
        )
    match _read(path):
        case {"python": str(python), "components": [*listed], **rest} if not rest:
            pins = tuple(component(str(item), components) for item in listed)
            return System(builder_name(suite), "", suite, python, pins)
    raise PinError(f"not a builder file: {path}", why="it has python and components", next=f"correct {path}")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise PinError(f"there is no {path}", next=f"write it, or take {path.stem} out of toolchains/targets") from None
    except ValueError as error:
        raise PinError(f"not TOML: {path}", why=str(error), next=f"correct {path}") from error
