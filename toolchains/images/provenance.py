"""Tell the images that this store built from others of the same name.

Everybody who may use the engine can assign names: `docker tag` gives spirv's name to vsi's image, and `docker commit`
gives it to an image with other content and the same labels. An image's ID is the digest of its configuration and,
through that, of its layers. So the store records the ID and the labels of each image that it builds, in
images/NAME.json, and an image is used only if both match. The digest of the configuration is recorded too: it is the
ID of most engines, and listing.py knows what it stands for. Any other image is built again: one from another store,
from before the store was removed, or from somebody else. An image that was intentionally built elsewhere is loaded by
`./foundry bake TARGET --adopt=FILE`, or by the verb pull if a trusted key signed it; both record it. Several IDs may
be recorded for one name, because an engine with another kind of image store has other IDs for the same content.

This does not protect against users who may write to the store or control the engine itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from toolchains.engine.client import Engine, ImageInfo
from toolchains.fetch.store import Store
from toolchains.system import durable, json_text
from toolchains.system.console import Console
from toolchains.system.errors import FileError

_console = Console(stderr=True, highlight=False, soft_wrap=True)


class _Note(msgspec.Struct, omit_defaults=True):
    """An image. `sum` is the sha256 of the other fields; "" if an earlier version of Foundry recorded it."""

    id: str
    labels: Mapping[str, str]
    config: str = ""
    sum: str = ""


def image(name: str, *, engine: Engine, store: Store) -> ImageInfo | None:
    """Return the engine's image of this name if this store built it, or None. Print a notice about any other image."""
    info = engine.image(name)
    if info is None:
        return None
    noted = _noted(store, name)
    if any(_is_of(known, info) for known in noted):
        return info
    _say(name, info.id, "the store has noted another" if noted else f"the store {store.root} has noted none")
    return None


def note(name: str, info: ImageInfo, store: Store, config: str = "") -> ImageInfo:
    """Record an image that was just built, with the digest of its configuration, and return it."""
    with store.locked(_place(store, name).stem):
        others = [known for known in _noted(store, name) if not _is_of(known, info)]
        new = _Note(info.id, dict(info.labels), config)
        noted = [*others, msgspec.structs.replace(new, sum=_sum(new))]
        durable.write(_place(store, name), msgspec.json.format(msgspec.json.encode(noted), indent=1).decode() + "\n")
    return info


def recorded(store: Store) -> dict[str, str]:
    """Return the ID of the image that a store recorded last, for each name."""
    names = (unquote(place.stem) for place in sorted((store.root / "images").glob("*.json")))
    return {name: noted[-1].id for name in names if (noted := _noted(store, name))}


def configs(name: str, store: Store) -> list[str]:
    """Return the digests of the configurations that this store recorded for the images of a name, the last one last."""
    return list(dict.fromkeys(known.config for known in _noted(store, name) if known.config))


def damage(place: Path) -> str:
    """Return what is wrong with the record of a name's images; "" if nothing is."""
    try:
        noted = json_text.read(place, list[_Note])
    except (OSError, FileError) as error:
        return getattr(error, "why", "") or str(error)
    changed = [known.id for known in noted if known.sum and known.sum != _sum(known)]
    return f"what it says of {changed[0]} was changed" if changed else ""


def _is_of(noted: _Note, info: ImageInfo) -> bool:
    return noted.id == info.id and noted.labels == info.labels


def _sum(noted: _Note) -> str:
    text = msgspec.json.encode(msgspec.structs.replace(noted, sum=""), order="deterministic")
    return hashlib.sha256(text).hexdigest()


def _noted(store: Store, name: str) -> list[_Note]:
    try:
        return json_text.read(_place(store, name), list[_Note])
    except (OSError, FileError):
        return []


def _place(store: Store, name: str) -> Path:
    return store.root / "images" / f"{quote(name, safe='')}.json"


@cache
def _say(name: str, id: str, why: str) -> None:
    _console.notice(f"not used: the engine's image {name}, {id[:19]}: {why}; it is made again")
