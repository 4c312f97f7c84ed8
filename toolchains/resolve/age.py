"""Find what in the lock is behind the archives as they are now: Debian's security updates, and newer versions.

The archives' own indices are asked, by apt and pip. For wheels only what toolchains/pins names is looked at: the other
wheels follow from these.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from toolchains.config.components import ReleasesPin, WheelPin
from toolchains.config.inventory import Pinned
from toolchains.fetch.pip import Wheels
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Lock
from toolchains.system import durable, json_text, paths
from toolchains.system.errors import FileError

NAME = "age.json"
FILE = paths.RESULTS / NAME


class Newer(msgspec.Struct, frozen=True, order=True):
    """A locked package of which the archive has a newer version.

    Attributes:
        kind: "deb" or "wheel".
        name: the package.
        locked: the version in the lock.
        current: the newest version.
        is_security: whether a security archive has a version that is newer than the locked one.
        systems: the targets and builders that have it.
    """

    kind: str
    name: str
    locked: str
    current: str
    is_security: bool
    systems: tuple[str, ...]


class Age(msgspec.Struct, frozen=True):
    """What was found: the digest of the lock that was compared, and what is behind."""

    lock: str
    newer: tuple[Newer, ...]


def ask(lock: Lock, wanted: Pinned, store: Store) -> Age:
    """Compare the lock with the archives, and write the result for `pin` and the report.

    Raises:
        FetchError: an archive did not answer.
        PinError: this machine's apt has no archive of security updates; or a distribution is gone.
    """
    systems: dict[tuple[str, str, str, str, bool], set[str]] = {}
    for system in lock.systems():
        suites = tuple(sorted({deb.suite for deb in system.debs if deb.suite}))
        newer = store.debs(system.suite, suites, system.platform).newer(system.debs) if system.debs else {}
        for deb in system.debs:
            if deb.name in newer:
                systems.setdefault(("deb", deb.name, deb.version, *newer[deb.name]), set()).add(system.name)
        pins = [pin for pinned in wanted.systems if pinned.name == system.name for pin in pinned.pins]
        names = sorted({name for pin in pins if isinstance(pin, WheelPin) for name in pin.packages})
        names += [pin.distribution for pin in pins if isinstance(pin, ReleasesPin)]
        newest = Wheels(system.python, system.platform).newest(names) if names else {}
        for wheel in (*system.wheels, *(release.wheel for release in system.tritons.values())):
            if wheel.name in newest and newest[wheel.name] != wheel.version:
                key = ("wheel", wheel.name, wheel.version, newest[wheel.name], False)
                systems.setdefault(key, set()).add(system.name)
    age = Age(lock.digest, tuple(sorted(Newer(*key, tuple(sorted(names))) for key, names in systems.items())))
    durable.write(FILE, msgspec.json.format(msgspec.json.encode(age)).decode() + "\n")
    return age


def last(lock: Lock, file: Path | None = None) -> Age | None:
    """Return what the last call of ask() found, or None if it compared another lock, or there was none.

    Args:
        file: where it was written; FILE if not given.
    """
    try:
        age = json_text.read(file or FILE, Age)
    except (FileNotFoundError, FileError):
        return None
    return age if age.lock == lock.digest else None
