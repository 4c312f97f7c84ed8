"""Prove on the layers of an image that it has no vendor's SDK, whatever its name and its labels say.

The files of toolchains/sdks name what an SDK needs to have. A folder in any layer with two of these files, deleted ones
among them, is an SDK: of our own part, which has the same names, or of the vendor. Ours has no file with other content
than the part in the store, which this checkout builds.
"""

from __future__ import annotations

import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from toolchains.archives import docker_archive
from toolchains.artifacts import native
from toolchains.assembly.target_image import LABEL
from toolchains.config.vendors import VendorSdk
from toolchains.fetch.store import Store
from toolchains.images import listing
from toolchains.images.listing import Entry
from toolchains.lockfile import lock
from toolchains.system import paths
from toolchains.system.errors import ImageError

# A folder of Debian has one of the files, such as the header of OpenCL in /usr.
_FEW = 2


def refuse_vendor_files(saved: Path, name: str, store: Store) -> None:
    """Check an image.

    Args:
        saved: its docker-archive.
        name: its name, for messages.
        store: has our own parts.

    Raises:
        ImageError: it has a vendor's SDK, and the error names the file; or the archive cannot be read.
    """
    with saved.open("rb") as file, docker_archive.opened(file, name) as tar:
        manifest, config = docker_archive.described(tar)
        labels = config["config"].get("Labels") or {}
        if supplied := labels.get(LABEL + "sdk"):
            raise ImageError(f"{name} is not pushed: it has {supplied} in it", why=f"its label {LABEL}sdk says so")
        layers = []
        for member in manifest["Layers"]:
            with docker_archive.uncompressed(docker_archive.content(tar, member), member) as plain:
                layers.append([entry for entry in listing.scan(plain) if entry.type != tarfile.DIRTYPE.decode()])
    for kind in map(VendorSdk.read, sorted(path.stem for path in paths.SDKS.glob("*.toml"))):
        ours = _ours(kind, store)
        for number, path in _suspects(kind, layers, ours or set()):
            known = "of our own part" if ours else f"known to be of our own part {kind.replaces}: the store has none"
            raise ImageError(
                f"{name} is not pushed: it has {kind.name} in it, which is not ours to give to others",
                why=f"{path} in layer {number} is not {known}",
                next=f"./foundry build TARGET --no-cache, without --sdk, for the target that has {kind.replaces}",
            )


def _suspects(kind: VendorSdk, layers: Iterable[Iterable[Entry]], ours: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the files of SDKs in layers that are not ours, each with its layer's number; needed files come first."""
    entries = [(number, entry) for number, layer in enumerate(layers, 1) for entry in layer]
    folders: dict[str, set[str]] = defaultdict(set)
    for _, entry in entries:
        for need in kind.needs:
            if f"/{entry.name}".endswith(f"/{need}"):
                folders[entry.name.removesuffix(need)].add(need)
    for folder, needs in sorted(folders.items()):
        if len(needs) >= _FEW:
            needed = {folder + need for need in needs}
            files = [each for each in entries if each[1].name.startswith(folder) and each[1].size]
            for number, entry in sorted(files, key=lambda each: (each[1].name not in needed, each[1].name)):
                if entry.sha256 not in ours:
                    yield number, entry.name


def _ours(kind: VendorSdk, store: Store) -> set[str] | None:
    """Return the sha256 of the files of the part that an SDK replaces, or None if the store does not have it."""
    for target in lock.load().targets.values():
        if kind.replaces in target.recipes and target.builder:
            folder = store.found_part("native", native.identity(kind.replaces, target.builder))
            if folder:
                with (folder / f"{kind.replaces}.tar").open("rb") as file:
                    return {entry.sha256 for entry in listing.scan(file)}
    return None
