"""From pins to lock: resolve every target, and say what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .lock import Artifact, Lock, LockedSource, LockedTarget, LockedTriton, digest, seal
from .pins import DebPin, Pin, ReleasesPin, SdistPin, System, Target, WheelPin
from .sources.sdist import Sdists
from .sources.wheel import Wheels
from .store import Store
from .upstreams import FolderPin, GitPin, Profile, SourcePackagePin, Upstream

# Which part of a locked target the components of each kind make up.
_PARTS: dict[type[Pin], str] = {DebPin: "debs", WheelPin: "wheels", SdistPin: "wheels", ReleasesPin: "tritons"}


def resolve(
    targets: Sequence[Target],
    old: Lock | None,
    store: Store,
    *,
    builders: Sequence[System] = (),
    upstreams: Sequence[Upstream] = (),
    only: Pin | System | Upstream | None = None,
    unreachable: Callable[[str], None] = lambda said: None,
) -> Lock:
    """Resolve targets, what is built from source, and what that is built in, against the archives as they are now.

    What is of one kind in one target is resolved together: its packages by apt, its wheels by pip. Each Triton stands
    alone, since one image has one release.

    Args:
        old: the lock so far; wheels that it has need not be fetched to learn their size.
        builders: the images that upstream's projects are built in.
        only: a component, and systems that it has no part in, and what is of other kinds, stay as in the old lock; or
            one builder or one project, and all else stays.
        unreachable: told of each git repository that did not answer; its source is locked as it was, if it was.
    """
    resolver = _Resolver(store, old)
    locked = {}
    for target in targets:
        before = old.targets.get(target.name) if old else None
        now = resolver.system(target, before, only)
        builder = None
        if target.builder:
            builder = resolver.system(target.builder, before.builder if before else None, only)
        locked[target.name] = replace(
            now, recipes=target.recipes, builder=builder, sdk=target.sdk, patched=target.patched
        )
    rooms = {}
    for room in builders:
        rooms[room.suite] = resolver.system(room, old.builders.get(room.suite) if old else None, only)
    sources = {}
    for upstream in upstreams:
        for profile in upstream.profiles.values():
            name = f"{upstream.name}/{profile.name}"
            known = old.sources.get(name) if old else None
            found = known if known and only not in (None, upstream) else _source(profile, known, store, unreachable)
            if found:
                sources[name] = found
    return seal(locked, sources, rooms)


def _source(
    profile: Profile, before: LockedSource | None, store: Store, unreachable: Callable[[str], None]
) -> LockedSource | None:
    """A source as it is now; None for what is not locked: a folder, and a ref whose commit cannot be learnt."""
    match profile.source:
        case GitPin(commit=commit, ref=ref, tree=tree) as pin:
            return LockedSource("git", ref, commit, tree, pin=pin.wanted)
        case SourcePackagePin(suite=suite, package=package) as pin:
            files = tuple(store.source_packages(suite).resolve(package))
            return LockedSource("debian", files[0].version, files=files, pin=pin.wanted)
        case FolderPin():
            return None


def _same_ground(target: System, before: LockedTarget) -> bool:
    """Whether plugin, suite and Python are as they were locked: what all of a target stands on."""
    return (target.backend, target.suite, target.python) == (before.backend, before.suite, before.python)


class _Resolver:
    """Resolves targets one after another, asking pip once for what several have in common."""

    def __init__(self, store: Store, old: Lock | None) -> None:
        self._store = store
        self._sizes = {a.sha256: a.size for system in (old.systems() if old else ()) for a in system.own()}
        self._answers: dict[str, tuple[Artifact, ...]] = {}

    def system(self, target: System, before: LockedTarget | None, only: Pin | System | Upstream | None) -> LockedTarget:
        """A target or its builder: what was asked for anew, the rest as it was locked."""
        if only is None or only == target or before is None or not _same_ground(target, before):
            locked = LockedTarget(target.name, target.backend, target.suite, target.python, (), (), {}, "")
            for part in target.digests:
                locked = self.part(target, locked, part)
            return locked
        if isinstance(only, System | Upstream) or only not in target.pins:
            return before
        return self.part(target, before, _PARTS[type(only)])

    def part(self, target: System, before: LockedTarget, part: str) -> LockedTarget:
        """The target with one part of its lock resolved anew: "debs", "wheels" or "tritons"."""
        pins = {**before.pins, part: target.digests[part]}
        if part == "debs":
            debs = tuple(self._store.debs(target.suite).resolve(target.packages))
            left_out = tuple(pattern for pin in target.debs for pattern in pin.left_out)
            kept = tuple(pattern for pin in target.debs for pattern in pin.kept)
            return replace(before, debs=debs, left_out=left_out, kept=kept, pins=pins)
        if part == "wheels":
            sdists, needs = self._sdists(target.python, target.sdists)
            wheels = self._wheels(target.python, target.wheels, dependencies=True, also=needs)
            return replace(before, wheels=wheels, sdists=sdists, pins=pins)
        assert isinstance(target, Target), f"{target.name} has no Triton"
        pin = target.triton
        tritons = {}
        for version, llvm_hash in pin.llvm_hashes.items():
            (wheel,) = self._wheels(target.python, {pin.distribution: version}, dependencies=False)
            tritons[version] = LockedTriton(version, llvm_hash, wheel, pin.llvm_versions.get(version, ""))
        return replace(before, tritons=tritons, default_triton=pin.default, pins=pins)

    def _sdists(self, python: str, pins: dict[str, str]) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
        """The sdists, and what they need beside each other."""
        if not pins:
            return (), ()
        with self._store.incoming() as folder:
            found, needs = Sdists(python).resolve(pins, into=folder)
            for artifact in found:
                self._store.adopt(folder / artifact.filename, artifact)
        return tuple(found), tuple(needs)

    def _wheels(
        self, python: str, pins: dict[str, str], *, dependencies: bool, also: Sequence[str] = ()
    ) -> tuple[Artifact, ...]:
        question = digest([python, pins, dependencies, also])
        if question not in self._answers:
            with self._store.incoming() as folder:
                found = Wheels(python).resolve(
                    pins, dependencies=dependencies, also=also, known=self._sizes, into=folder
                )
                # What had to be fetched to learn its size need not come again.
                for artifact in found:
                    if (folder / artifact.filename).is_file():
                        self._store.adopt(folder / artifact.filename, artifact)
            self._answers[question] = tuple(found)
        return self._answers[question]


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
    olds, news = ({system.name: system for system in lock.systems()} if lock else {} for lock in (old, new))
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for target in sorted({*olds, *news}):
        before, after = (_by_key(locked[target]) if target in locked else {} for locked in (olds, news))
        for key in sorted({*before, *after}):
            was, now = before.get(key), after.get(key)
            if was != now:
                kind, name, _ = key
                found.setdefault((kind, name, _shown(was, now), _shown(now, was)), []).append(target)
    return [Change(*what, tuple(targets)) for what, targets in sorted(found.items())]


def _by_key(target: LockedTarget) -> dict[tuple[str, str, str], Artifact]:
    """Artifacts by kind and name; several Tritons go by their version too."""
    plain = {(a.kind, a.name, ""): a for a in (*target.debs, *target.wheels, *target.sdists)}
    return plain | {("wheel", t.wheel.name, version): t.wheel for version, t in target.tritons.items()}


def _shown(artifact: Artifact | None, other: Artifact | None) -> str:
    """The version, and the hash where that is all that differs."""
    if artifact is None:
        return ""
    same_version = other is not None and other.version == artifact.version
    return f"{artifact.version} ({artifact.sha256[:12]})" if same_version else artifact.version
