"""Read every file of the store, and compare it with the digest that it was stored under."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from toolchains.fetch import manifest
from toolchains.fetch.store import Store, discard
from toolchains.health.problem import Problem
from toolchains.images import listing, provenance
from toolchains.system.errors import FileError

_NEXT = "./foundry doctor --check-store --fix, which removes it; it is fetched or built again"


def check(store: Store) -> Iterator[Problem]:
    """Yield each damaged file and part; its `fix` removes it."""
    for file in sorted(store.root.glob("artifacts/??/*/*")):
        try:
            with file.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            yield _damaged(file, f"it cannot be read: {error.strerror}")
            continue
        if found != file.parent.name:
            yield _damaged(file, f"its sha256 is {found}, and {file.parent.name} was stored")
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
    return Problem(f"{place} is damaged", why, _NEXT, fix=partial(_remove, place))


def _remove(place: Path) -> str:
    if place.is_dir() and not place.is_symlink():
        discard(place)
    else:
        place.unlink()
    return f"removed {place}"
