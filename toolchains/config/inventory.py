"""Read all that is pinned: targets, the images in which upstream's projects are built, those projects, and tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolchains.config import components as pins
from toolchains.config import platforms, projects
from toolchains.config.components import Pin, System, Target, Tool
from toolchains.config.projects import Upstream
from toolchains.lockfile.lock import AMD64
from toolchains.system.errors import UsageError

# The kinds of things that can be resolved alone, by name.
Named = Pin | System | Upstream


@dataclass(frozen=True)
class Pinned:
    """Everything that is wanted.

    Attributes:
        builders: the images in which the projects are built, one per suite.
        upstreams: the projects that can be built from source.
        tools: what is copied into containers and is in no image.
        platform: the platform of targets and tools. Projects are built from source for linux/amd64 only.
    """

    targets: tuple[Target, ...]
    builders: tuple[System, ...] = ()
    upstreams: tuple[Upstream, ...] = ()
    tools: tuple[Tool, ...] = ()
    platform: str = AMD64

    @property
    def systems(self) -> Iterator[System]:
        """Yield targets, each followed by its builder if it has one; then the builders of the projects, and tools."""
        for target in self.targets:
            yield target
            if target.builder:
                yield target.builder
        yield from self.builders
        yield from self.tools

    @property
    def components(self) -> dict[str, Pin]:
        """Return the components of all systems, by name."""
        return {pin.name: pin for system in self.systems for pin in system.pins}

    @property
    def _known(self) -> list[Named]:
        return [*self.components.values(), *self.targets, *self.builders, *self.upstreams, *self.tools]

    def has(self, name: str) -> bool:
        """Return whether something has this name."""
        return any(item.name == name for item in self._known)

    def named(self, name: str) -> tuple[Named, ...]:
        """Return everything with this name: components, targets with their builders, builders and projects.

        Raises:
            UsageError: nothing has this name.
        """
        named = tuple(item for item in self._known if item.name == name)
        named += tuple(item.builder for item in named if isinstance(item, Target) and item.builder)
        if not named:
            raise UsageError(
                f"no target has a component {name}, and no target, project or builder is called so",
                why=f"known: {', '.join(sorted({item.name for item in self._known}))}",
                next="./foundry pin",
            )
        return named


def load(platform: str = AMD64) -> Pinned:
    """Read everything that is wanted for a platform.

    Raises:
        UsageError: there is no such platform.
        PinError: a file is malformed.
    """
    names = filter(platforms.load(platform).has, pins.names())
    targets = tuple(pins.target(name, platform=platform) for name in names)
    if platform != AMD64:
        return Pinned(targets, tools=pins.tools(targets), platform=platform)
    return Pinned(
        targets,
        tuple(map(pins.builder, pins.builder_suites())),
        tuple(map(projects.load, projects.names())),
        pins.tools(targets),
    )
