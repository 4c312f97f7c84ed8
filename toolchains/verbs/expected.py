"""The verb expected: show which published IDs are current, or write those of images whose inputs changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import msgspec
from rich.table import Table

from toolchains.assembly import ensure
from toolchains.assembly.request import Request, locked_target
from toolchains.lockfile import lock
from toolchains.repro import expected as ids
from toolchains.system import document, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.terminal import make_console

_console = make_console()
State = Literal["current", "out of date", "not published"]


class PublishedImage(msgspec.Struct, frozen=True):
    """An image that every machine must build alike.

    Attributes:
        target: the target; of another platform than linux/amd64 with the end of its name, "spirv-arm64".
        triton: the release of Triton.
        image: the published ID, or "".
        state: "current", "out of date" if the inputs have changed since, or "not published".
    """

    target: str
    triton: str
    image: str
    state: State


class Published(ShownDocument, kw_only=True, tag="expected"):
    """Which images have a published ID: `expected`.

    Attributes:
        images: the images.
    """

    images: list[PublishedImage]

    def render(self, console: Console) -> None:
        table = Table("target", "Triton", "published ID", "state")
        for image in self.images:
            state = f"{image.state}: {ids.UPDATE}" if image.state == "out of date" else image.state
            table.add_row(image.target, image.triton, image.image[:19], state)
        console.print(table)


def expected(*, update: str | bool | None, offline: bool) -> None:
    """Run the verb `expected`; its help is in tasks.py.

    Args:
        update: the target whose entries are written, or True for all.

    Raises:
        UsageError: there is no such target.
        GoneError: the archive has not all locked packages any more, so what would be published is not what is locked.
    """
    locked = lock.everything()
    if isinstance(update, str) and update not in locked.targets:
        locked_target(update)
    if update:
        for target, release in ids.releases(locked):
            asked = ids.is_due(ids.load(), target) if update is True else update == target.label
            if not asked or ids.is_current(ids.load(), target, release):
                continue
            request = Request(target, release, offline=offline)
            engine, image = ensure.ensure_image(request)
            if any(request.store().found_part(*part) is None for part in ids.parts(target, release)):
                # The image exists, and the store was emptied since: all parts are built, and the image has the same ID.
                engine, image = ensure.ensure_image(replace(request, cache=False))
            now = ids.update(ids.load(), engine, request.store(), image, target, release)
            ids.save(now)
            id = now.images[target.label][release.version].image
            _console.print(f"{target.label} with Triton {release.version}: {id[:19]} written to {paths.EXPECTED}")
        # What the lock does not have any more goes, also if nothing was built.
        ids.save(ids.pruned(ids.load(), locked))
    published = ids.load()
    images = []
    for target, release in ids.releases(locked):
        entry = published.image(target.label, release.version)
        is_current = ids.is_current(published, target, release)
        state: State = "current" if is_current else "out of date" if entry else "not published"
        images.append(PublishedImage(target.label, release.version, entry.image if entry else "", state))
    document.show(Published(images=images))
