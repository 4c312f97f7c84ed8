"""The published IDs: what each image of the lock, and each part in it, was built to.

toolchains/expected.json has them. An entry names its inputs by the digest that is also the image's name, so an image
with other inputs is never compared with it: one with drifted packages, with an SDK, or from source, and one of sources
that changed since. `./foundry expected --update` writes the entries of images whose inputs changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from toolchains.assembly.target_image import Image, Inputs
from toolchains.config import platforms
from toolchains.engine.client import Engine
from toolchains.fetch import manifest
from toolchains.fetch.store import Store
from toolchains.images import layer
from toolchains.lockfile.lock import AMD64, Lock, LockedTarget, LockedTriton
from toolchains.repro import compare
from toolchains.system import durable, json_text, paths
from toolchains.system.errors import ImageError, PartError

UPDATE = "./foundry expected --update"
# The base image is the first layer.
_LAYERS = "base"


class ExpectedImage(msgspec.Struct, frozen=True):
    """What an image was built to.

    Attributes:
        inputs: the digest of its inputs; the image's name has the first 16 digits.
        image: its ID, the sha256 of its configuration. An engine with the containerd store shows another ID.
        layers: the sha256 of each layer, uncompressed.
    """

    inputs: str
    image: str
    layers: tuple[str, ...]


class Expected(msgspec.Struct, frozen=True):
    """The content of the file.

    Attributes:
        images: by target and release of Triton. A target of another platform than linux/amd64 is named by its label.
        parts: the sha256 of each file of a part, by the part's kind, the digest of its inputs and the file's name.
    """

    images: Mapping[str, Mapping[str, ExpectedImage]]
    parts: Mapping[str, Mapping[str, Mapping[str, str]]]

    def image(self, target: str, release: str) -> ExpectedImage | None:
        """Return the entry of a target with a release of Triton."""
        return self.images.get(target, {}).get(release)


def load(path: Path | None = None) -> Expected:
    """Read the file; nothing is expected if there is none.

    Raises:
        FileError: it is damaged.
    """
    path = path or paths.EXPECTED
    return json_text.read(path, Expected) if path.exists() else Expected({}, {})


def save(expected: Expected, path: Path | None = None) -> None:
    """Write the file, sorted, so that a diff is a readable list of changes."""
    durable.write(path or paths.EXPECTED, json.dumps(msgspec.to_builtins(expected), indent=1, sort_keys=True) + "\n")


def releases(locked: Lock) -> Iterator[tuple[LockedTarget, LockedTriton]]:
    """Yield each target of a lock with each of its releases of Triton."""
    for target in locked.targets.values():
        for release in target.tritons.values():
            yield target, release


def parts(target: LockedTarget, release: LockedTriton) -> Iterator[tuple[str, str]]:
    """Yield kind and identity of the parts of an image whose files are expected."""
    for kind, identities in Inputs(target, release).parts.items():
        if kind != _LAYERS:
            yield from ((kind, identity) for identity in sorted(identities))


def is_current(expected: Expected, target: LockedTarget, release: LockedTriton) -> bool:
    """Return whether the file has the image of a target as it would be built now, and the image's parts."""
    entry = expected.image(target.label, release.version)
    return (
        entry is not None
        and entry.inputs == Inputs(target, release).identity()
        and all(identity in expected.parts.get(kind, {}) for kind, identity in parts(target, release))
    )


def is_due(expected: Expected, target: LockedTarget) -> bool:
    """Return whether the IDs of a target must be published: of other platforms only what was published before.

    The first entry of another platform is written when it is asked for by name, because it takes an emulator.
    """
    return target.platform == AMD64 or target.label in expected.images


def due(locked: Lock) -> Lock:
    """Return a lock without the targets and tools of platforms of which nothing must be published; see is_due."""
    published = load()
    targets = {label: target for label, target in locked.targets.items() if is_due(published, target)}
    platforms = {target.platform for target in targets.values()}
    tools = {label: tool for label, tool in locked.tools.items() if tool.platform in platforms}
    return replace(locked, targets=targets, tools=tools)


