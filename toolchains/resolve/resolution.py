"""Resolve the pins into the lock, and report what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from toolchains.config.components import DebPin, Pin, ReleasesPin, SdistPin, System, Target, WheelPin
from toolchains.config.inventory import Named, Pinned
from toolchains.config.projects import FolderPin, GitPin, Profile, SourcePackagePin
from toolchains.fetch import git
from toolchains.fetch.pip import ConflictError, Sdists, Wheels
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact, Linked, Lock, LockedSource, LockedTarget, LockedTriton, digest, seal
from toolchains.system.errors import FetchError

# The part of a locked target to which the components of each kind belong.
_PARTS: dict[type[Pin], str] = {DebPin: "debs", WheelPin: "wheels", SdistPin: "wheels", ReleasesPin: "tritons"}
# The fields of a locked target that belong to each part.
_FIELDS = {
    "debs": ("debs", "left_out", "kept", "linked"),
    "wheels": ("wheels", "sdists"),
    "tritons": ("tritons", "default_triton"),
}


def resolve(
    pinned: Pinned,
    old: Lock | None,
    store: Store,
    *,
    only: Collection[Named] = (),
    unreachable: Callable[[str], None] = lambda said: None,
    freed: Callable[[str], None] = lambda said: None,
) -> Lock:
    """Resolve the pins against the archives as they are now.

    All packages of one kind in a target are resolved together: Debian packages by apt, wheels by pip. Each Triton is
    resolved alone, because an image has one release.

    Args:
        old: the current lock; wheels in it need not be fetched to learn their size.
        only: what to resolve: a component (everything of its kind in its systems), a builder, or the sources of a
            project. The rest stays as in the old lock, if it is in it. Everything if empty. Wheels without a pin, which
            other wheels require, keep their locked versions if these still fit. For a new target, a part with the same
            pins as another target's is copied from that target's lock: then the two images share layers, and no archive
            is asked.
        freed: called with each target whose other wheels could not keep their locked versions.
        unreachable: called with each tag or branch whose repository did not answer; its old entry stays, if there is
            one.
    """
    resolver = _Resolver(store, old, freed)
    targets = {}
    for target in pinned.targets:
        before = old.targets.get(target.name) if old else None
        now = resolver.system(target, before, only)
        builder = None
        if target.builder:
            builder = resolver.system(target.builder, before.builder if before else None, only)
        targets[target.name] = replace(
            now, recipes=target.recipes, builder=builder, sdk=target.sdk, patched=target.patched
        )
    builders = {
        builder.suite: resolver.system(builder, old.builders.get(builder.suite) if old else None, only)
        for builder in pinned.builders
    }
    tools = {tool.name: resolver.system(tool, old.tools.get(tool.name) if old else None, only) for tool in pinned.tools}
    sources = {}
    for upstream in pinned.upstreams:
        for profile in upstream.profiles.values():
            name = f"{upstream.name}/{profile.name}"
            was = old.sources.get(name) if old else None
            if not only or upstream in only:
                source = _source(name, profile, was, store, unreachable)
            elif was or (isinstance(profile.source, GitPin) and not profile.source.commit):
                # It stays as it is; to find another commit, a network would be needed.
                source = was
            else:
                source = _source(name, profile, None, store, unreachable)
            if source:
                sources[name] = source
    return seal(targets, sources, builders, tools, pinned.platform)


def _source(
    name: str, profile: Profile, before: LockedSource | None, store: Store, unreachable: Callable[[str], None]
) -> LockedSource | None:
    """Return a source's current state; None if it is not locked: for a folder, and a ref with an unknown commit."""
    match profile.source:
        case GitPin() as pin:
            commit = pin.commit
            try:
                commit = commit or git.resolve(pin)
            except FetchError as error:
                same = before if before and before.pin == pin.wanted else None
                kept = f"it stays at {same.commit}" if same else "it is not locked"
                unreachable(f"{name}, {pin.ref}: {error.why.strip() or error.what}; {kept}")
                return same
            return LockedSource("git", pin.ref, commit, pin.tree, pin=pin.wanted)
        case SourcePackagePin() as pin:
            files = tuple(store.source_packages(pin.suite).resolve(pin.package))
            return LockedSource("debian", files[0].version, files=files, pin=pin.wanted)
        case FolderPin():
            return None


