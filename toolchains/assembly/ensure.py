"""Ensures that a target's image exists, and says how to open a shell in it.

Input: the name of a target and the options of a verb. Output: the engine, and the image that is in it.
"""

from __future__ import annotations

import shlex

from toolchains.assembly import target_image
from toolchains.assembly.target_image import Image
from toolchains.config import components
from toolchains.engine import client, host
from toolchains.fetch.store import Store
from toolchains.fromsource.choice import SourceChoice
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.sdk import supplied as sdk
from toolchains.sdk.supplied import Given
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError


def ensure_image(
    name: str,
    *,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    cache: bool = True,
    given: Given | None = None,
    choice: SourceChoice | None = None,
) -> tuple[client.Engine, Image]:
    """Build the image of a target unless it exists; return the image, and the engine that has it.

    Args:
        name: of the target.
        triton: a pinned release; the target's default if empty.
        offline: do not use the network.
        allow_drift: take the Debian archive's current version of a package that it no longer carries as locked.
        cache: use an image that exists.
        given: a vendor SDK that the user supplied, in place of our own part.
        choice: what is built from source, in place of what is taken prebuilt.

    Raises:
        UsageError: no such target or release.
        HashMismatchError, SdkError: see sdk.given.
        MissingToolError: no container engine answers.
    """
    target = locked_target(name)
    store = Store(paths.cache(), offline=offline, allow_drift=allow_drift)
    checked = sdk.check_given_sdk(target, given, store) if given else None
    host.ensure()
    docker = client.connect()
    release = target_image.release(target, triton)
    sourced = choice.sourced(target, release) if choice else None
    return docker, target_image.build_image(
        target, release, store=store, engine=docker, cache=cache, sdk=checked, sourced=sourced
    )


def locked_target(name: str) -> LockedTarget:
    """What a target resolved to.

    Raises:
        UsageError: no such target.
        PinError: there is a file for it, which was not resolved yet.
    """
    targets = lock.load().targets
    if name not in targets:
        if name in components.names():
            raise PinError(f"{name}.toml is not in the lock", next="./foundry pin --update")
        raise UsageError(f"there is no target {name}", next=f"choose one of: {', '.join(targets)}")
    return targets[name]


def shell_command(
    name: str,
    *,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    given: Given | None = None,
    choice: SourceChoice | None = None,
) -> str:
    """What to type for a shell in the very image that ensure_image() returns for the same arguments."""
    words = image_options(triton=triton, offline=offline, allow_drift=allow_drift, given=given, choice=choice)
    return f"./foundry shell {shlex.join([name, *words])}"


def image_options(
    *,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    given: Given | None = None,
    choice: SourceChoice | None = None,
) -> list[str]:
    """The options of a verb that stand for these arguments of ensure_image()."""
    words = [f"--triton={triton}"] * bool(triton) + ["--offline"] * offline + ["--allow-drift"] * allow_drift
    return words + ([f"--sdk={given.option}"] if given else []) + (choice.options if choice else [])
