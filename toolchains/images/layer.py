"""Run a Dockerfile on an image in the engine, and leave only the normalised result in the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from toolchains.archives import docker_archive, folders
from toolchains.archives.tar_file import EPOCH
from toolchains.engine.client import Engine, ImageInfo
from toolchains.engine.image_build import labelled
from toolchains.fetch.store import Store
from toolchains.images import listing, provenance
from toolchains.lockfile.lock import Artifact, digest
from toolchains.system.errors import EngineError
from toolchains.system.paths import scratch
from toolchains.system.steps import side_by_side


@dataclass(frozen=True)
class Wheel:
    """A Python package to install: its file, and the sha256 that it must have.

    The sha256 comes from the lock or the part's manifest, never from the file itself, because pip compares the two.
    """

    path: Path
    sha256: str


# The revision of how inputs become an image, apart from the Dockerfiles: raise it whenever that changes. It is part of
# the image's identity.
FORMAT = 1


def identity(dockerfile: Path, *files: Path) -> str:
    """Return the digest of what makes an image of its inputs: the Dockerfile, files that it names, the code."""
    formats = [FORMAT, docker_archive.FORMAT, folders.FORMAT]
    named = {"Dockerfile": dockerfile} | {path.name: path for path in files}
    return digest({"format": formats, "dockerfile": folders.files_digest(named)})


def layer(
    engine: Engine,
    name: str,
    dockerfile: Path | bytes,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    wheels: Sequence[Wheel],
    known: Iterable[str],
    files: Mapping[str, Path] | None = None,
    *,
    store: Store,
) -> ImageInfo:
    """Run a Dockerfile with these wheels, normalise the result, and leave only that in the engine.

    Args:
        name: the tag of the result.
        known: the layers of the image that the Dockerfile starts from; they are already normalised.
        files: more files for the Dockerfile, by their names in its context.
        store: records the image and what is in it.
    """
    arguments = {"SOURCE_DATE_EPOCH": str(EPOCH), **arguments}
    known = frozenset(known)
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        saved, normal = Path(work, "saved.tar"), Path(work, "image.tar")
        with ExitStack() as build:
            packed = build.enter_context(context(labelled(dockerfile), wheels, files))
            built = build.enter_context(engine.build(packed, arguments=arguments, labels=labels))
            with saved.open("wb") as file:
                engine.save(built, file)
            # The engine removes the images of the steps meanwhile, which takes it seconds.
            side_by_side(
                lambda: docker_archive.normalise(saved, normal, name=name, known=known, leave_out=True), build.close
            )
        try:
            engine.load(normal)
        except EngineError:
            # Docker with the containerd store requires every layer in the archive, also those that it has.
            docker_archive.normalise(saved, normal, name=name, known=known)
            engine.load(normal)
        return provenance.note(name, require_image(engine, name), store, listing.record(normal, store))


@contextmanager
def saved(engine: Engine, image: str) -> Iterator[Path]:
    """Yield the docker-archive of an image in the engine."""
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        archive = Path(work, "image.tar")
        with archive.open("wb") as file:
            engine.save(image, file)
        yield archive


@contextmanager
def context(
    dockerfile: Path | bytes, wheels: Sequence[Wheel], files: Mapping[str, Path] | None = None
) -> Iterator[IO[bytes]]:
    """Yield a build's context: its Dockerfile, the wheels, a requirements file with exactly these, more files."""
    lines = []
    for wheel in sorted(wheels, key=lambda wheel: wheel.path.name):
        name, version = wheel.path.name.split("-")[:2]
        lines.append(f"{name}=={version} --hash=sha256:{wheel.sha256}\n")
    entries: dict[str, Path | bytes] = {"Dockerfile": dockerfile, "wheels/requirements.txt": "".join(lines).encode()}
    entries |= {f"wheels/{wheel.path.name}": wheel.path for wheel in wheels}
    entries |= files or {}
    with TemporaryFile(dir=scratch()) as file:
        folders.write_tar(file, entries)
        file.seek(0)
        yield file


def require_image(engine: Engine, name: str) -> ImageInfo:
    """Return an image that was just loaded.

    Raises:
        EngineError: the engine does not have it.
    """
    info = engine.image(name)
    if info is None:
        raise EngineError(f"{name} was loaded, and the engine does not have it", next="docker images")
    return info


def locked_wheels(artifacts: Iterable[Artifact], store: Store) -> list[Wheel]:
    """Return the wheels of a lock with their paths in the store."""
    return [Wheel(store.path(artifact), artifact.sha256) for artifact in artifacts]
