"""The verb expected: show which published IDs are current, or write those of images whose inputs changed."""

from __future__ import annotations

from dataclasses import replace

from rich.table import Table

from toolchains.assembly import ensure
from toolchains.assembly.request import Request, locked_target
from toolchains.lockfile import lock
from toolchains.repro import expected as ids
from toolchains.system import paths
from toolchains.system.terminal import make_console

_console = make_console()


def expected(*, update: str | bool | None, offline: bool) -> None:
    """Run the verb `expected`; its help is in tasks.py.

    Args:
        update: the target whose entries are written, or True for all.

    Raises:
        UsageError: there is no such target.
        GoneError: the archive has not all locked packages any more, so what would be published is not what is locked.
    """
    locked = lock.load()
    if isinstance(update, str):
        locked_target(update)
    if update:
        for target, release in ids.releases(locked):
            if update not in (True, target.name) or ids.is_current(ids.load(), target, release):
                continue
            request = Request(target, release, offline=offline)
            engine, image = ensure.ensure_image(request)
            if any(request.store().found_part(*part) is None for part in ids.parts(target, release)):
                # The image exists, and the store was emptied since: all parts are built, and the image has the same ID.
                engine, image = ensure.ensure_image(replace(request, cache=False))
            now = ids.update(ids.load(), engine, request.store(), image, target, release)
            ids.save(now)
            id = now.images[target.name][release.version].image
            _console.print(f"{target.name} with Triton {release.version}: {id[:19]} written to {paths.EXPECTED}")
        # What the lock does not have any more goes, also if nothing was built.
        ids.save(ids.pruned(ids.load(), locked))
    published = ids.load()
    table = Table("target", "Triton", "published ID", "state")
    for target, release in ids.releases(locked):
        entry = published.image(target.name, release.version)
        state = "not published" if entry is None else f"out of date: {ids.UPDATE}"
        if ids.is_current(published, target, release):
            state = "current"
        table.add_row(target.name, release.version, entry.image[:19] if entry else "", state)
    _console.print(table)
