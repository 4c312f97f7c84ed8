"""Makes the image of a target: base image, Python packages with the patched Triton, the project's own plugin.

    base      from the locked Debian packages                              rootfs.py
    python    base + the locked wheels + the repacked Triton               docker/python.Dockerfile
    target    python + backends/core + backends/<backend>, its settings    docker/<backend>.Dockerfile

Each is named by the digest of all that goes into it, and the digest needs neither the engine nor a large file to be
read. An image whose name exists is never made again. Each is normalised after the build, so that two builds of the same
inputs have the same ID.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from . import archive, patches, plugins, rootfs, trees, triton
from .engine import Engine, ImageInfo
from .errors import EngineError, UsageError
from .lock import Artifact, LockedTarget, LockedTriton, digest
from .paths import DOCKER, ROOT, scratch
from .steps import step
from .store import Store

# What decides how inputs become an image, beside the Dockerfiles.
_RECIPE = ("toolchains/image.py", "toolchains/archive.py", "toolchains/trees.py")
LABEL = "org.triton-foundry."
# None of the vendor backends inside Triton's wheel: a target brings its own.
_VENDOR_BACKENDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """A target's image in the engine: its tag, and whether it was made just now."""

    name: str
    info: ImageInfo
    made: bool


def release(target: LockedTarget, version: str | None) -> LockedTriton:
    """The pinned release of Triton with this version; the default one if none is named.

    Raises:
        UsageError: it is not pinned.
    """
    version = version or target.default_triton
    if version not in target.tritons:
        raise UsageError(
            f"Triton {version} is not pinned for {target.name}",
            why=f"pinned: {', '.join(target.tritons)}",
            next="choose one of these, or add it to toolchains/pins/triton.toml and: invoke pin --update triton",
        )
    return target.tritons[version]


def identity(target: LockedTarget, locked: LockedTriton, own: Sequence[str] = (), drift: str = "") -> str:
    """The digest of all that goes into a target's image.

    Args:
        target: with the packages that are used.
        locked: the release of Triton.
        own: the identities of the project's own wheels; of the sources as they are now if not given.
        drift: what the image's label says about packages that are not the locked ones.
    """
    return digest({
        "python": _python_identity(target, locked),
        "plugins": own or [plugins.identity(name) for name in _own(target)],
        "dockerfile": trees.digest({"Dockerfile": _dockerfile(target)}),
        "labels": _labels(target, locked, drift),
    })


def build(target: LockedTarget, locked: LockedTriton, *, store: Store, engine: Engine, cache: bool = True) -> Image:
    """Have the image of a target in the engine.

    Besides the name that its inputs give it, it gets two that move: the Triton release, and, for the default release,
    "latest".

    Args:
        target: as locked.
        locked: the release of Triton.
        store: where inputs and parts come from.
        engine: where the image is made.
        cache: take an image that is there already; without, the Dockerfiles run again.

    Raises:
        FoundryError: whichever step failed.
    """
    name = _name(target.name, identity(target, locked))
    info = engine.image(name) if cache else None
    made = info is None
    if info is None:
        used = _fetch(target, locked, store)
        drift = _drift(target, used)
        with step(f"plugins: {', '.join(_own(target))}"):
            own = [plugins.wheel(package, store) for package in _own(target)]
        # Sources may have been edited since, and what drifted has another identity: it may have been made before.
        name = _name(target.name, identity(used, locked, [wheel.identity for wheel in own], drift))
        with store.locked(name.replace("/", "-")):
            info = engine.image(name) if cache else None
            if info is None:
                python = _python(used, locked, store=store, engine=engine, cache=cache)
                with step(f"image {name}"):
                    info = layer(
                        engine, name, _dockerfile(target), {"PYTHON": python}, _labels(target, locked, drift),
                        [wheel.path for wheel in own], _present(engine, python).layers,
                    )  # fmt: skip
    for moving in _moving_names(target, locked):
        if moving not in info.names:
            engine.tag(name, moving)
    return Image(name, info, made)


def _fetch(target: LockedTarget, locked: LockedTriton, store: Store) -> LockedTarget:
    """The target with the files that are really used, all of them in the store."""
    wanted = [*target.debs, *target.wheels, locked.wheel]
    with step(f"{len(wanted)} locked files"):
        found = store.fetch(wanted, suite=target.suite, python=target.python)
    return replace(target, debs=tuple(artifact for artifact in found if artifact.kind == "deb"))


