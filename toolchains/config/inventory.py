"""Read all that is pinned: targets, the images that upstream's projects are built in, and those projects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolchains.config import components as pins
from toolchains.config import projects
from toolchains.config.components import Pin, System, Target
from toolchains.config.projects import Upstream
from toolchains.system.errors import UsageError

# What can be named to be resolved alone.
Named = Pin | System | Upstream


@dataclass(frozen=True)
class Pinned:
    """What is wanted.

    Attributes:
        builders: the images that the projects are built in, one a suite.
        upstreams: the projects that can be built from source.
    """

    targets: tuple[Target, ...]
    builders: tuple[System, ...] = ()
    upstreams: tuple[Upstream, ...] = ()

    @property
    def systems(self) -> Iterator[System]:
        """Targets, each followed by its builder if it has one; then the builders of the projects."""
        for target in self.targets:
            yield target
            if target.builder:
                yield target.builder
        yield from self.builders

    @property
    def components(self) -> dict[str, Pin]:
        """The components of all systems, by name."""
        return {pin.name: pin for system in self.systems for pin in system.pins}

    def named(self, name: str) -> tuple[Named, ...]:
        """What has a name: a component, a target with its builder, a builder, a project, or several of these.

        Raises:
            UsageError: nothing has.
        """
        known: list[Named] = [*self.components.values(), *self.targets, *self.builders, *self.upstreams]
        found = tuple(each for each in known if each.name == name)
        found += tuple(each.builder for each in found if isinstance(each, Target) and each.builder)
        if not found:
            raise UsageError(
                f"no target has a component {name}, and no target, project or builder is called so",
                why=f"known: {', '.join(sorted({each.name for each in known}))}",
                next="./foundry pin",
            )
        return found


def load() -> Pinned:
    """Read everything.

    Raises:
        PinError: a file is malformed.
    """
    return Pinned(
        tuple(map(pins.target, pins.names())),
        tuple(map(pins.builder, pins.builder_suites())),
        tuple(map(projects.load, projects.names())),
    )
