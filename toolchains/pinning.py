"""The verb `pin`: show what is pinned, resolve it anew, check it, fetch it.

    invoke pin                  what is pinned, and what that resolved to
    invoke pin --update         resolve every target against the archives as they are now; show what changed
    invoke pin --update NAME    only component NAME, and what is resolved together with it: packages with packages,
                                wheels with wheels, Triton alone
    invoke pin --check          do the lock, the pins and the files agree?
    invoke pin --fetch          bring all that the lock names into the store, for builds without a network

--check goes this way:
    1. the lock's own digests (done by reading it)
    2. every target: its plugin, suite, Python and components against what the lock was resolved from
    3. every file that is in the store: size and sha256; a damaged one is removed, --fetch brings it again
    4. every Triton: the LLVM commit inside its libtriton.so against the pin; a wheel that is not there is fetched
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from . import lock as locks
from . import paths, pins, resolution
from .errors import PinError, UsageError
from .lock import Artifact, Lock, LockedTarget
from .pins import DebPin, Pin, ReleasesPin, SdistPin, System, Target, WheelPin
from .store import Store
from .triton import check_llvm_hash

_MEGA = 1e6


def act(*, update: str | bool | None, check: bool, fetch: bool, offline: bool) -> None:
    """Do what `invoke pin` says; see there.

    Args:
        update: None for no, True for every component, or a component's name.
    """
    console = Console(soft_wrap=True)
    store = Store(paths.cache(), offline=offline)
    if update:
        resolve(store, console, update if isinstance(update, str) else None)
    if fetch:
        bring(store)
    if check:
        verify(store, console)
    if not (update or fetch or check):
        show(console)


def show(console: Console) -> None:
    """Print the components with what they resolved to, and the targets with their digests.

    Raises:
        PinError: there is no usable lock.
    """
    lock = locks.load()
    targets = _targets()
    table = Table(title="components: toolchains/pins")
    for heading in ("component", "pinned", "resolved to", "in"):
        table.add_column(heading)
    systems = list(_systems(targets))
    locked = {system.name: system for system in lock.systems()}
    for _, pin in sorted({pin.name: pin for system in systems for pin in system.pins}.items()):
        users = [system for system in systems if pin in system.pins]
        rows = list(_rows(pin, [locked[system.name] for system in users if system.name in locked]))
        for number, (pinned, resolved) in enumerate(rows):
            first = number == 0
            used_in = ", ".join(system.name for system in users)
            table.add_row(pin.name if first else "", pinned, resolved, used_in if first else "")
    console.print(table)
    table = Table(title="targets: toolchains/targets")
    for heading in ("target", "suite", "python", "packages", "wheels", "triton", "MB", "digest"):
        number = heading in ("packages", "wheels", "MB")
        table.add_column(heading, justify="right" if number else "left", no_wrap=heading in ("target", "digest"))
    for system in lock.systems():
        size = sum(artifact.size for artifact in system.own()) / _MEGA
        table.add_row(
            system.name, system.suite, system.python, str(len(system.debs)), str(len(system.wheels)),
            " ".join(system.tritons), f"{size:.0f}", system.digest[:12],
        )  # fmt: skip
    console.print(table)
    console.print(f"lock {lock.digest[:12]}")


def resolve(store: Store, console: Console, name: str | None = None) -> None:
    """Resolve, write the lock and print what changed.

    Args:
        name: a component; without it everything is resolved.

    Raises:
        UsageError: no target has this component.
        PinError, FetchError: it cannot be resolved; the lock stays as it was.
    """
    targets = _targets()
    only = _component(name, targets) if name else None
    try:
        old = locks.load()
    except PinError as error:
        console.print(f"resolving everything: {error.what}", highlight=False)
        old = None
    with console.status("asking the archives"):
        new = resolution.resolve(targets, old, store, only=only)
    locks.save(new)
    changes = resolution.changes(old, new)
    if changes:
        table = Table(title=f"{len(changes)} changed")
        for heading in ("kind", "name", "was", "is", "in"):
            table.add_column(heading)
        for change in changes:
            table.add_row(
                change.kind, change.name, change.before or "-", change.after or "-", ", ".join(change.targets)
            )
        console.print(table)
    before = old.digest if old else "none"
    same = new.digest == before
    console.print(f"lock {new.digest[:12]}, unchanged" if same else f"lock {before[:12]} -> {new.digest[:12]}")


def verify(store: Store, console: Console) -> None:
    """Compare lock, pins and files; print what was compared.

    Raises:
        PinError: the pins are not what the lock was resolved from.
        TruncatedError, HashMismatchError, UnsafeArchiveError: a file in the store is not the one that was locked.
        LlvmHashError: a Triton has another LLVM than pinned.
        OfflineError, FetchError, GoneError: a Triton wheel is not in the store and cannot be had.
    """
    lock = locks.load()
    differences = list(disagreements(lock, _targets()))
    if differences:
        raise PinError(
            "the lock was not resolved from these pins", why="\n".join(differences), next="invoke pin --update"
        )
    console.print(f"pins: {len(lock.targets)} targets agree with the lock")
    for target in lock.targets.values():
        store.fetch([t.wheel for t in target.tritons.values()], suite=target.suite, python=target.python)
    artifacts = {a.sha256: a for target in lock.targets.values() for a in target.artifacts()}.values()
    here = [artifact for artifact in artifacts if store.has(artifact)]
    store.verify(here)
    absent = len(artifacts) - len(here)
    console.print(
        f"store: {len(here)} files have the locked sha256" + (f", {absent} are not there yet" if absent else "")
    )
    for locked in {t.wheel.sha256: t for target in lock.targets.values() for t in target.tritons.values()}.values():
        check_llvm_hash(locked, store.path(locked.wheel))
        said = f" says LLVM {locked.llvm_version}, and no commit" if locked.llvm_version else ""
        console.print(f"triton {locked.version}:{said or f' built with LLVM {locked.llvm_hash}'}, as pinned")


def bring(store: Store) -> None:
    """Have every file of the lock in the store."""
    for target in locks.load().targets.values():
        store.fetch(target.artifacts(), suite=target.suite, python=target.python)


def disagreements(lock: Lock, targets: Sequence[Target]) -> Iterator[str]:
    """In what the pins differ from what the lock was resolved from, one sentence each."""
    wanted = {target.name: target for target in targets}
    yield from (f"{name}: in the lock, and there is no such target" for name in lock.targets.keys() - wanted.keys())
    for target in targets:
        locked = lock.targets.get(target.name)
        if locked is None:
            yield f"{target.name}: not in the lock"
            continue
        for what in ("backend", "suite", "python", "recipes", "sdk", "patched"):
            want, have = getattr(target, what), getattr(locked, what)
            if want != have:
                yield f"{target.name}: {what} is {want}, locked is {have}"
        found = {deb.version for deb in locked.debs if deb.name == "python3"}
        if not all(version.startswith(f"{locked.python}.") for version in found):
            yield (
                f"{target.name}: python is {locked.python}, the python3 of {locked.suite} is {', '.join(found)}: "
                "correct toolchains/targets"
            )
        yield from _outdated(target, locked)
        if target.builder and locked.builder:
            yield from _outdated(target.builder, locked.builder)
        elif target.builder or locked.builder:
            yield f"{target.name}: whether something is built for it changed since it was resolved"


def _outdated(system: System, locked: LockedTarget) -> Iterator[str]:
    for part, digest in system.digests.items():
        if locked.pins.get(part) != digest:
            yield f"{system.name}: the pins of its {part} changed since they were resolved"


def _targets() -> list[Target]:
    return [pins.target(name) for name in pins.names()]


def _systems(targets: Sequence[Target]) -> Iterator[System]:
    """Targets and their builders."""
    for target in targets:
        yield target
        if target.builder:
            yield target.builder


def _component(name: str, targets: Sequence[Target]) -> Pin:
    components = {pin.name: pin for system in _systems(targets) for pin in system.pins}
    if name not in components:
        raise UsageError(f"no target has a component {name}", why=f"known: {', '.join(sorted(components))}",
                         next="invoke pin")  # fmt: skip
    return components[name]


def _rows(pin: Pin, locked: Sequence[LockedTarget]) -> Iterator[tuple[str, str]]:
    """What a component pins, item by item, and the versions that the targets have of it."""
    match pin:
        case DebPin():
            for package in pin.packages:
                yield package, _versions(package, (artifact for target in locked for artifact in target.debs))
            if not pin.packages:
                yield "-", f"{len(pin.left_out)} patterns of files left out"
        case WheelPin() | SdistPin():
            for name, version in pin.packages.items():
                yield f"{name} {version}", _versions(name, (a for s in locked for a in (*s.wheels, *s.sdists)))
        case ReleasesPin():
            for version, llvm_hash in pin.llvm_hashes.items():
                files = {target.tritons[version].wheel.filename for target in locked if version in target.tritons}
                default = " (default)" if version == pin.default else ""
                yield f"{pin.distribution} {version}{default}, LLVM {llvm_hash[:12]}", ", ".join(sorted(files))


def _versions(name: str, artifacts: Iterator[Artifact]) -> str:
    return ", ".join(sorted({a.version for a in artifacts if a.name == name})) or "not resolved: invoke pin --update"
