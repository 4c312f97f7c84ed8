"""Runs a Dockerfile over an image that the engine has, and leaves nothing but the normalised result there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from . import archive, trees
from .engine import Engine, ImageInfo, labelled
from .errors import EngineError
from .paths import ROOT, scratch

# What decides how inputs become an image, beside the Dockerfiles.
_RECIPE = ("toolchains/layers.py", "toolchains/archive.py", "toolchains/trees.py")


def identity(dockerfile: Path) -> str:
    """The digest of what decides how inputs become an image: the Dockerfile, and the code here."""
    return trees.digest({name: ROOT / name for name in _RECIPE} | {"Dockerfile": dockerfile})


def layer(
    engine: Engine, name: str, dockerfile: Path | bytes, arguments: Mapping[str, str], labels: Mapping[str, str],
    wheels: Sequence[Path], known: Iterable[str], files: Mapping[str, Path] | None = None,
) -> ImageInfo:  # fmt: skip
    """Run a Dockerfile with these wheels, normalise what comes out, and leave only that in the engine.

    Args:
        name: the tag of the result.
        known: the layers of the image that the Dockerfile starts from, which are normalised already.
        files: more files for the Dockerfile, by their names in its context.
    """
    arguments = {"SOURCE_DATE_EPOCH": str(trees.EPOCH), **arguments}
    known = frozenset(known)
    with TemporaryDirectory(prefix="foundry-", dir=scratch()) as work:
        saved, normal = Path(work, "saved.tar"), Path(work, "image.tar")
        with (
            context(labelled(dockerfile), wheels, files) as packed,
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
    return present(engine, name)


@contextmanager
def context(
    dockerfile: Path | bytes, wheels: Sequence[Path], files: Mapping[str, Path] | None = None
) -> Iterator[IO[bytes]]:
    """What a build gets to see: its Dockerfile, wheels, a requirements file that takes exactly these, more files."""
    entries: dict[str, Path | bytes] = {"Dockerfile": dockerfile, "wheels/requirements.txt": _requirements(wheels)}
    entries |= {f"wheels/{wheel.name}": wheel for wheel in wheels}
    entries |= files or {}
    with TemporaryFile(dir=scratch()) as file:
        trees.pack(file, entries)
        file.seek(0)
        yield file


def present(engine: Engine, name: str) -> ImageInfo:
    """An image that was just made.

    Raises:
        EngineError: the engine does not have it.
    """
    info = engine.image(name)
    if info is None:
        raise EngineError(f"{name} was loaded, and the engine does not have it", next="docker images")
    return info


def _requirements(wheels: Sequence[Path]) -> bytes:
    lines = []
    for wheel in sorted(wheels):
        name, version = wheel.name.split("-")[:2]
        with wheel.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{found}\n")
    return "".join(lines).encode()
