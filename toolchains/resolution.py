"""From pins to lock: resolve every target, and say what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .lock import Artifact, Lock, LockedTarget, LockedTriton, seal
from .pins import DebPin, Pin, ReleasesPin, Target, WheelPin
from .sources.wheel import Wheels
from .store import Store

# Which part of a locked target the components of each kind make up.
_PARTS: dict[type[Pin], str] = {DebPin: "debs", WheelPin: "wheels", ReleasesPin: "tritons"}


def resolve(targets: Sequence[Target], old: Lock | None, store: Store, *, only: Pin | None = None) -> Lock:
    """Resolve targets against the archives as they are now.

    What is of one kind in one target is resolved together: its packages by apt, its wheels by pip. Each Triton stands
    alone, since one image has one release.

    Args:
        old: the lock so far; wheels that it has need not be fetched to learn their size.
        only: a component; targets that it has no part in, and what is of other kinds, stay as in the old lock.
    """
    known = {} if old is None else {a.sha256: a.size for target in old.targets.values() for a in target.artifacts()}
    locked = {}
    for target in targets:
        before = old.targets.get(target.name) if old else None
        if only is None or before is None or not _same_ground(target, before):
            locked[target.name] = _whole(target, store, known)
        elif only in target.pins:
            locked[target.name] = _part(target, before, _PARTS[type(only)], store, known)
        else:
            locked[target.name] = before
    return seal(locked)


def _same_ground(target: Target, before: LockedTarget) -> bool:
    """Whether plugin, suite and Python are as they were locked: what all of a target stands on."""
    return (target.backend, target.suite, target.python) == (before.backend, before.suite, before.python)


def _whole(target: Target, store: Store, known: dict[str, int]) -> LockedTarget:
    locked = LockedTarget(target.name, target.backend, target.suite, target.python, (), (), {}, "")
    for part in _PARTS.values():
        locked = _part(target, locked, part, store, known)
    return locked


def _part(target: Target, before: LockedTarget, part: str, store: Store, known: dict[str, int]) -> LockedTarget:
    """The target with one part of its lock resolved anew: "debs", "wheels" or "tritons"."""
    pins = {**before.pins, part: target.digests[part]}
    if part == "debs":
        debs = tuple(store.debs(target.suite).resolve(target.packages))
        left_out = tuple(pattern for pin in target.debs for pattern in pin.left_out)
        kept = tuple(pattern for pin in target.debs for pattern in pin.kept)
        return replace(before, debs=debs, left_out=left_out, kept=kept, pins=pins)
    if part == "wheels":
        wheels = _wheels(target.python, target.wheels, store, known, dependencies=True)
        return replace(before, wheels=wheels, pins=pins)
    pin = target.triton
    tritons = {}
    for version, llvm_hash in pin.llvm_hashes.items():
        (wheel,) = _wheels(target.python, {pin.distribution: version}, store, known, dependencies=False)
        tritons[version] = LockedTriton(version, llvm_hash, wheel)
    return replace(before, tritons=tritons, default_triton=pin.default, pins=pins)


def _wheels(
    python: str, pins: dict[str, str], store: Store, known: dict[str, int], *, dependencies: bool
) -> tuple[Artifact, ...]:
    with store.incoming() as folder:
        found = Wheels(python).resolve(pins, dependencies=dependencies, known=known, into=folder)
        for artifact in found:
            file = folder / artifact.filename
            if file.is_file():
                store.adopt(file, artifact)
    known |= {artifact.sha256: artifact.size for artifact in found}
    return tuple(found)


@dataclass(frozen=True)
class Change:
    """One artifact that differs between two locks, in these targets; a version is empty where there is none."""

    kind: str
    name: str
    before: str
    after: str
    targets: tuple[str, ...]


def changes(old: Lock | None, new: Lock) -> list[Change]:
    """What differs from an old lock to a new one, artifact by artifact."""
    olds = old.targets if old else {}
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for target in sorted({*olds, *new.targets}):
        before, after = (_by_key(locked[target]) if target in locked else {} for locked in (olds, new.targets))
        for key in sorted({*before, *after}):
            was, now = before.get(key), after.get(key)
            if was != now:
                kind, name, _ = key
                found.setdefault((kind, name, _shown(was, now), _shown(now, was)), []).append(target)
    return [Change(*what, tuple(targets)) for what, targets in sorted(found.items())]


def _by_key(target: LockedTarget) -> dict[tuple[str, str, str], Artifact]:
    """Artifacts by kind and name; several Tritons go by their version too."""
    plain = {(a.kind, a.name, ""): a for a in (*target.debs, *target.wheels)}
    return plain | {("wheel", t.wheel.name, version): t.wheel for version, t in target.tritons.items()}


def _shown(artifact: Artifact | None, other: Artifact | None) -> str:
    """The version, and the hash where that is all that differs."""
    if artifact is None:
        return ""
    same_version = other is not None and other.version == artifact.version
    return f"{artifact.version} ({artifact.sha256[:12]})" if same_version else artifact.version
