"""Write a target's inputs for BuildKit, so that a builder on another machine can make its image.

    DIR/docker-bake.json    three targets, each based on the one before: base, python, and the image itself
    DIR/base/               the base image's root file system, and a Dockerfile that unpacks it
    DIR/python/             the wheels, the patched Triton, docker/python.Dockerfile
    DIR/<target>/           native parts, our plugins, docker/<backend>.Dockerfile

`combined` writes one file for all targets: ci/docker-bake.json, kept current by a test.

Each folder is a build context with the same files that this machine's engine gets for the same layer: both come from
target_image.py. No step needs a network, no path leads out of DIR, and nothing in DIR names this machine.

The image from BuildKit has the same files but another ID, because each builder writes its own metadata and dates.
adopt() gives the returned image the dates, owners and order of the images that are built here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.text import Text

from toolchains.archives import docker_archive, tar_file
from toolchains.archives.tar_file import EPOCH
from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs, Layer
from toolchains.engine import host
from toolchains.images import base as rootfs
from toolchains.images import layer as layers
from toolchains.images import listing, provenance
from toolchains.images.base import BaseImage
from toolchains.lockfile.lock import Lock
from toolchains.system import durable, paths
from toolchains.system.console import Console
from toolchains.system.errors import ImageError, UsageError
from toolchains.system.steps import step

BAKE_FILE = "docker-bake.json"
# Where the file for all targets expects the folder of each, by target and release.
FOLDERS = "build/bake"
# The file in DIR that the builder sends back.
RESULT = "image.tar"
_ROOTFS = "rootfs.tar"
_console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Stage:
    """One image of a chain.

    Attributes:
        name: of the folder with its context.
        base: the name of the ARG for the image below; "" for the first one.
        arguments, labels: see target_image.Layer.
        tags: its names.
    """

    name: str
    base: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()


def bake(request: Request, *, into: str) -> None:
    """Write a target's contexts and bake file into a folder, which must be new or empty.

    Parts from source are built here beforehand; the builder gets the result.

    Raises:
        UsageError: no folder is given, or the folder is not empty.
        FoundryError: an input is not available.
    """
    target = request.target
    if not into:
        raise UsageError("a folder to write to is needed", next="./foundry bake TARGET --into=DIR")
    folder = Path(into).resolve()
    if folder.exists() and (not folder.is_dir() or any(os.scandir(folder))):
        raise UsageError(f"{folder} exists and is not an empty folder", next="name another one, or remove it")
    store, sourced = request.store(), request.sourced()
    planned = Inputs(target, request.release, sourced=sourced)
    inputs, top = target_image.gather(planned, store, host.ensure_engine)
    middle = target_image.python_layer(inputs, store, host.ensure_engine() if sourced else None)
    with step(f"base image from {len(inputs.system.debs)} Debian packages"):
        base = rootfs.ensure_base(inputs.system, store)
    with step(f"contexts and {BAKE_FILE}"):
        write(folder, base, [("python", middle), (target.name, top)], names=inputs.moving_names)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    _console.print(Text(f"{folder / BAKE_FILE}", "bold"), f"makes {top.name}; {size / 1e6:.0f} MB go to the builder")
    _console.print(f"  next: (cd {folder} && docker buildx bake --builder=NAME)")
    _console.print(f"        {request.command('bake')} --adopt={folder / RESULT}")


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
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        work = Path(temporary, folder.name)
        work.mkdir()
        platform = _base(work / "base", base)
        stages = [Stage("base", tags=[base.name])]
        for name, layer in chain:
            # The context that the engine here would get.
            with layers.context(layer.dockerfile, layer.wheels, layer.files) as packed, tar_file.opened(packed) as tar:
                tar.extractall(work / name, filter="data")
            stages.append(Stage(name, layer.base, layer.arguments, layer.labels, [layer.name]))
        stages[-1] = replace(stages[-1], tags=[*stages[-1].tags, *names])
        bake = {"group": {"default": {"targets": [stages[-1].name]}}, "target": targets(stages, platform)}
        (work / BAKE_FILE).write_text(json.dumps(bake, indent=2) + "\n")
        # Independent of the user's umask: a builder takes the permissions of folders from the context.
        for path in (work, *work.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        if folder.exists():
            folder.rmdir()
        durable.move(work, folder)


def targets(
    stages: Sequence[Stage], platform: str, *, folder: str = "", named: Callable[[str], str] = lambda stage: stage
) -> dict[str, Any]:
    """Return the targets of a bake file for a chain of images.

    Args:
        stages: the images, each based on the one before.
        platform: as "linux/amd64".
        folder: the path of the folder with the contexts, which ends with a slash.
        named: returns the name of a stage's target.
    """
    described: dict[str, Any] = {}
    below = ""
    for stage in stages:
        entry: dict[str, Any] = {"context": folder + stage.name}
        arguments = {"SOURCE_DATE_EPOCH": str(EPOCH)}
        if below:
            entry["contexts"] = {below: f"target:{named(below)}"}
            arguments[stage.base] = below
        entry["args"] = arguments | dict(stage.arguments)
        if stage.labels:
            # A bake file replaces ${...} and %{...} in its strings.
            entry["labels"] = {key: re.sub(r"([$%])(?=\{)", r"\1\1", text) for key, text in stage.labels.items()}
        if stage.tags:
            entry["tags"] = list(stage.tags)
        entry |= {"platforms": [platform], "network": "none", "output": ["type=cacheonly"]}
        # Provenance would contain the builder's name and the time.
        entry["attest"] = ["type=provenance,disabled=true"]
        described[named(stage.name)] = entry
        below = stage.name
    # Only the last target is sent back. BuildKit cuts dates to SOURCE_DATE_EPOCH if its version supports that.
    described[named(below)]["output"] = [f"type=docker,dest={folder}{RESULT},rewrite-timestamp=true"]
    return described


def combined(lock: Lock) -> str:
    """Return one bake file for the images of all proven targets, with a group for each target.

    It has the names, the labels and the order; the contexts are what bake() writes to FOLDERS/TARGET-RELEASE. So the
    file changes with the lock and the patches, and not with each edit of a source. Tags are those that move.
    """
    groups: dict[str, Any] = {"default": {"targets": []}}
    described: dict[str, Any] = {}
    for target in lock.proven():
        groups[target.label] = {"targets": []}
        for version, release in target.tritons.items():
            # The name of a target has no dots.
            job = f"{target.label}-{version}".replace(".", "_")
            inputs = Inputs(target, release)
            top = Stage(target.label, "PYTHON", labels=inputs.labels, tags=inputs.moving_names)
            described |= targets(
                [Stage("base"), Stage("python", "BASE"), top],
                f"linux/{rootfs.architecture(target.debs)}",
                folder=f"{FOLDERS}/{target.label}-{version}/",
                named=lambda stage, job=job, top=top.name: job if stage == top else f"{job}-{stage}",  # type: ignore[misc]
            )
            for group in ("default", target.label):
                groups[group]["targets"].append(job)
    return json.dumps({"group": groups, "target": described}, indent=2) + "\n"


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
            next=f"{request.command('bake')} --into=DIR, and let a builder bake it",
        )
    docker = host.ensure_engine()
    tag, *moving = _names(file, request)
    with step(f"image {tag}"), TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        normal = Path(work, "image.tar")
        docker_archive.normalise(file, normal, name=tag)
        docker.load(normal)
        store = request.store()
        info = provenance.note(tag, layers.require_image(docker, tag), store, listing.record(normal, store))
    for other in moving:
        docker.tag(tag, other)
    _console.print(Text(tag, "bold"), f"taken from {file}, {info.size / 1e6:.1f} MB, {info.id[:19]}")


def _names(file: Path, request: Request) -> list[str]:
    """Return the tags of an image in an archive after checking what it is of; moving tags come last."""
    target, release = request.target, request.release
    with file.open("rb") as source, docker_archive.opened(source, f"{file}") as tar:
        manifest, config = docker_archive.described(tar)
    labels, tags = config["config"].get("Labels") or {}, manifest.get("RepoTags") or []
    platform = f"{config['os']}/{config['architecture']}"
    stated = [*(labels.get(target_image.LABEL + key, "none") for key in ("target", "lock")), platform]
    wanted = [target.name, target.digest, target.platform]
    moves = {tag: tag.rpartition(":")[2] in (release.version, "latest") for tag in tags}
    # All tags must be names of this target: one with the digest, and one with the release.
    own = {f"triton-foundry/{target.label}{more}" for more in ("", "-source")}
    named = (
        {tag.rpartition(":")[0] for tag in tags} <= own
        and list(moves.values()).count(False) == 1
        and any(tag.endswith(f":{release.version}") for tag in tags)
    )
    if stated != wanted or not named:
        raise ImageError(
            f"{file} is not an image of {target.name} with Triton {release.version} as locked now",
            why=f"its tags: {', '.join(tags) or 'none'}\nits target, lock and platform: {', '.join(stated)}\n"
            f"this checkout's: {', '.join(wanted)}",
            next=f"{request.command('bake')} --into=DIR, and let a builder bake that",
        )
    return sorted(tags, key=lambda tag: moves[tag])


def _base(folder: Path, base: BaseImage) -> str:
    """Write the context of the base image: its one layer unchanged, and its configuration as a Dockerfile.

    Returns:
        Its platform.
    """
    folder.mkdir()
    with base.archive.open("rb") as source, docker_archive.opened(source, f"{base.archive}") as tar:
        manifest, config = docker_archive.described(tar)
        (layer,) = manifest["Layers"]
        with (folder / _ROOTFS).open("wb") as file:
            shutil.copyfileobj(docker_archive.content(tar, layer), file, 4 << 20)
    lines = ["# The base image: the locked Debian packages, as mmdebstrap unpacked and configured them."]
    lines += ["FROM scratch", f"ADD {_ROOTFS} /"]
    for variable in config["config"].get("Env") or ():
        name, _, value = variable.partition("=")
        lines.append(f"ENV {name}={dockerfile_word(value)}")
    lines.append(f"CMD {json.dumps(config['config']['Cmd'])}")
    (folder / "Dockerfile").write_text("\n".join(lines) + "\n")
    return f"{config['os']}/{config['architecture']}"


def dockerfile_word(text: str) -> str:
    """Return a word of a Dockerfile, which replaces variables in quotation marks; no word has a line break."""
    return '"' + re.sub(r'(["\\$])', r"\\\1", text) + '"'
