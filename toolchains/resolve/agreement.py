"""Check whether the pins would resolve to the lock, and whether the pins agree with each other; no network is used."""

from __future__ import annotations

from collections.abc import Iterator

from toolchains.config.components import System, Target
from toolchains.config.inventory import Pinned
from toolchains.config.projects import FolderPin, GitPin
from toolchains.lockfile.lock import Lock, LockedTarget

# The projects whose profiles are compared with Triton's pins: Triton itself, and the LLVM that it is compiled with.
_TRITON, _LLVM = "triton", "llvm"


def disagreements(lock: Lock, pinned: Pinned) -> Iterator[str]:
    """Yield the differences between the pins and what the lock was resolved from, one sentence each."""
    wanted = {target.name: target for target in pinned.targets}
    yield from (f"{name}: in the lock, and there is no such target" for name in lock.targets.keys() - wanted.keys())
    for target in pinned.targets:
        locked = lock.targets.get(target.name)
        if locked is None:
            yield f"{target.name}: not in the lock"
            continue
        yield from target_disagreements(target, locked)
    yield from _builder_disagreements(lock, pinned)
    yield from _source_disagreements(lock, pinned)


def target_disagreements(target: Target, locked: LockedTarget) -> Iterator[str]:
    """Yield the differences between a target's pins and what it was locked from."""
    for what in ("backend", "suite", "python", "recipes", "sdk", "patched"):
        want, held = getattr(target, what), getattr(locked, what)
        if want != held:
            yield f"{target.name}: {what} is {want}, locked is {held}"
    yield from _python_disagreements(target, locked, "targets")
    yield from _changed_pins(target, locked)
    if target.builder and locked.builder:
        yield from _changed_pins(target.builder, locked.builder)
    elif target.builder or locked.builder:
        yield f"{target.name}: whether something is built for it changed since it was resolved"


def unresolved(lock: Lock, pinned: Pinned) -> Iterator[str]:
    """Yield the profiles with a tag or a branch whose commit is not known yet: "triton/3.9.0"."""
    for upstream in pinned.upstreams:
        for profile in upstream.profiles.values():
            name = f"{upstream.name}/{profile.name}"
            if isinstance(profile.source, GitPin) and not profile.source.commit and name not in lock.sources:
                yield name


def contradictions(pinned: Pinned) -> Iterator[str]:
    """Yield one sentence per Triton whose LLVM as a project differs from that of its wheel, or has no profile."""
    upstreams = {upstream.name: upstream for upstream in pinned.upstreams}
    triton, llvm = upstreams.get(_TRITON), upstreams.get(_LLVM)
    sources = [profile.source for profile in llvm.profiles.values()] if llvm else []
    commits = {source.commit for source in sources if isinstance(source, GitPin)}
    releases = {
        version: (target.triton.name, llvm_hash)
        for target in pinned.targets
        for version, llvm_hash in target.triton.llvm_hashes.items()
    }
    for profile in triton.profiles.values() if triton else ():
        component, llvm_hash = releases.get(profile.version, ("", profile.llvm_hash))
        if profile.llvm_hash != llvm_hash:
            yield (
                f"Triton {profile.version} has LLVM {profile.llvm_hash or '-'} in toolchains/upstreams/{_TRITON}.toml, "
                f"and {llvm_hash} in toolchains/pins/{component}.toml"
            )
        if profile.llvm_hash and profile.llvm_hash not in commits:
            yield (
                f"{_TRITON}/{profile.name} goes with LLVM {profile.llvm_hash}, which no profile in "
                f"toolchains/upstreams/{_LLVM}.toml has"
            )


def _builder_disagreements(lock: Lock, pinned: Pinned) -> Iterator[str]:
    held = {system.name: system for system in (*lock.builders.values(), *lock.tools.values())}
    wanted = {system.name: system for system in (*pinned.builders, *pinned.tools)}
    yield from (f"{name}: in the lock, and there is no such builder or tool" for name in held.keys() - wanted.keys())
    for builder in wanted.values():
        locked = held.get(builder.name)
        if locked is None:
            yield f"{builder.name}: not in the lock"
            continue
        if builder.python != locked.python:
            yield f"{builder.name}: python is {builder.python}, locked is {locked.python}"
        yield from _python_disagreements(builder, locked, "builders")
        yield from _changed_pins(builder, locked)


def _source_disagreements(lock: Lock, pinned: Pinned) -> Iterator[str]:
    sources = {
        f"{upstream.name}/{profile.name}": profile.source
        for upstream in pinned.upstreams
        for profile in upstream.profiles.values()
    }
    yield from (f"{name}: in the lock, and there is no such source" for name in lock.sources.keys() - sources.keys())
    yet_to_come = set(unresolved(lock, pinned))
    for name, source in sources.items():
        locked = lock.sources.get(name)
        if isinstance(source, FolderPin):
            if locked:
                yield f"{name}: in the lock, and it is a folder that users give"
        elif locked is None:
            if name not in yet_to_come:
                yield f"{name}: not in the lock"
        elif locked.pin != source.wanted:
            yield f"{name}: the pin of its source changed since it was resolved"


def _python_disagreements(system: System, locked: LockedTarget, folder: str) -> Iterator[str]:
    versions = {deb.version for deb in locked.debs if deb.name == "python3"}
    if not all(version.startswith(f"{locked.python}.") for version in versions):
        yield (
            f"{system.name}: python is {locked.python}, the python3 of {locked.suite} is {', '.join(versions)}: "
            f"correct toolchains/{folder}"
        )


def _changed_pins(system: System, locked: LockedTarget) -> Iterator[str]:
    for part, digest in system.digests.items():
        if locked.pins.get(part) != digest:
            yield f"{system.name}: the pins of its {part} changed since they were resolved"