def _python(target: LockedTarget, locked: LockedTriton, *, store: Store, engine: Engine, cache: bool) -> str:
    """Have the image under the target's in the engine; returns its name."""
    name = _name("python", _python_identity(target, locked))
    if cache and engine.image(name):
        return name
    with step(f"base image from {len(target.debs)} Debian packages"):
        base = rootfs.base(target, store)
    with step("base image into the engine"):
        known = base.load(engine)
    with step(f"Triton {triton.version(locked)}"):
        patched = triton.repack(locked, store.path(locked.wheel), backends=_VENDOR_BACKENDS, store=store)
    with step(f"Python packages: {len(target.wheels)} and Triton"):
        wheels = [*map(store.path, target.wheels), patched]
        layer(engine, name, DOCKER / "python.Dockerfile", {"BASE": base.name}, {}, wheels, known)
    return name


def layer(
    engine: Engine, name: str, dockerfile: Path, arguments: Mapping[str, str], labels: Mapping[str, str],
    wheels: Sequence[Path], known: Iterable[str],
) -> ImageInfo:  # fmt: skip
    """Run a Dockerfile with these wheels, normalise what comes out, and leave only that in the engine.

    Args:
        name: the tag of the result.
        known: the layers of the image that the Dockerfile starts from, which are normalised already.
    """
    arguments = {"SOURCE_DATE_EPOCH": str(trees.EPOCH), **arguments}
    known = frozenset(known)
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        saved, normal = Path(work, "saved.tar"), Path(work, "image.tar")
        with (
            context(dockerfile, wheels) as packed,
            engine.build(packed, arguments=arguments, labels=labels) as built,
            saved.open("wb") as file,
        ):
            engine.save(built, file)
        archive.normalise(saved, normal, name=name, known=known, leave_out=True)
        try:
            engine.load(normal)
        except EngineError:
            # Docker with the containerd store wants every layer in the archive, also those that it has.
            archive.normalise(saved, normal, name=name, known=known)
            engine.load(normal)
    return _present(engine, name)


@contextmanager
def context(dockerfile: Path, wheels: Sequence[Path]) -> Iterator[IO[bytes]]:
    """What a build gets to see: its Dockerfile, wheels, and a requirements file that takes exactly these wheels."""
    entries: dict[str, Path | bytes] = {"Dockerfile": dockerfile, "wheels/requirements.txt": _requirements(wheels)}
    entries |= {f"wheels/{wheel.name}": wheel for wheel in wheels}
    with TemporaryFile(dir=scratch()) as file:
        trees.pack(file, entries)
        file.seek(0)
        yield file


def _present(engine: Engine, name: str) -> ImageInfo:
    info = engine.image(name)
    if info is None:
        raise EngineError(f"{name} was loaded, and the engine does not have it", next="docker images")
    return info


def _python_identity(target: LockedTarget, locked: LockedTriton) -> str:
    return digest({
        "base": rootfs.identity(target),
        "wheels": sorted(wheel.sha256 for wheel in target.wheels),
        "triton": triton.identity(locked, _VENDOR_BACKENDS),
        "recipe": trees.digest(
            {name: ROOT / name for name in _RECIPE} | {"Dockerfile": DOCKER / "python.Dockerfile"}
        ),
    })


def _own(target: LockedTarget) -> tuple[str, ...]:
    return ("core", target.backend)


def _dockerfile(target: LockedTarget) -> Path:
    return DOCKER / f"{target.backend}.Dockerfile"


def _name(repository: str, identity: str) -> str:
    return f"triton-foundry/{repository}:{identity[:16]}"


def _moving_names(target: LockedTarget, locked: LockedTriton) -> list[str]:
    names = [f"triton-foundry/{target.name}:{locked.version}"]
    if locked.version == target.default_triton:
        names.append(f"triton-foundry/{target.name}:latest")
    return names


def _requirements(wheels: Sequence[Path]) -> bytes:
    lines = []
    for wheel in sorted(wheels):
        name, version = wheel.name.split("-")[:2]
        with wheel.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{found}\n")
    return "".join(lines).encode()


def _drift(locked: LockedTarget, used: LockedTarget) -> str:
    """Which packages are not the locked ones: "name locked -> used, ..."."""
    before: dict[str, Artifact] = {deb.name: deb for deb in locked.debs}
    changed = [deb for deb in used.debs if before.get(deb.name) != deb]
    return ", ".join(
        f"{deb.name} {before[deb.name].version if deb.name in before else 'absent'} -> {deb.version}" for deb in changed
    )


def _labels(target: LockedTarget, locked: LockedTriton, drift: str) -> dict[str, str]:
    labels = {
        "target": target.name,
        "lock": target.digest,
        "triton": triton.version(locked),
        "llvm-hash": locked.llvm_hash,
        "patch-series": patches.series_digest(locked.version),
    }
    if drift:
        labels["drift"] = drift
    return {LABEL + key: value for key, value in labels.items()}
