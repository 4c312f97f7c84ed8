"""Write a target's inputs for BuildKit, so that a builder on another machine can make its image.

    DIR/docker-bake.json    three targets, each based on the one before: base, python, and the image itself
    DIR/base/               the base image's root file system, and a Dockerfile that unpacks it
    DIR/python/             the wheels, the patched Triton, docker/python.Dockerfile
    DIR/<target>/           native parts, our plugins, docker/<backend>.Dockerfile

Each folder is a build context with the same files that this machine's engine gets for the same layer: both come from
target_image.py. No step needs a network, no path leads out of DIR, and nothing in DIR names this machine.

The image from BuildKit has the same files but another ID, because each builder writes its own metadata and dates.
adopt() gives the returned image the dates, owners and order of the images that are built here.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from toolchains.archives import docker_archive
from toolchains.archives.tar_file import EPOCH
from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Layer
from toolchains.engine import host
from toolchains.images import base as rootfs
from toolchains.images import layer as layers
from toolchains.images import provenance
from toolchains.images.base import BaseImage
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.system import durable, paths
from toolchains.system.errors import ImageError, UsageError
from toolchains.system.steps import step

BAKE_FILE = "docker-bake.json"
# The file in DIR that the builder sends back.
RESULT = "image.tar"
_ROOTFS = "rootfs.tar"
_console = Console(highlight=False, soft_wrap=True)


def bake(request: Request, *, into: str) -> None:
    """Write a target's contexts and bake file into a folder, which must be new or empty.

    Parts from source are built here beforehand; the builder gets the result.

    Raises:
        UsageError: no folder is given, or the folder is not empty.
        FoundryError: an input is not available.
    """
    target, release = request.target, request.release
    folder = _place(into)
    store, sourced = request.store(), request.sourced()
    used, top = target_image.gather(target, release, store=store, engine=host.ensure_engine, sourced=sourced)
    middle = target_image.python_layer(used, release, store, sourced, host.ensure_engine() if sourced else None)
    with step(f"base image from {len(used.debs)} Debian packages"):
        base = rootfs.ensure_base(used, store)
    names = target_image.moving_names(target, release, sourced=sourced)
    with step(f"contexts and {BAKE_FILE}"):
        write(folder, base, [("python", middle), (target.name, top)], names=names)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    _console.print(f"[bold]{folder / BAKE_FILE}[/] makes {top.name}; {size / 1e6:.0f} MB go to the builder")
    _console.print(f"  next: (cd {folder} && docker buildx bake --builder=NAME)")
    _console.print(f"        ./foundry bake {target.name} --adopt={folder / RESULT}")


def write(folder: Path, base: BaseImage, chain: Sequence[tuple[str, Layer]], *, names: Sequence[str]) -> None:
    """Write the contexts and the bake file of an image.

    Args:
        folder: where to write; created if missing, empty otherwise.
        base: the image that the first layer is added to.
        chain: for each target of the bake file its name and its layer, in order.
        names: more tags of the result.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Write to a temporary folder next to it and rename it, so that an existing folder is always complete.
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
        work = Path(beside, folder.name)
        work.mkdir()
        targets = {"base": _base(work / "base", base)}
        below = "base"
        for name, layer in chain:
            _unpack(layer, work / name)
            targets[name] = {
                **targets["base"],
                "context": name,
                "contexts": {below: f"target:{below}"},
                "args": {**targets["base"]["args"], layer.base: below, **layer.arguments},
                "labels": dict(layer.labels),
                "tags": [layer.name],
            }
            below = name
        # Only the last target is sent back. BuildKit cuts dates to SOURCE_DATE_EPOCH if its version supports that.
        targets[below]["output"] = [f"type=docker,dest={RESULT},rewrite-timestamp=true"]
        targets[below]["tags"] += names
        bake = {"group": {"default": {"targets": [below]}}, "target": targets}
        (work / BAKE_FILE).write_text(json.dumps(bake, indent=2) + "\n")
        _normal(work)
        if folder.exists():
            folder.rmdir()
        durable.move(work, folder)


