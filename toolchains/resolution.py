"""From pins to lock: resolve every target, and say what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .lock import Artifact, Lock, LockedTarget, LockedTriton, seal
from .pins import DebPin, Pin, ReleasesPin, Target, WheelPin
from .sources.wheel import Wheels
from .store import Store


def resolve(targets: Sequence[Target], old: Lock | None, store: Store, *, only: Pin | None = None) -> Lock:
    """Resolve targets against the archives as they are now.

    What is of one kind in one target is resolved together: its packages by apt, its wheels by pip. Each Triton stands
    alone, since one image has one release.

    Args:
        old: the lock so far; wheels that it has need not be fetched to learn their size.
        only: a component; targets and kinds that it has no part in stay as they were in the old lock.
    """
    known = {} if old is None else {a.sha256: a.size for target in old.targets.values() for a in target.artifacts()}
    locked = {}
    for target in targets:
        before = old.targets.get(target.name) if old else None
        if only is not None and before is not None:
            if only in target.pins:
                locked[target.name] = _update(target, before, store, known, only)
            else:
                locked[target.name] = before
        else:
            locked[target.name] = _whole(target, store, known)
    return seal(locked)


def _whole(target: Target, store: Store, known: dict[str, int]) -> LockedTarget:
    return LockedTarget(
        name=target.name,
        backend=target.backend,
        suite=target.suite,
        python=target.python,
        debs=_debs(target, store),
        wheels=_wheels(target, target.wheels, store, known, dependencies=True),
        tritons=_tritons(target, store, known),
        default_triton=target.triton.default,
        left_out=tuple(pattern for pin in target.debs for pattern in pin.left_out),
        kept=tuple(pattern for pin in target.debs for pattern in pin.kept),
        pins=target.digest,
    )


def _update(target: Target, before: LockedTarget, store: Store, known: dict[str, int], only: Pin) -> LockedTarget:
    """The target with the kind of one component resolved anew."""
    match only:
        case DebPin():
            after = replace(before, debs=_debs(target, store))
        case WheelPin():
            after = replace(before, wheels=_wheels(target, target.wheels, store, known, dependencies=True))
        case ReleasesPin():
            after = replace(before, tritons=_tritons(target, store, known), default_triton=only.default)
    return after


def _debs(target: Target, store: Store) -> tuple[Artifact, ...]:
    return tuple(store.debs(target.suite).resolve(target.packages))


def _wheels(
    target: Target, pins: dict[str, str], store: Store, known: dict[str, int], *, dependencies: bool
) -> tuple[Artifact, ...]:
    with store.incoming() as folder:
        found = Wheels(target.python).resolve(pins, dependencies=dependencies, known=known, into=folder)
        for artifact in found:
            file = folder / artifact.filename
            if file.is_file():
                store.adopt(file, artifact)
    known |= {artifact.sha256: artifact.size for artifact in found}
    return tuple(found)


def _tritons(target: Target, store: Store, known: dict[str, int]) -> dict[str, LockedTriton]:
    pin = target.triton
    found = {}
    for version, llvm_hash in pin.llvm_hashes.items():
        (wheel,) = _wheels(target, {pin.distribution: version}, store, known, dependencies=False)
        found[version] = LockedTriton(version, llvm_hash, wheel)
    return found


@dataclass(frozen=True)
class Change:
    """One artifact that differs between two locks; a version is empty where there is none."""

    target: str
    kind: str
    name: str
    before: str
    after: str


def changes(old: Lock | None, new: Lock) -> Iterator[Change]:
    """What differs from an old lock to a new one, artifact by artifact."""
    olds = old.targets if old else {}
    for name in sorted({*olds, *new.targets}):
        before, after = (_by_key(targets[name]) if name in targets else {} for targets in (olds, new.targets))
        for key in sorted({*before, *after}):
            was, now = before.get(key), after.get(key)
            if was != now:
                yield Change(name, *key[:2], _shown(was, now), _shown(now, was))


def _by_key(target: LockedTarget) -> dict[tuple[str, str, str], Artifact]:
    """Artifacts by kind and name; several Tritons go by their version too."""
    plain = {(a.kind, a.name, ""): a for a in (*target.debs, *target.wheels)}
    return plain | {("wheel", t.wheel.name, version): t.wheel for version, t in target.tritons.items()}


def _shown(artifact: Artifact | None, other: Artifact | None) -> str:
    if artifact is None:
        return ""
    same_version = other is not None and other.version == artifact.version
    return f"{artifact.version} ({artifact.sha256[:12]})" if same_version else artifact.version
