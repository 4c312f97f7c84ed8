"""The verb `pin`: show what is pinned, resolve it again, check it, fetch it.

The steps of --check:
    1. the lock's own digests (done by reading it)
    2. every target, builder and project: its plugin, suite, Python, components and sources against what the lock was
       resolved from; Tritons' LLVMs as they are pinned for wheels and for sources; conan.lock
    3. every file in the store: size and sha256; a damaged one is removed, and --fetch fetches it again
    4. every part that was built here, against the manifest written at its build; a damaged one is removed, and the next
       build builds it again
    5. every Triton: the LLVM commit inside its libtriton.so against the pin; a missing wheel is fetched, or named with
       --offline
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.table import Table

from toolchains.artifacts.triton_wheel import check_llvm_hash
from toolchains.config import inventory, platforms
from toolchains.config.components import DebPin, Pin, ReleasesPin, SdistPin, WheelPin
from toolchains.config.projects import FolderPin, Profile, SourcePackagePin, Upstream
from toolchains.fetch.store import Store
from toolchains.lockfile import lock as locks
from toolchains.lockfile.lock import AMD64, Artifact, LockedSource, LockedTarget
from toolchains.resolve import age, agreement, conan_lock, resolution
from toolchains.resolve.age import Newer
from toolchains.system import document, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import OutdatedError, PinError, UsageError
from toolchains.system.terminal import make_console

_MEGA = 1e6


def pin(
    *, update: str | bool | None, check: bool, fetch: bool, security: bool, offline: bool, platform: str = ""
) -> None:
    """Run the verb `pin`; its help is in tasks.py.

    Args:
        update: None for no update, True for every component, or a component's name.
        platform: the platform that is resolved, checked, fetched or shown. If empty, all locked ones are resolved, and
            the rest is about this machine's own.

    Raises:
        UsageError: the lock is to be checked and to be replaced at the same time, or --security is without --check.
    """
    own = platforms.load(platform).name if platform else _own()
    if security and (offline or not check):
        raise UsageError(
            "--security is an addition to --check, and asks the archives",
            next="./foundry pin --check --security, without --offline",
        )
    if update and check:
        raise UsageError(
            "--check and --update exclude each other",
            why="--update makes a lock that agrees with the pins, whether the one before did or not",
            next="./foundry pin --check, and --update if it says so",
        )
    console = make_console()
    store = Store(paths.cache(), offline=offline)
    if update:
        resolve(store, console, update if isinstance(update, str) else None, [own] if platform else _locked())
    if fetch:
        fetch_all(store, console, own)
    if check:
        verify(store, console, own)
    if security:
        check_age(store, console, own)
    if not (update or fetch or check):
        document.show(describe(own), console)


class PinnedComponent(msgspec.Struct, frozen=True):
    """A package or a file that a component pins.

    Attributes:
        component: the file in toolchains/pins.
        pinned: what it asks for.
        resolved: what the lock has for it.
        used_by: the targets and builders that have the component.
    """

    component: str
    pinned: str
    resolved: str
    used_by: list[str]


class PinnedSystem(msgspec.Struct, frozen=True):
    """A target or a builder.

    Attributes:
        name: its name.
        suite: the release of Debian.
        python: the version of Python.
        packages: the number of Debian packages.
        wheels: the number of wheels besides Triton.
        tritons: the releases of Triton.
        bytes: the size of its files.
        digest: of all that is locked for it.
    """

    name: str
    suite: str
    python: str
    packages: int
    wheels: int
    tritons: list[str]
    bytes: int
    digest: str


class PinnedSource(msgspec.Struct, frozen=True):
    """A source of a project that can be built from source.

    Attributes:
        project: the file in toolchains/upstreams.
        profile: the name of the source.
        is_default: whether it is used if no profile is named.
        pinned: what it asks for.
        resolved: what the lock has for it.
        llvm: the commit of LLVM that it needs, or "".
        patches: the folder of its patches, or "".
        bytes: the size of its files; null if it is not fetched by files.
    """

    project: str
    profile: str
    is_default: bool
    pinned: str
    resolved: str
    llvm: str
    patches: str
    bytes: int | None


class Pins(ShownDocument, kw_only=True, tag="pin"):
    """What is pinned, and what it resolved to: `pin`.

    Attributes:
        platform: the platform that all of this is for.
        lock: the digest of its lock.
        components: what the components pin.
        systems: the targets and builders.
        sources: the sources of projects.
        newer: the locked packages of which the archives had newer versions when they were asked; null if they were not.
    """

    platform: str
    lock: str
    components: list[PinnedComponent]
    systems: list[PinnedSystem]
    sources: list[PinnedSource]
    newer: list[Newer] | None

    def render(self, console: Console) -> None:
        table = Table("component", "pinned", "resolved to", "in", title="components: toolchains/pins")
        last = ""
        for row in self.components:
            is_first, last = row.component != last, row.component
            used_by = ", ".join(row.used_by)
            table.add_row(row.component * is_first, row.pinned, row.resolved, used_by * is_first)
        console.print(table)
        table = Table(title="targets and builders: toolchains/targets, toolchains/builders")
        for heading in ("target", "suite", "python", "packages", "wheels", "triton", "MB", "digest"):
            number = heading in ("packages", "wheels", "MB")
            table.add_column(heading, justify="right" if number else "left", no_wrap=heading in ("target", "digest"))
        for system in self.systems:
            counts = str(system.packages), str(system.wheels), " ".join(system.tritons), _megabytes(system.bytes)
            table.add_row(system.name, system.suite, system.python, *counts, system.digest[:12])
        console.print(table)
        table = Table(title="sources: toolchains/upstreams")
        for heading in ("project", "profile", "pinned", "resolved to", "LLVM", "patches", "MB"):
            table.add_column(heading, justify="right" if heading == "MB" else "left", no_wrap=heading == "profile")
        for source in self.sources:
            is_first, last = source.project != last, source.project
            table.add_row(
                source.project * is_first,
                source.profile + " (default)" * source.is_default,
                source.pinned,
                source.resolved,
                source.llvm[:12] or "-",
                source.patches or "-",
                "" if source.bytes is None else _megabytes(source.bytes),
            )
        console.print(table)
        console.print(f"lock {self.lock[:12]} of {self.platform}")
        nothing = "age: not compared with the archives; ./foundry pin --check --security"
        console.print(nothing if self.newer is None else _summary(self.newer))


def describe(platform: str = AMD64) -> Pins:
    """Return components and sources with what they resolved to, and targets and builders with their digests.

    Raises:
        PinError: there is no usable lock.
    """
    lock = locks.load(platform=platform)
    wanted = inventory.load(platform)
    systems = list(wanted.systems)
    locked = {system.name: system for system in lock.systems()}
    components = []
    for _, pin in sorted(wanted.components.items()):
        users = [system.name for system in systems if pin in system.pins]
        rows = _rows(pin, [locked[name] for name in users if name in locked])
        components += [PinnedComponent(pin.name, what, resolved, users) for what, resolved in rows]
    sources = []
    for upstream in wanted.upstreams:
        for profile in upstream.profiles.values():
            source = lock.sources.get(f"{upstream.name}/{profile.name}")
            sources.append(
                PinnedSource(
                    project=upstream.name,
                    profile=profile.name,
                    is_default=profile.name == upstream.default,
                    pinned=str(profile.source),
                    resolved=_resolved(profile, source, upstream),
                    llvm=profile.llvm_hash,
                    patches=profile.patches,
                    bytes=_bytes(source.files) if source and source.files else None,
                )
            )
    known = age.last(lock)
    return Pins(
        platform=platform,
        lock=lock.digest,
        components=components,
        systems=[
            PinnedSystem(
                name=system.name,
                suite=system.suite,
                python=system.python,
                packages=len(system.debs),
                wheels=len(system.wheels),
                tritons=list(system.tritons),
                bytes=_bytes(system.own()),
                digest=system.digest,
            )
            for system in lock.systems()
        ],
        sources=sources,
        newer=list(known.newer) if known else None,
    )


class Updates(ShownDocument, kw_only=True, tag="pin --security"):
    """The locked packages of which the archives have newer versions: `pin --check --security`.

    Attributes:
        newer: each package, those with security updates first.
    """

    newer: list[Newer]

    def render(self, console: Console) -> None:
        if self.newer:
            headings = ("kind", "name", "locked", "newest", "security", "in")
            table = Table(*headings, title="what the archives have in newer versions")
            for package in self.newer:
                security = "yes" if package.is_security else ""
                systems = ", ".join(package.systems)
                table.add_row(package.kind, package.name, package.locked, package.current, security, systems)
            console.print(table)
        console.print(_summary(self.newer))


def check_age(store: Store, console: Console, platform: str = AMD64) -> None:
    """Compare the lock with the archives, and show what is behind.

    Raises:
        OutdatedError: there are security updates.
        FetchError, PinError: the archives cannot be asked.
    """
    with console.status("asking the archives"):
        compared = age.ask(locks.load(platform=platform), inventory.load(platform), store)
    newer = sorted(compared.newer, key=lambda package: (not package.is_security, package))
    document.show(Updates(newer=newer), console)
    if urgent := sorted({package.name for package in compared.newer if package.is_security}):
        raise OutdatedError(
            f"there are security updates of what is locked: {', '.join(urgent)}",
            next="./foundry pin --update, and ./foundry test",
        )


def _summary(newer: Sequence[Newer]) -> str:
    urgent = {package.name for package in newer if package.is_security}
    names = {(package.kind, package.name) for package in newer}
    counts = f"{len(names)} packages had newer versions, {len(urgent)} had security updates"
    return f"age: when the archives were asked, {counts}"


class Resolved(ShownDocument, kw_only=True, tag="pin --update"):
    """What changed in the lock: `pin --update`.

    Attributes:
        platforms: the platforms that were resolved.
        before: the digest of the first one's lock before; "" if there was none.
        after: its digest now.
        changes: what changed.
        freed: wheels that other wheels require, whose locked versions did not fit any more.
        unreachable: repositories that did not answer; what is locked of them stays.
    """

    platforms: list[str]
    before: str
    after: str
    changes: list[resolution.Change]
    freed: list[str]
    unreachable: list[str]

    def render(self, console: Console) -> None:
        if self.changes:
            table = Table("kind", "name", "was", "is", "in", title=f"{len(self.changes)} changed")
            for change in self.changes:
                before, after = change.before or "-", change.after or "-"
                table.add_row(change.kind, change.name, before, after, ", ".join(change.targets))
            console.print(table)
        for line in self.freed:
            console.print(f"other wheels may have changed, the locked versions do not fit: {line}")
        for line in self.unreachable:
            console.print(f"not reached: {line}", highlight=False)
        same = self.after == self.before and not self.changes
        before, after = self.before or "none", self.after[:12]
        console.print(f"lock {after}, unchanged" if same else f"lock {before[:12]} -> {after}")


def resolve(store: Store, console: Console, name: str | None = None, chosen: Sequence[str] = (AMD64,)) -> None:
    """Resolve, write the lock and show what changed.

    Args:
        name: a component, a builder or a project; without it everything is resolved.
        chosen: the platforms that are resolved; what is locked for others stays.

    Raises:
        UsageError: nothing has this name.
        PinError, FetchError: it cannot be resolved; the lock stays unchanged.
    """
    unreachable: list[str] = []
    freed: list[str] = []
    olds, news, changes = [], [], []
    for platform in chosen:
        wanted = inventory.load(platform)
        # A builder or a project may be named, which other platforms do not have.
        only = wanted.named(name) if name and (platform == chosen[0] or wanted.has(name)) else ()
        if name and not only:
            continue
        try:
            old = locks.load(platform=platform)
        except PinError as error:
            console.print(f"resolving everything: {error.what}", highlight=False)
            old = None
        with console.status(f"asking the archives, {platform}"):
            new = resolution.resolve(wanted, old, store, only=only, unreachable=unreachable.append, freed=freed.append)
        olds.append(old.digest if old else "")
        news.append(new)
        changes += resolution.changes(old, new)
    for new in news:
        locks.save(new)
    found = Resolved(
        platforms=[new.platform for new in news],
        before=olds[0],
        after=news[0].digest,
        changes=changes,
        freed=freed,
        unreachable=unreachable,
    )
    document.show(found, console)


def verify(store: Store, console: Console, platform: str = AMD64) -> None:
    """Compare lock, pins and files; print what was compared.

    Raises:
        PinError: the lock was not resolved from these pins, or the pins contradict each other.
        TruncatedError, HashMismatchError, UnsafeArchiveError: a file in the store is not the locked one.
        PartError: a built part in the store differs from its manifest.
        LlvmHashError: a Triton has another LLVM than the pinned one.
        FetchError, GoneError: a Triton wheel is not in the store and cannot be fetched.
    """
    lock, wanted = locks.load(platform=platform), inventory.load(platform)
    disagreements = agreement.disagreements(lock, wanted)
    _refuse("the lock was not resolved from these pins", disagreements, "./foundry pin --update")
    _refuse("the pins contradict each other", agreement.contradictions(wanted), "correct one of the two files named")
    _refuse(
        "conan.lock does not agree with lock and pins",
        conan_lock.disagreements(lock),
        "the command that is named for each",
    )
    console.print(
        f"pins: {len(lock.targets)} targets, {len(lock.builders)} builders and {len(lock.sources)} sources agree with "
        "the lock"
    )
    for name in agreement.unresolved(lock, wanted):
        console.print(f"{name}: its repository was never reached, so it is not locked: ./foundry pin --update")
    for target in () if store.offline else lock.targets.values():
        store.fetch(
            [t.wheel for t in target.tritons.values()],
            suite=target.suite,
            python=target.python,
            platform=target.platform,
        )
    artifacts = {artifact.sha256: artifact for artifact in lock.artifacts()}.values()
    here = [artifact for artifact in artifacts if store.has(artifact)]
    store.verify(here)
    absent = len(artifacts) - len(here)
    console.print(
        f"store: {len(here)} files have the locked sha256" + (f", {absent} are not there yet" if absent else "")
    )
    intact, unlisted = store.verify_parts()
    console.print(f"store: {intact} built parts are as they were made")
    for name in unlisted:
        console.print(f"  {name} has no manifest, an earlier version made it; it is built again when it is used")
    for locked in {t.wheel.sha256: t for target in lock.targets.values() for t in target.tritons.values()}.values():
        if not store.has(locked.wheel):
            console.notice(f"not checked: {locked.wheel.filename} is not in the store: ./foundry pin --fetch")
            continue
        check_llvm_hash(locked, store.path(locked.wheel))
        stated = f" says LLVM {locked.llvm_version}, and no commit" if locked.llvm_version else ""
        console.print(f"triton {locked.version}:{stated or f' built with LLVM {locked.llvm_hash}'}, as pinned")


def fetch_all(store: Store, console: Console, platform: str = AMD64) -> None:
    """Ensure that the store has every file of targets and builders, and of the default profiles' source packages."""
    lock, wanted = locks.load(platform=platform), inventory.load(platform)
    for target in lock.targets.values():
        store.fetch(target.artifacts(), suite=target.suite, python=target.python, platform=target.platform)
    purposes = {builder.name: "which upstream's projects are built in" for builder in lock.builders.values()}
    purposes |= {tool.name: "which runs notebooks" for tool in lock.tools.values()}
    for system in (*lock.builders.values(), *lock.tools.values()):
        _say(console, store, system.own(), f"{system.name}, {purposes[system.name]}")
        store.fetch(system.own(), suite=system.suite, python=system.python, platform=system.platform)
    for upstream in wanted.upstreams:
        profile = upstream.profile()
        locked = lock.sources.get(f"{upstream.name}/{profile.name}")
        if locked and isinstance(profile.source, SourcePackagePin):
            _say(console, store, locked.files, f"the sources of {upstream.name}/{profile.name}")
            store.fetch(locked.files, suite=profile.source.suite, python="")