def stale(expected: Expected, locked: Lock) -> Iterator[str]:
    """Yield the images of a lock that are due and have no current entry, and entries of what is not locked."""
    known = set()
    for target, release in releases(locked):
        known.add((target.label, release.version))
        if is_due(expected, target) and not is_current(expected, target, release):
            yield f"{target.label} with Triton {release.version}"
    for name, entries in expected.images.items():
        for version in entries:
            if (name, version) not in known:
                yield f"{name} with Triton {version}, which is not locked any more"


def check_image(expected: Expected, engine: Engine, image: Image, target: LockedTarget, release: str) -> bool:
    """Compare an image in the engine with the published ID.

    Returns:
        Whether there is one for the image's inputs, of a builder whose layers are those of the image's.

    Raises:
        ImageError: the image has another ID.
    """
    entry = expected.image(target.label, release)
    # The name has the digest of all inputs: of drifted packages, an SDK and what was built from source, too.
    if entry is None or image.builder or image.name != f"triton-foundry/{target.label}:{entry.inputs[:16]}":
        return False
    id = image.info.id
    if id != entry.image and image.info.layers == entry.layers:
        # An engine with the containerd store shows the digest of a manifest.
        id = image_id(engine, id)
    if id != entry.image:
        raise ImageError(
            f"{image.name} is not the image that was published for these inputs",
            why=f"its ID:    {id}\npublished: {entry.image}",
            next=f"./foundry repro {target.name} --triton={release}" + platforms.option(target.platform),
        )
    return True


def check_parts(expected: Expected, store: Store, target: LockedTarget, release: LockedTriton) -> int:
    """Compare the parts of an image that are in the store with the published sha256; return how many were compared.

    Raises:
        PartError: a file has another sha256.
    """
    count = 0
    for kind, identity in parts(target, release):
        wanted, folder = expected.parts.get(kind, {}).get(identity), store.found_part(kind, identity)
        if wanted is None or folder is None:
            continue
        count += 1
        files = _files(folder)
        if files != wanted:
            raise PartError(
                f"the part {kind} {identity[:16]} is not the one that was published for these inputs",
                why="\n".join(
                    f"{name}\n  here:      {files.get(name, 'absent')}\n  published: {wanted.get(name, 'absent')}"
                    for name in sorted({*files, *wanted})
                    if files.get(name) != wanted.get(name)
                ),
                next=f"./foundry repro {target.name} --triton={release.version}{platforms.option(target.platform)}",
            )
    return count


def update(
    expected: Expected, engine: Engine, store: Store, image: Image, target: LockedTarget, release: LockedTriton
) -> Expected:
    """Return the file's content with the image of a target, and its parts, as they were built now.

    Args:
        image: the image; all of its parts are in the store.

    Raises:
        PartError: a part is not in the store.
    """
    inputs = Inputs(target, release).identity()
    entry = ExpectedImage(inputs, image_id(engine, image.info.id), tuple(image.info.layers))
    files = {kind: dict(entries) for kind, entries in expected.parts.items()}
    for kind, identity in parts(target, release):
        folder = store.found_part(kind, identity)
        if folder is None:
            raise PartError(f"the part {kind} {identity[:16]} is not in the store {store.root}", next=UPDATE)
        files.setdefault(kind, {})[identity] = _files(folder)
    images = {**expected.images, target.label: {**expected.images.get(target.label, {}), release.version: entry}}
    return Expected(images, files)


def pruned(expected: Expected, locked: Lock) -> Expected:
    """Return the file's content without images that are not locked, and without parts that no image has now."""
    wanted = {part for pair in releases(locked) for part in parts(*pair)}
    known = {(target.label, release.version) for target, release in releases(locked)}
    images = {
        name: {version: entry for version, entry in entries.items() if (name, version) in known}
        for name, entries in expected.images.items()
    }
    files = {
        kind: {identity: entry for identity, entry in entries.items() if (kind, identity) in wanted}
        for kind, entries in expected.parts.items()
    }
    return Expected({name: by_release for name, by_release in images.items() if by_release}, files)


def image_id(engine: Engine, image: str) -> str:
    """Return the sha256 of an image's configuration, which is its ID in Docker's own store."""
    with layer.saved(engine, image) as archive:
        return compare.config_digest(archive, image)


def _files(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file of a part, as its manifest has it."""
    return {name: entry["sha256"] for name, entry in (manifest.read(folder) or {}).items() if "sha256" in entry}
