"""Check disk, memory, clock and folders of this machine, and whether the lock fits the pins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from toolchains.archives.tar_file import EPOCH
from toolchains.config import inventory
from toolchains.engine import diagnosis
from toolchains.engine.client import Engine
from toolchains.health.problem import Problem
from toolchains.lockfile import lock
from toolchains.resolve import agreement
from toolchains.system import children, durable, paths, space
from toolchains.system.errors import FoundryError

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


def check(engine: Engine | None) -> Iterator[Problem]:
    """Yield what is wrong with this machine.

    Args:
        engine: the engine, if one answers.
    """
    yield from _folders()
    yield from _disk(engine)
    yield from _memory()
    yield from _clock(engine)
    yield from _lock()


def _folders() -> Iterator[Problem]:
    for folder, variable in ((paths.cache(), "FOUNDRY_CACHE"), (paths.temporary(), "TMPDIR"), (paths.BUILD, "")):
        try:
            durable.require_writable(folder, str(folder))
        except FoundryError as error:
            remedy = f"make it writable, or set {variable} to a folder that is" if variable else "make it writable"
            yield Problem(error.what, error.why, remedy)


def _disk(engine: Engine | None) -> Iterator[Problem]:
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


def _memory() -> Iterator[Problem]:
    if (free := _available()) < _MEMORY:
        yield Problem(
            f"{free / 1e9:.1f} GB of memory are available",
            f"tests and kernels take up to {_MEMORY / 1e9:.0f} GB; programs that get no memory are ended",
            "end other programs, or raise the limit of this container",
            fatal=False,
        )


def _available() -> int:
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
    for said in (*agreement.disagreements(locked, wanted), *agreement.contradictions(wanted)):
        yield Problem("the lock was not resolved from these pins", said, "./foundry pin --update")
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
