"""Read all that is pinned: targets, the images in which upstream's projects are built, those projects, and tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolchains.config import components as pins
from toolchains.config import projects
from toolchains.config.components import Pin, System, Target, Tool
from toolchains.config.projects import Upstream
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
    """

    targets: tuple[Target, ...]
    builders: tuple[System, ...] = ()
    upstreams: tuple[Upstream, ...] = ()
    tools: tuple[Tool, ...] = ()

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

    def named(self, name: str) -> tuple[Named, ...]:
        """Return everything with this name: components, targets with their builders, builders and projects.

        Raises:
            UsageError: nothing has this name.
        """
        known: list[Named] = [*self.components.values(), *self.targets, *self.builders, *self.upstreams, *self.tools]
        named = tuple(item for item in known if item.name == name)
        named += tuple(item.builder for item in named if isinstance(item, Target) and item.builder)
        if not named:
            raise UsageError(
                f"no target has a component {name}, and no target, project or builder is called so",
                why=f"known: {', '.join(sorted({item.name for item in known}))}",
                next="./foundry pin",
            )
        return named


def load() -> Pinned:
    """Read everything.

    Raises:
        PinError: a file is malformed.
    """
    targets = tuple(map(pins.target, pins.names()))
    return Pinned(
        targets,
        tuple(map(pins.builder, pins.builder_suites())),
        tuple(map(projects.load, projects.names())),
        pins.tools(targets),
    )