def _say(console: Console, store: Store, artifacts: Sequence[Artifact], what: str) -> None:
    """Print how much will be fetched, because it is much and needed only to build from source."""
    absent = [artifact for artifact in artifacts if not store.has(artifact)]
    if absent:
        console.print(f"{_megabytes(_bytes(absent))} MB for {what}", highlight=False)


def _refuse(what: str, differences: Iterator[str], next: str) -> None:
    lines = list(differences)
    if lines:
        raise PinError(what, why="\n".join(lines), next=next)


def _locked() -> list[str]:
    """Return the platforms that the lock has; all platforms if there is no usable lock."""
    try:
        return list(locks.load_all())
    except PinError:
        return platforms.names()


def _own() -> str:
    """Return this machine's platform if it is locked; otherwise linux/amd64."""
    return platforms.here() if platforms.here() in _locked() else AMD64


def _bytes(artifacts: Sequence[Artifact]) -> int:
    return sum(artifact.size for artifact in artifacts)


def _megabytes(count: int) -> str:
    size = count / _MEGA
    return f"{size:.0f}" if size >= 1 else f"{size:.1f}"


def _resolved(profile: Profile, locked: LockedSource | None, upstream: Upstream) -> str:
    if isinstance(profile.source, FolderPin):
        return f"--source {upstream.name}=PATH"
    if locked is None:
        return "not resolved: ./foundry pin --update"
    return locked.commit[:12] or locked.version


def _rows(pin: Pin, locked: Sequence[LockedTarget]) -> Iterator[tuple[str, str]]:
    """Yield what a component pins, item by item, with the versions that the targets have of it."""
    match pin:
        case DebPin():
            for package in pin.packages:
                yield package, _versions(package, (artifact for target in locked for artifact in target.debs))
            for package in pin.linked.packages if pin.linked else ():
                debs = (deb for target in locked for program in target.linked for deb in program.debs)
                yield f"{package}, linked", _versions(package, debs)
            if not pin.packages and not pin.linked:
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
    return ", ".join(sorted({a.version for a in artifacts if a.name == name})) or "not resolved: ./foundry pin --update"
