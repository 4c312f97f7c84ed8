"""Show what the store and the engine have that this checkout's lock does not name, and remove it on request.

Not removed: what the lock names, what is built from it for each target and release, images with a moving tag (latest, a
release), and parts built from source, which take hours. Everything that is removed can be fetched or built again.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from filelock import FileLock, Timeout
from rich.table import Table

from toolchains.artifacts import native
from toolchains.assembly import jupyter
from toolchains.assembly.target_image import Inputs
from toolchains.contents import packages
from toolchains.engine import client
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource import server
from toolchains.fromsource.build import CCACHE_VOLUME
from toolchains.images import base, listing, provenance
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, Lock, LockedTarget
from toolchains.system import document, paths, scratch
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import EngineError

# The tags of images that are a digest; the other tags move to the next image.
_DIGEST = re.compile(r"triton-foundry/[^:]+:(?:\w+-)?[0-9a-f]{16}")
# The names of images that others are based on, from the top.
_BELOW = ("triton-foundry/base:", "triton-foundry/python:")
_DAY = 86400
_VOLUMES = "triton-foundry-"
_PARTIAL = re.compile(r"\.([0-9a-f]{64})\.partial")


@dataclass(frozen=True)
class Item:
    """Something that can be removed.

    Attributes:
        kind: items of the same kind are shown as one row.
        name: the name of the item.
        size: bytes; None if only the engine knows.
        remove: removes the item.
    """

    kind: str
    name: str
    size: int | None
    remove: Callable[[], object]


State = Literal["unused", "removed", "kept"]


class Unused(msgspec.Struct, frozen=True):
    """Something that this checkout does not use.

    Attributes:
        kind: what it is.
        name: its path, or its name in the engine.
        bytes: its size; null if only the engine knows it.
        state: "unused", "removed", or "kept" if it could not be removed.
        why: why it was kept, or "".
    """

    kind: str
    name: str
    bytes: int | None
    state: State = "unused"
    why: str = ""


class Prunable(ShownDocument, kw_only=True, tag="prune"):
    """What the store and the engine have that this checkout does not use: `prune`.

    Attributes:
        items: each of them.
        left_out: why the engine's images are not among them, or "".
    """

    items: list[Unused]
    left_out: str = ""

    def render(self, console: Console) -> None:
        if self.left_out:
            console.notice(f"the engine's images are left out: {self.left_out}")
        table = Table("what", "number", "MB")
        for kind in dict.fromkeys(item.kind for item in self.items):
            items = [item for item in self.items if item.kind == kind]
            sizes = [item.bytes for item in items if item.bytes is not None]
            table.add_row(kind, str(len(items)), f"{sum(sizes) / 1e6:.0f}" if sizes else "unknown")
        if not self.items:
            table.add_row("nothing", "0", "0")
        console.print(table)
        removed = sum(item.state == "removed" for item in self.items)
        kept = [item for item in self.items if item.state == "kept"]
        if removed or kept:
            console.print(f"removed {removed} of {len(self.items)}")
        elif self.items:
            console.print("nothing was removed; to remove it: ./foundry prune --remove")
        for item in kept:
            console.notice(f"kept: {item.name}: {item.why}")


def prune(*, remove: bool) -> None:
    """Print what can be removed, with sizes; with `remove`, remove it."""
    locked = lock.everything()
    images = _images(locked)
    store = Store(paths.cache())
    items = list(_store(store.root, locked))
    configs = [config for name in images for config in provenance.configs(name, store)]
    for place in listing.unused(store, configs):
        items.append(Item("records of images", str(place), place.stat().st_size, place.unlink))
    for folder in scratch.leftovers(paths.temporary()):
        kind = "temporary folders that a killed run left"
        items.append(Item(kind, str(folder.path), folder.size, lambda: scratch.sweep(paths.temporary())))
    # The logs of this checkout that nothing wrote to for a day; a running dockerd keeps its log.
    for place in sorted(paths.LOGS.glob("*.log")):
        status = place.stat()
        if place.name != "dockerd.log" and time.time() - status.st_mtime > _DAY:
            items.append(Item("logs", str(place), status.st_size, place.unlink))
    left_out = ""
    try:
        items += _engine(client.connect(), images)
    except EngineError as error:
        left_out = f"{error.what}: {error.why}"
    unused = []
    for item in items:
        state: State = "unused"
        why = ""
        if remove:
            try:
                item.remove()
                state = "removed"
            except (OSError, EngineError) as error:
                state, why = "kept", str(error)
        unused.append(Unused(item.kind, item.name, item.size, state, why))
    document.show(Prunable(items=unused, left_out=left_out))


def _store(root: Path, locked: Lock) -> Iterator[Item]:
    """Yield what the store has and the lock does not name."""
    needed = {artifact.sha256 for artifact in _artifacts(locked)}
    for place in sorted(root.glob("artifacts/??/*")):
        if place.name not in needed:
            yield _folder("fetched files", place)
    parts = _parts(locked)
    for kind, identities in parts.items():
        for place in sorted(root.glob(f"parts/{kind}/*")):
            if not place.name.startswith(".") and place.name not in identities:
                yield _folder(f"built parts: {kind}", place)
    for place in sorted(root.glob("parts/*/.*.partial")):
        if (match := _PARTIAL.fullmatch(place.name)) and _is_free(root / "locks" / f"{place.parent.name}-{match[1]}"):
            yield _folder("parts that a killed run left unfinished", place)
    for place in sorted(root.glob("*/*/.*.gone")) + sorted(root.glob("*/*/.*.removed")):
        yield _folder("parts whose removal was killed", place)
    suites = {target.suite for target in (*locked.targets.values(), *_builders(locked))}
    for place in sorted(root.glob("apt/*")):
        if place.is_dir() and re.split(r"[+.]", place.name)[0].removesuffix("-sources") not in suites:
            yield _folder("indices of Debian's suites", place)
    for place in sorted(root.glob("verdicts/*")):
        # A verdict is about an artifact, named by its sha256, or about a part: KIND-DIGEST.
        kind, _, digest = place.name.rpartition("-")
        if not (root / "parts" / kind / digest if kind else root / "artifacts" / digest[:2] / digest).exists():
            yield Item("notes about what is gone", str(place), place.stat().st_size, place.unlink)


def _artifacts(value: object) -> Iterator[Artifact]:
    """Yield all artifacts in a lock, at any depth."""
    if isinstance(value, Artifact):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _artifacts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _artifacts(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _artifacts(item)


def _builders(locked: Lock) -> list[LockedTarget]:
    return [*(target.builder for target in locked.targets.values() if target.builder), *locked.builders.values()]


def _parts(locked: Lock) -> dict[str, set[str]]:
    """Return the identities of the parts that this checkout builds, by kind; parts of other kinds are never removed."""
    copyright = {packages.identity(artifact) for artifact in _artifacts(locked) if artifact.kind == "deb"}
    parts = {"base": {base.identity(builder) for builder in _builders(locked)}, "copyright": copyright}
    parts[jupyter.KIND] = {jupyter.identity(tool) for tool in locked.tools.values()}
    for target in locked.targets.values():
        for release in target.tritons.values():
            for kind, identities in Inputs(target, release).parts.items():
                parts.setdefault(kind, set()).update(identities)
    return parts


def _engine(docker: Engine, images: Collection[str]) -> Iterator[Item]:
    """Yield our images and volumes in the engine that this checkout does not use.

    Args:
        images: the names of those that it builds.
    """
    # Images whose only name is a digest; those that others are based on come last.
    named = docker.named("triton-foundry/*").values()
    single = {names[0]: size for names, size in named if len(names) == 1 and _DIGEST.fullmatch(names[0])}
    for name, size in sorted(single.items(), key=lambda item: [item[0].startswith(prefix) for prefix in _BELOW]):
        if name not in images:
            yield Item("images (they share layers)", name, size, partial(_remove_image, docker, name))
    for id, size in docker.abandoned().items():
        yield Item("images of builds that were killed", id, size, docker.remove_abandoned)
    for name in docker.volumes(_VOLUMES):
        if name not in (CCACHE_VOLUME, server.VOLUME):
            remove = partial(docker.remove_volume, name)
            yield Item("volumes of unfinished builds from source", name, None, remove)


def _images(locked: Lock) -> set[str]:
    """Return the names of the images that this checkout builds."""
    names = {native.recipe_builder_name(builder) for builder in _builders(locked)}
    for target in (*locked.targets.values(), *_builders(locked)):
        names.add(f"triton-foundry/base:{target.suite}-{base.identity(target)[:16]}")
    for target in locked.targets.values():
        for release in target.tritons.values():
            names.add(Inputs(target, release).name)
            names.add(Inputs(target, release).python_name)
    return names


def _remove_image(docker: Engine, name: str) -> None:
    """Remove an image.

    Raises:
        EngineError: a container or another image uses it; the engine keeps it then.
    """
    docker.remove(name)
    if docker.image(name) is not None:
        raise EngineError(f"the engine keeps {name}", why="a container or another image uses it")


def _folder(kind: str, place: Path) -> Item:
    size = sum(path.lstat().st_blocks * 512 for path in place.rglob("*"))
    # Rename it first: a name must exist only while its content is complete.
    return Item(kind, str(place), size, lambda: shutil.rmtree(place.rename(place.with_name(f".{place.name}.removed"))))


def _is_free(file: Path) -> bool:
    held = FileLock(file)
    try:
        held.acquire(timeout=0)
    except Timeout:
        return False
    held.release()
    return True
