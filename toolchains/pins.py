"""What we want: components, one TOML file each, and targets, which name the components that they are made of."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import paths
from .errors import PinError, UsageError
from .lock import digest


@dataclass(frozen=True)
class DebPin:
    """Packages of the target's Debian suite, in the version that the suite has when it is resolved.

    Attributes:
        left_out: patterns of files that the image does without, from these packages and what they depend on.
        kept: patterns of files that are needed although one of left_out matches them.
    """

    name: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class WheelPin:
    """Python distributions at exact versions; what they depend on is resolved."""

    name: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class ReleasesPin:
    """A distribution kept in several releases, each with the LLVM commit compiled into it: Triton."""

    name: str
    distribution: str
    default: str
    llvm_hashes: Mapping[str, str]


Pin = DebPin | WheelPin | ReleasesPin


@dataclass(frozen=True)
class Target:
    """A target as wanted: which plugin, on which suite and Python, of which components."""

    name: str
    backend: str
    suite: str
    python: str
    pins: tuple[Pin, ...]

    @property
    def digests(self) -> dict[str, str]:
        """What is wanted of each part of a locked target, as a digest, however it is written and spread over files."""
        debs = [self.suite, sorted(self.packages), *([pin.left_out, pin.kept] for pin in self.debs)]
        return {
            "debs": digest(debs),
            "wheels": digest([self.python, self.wheels]),
            "tritons": digest([self.python, asdict(self.triton)]),
        }

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
        pins = [pin for pin in self.pins if isinstance(pin, WheelPin)]
        return {name: version for pin in pins for name, version in pin.packages.items()}

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
        case {"source": "deb", **rest} if rest.keys() <= {"packages", "left-out", "kept"}:
            lists = [rest.get(key, []) for key in ("packages", "left-out", "kept")]
            if all(isinstance(item, list) and all(isinstance(word, str) for word in item) for item in lists):
                return DebPin(name, *map(tuple, lists))
        case {"source": "wheel", "packages": dict(versions), **rest} if not rest and all(
            isinstance(version, str) for version in versions.values()
        ):
            return WheelPin(name, versions)
        case {"source": "wheel", "distribution": str(distribution), "default": str(default), "release": dict(releases),
              **rest} if not rest and default in releases:  # fmt: skip
            hashes = {version: release.get("llvm-hash") for version, release in releases.items()}
            if all(isinstance(value, str) for value in hashes.values()):
                return ReleasesPin(name, distribution, default, hashes)
    raise PinError(
        f"not a pin file: {path}",
        why='it has source = "deb" and lists: packages, left-out, kept; or\n'
        'source = "wheel" and [packages] name = "version"; or\n'
        'source = "wheel", distribution, default, and [release."version"] with an llvm-hash each',
        next=f"correct {path}",
    )


def target(name: str, folder: Path = paths.TARGETS, components: Path = paths.PINS) -> Target:
    """Read one target; a file with `extends` adds components to those of the target it names.

    Raises:
        UsageError: no such target.
        PinError: malformed.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(names(folder))
        raise UsageError(f"there is no target {name}", why=f"known: {known}", next="invoke pin")
    match _read(path):
        case {"extends": str(parent), "components": [*added], **rest} if not rest:
            below = target(parent, folder, components)
            pins = below.pins + tuple(component(str(item), components) for item in added)
            return Target(name, below.backend, below.suite, below.python, pins)
        case {"backend": str(backend), "suite": str(suite), "python": str(python), "components": [*listed],
              **rest} if not rest:  # fmt: skip
            return Target(name, backend, suite, python, tuple(component(str(item), components) for item in listed))
    raise PinError(
        f"not a target file: {path}",
        why="it has backend, suite, python and components; or extends and components",
        next=f"correct {path}",
    )


def names(folder: Path = paths.TARGETS) -> list[str]:
    """The targets that exist."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise PinError(f"there is no {path}", next=f"write it, or take {path.stem} out of toolchains/targets") from None
    except ValueError as error:
        raise PinError(f"not TOML: {path}", why=str(error), next=f"correct {path}") from error
