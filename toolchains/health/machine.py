"""Check this machine: disk, memory, clock, folders, whether the lock fits the pins, and every file of the store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from toolchains.archives.tar_file import EPOCH
from toolchains.config import inventory
from toolchains.engine import diagnosis
from toolchains.engine.client import Engine
from toolchains.fetch import manifest
from toolchains.fetch.store import Store, discard
from toolchains.images import listing, provenance
from toolchains.lockfile import lock
from toolchains.resolve import agreement
from toolchains.system import children, durable, paths, space
from toolchains.system.errors import FileError, FoundryError

# Bytes for store and build/, temporary files and the engine: a first `e2e spirv` leaves 2.2 GB, as README says.
_DISK = 3_000_000_000
# The container of `e2e spirv` on two processors peaks at 1.1 GB, with the files that it reads (its cgroup's peak);
# dockerd and this process need the rest.
_MEMORY = 2_000_000_000
# Two clocks that differ by more are not those of one time: TLS and apt accept a few minutes.
_SKEW = timedelta(minutes=5)
_LOCK_DAYS = 60
# The limit and the use of a control group, versions 2 and 1; "max" means no limit.
_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
_STORE = "./foundry doctor --check-store --fix, which removes it; it is fetched or built again"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong or suspicious.

    Attributes:
        what: what is wrong.
        why: how it shows, or what follows from it.
        next: the command or the action that fixes it.
        fatal: whether something will fail; other findings are notices.
        fix: fixes it, and returns what it did; None if only the user can. Nothing that it removes is lost for good: it
            is fetched, built or compiled again.
    """

    what: str
    why: str = ""
    next: str = ""
    fatal: bool = True
    fix: Callable[[], str] | None = None


def check(engine: Engine | None) -> Iterator[Problem]:
    """Yield what is wrong with this machine.

    Args:
        engine: the engine, if one answers.
    """
    for folder, variable in ((paths.cache(), "FOUNDRY_CACHE"), (paths.temporary(), "TMPDIR"), (paths.BUILD, "")):
        try:
            durable.require_writable(folder, str(folder))
        except FoundryError as error:
            remedy = f"make it writable, or set {variable} to a folder that is" if variable else "make it writable"
            yield Problem(error.what, error.why, remedy)
    places = [paths.cache(), paths.temporary(), paths.BUILD]
    if engine is not None and (root := engine.root()) is not None:
        places.append(root)
    for place in places:
        if (free := space.free(place)) < _DISK:
            yield Problem(
                f"{free / 1e9:.1f} GB are free at {place}",
                f"a target's first build takes up to {_DISK / 1e9:.0f} GB",
                "./foundry prune, which shows what can go; or set FOUNDRY_CACHE and TMPDIR to folders on a larger disk",
                fatal=free < _DISK / 10,
            )
    if (free := _available_memory()) < _MEMORY:
        yield Problem(
            f"{free / 1e9:.1f} GB of memory are available",
            f"tests and kernels take up to {_MEMORY / 1e9:.0f} GB; programs that get no memory are ended",
            "end other programs, or raise the limit of this container",
            fatal=False,
        )
    yield from _clock(engine)
    yield from _lock()


def _available_memory() -> int:
    """Return the bytes that programs can still have: of the machine, or of this process's control group."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    for limit, used in _LIMITS:
        try:
            most, taken = (int(Path("/sys/fs/cgroup", name).read_text()) for name in (limit, used))
        except (OSError, ValueError):
            continue
        free = min(free, most - taken)
    return free


def _clock(engine: Engine | None) -> Iterator[Problem]:
    now = datetime.fromtimestamp(time.time(), UTC)
    if now.timestamp() < EPOCH:
        yield Problem(
            f"this machine's clock says {now:%Y-%m-%d}",
            "that is before Foundry was written: servers' certificates and archives' signatures are not valid yet",
            "set the clock: timedatectl set-ntp true, or date --set=...",
        )
    theirs = engine.clock() if engine is not None else None
    if theirs is not None and (apart := timedelta(seconds=round(abs(theirs - now).total_seconds()))) > _SKEW:
        yield Problem(
            f"the clocks of this machine and of the engine at {diagnosis.address()} differ by {apart}",
            "one of them is wrong; make and ninja compare times of files",
            "set both clocks: timedatectl set-ntp true",
        )


def _lock() -> Iterator[Problem]:
    try:
        locked = lock.load(paths.LOCK)
        wanted = inventory.load()
    except FoundryError as error:
        yield Problem(error.what, error.why, error.next)
        return
    for disagreement in (*agreement.disagreements(locked, wanted), *agreement.contradictions(wanted)):
        yield Problem("the lock was not resolved from these pins", disagreement, "./foundry pin --update")
    committed = children.run(
        ["git", "-C", paths.ROOT, "log", "-1", "--format=%ct", "--", paths.LOCK], log="doctor-git", check=False
    ).stdout.strip()
    if committed.isdecimal() and (days := int(time.time() - int(committed)) // 86400) > _LOCK_DAYS:
        yield Problem(
            f"the lock is {days} days old",
            "Debian's archive may have removed superseded versions, and have security updates",
            "./foundry pin --check --security, and ./foundry pin --update",
            fatal=False,
        )


def check_store(store: Store) -> Iterator[Problem]:
    """Read every file of the store; yield each that is not what was stored under its name. Its `fix` removes it."""
    for file in sorted(store.root.glob("artifacts/??/*/*")):
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            yield _damaged(file, f"it cannot be read: {error.strerror}")
            continue
        if digest != file.parent.name:
            yield _damaged(file, f"its sha256 is {digest}, and {file.parent.name} was stored")
    for place in sorted(store.root.glob("parts/*/[!.]*")):
        if damage := manifest.damage(place):
            yield _damaged(place, damage.why)
    for place in sorted(store.root.glob("images/*.json")):
        if why := provenance.damage(place):
            yield _damaged(place, why)
    for place in sorted(store.root.glob("images/configs/*")):
        if listing.config(store, f"sha256:{place.name}") is None:
            yield _damaged(place, "the configuration in it has another digest than its name")
    for place in sorted(store.root.glob("images/layers/*")):
        try:
            listing.layer(store, place.name)
        except (FileError, OSError) as error:
            yield _damaged(place, str(error))


def _damaged(place: Path, why: str) -> Problem:
    return Problem(f"{place} is damaged", why, _STORE, fix=partial(_remove, place))


def _remove(place: Path) -> str:
    if place.is_dir() and not place.is_symlink():
        discard(place)
    else:
        place.unlink()
    return f"removed {place}"
