"""What a user asks of a target's image, as one object: a verb's options are read into it once, and it is passed on.

Input: the words of a command line. Output: a Request, or an error that names the word that does not fit.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolchains.assembly import target_image
from toolchains.config import components
from toolchains.fetch.store import Store
from toolchains.fromsource import choice as sources
from toolchains.fromsource.choice import SourceChoice, Sourced
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.sdk import selection
from toolchains.sdk.selection import Given
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError, suggestion
from toolchains.system.values import read_number, read_sha256


@dataclass(frozen=True)
class Request:
    """Which image a user asks for, and how Foundry may get it.

    Attributes:
        target: as locked.
        release: the release of Triton.
        given: a vendor SDK that the user supplied, in place of our own part.
        choice: what is built from source, in place of what is taken prebuilt.
        offline: do not use the network.
        allow_drift: take the Debian archive's current version of a package that it no longer carries as locked.
        cache: use an image that exists.
    """

    target: LockedTarget
    release: LockedTriton
    given: Given | None = None
    choice: SourceChoice | None = None
    offline: bool = False
    allow_drift: bool = False
    cache: bool = True

    @classmethod
    def read(
        cls,
        target: str,
        *,
        triton: str = "",
        offline: bool = False,
        allow_drift: bool = False,
        no_cache: bool = False,
        sdk: str | None = None,
        sdk_sha256: str = "",
        sdk_version: str = "",
        from_source: str | bool | None = None,
        source: Sequence[str] = (),
        profile: Sequence[str] = (),
        jobs: str = "",
        compiler_cache: str = "",
        built: bool = False,
    ) -> Request:
        """Return the request that the words of a command line make. The options are named as on the command line.

        Args:
            target: its name.
            triton: a pinned release; the target's default if empty.
            sdk: see selection.select_sdk; None for a verb without this option, which uses our own part.
            from_source, source, profile, compiler_cache: see choice.read.
            built: if nothing is to be built from source, take what has been built already; "none" takes nothing.

        Raises:
            UsageError: there is no such target or release, the target takes no such SDK or project, or a value has not
                the form that it must have.
            PinError: there is a file for the target, which was not resolved yet.
        """
        locked = locked_target(target)
        release = target_image.release(locked, triton)
        sha256 = read_sha256("--sdk-sha256", sdk_sha256)
        given = None
        if sdk is not None:
            given = selection.select_sdk(locked, sdk, os.environ, sha256=sha256, version=sdk_version)
        number = read_number("--jobs", jobs, example=2)
        choice = sources.read(from_source, source, profile, number, compiler_cache)
        if choice:
            choice.check(locked)
        elif built and from_source is None:
            choice = sources.find_built(locked, release)
        return cls(locked, release, given, choice, offline, allow_drift, cache=not no_cache)

    def for_target(self, name: str) -> Request:
        """Return the same request of another target, such as a variant; its own default release in place of ours.

        Raises:
            UsageError: it does not have the release.
        """
        target, version = locked_target(name), self.release.version
        if version == self.target.default_triton and version not in target.tritons:
            version = ""
        return replace(self, target=target, release=target_image.release(target, version))

    def store(self) -> Store:
        """Return the user's store, as it may be used for this."""
        return Store(paths.cache(), offline=self.offline, allow_drift=self.allow_drift)

    def sourced(self) -> Sourced | None:
        """Return what is to be built from source for the image.

        Raises:
            PinError: a source was never resolved.
        """
        return self.choice.sourced(self.target, self.release) if self.choice else None

    @property
    def options(self) -> list[str]:
        """The options of a verb that name this image. Read again, they make the same request.

        How something is made is left out: --no-cache, --jobs and --compiler-cache. So are an SDK's sha256 and version,
        which were recorded at its first use.
        """
        words = [f"--triton={self.release.version}"] * (self.release.version != self.target.default_triton)
        words += ["--offline"] * self.offline + ["--allow-drift"] * self.allow_drift
        if self.given:
            words.append(f"--sdk={self.given.option}")
        elif selection.is_named(self.target, os.environ):
            words.append(f"--sdk={selection.REFERENCE}")
        return words + (self.choice.options if self.choice else [])

    def command(self, verb: str) -> str:
        """Return what to type to run a verb on this very image."""
        return f"./foundry {verb} {shlex.join([self.target.name, *self.options])}"


def locked_target(name: str) -> LockedTarget:
    """Return what a target resolved to.

    Raises:
        UsageError: no such target.
        PinError: there is a file for it, which was not resolved yet.
    """
    targets = lock.load().targets
    if name not in targets:
        if name in components.names():
            raise PinError(f"{name}.toml is not in the lock", next="./foundry pin --update")
        what = f"there is no target {name}{suggestion(name, list(targets))}"
        raise UsageError(what, next=f"choose one of: {', '.join(targets)}")
    return targets[name]
