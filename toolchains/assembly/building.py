"""The verb build: a target's image, made when its inputs changed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from rich.console import Console
from rich.table import Table

from toolchains.assembly import owners, target_image
from toolchains.assembly.target_image import Image
from toolchains.config import components
from toolchains.engine import client, host
from toolchains.fetch.store import Store
from toolchains.fromsource.choice import Choice
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.sdk import supplied as sdk
from toolchains.sdk.supplied import Given
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError

_console = Console(highlight=False, soft_wrap=True)
# How many owners a table of sizes names.
_ROWS = 20


def have(
    name: str,
    *,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    cache: bool = True,
    given: Given | None = None,
    choice: Choice | None = None,
) -> tuple[client.Engine, Image]:
    """The image of a target, and the engine that has it.

    Args:
        name: of the target.
        triton: a pinned release; the target's default if empty.
        offline: do not use the network.
        allow_drift: take the Debian archive's current version of a package that it no longer carries as locked.
        cache: take an image that is there already.
        given: a vendor SDK that the user supplied, in place of our own part.
        choice: what is built from source, in place of what is taken prebuilt.

    Raises:
        UsageError: no such target or release.
        HashMismatchError, SdkError: see sdk.given.
        MissingToolError: no container engine answers.
    """
    target = locked(name)
    store = Store(paths.cache(), offline=offline, allow_drift=allow_drift)
    checked = sdk.given(target, given, store) if given else None
    host.ensure()
    docker = client.connect()
    release = target_image.release(target, triton)
    sourced = choice.sourced(target, release) if choice else None
    return docker, target_image.build(
        target, release, store=store, engine=docker, cache=cache, sdk=checked, sourced=sourced
    )


def locked(name: str) -> LockedTarget:
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


def build(
    name: str,
    *,
    triton: str,
    offline: bool,
    allow_drift: bool,
    cache: bool,
    sizes: bool,
    given: Given | None,
    choice: Choice | None,
) -> None:
    """Build a target's image if needed, and print its name."""
    docker, made = have(
        name, triton=triton, offline=offline, allow_drift=allow_drift, cache=cache, given=given, choice=choice
    )
    state = "made" if made.made else "is there already"
    _console.print(f"[bold]{made.name}[/] {state}, {_mb(made.info.size)} MB, {made.info.id[:19]}")
    drift = made.info.labels.get(target_image.LABEL + "drift")
    if drift:
        _console.print(f"[yellow]not as locked:[/] {drift}")
    supplied = made.info.labels.get(target_image.LABEL + "sdk")
    if supplied:
        _console.print(f"[yellow]not for pushing:[/] it has {supplied} in it, which is not ours to give to others")
    sourced = made.info.labels.get(target_image.LABEL + "from-source")
    if sourced:
        _console.print(f"from source: {sourced}")
    if sizes:
        _console.print(_sizes(docker, made))


def shell_command(
    name: str,
    *,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    given: Given | None = None,
    choice: Choice | None = None,
) -> str:
    """What to type for a shell in the very image that have() gives for the same arguments."""
    words = options(triton=triton, offline=offline, allow_drift=allow_drift, given=given, choice=choice)
    return f"./foundry shell {shlex.join([name, *words])}"


def options(
    *,
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    given: Given | None = None,
    choice: Choice | None = None,
) -> list[str]:
    """The options of a verb that stand for these arguments of have()."""
    words = [f"--triton={triton}"] * bool(triton) + ["--offline"] * offline + ["--allow-drift"] * allow_drift
    return words + ([f"--sdk={given.option}"] if given else []) + (choice.options if choice else [])


def _sizes(docker: client.Engine, made: Image) -> Table:
    with docker.container(made.name) as container:
        container.copy_into(Path(owners.__file__), "/tmp/owners.py")
        found: dict[str, int] = json.loads(container.call(["python3", "/tmp/owners.py"]))
    rows = sorted(found.items(), key=lambda row: -row[1])
    rest = sum(size for _, size in rows[_ROWS:])
    table = Table("package", "MB", title=f"what takes the space in {made.name}", show_footer=True)
    table.columns[1].justify = "right"
    table.columns[0].footer, table.columns[1].footer = "together", _mb(sum(found.values()))
    for owner, size in rows[:_ROWS]:
        table.add_row(owner, _mb(size))
    table.add_row(f"{len(rows[_ROWS:])} others", _mb(rest))
    return table


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"