class _Resolver:
    """Resolves targets one after another, and asks pip once for what several targets share."""

    def __init__(self, store: Store, old: Lock | None, freed: Callable[[str], None]) -> None:
        self._store = store
        self._freed = freed
        self._locked = old.systems() if old else ()
        self._sizes = {a.sha256: a.size for system in self._locked for a in system.own()}
        self._answers: dict[str, tuple[Artifact, ...]] = {}

    def system(self, target: System, before: LockedTarget | None, only: Collection[Named]) -> LockedTarget:
        """Return a target or its builder: the requested components are resolved again, and the rest stays as locked."""
        # Everything in a target depends on these.
        ground = ("backend", "suite", "python")
        same = before and all(getattr(target, name) == getattr(before, name) for name in ground)
        if not only or target in only or before is None or not same:
            locked = LockedTarget(
                target.name, target.backend, target.suite, target.python, (), (), {}, "", platform=target.platform
            )
            for part in target.digests:
                shared = self._shared(target, locked, part) if only and before is None else None
                locked = shared or self.part(target, locked, part)
            return locked
        locked = before
        for part in {_PARTS[type(pin)]: None for pin in target.pins if pin in only}:
            locked = self.part(target, locked, part, keep={wheel.name: wheel.version for wheel in before.wheels})
        return locked

    def part(
        self, target: System, before: LockedTarget, part: str, keep: Mapping[str, str] | None = None
    ) -> LockedTarget:
        """Return the target with one part of its lock resolved again: "debs", "wheels" or "tritons".

        Args:
            keep: versions of wheels that should stay; a pin's version takes precedence.
        """
        pins = {**before.pins, part: target.digests[part]}
        if part == "debs":
            apt = self._store.debs(target.suite, target.extra_suites, target.platform)
            debs = tuple(apt.resolve(target.packages))
            linked = tuple(
                Linked(program.recipe, tuple(apt.find(program.packages)), program.left_out) for program in target.linked
            )
            left_out = tuple(pattern for pin in target.debs for pattern in pin.left_out)
            kept = tuple(pattern for pin in target.debs for pattern in pin.kept)
            return replace(before, debs=debs, left_out=left_out, kept=kept, linked=linked, pins=pins)
        if part == "wheels":
            sdists, needs = list[Artifact](), list[str]()
            if target.sdists:
                with self._store.incoming("sources") as folder:
                    sdists, needs = Sdists(target.python, target.platform).resolve(target.sdists, into=folder)
                    for artifact in sdists:
                        self._store.adopt(folder / artifact.filename, artifact)
            # `needs` has the build requirements of sdists, with the versions that they accept.
            kept_wheels = {name: version for name, version in (keep or {}).items() if name not in target.wheels}
            try:
                wheels = self._wheels(target, target.wheels, dependencies=True, also=needs, keep=kept_wheels)
            except ConflictError as error:
                self._freed(f"{target.name}: {error.why}")
                wheels = self._wheels(target, target.wheels, dependencies=True, also=needs)
            return replace(before, wheels=wheels, sdists=tuple(sdists), pins=pins)
        assert isinstance(target, Target), f"{target.name} has no Triton"
        pin = target.triton
        tritons = {}
        for version, release in pin.release.items():
            (wheel,) = self._wheels(target, {pin.distribution: version}, dependencies=False)
            tritons[version] = LockedTriton(version, release.llvm_hash, wheel, release.llvm_version)
        return replace(before, tritons=tritons, default_triton=pin.default, pins=pins)

    def _shared(self, target: System, before: LockedTarget, part: str) -> LockedTarget | None:
        """Return the target with a part copied from another system's lock with the same pins; None if there is none."""
        wanted = target.digests[part]
        for other in self._locked:
            if other.pins.get(part) == wanted:
                fields = {name: getattr(other, name) for name in _FIELDS[part]}
                return replace(before, **fields, pins={**before.pins, part: wanted})
        return None

    def _wheels(
        self,
        target: System,
        pins: dict[str, str],
        *,
        dependencies: bool,
        also: Sequence[str] = (),
        keep: Mapping[str, str] | None = None,
    ) -> tuple[Artifact, ...]:
        python = target.python
        question = digest([python, pins, dependencies, also, dict(keep or {})])
        if question not in self._answers:
            with self._store.incoming("wheels") as folder:
                wheels = Wheels(python, target.platform).resolve(
                    pins, dependencies=dependencies, also=also, keep=keep, known=self._sizes, into=folder
                )
                # Keep the files that were fetched to learn their size, so that they are not fetched again.
                for artifact in wheels:
                    if (folder / artifact.filename).is_file():
                        self._store.adopt(folder / artifact.filename, artifact)
            self._answers[question] = tuple(wheels)
        return self._answers[question]


@dataclass(frozen=True)
class Change:
    """An artifact or source that differs between two locks; a version is empty if the lock does not have it.

    Attributes:
        kind: "deb", "wheel", "sdist" or "source".
        name: the package or the project.
        before: its version before.
        after: its version now.
        targets: the targets with the artifact; for a source, the profile.
    """

    kind: str
    name: str
    before: str
    after: str
    targets: tuple[str, ...]


def changes(old: Lock | None, new: Lock) -> list[Change]:
    """Return the differences from an old lock to a new one, artifact by artifact, then source by source."""

    def by_key(target: LockedTarget) -> dict[tuple[str, str, str], Artifact]:
        """Return artifacts by kind and name; Tritons also by their version, because there are several."""
        plain = {(a.kind, a.name, ""): a for a in (*target.debs, *target.wheels, *target.sdists)}
        return plain | {("wheel", t.wheel.name, version): t.wheel for version, t in target.tritons.items()}

    olds, news = ({system.label: system for system in lock.systems()} if lock else {} for lock in (old, new))
    targets_by_change: dict[tuple[str, str, str, str], list[str]] = {}
    for target in sorted({*olds, *news}):
        before, after = (by_key(locked[target]) if target in locked else {} for locked in (olds, news))
        for key in sorted({*before, *after}):
            was, now = before.get(key), after.get(key)
            if was != now:
                kind, name, _ = key
                targets_by_change.setdefault((kind, name, _shown(was, now), _shown(now, was)), []).append(target)
    return [
        *(Change(*what, tuple(targets)) for what, targets in sorted(targets_by_change.items())),
        *_source_changes(old.sources if old else {}, new.sources),
    ]


def _source_changes(olds: Mapping[str, LockedSource], news: Mapping[str, LockedSource]) -> Iterator[Change]:
    for name in sorted({*olds, *news}):
        was, now = olds.get(name), news.get(name)
        if was != now:
            project, _, profile = name.partition("/")
            before, after = ((source.commit or source.version) if source else "" for source in (was, now))
            if before == after and was and now:
                before, after = (f"{after} ({digest(asdict(source))[:12]})" for source in (was, now))
            yield Change("source", project, before, after, (profile,))


def _shown(artifact: Artifact | None, other: Artifact | None) -> str:
    """Return the version, with the hash if only that differs."""
    if artifact is None:
        return ""
    same_version = other is not None and other.version == artifact.version
    return f"{artifact.version} ({artifact.sha256[:12]})" if same_version else artifact.version