def adopt(request: Request, file: Path) -> None:
    """Load an image that a builder made from the output of bake() into this machine's engine, normalised.

    Args:
        request: the target and the release of Triton.
        file: the docker-archive from the builder.

    Raises:
        UsageError: no such file.
        ImageError: it is not a docker-archive of an image of this target, lock and release.
    """
    if not file.is_file():
        raise UsageError(
            f"there is no file {file}",
            next=f"./foundry bake {request.target.name} --into=DIR, and let a builder bake it",
        )
    docker = host.ensure_engine()
    tag, *moving = _names(file, request.target, request.release)
    with step(f"image {tag}"), TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        normal = Path(work, "image.tar")
        docker_archive.normalise(file, normal, name=tag)
        docker.load(normal)
    info = provenance.note(tag, layers.require_image(docker, tag), request.store())
    for other in moving:
        docker.tag(tag, other)
    _console.print(f"[bold]{tag}[/] taken from {file}, {info.size / 1e6:.1f} MB, {info.id[:19]}")


def _names(file: Path, target: LockedTarget, release: LockedTriton) -> list[str]:
    """Return the tags of an image in an archive after checking its target and release; moving tags come last."""
    try:
        with tarfile.open(file) as tar:
            (manifest,) = json.load(_member(tar, "manifest.json"))
            labels = json.load(_member(tar, manifest["Config"]))["config"].get("Labels") or {}
        tags: list[str] = manifest["RepoTags"] or []
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
        raise ImageError(f"not an archive of one image: {file}", why=repr(error)) from error
    found = [labels.get(target_image.LABEL + key, "none") for key in ("target", "lock")]
    moves = {tag: tag.rpartition(":")[2] in (release.version, "latest") for tag in tags}
    # All tags must be names of this target: one with the digest, and one with the release.
    own = {f"triton-foundry/{target.name}{more}" for more in ("", "-source")}
    named = (
        {tag.rpartition(":")[0] for tag in tags} <= own
        and list(moves.values()).count(False) == 1
        and any(tag.endswith(f":{release.version}") for tag in tags)
    )
    if found != [target.name, target.digest] or not named:
        raise ImageError(
            f"{file} is not an image of {target.name} with Triton {release.version} as locked now",
            why=f"its tags: {', '.join(tags) or 'none'}\nits target and lock: {', '.join(found)}\n"
            f"this checkout's: {target.name}, {target.digest}",
            next=f"./foundry bake {target.name} --into=DIR, and let a builder bake that",
        )
    return sorted(tags, key=lambda tag: moves[tag])


def _base(folder: Path, base: BaseImage) -> dict[str, Any]:
    """Write the context of the base image: its one layer unchanged, and its configuration as a Dockerfile.

    Returns:
        The properties of its target in the bake file; the other targets share most of them.
    """
    folder.mkdir()
    with tarfile.open(base.archive) as tar:
        (manifest,) = json.load(_member(tar, "manifest.json"))
        config = json.load(_member(tar, manifest["Config"]))
        (layer,) = manifest["Layers"]
        with (folder / _ROOTFS).open("wb") as file:
            shutil.copyfileobj(_member(tar, layer), file, 4 << 20)
    lines = ["# The base image: the locked Debian packages, as mmdebstrap unpacked and configured them."]
    lines += ["FROM scratch", f"ADD {_ROOTFS} /"]
    lines += [f"ENV {name}={json.dumps(value)}" for name, _, value in map(_pair, config["config"].get("Env", ()))]
    lines.append(f"CMD {json.dumps(config['config']['Cmd'])}")
    (folder / "Dockerfile").write_text("\n".join(lines) + "\n")
    return {
        "context": "base",
        "args": {"SOURCE_DATE_EPOCH": str(EPOCH)},
        "tags": [base.name],
        "platforms": [f"{config['os']}/{config['architecture']}"],
        "network": "none",
        "output": ["type=cacheonly"],
        # Provenance would contain the builder's name and the time.
        "attest": ["type=provenance,disabled=true"],
    }


def _pair(variable: str) -> tuple[str, str, str]:
    return variable.partition("=")


def _unpack(layer: Layer, folder: Path) -> None:
    """Unpack the context that the engine here would get into a folder."""
    with layers.context(layer.dockerfile, layer.wheels, layer.files) as packed, tarfile.open(fileobj=packed) as tar:
        tar.extractall(folder, filter="data")


def _normal(work: Path) -> None:
    """Set permissions independently of the user's umask: a builder takes those of folders from the context."""
    for path in (work, *work.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _member(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file


def _place(into: str) -> Path:
    if not into:
        raise UsageError("a folder to write to is needed", next="./foundry bake TARGET --into=DIR")
    folder = Path(into).resolve()
    if folder.exists() and (not folder.is_dir() or any(os.scandir(folder))):
        raise UsageError(f"{folder} exists and is not an empty folder", next="name another one, or remove it")
    return folder
