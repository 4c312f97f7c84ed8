"""What a user asks of a target's image, as one object: a verb's options are read once into it, and it is passed on.

Input: the words of a command line. Output: a Request, or an error that names the word that does not fit.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolchains.assembly import target_image
from toolchains.assembly.plugin import Plugin
from toolchains.config import components, platforms
from toolchains.engine.gpus import Gpus
from toolchains.fetch import apt_sources
from toolchains.fetch.store import Store
from toolchains.fromsource import choice as sources
from toolchains.fromsource.choice import SourceChoice, Sourced
from toolchains.lockfile import lock
from toolchains.lockfile.lock import AMD64, LockedTarget, LockedTriton
from toolchains.sdk import selection
from toolchains.sdk.selection import Given
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError, suggestion
from toolchains.system.values import read_number, read_sha256


@dataclass(frozen=True)
class Request:
    """Which image a user asks for, and how Foundry may get it.

    Attributes:
        target: the locked target.
        release: the locked release of Triton.
        given: a vendor SDK that the user supplied; it replaces our own part.
        choice: what is built from source instead of taken prebuilt.
        offline: do not use the network.
        allow_drift: if the Debian archive no longer has a package as locked, take its current version.
        cache: use an image that exists.
        gpus: the GPUs of the machine that the image's containers get.
        plugin: a plugin of the user's, which the image's containers get and use.
    """

    target: LockedTarget
    release: LockedTriton
    given: Given | None = None
    choice: SourceChoice | None = None
    offline: bool = False
    allow_drift: bool = False
    cache: bool = True
    gpus: Gpus | None = None
    plugin: Plugin | None = None

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
        gpus: str = "",
        plugin: str = "",
        platform: str = "",
    ) -> Request:
        """Return the request for the values of a verb's options, which have the same names as on the command line.

        Args:
            target: the name of the target.
            triton: a pinned release; the target's default if empty.
            sdk: see selection.select_sdk; None for a verb without this option, which uses our own part.
            from_source, source, profile, compiler_cache: see choice.read.
            gpus: see Gpus.read.
            plugin: see Plugin.read.
            platform: the platform of the image; that of this machine if empty.
            built: if nothing is to be built from source, use parts that have been built already; "none" uses no part.

        Raises:
            UsageError: there is no such target, platform or release, nothing can be built from source for the platform,
                the target takes no such SDK, project or GPU, a value has
                the wrong form, or FOUNDRY_DEBIAN_SOURCES names no file.
            PinError: there is a file for the target, but it is not in the lock.
        """
        apt_sources.named_file()
        locked = locked_target(target, platform or platforms.here())
        release = target_image.release(locked, triton)
        sha256 = read_sha256("--sdk-sha256", sdk_sha256)
        given = None
        if sdk is not None:
            given = selection.select_sdk(locked, sdk, os.environ, sha256=sha256, version=sdk_version)
        number = read_number("--jobs", jobs, example=2)
        choice = sources.read(from_source, source, profile, number, compiler_cache)
        if choice:
            if locked.platform != AMD64:
                raise UsageError(
                    f"nothing is built from source for {locked.platform}",
                    why=f"no builder is locked for it: upstream's projects are compiled for {AMD64} only",
                    next="leave out --from-source",
                )
            choice.check(locked)
        elif built and from_source is None and locked.platform == AMD64:
            choice = sources.find_built(locked, release)
        handed = Gpus.read(gpus)
        if handed and not components.target(target).gpus:
            takers = [name for name in components.names() if components.target(name).gpus]
            raise UsageError(
                f"{target} takes no GPU",
                why="its image has no driver of one",
                next=f"take a target that does: {', '.join(takers)}",
            )
        own = Plugin.read(plugin)
        return cls(locked, release, given, choice, offline, allow_drift, not no_cache, handed, own)

    def for_target(self, name: str) -> Request:
        """Return the same request for another target, such as a variant; a default release becomes that target's.

        Raises:
            UsageError: the other target does not have the release.
        """
        target, version = locked_target(name, self.target.platform), self.release.version
        if version == self.target.default_triton and version not in target.tritons:
            version = ""
        return replace(self, target=target, release=target_image.release(target, version))

    def store(self) -> Store:
        """Return the user's store, with this request's limits on the network."""
        return Store(paths.cache(), offline=self.offline, allow_drift=self.allow_drift)

    def sourced(self) -> Sourced | None:
        """Return what has to be built from source for the image.

        Raises:
            PinError: a source is not in the lock.
        """
        return self.choice.sourced(self.target, self.release) if self.choice else None

    @property
    def options(self) -> list[str]:
        """The options of a verb that name this image. Read again, they give the same request.

        Not included are options about how something is built (--no-cache, --jobs and --compiler-cache), and an SDK's
        sha256 and version, which were recorded at its first use.
        """
        words = [f"--triton={self.release.version}"] * (self.release.version != self.target.default_triton)
        words += [f"--platform={self.target.platform}"] * (self.target.platform != platforms.here())
        words += ["--offline"] * self.offline + ["--allow-drift"] * self.allow_drift
        if self.given:
            words.append(f"--sdk={self.given.option}")
        elif selection.is_named(self.target, os.environ):
            words.append(f"--sdk={selection.REFERENCE}")
        words += [f"--gpus={self.gpus.text}"] if self.gpus else []
        words += [f"--plugin={self.plugin.option}"] if self.plugin else []
        return words + (self.choice.options if self.choice else [])

    @property
    def subject(self) -> str:
        """Return the name of what is proven, under which results are kept: the target, or the plugin in its image."""
        return f"{self.plugin.name}-in-{self.target.label}" if self.plugin else self.target.label

    @property
    def named(self) -> dict[str, str]:
        """Return what results name besides the devices: the plugin, if there is one, and a platform of its own."""
        named = {"plugin": self.plugin.described} if self.plugin else {}
        return named | ({"platform": self.target.platform} if self.target.platform != AMD64 else {})

    def command(self, verb: str) -> str:
        """Return the command that runs a verb on this image."""
        return f"./foundry {verb} {shlex.join([self.target.name, *self.options])}"


def locked_target(name: str, platform: str = AMD64) -> LockedTarget:
    """Return the locked target of a platform.

    Raises:
        UsageError: no such platform or target, or the target is not made for the platform.
        PinError: there is a file for the target, but it is not in the lock.
    """
    made_for = platforms.load(platform)
    if name in components.names() and not made_for.has(name):
        raise UsageError(
            f"{name} is not made for {platform}",
            why=made_for.refusal(name),
            next=f"take --platform={AMD64}, or a target that is made for it: {', '.join(made_for.targets)}",
        )
    targets = lock.load(platform=platform).targets
    if name not in targets:
        if name in components.names():
            asked = f" --platform={platform}" * (platform != AMD64)
            raise PinError(f"{name}.toml is not in the lock of {platform}", next="./foundry pin --update" + asked)
        what = f"there is no target {name}{suggestion(name, list(targets))}"
        raise UsageError(what, next=f"choose one of: {', '.join(targets)}")
    return targets[name]
