"""Build native parts: a folder under toolchains/recipes becomes a Conan package, and the package a tar.

A recipe has its sources next to it, or names the folder that has them: `sources = "sdks/upmem"`.

    builder    base image of the locked compilers, with the locked Conan, CMake and Ninja    docker/build.Dockerfile
    part       `conan create` of the recipe in a builder container without a network; the package's files in a tar

A part is named by the digest of its sources, of cmake/ and of its builder. If the store has a part of this name,
nothing is built and no builder is needed. Two builds give the same bytes: cmake/foundry.cmake keeps paths and dates out
of the compilers' output, and prefix.py writes the tar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import folders, prefix
from toolchains.archives.tar_file import EPOCH
from toolchains.config import platforms
from toolchains.contents import licences
from toolchains.contents.component import Component, properties
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.images import base as rootfs
from toolchains.images import layer, provenance
from toolchains.lockfile.lock import LockedTarget, digest
from toolchains.system import paths
from toolchains.system.errors import CommandError, UsageError
from toolchains.system.steps import step

# Folders and files of a recipe that are not built: an edit in them causes no build. build/ is where presets build.
_NOT_BUILT = {"tests", "conformance", "calibration", "build", "README.md", "LICENSE", "CMakePresets.json"}
# The recipe that the other recipes extend, and the version that it gives them.
_BASE, _VERSION = "native", "1.0"
# How a recipe names the folder with its sources, from the root of the checkout.
_FOLDER = re.compile(r'^    sources = "(.+)"$', re.MULTILINE)
# The files of cmake/ that the project's own recipes share; the others are for upstream's projects.
_SHARED = ("foundry.cmake", "foundry.profile", "reproducible.cmake")
# The revision of how a package becomes a part: raise it whenever that changes. It is part of the part's identity.
FORMAT = 1
# Conan's own files about the package; one of them contains the time.
NOTES = ("conaninfo.txt", "conanmanifest.txt")
_SOURCES = "/foundry/src"
_CONAN = (
    *("--profile:all", f"{_SOURCES}/cmake/foundry.profile", "--no-remote"),
    *("--format", "json", "--out-file", "/foundry/made.json"),
)
_TAIL_LINES = 40


@dataclass(frozen=True)
class NativePart:
    """A built part: the recipe's name, a tar of the files to install, and the digest of the part's inputs."""

    name: str
    path: Path
    identity: str


def identity(name: str, builder: LockedTarget) -> str:
    """Return the digest of all inputs of a recipe's part.

    Raises:
        UsageError: there is no such recipe.
    """
    return _identity(_sources(name), builder)


def component(name: str, builder: LockedTarget) -> Component:
    """Return a recipe's part as a component, without what it was built with; its builder's digest names that."""
    # The class Native gives the package the same version.
    file = source_folder(name) / "VERSION"
    return Component(
        "native",
        name,
        file.read_text(encoding="utf-8").strip() if file.is_file() else _VERSION,
        licences.of_recipe(name),
        properties=properties(
            inputs=identity(name, builder),
            sources=folders.files_digest(_sources(name)),
            builder=recipe_builder_name(builder),
            builder_inputs=builder_identity(builder),
        ),
    )


def fetch_if_needed(names: Sequence[str], builder: LockedTarget, store: Store) -> LockedTarget:
    """Return the builder with the files that are really used; if the store has all parts, fetch nothing."""
    if all(store.has_part("native", identity(name, builder)) for name in names):
        return builder
    return fetch_builder(builder, store)


def fetch_builder(builder: LockedTarget, store: Store) -> LockedTarget:
    """Fetch all files of the builder into the store, and return the builder with the files that are really used."""
    wanted = [*builder.debs, *builder.wheels, *builder.sdists]
    with step(f"{len(wanted)} locked files to build with"):
        fetched = store.fetch(wanted, suite=builder.suite, python=builder.python, platform=builder.platform)
    return replace(builder, debs=tuple(artifact for artifact in fetched if artifact.kind == "deb"))


def part(name: str, builder: LockedTarget, *, store: Store, engine: Engine) -> NativePart:
    """Return a recipe's part, from the store or built now.

    Args:
        builder: its files must be in the store.

    Raises:
        UsageError: there is no such recipe.
        CommandError: Conan, CMake or a compiler failed; carries the last lines printed.
        EngineError, OfflineError: the image to build in is not available.
    """
    with TemporaryDirectory(dir=paths.scratch()) as work:
        copies = folders.copy(_sources(name), Path(work))
        inputs = _identity(copies, builder)
        platforms.load(builder.platform).rewrite_files(copies.values())

        def build(folder: Path) -> None:
            image = ensure_builder(builder, store=store, engine=engine)
            with step(f"native part {name}"), engine.container(image) as container:
                _build(name, Path(work), container, folder / f"{name}.tar")

        folder = store.part("native", inputs, build)
    return NativePart(name, folder / f"{name}.tar", inputs)


def builder_image(builder: LockedTarget, *, store: Store, engine: Engine) -> str:
    """Ensure that the engine has the builder's image as locked; fetch nothing if it exists. Return its name."""
    name = recipe_builder_name(builder)
    if provenance.image(name, engine=engine, store=store):
        return name
    return ensure_builder(fetch_builder(builder, store), store=store, engine=engine)


def ensure_builder(builder: LockedTarget, *, store: Store, engine: Engine) -> str:
    """Ensure that the engine has the builder's image, made of files in the store; return its name."""
    name = recipe_builder_name(builder)
    with store.locked(name.replace("/", "-")):
        if provenance.image(name, engine=engine, store=store) is None:
            base, known = rootfs.load_base(builder, what="base image to build in", store=store, engine=engine)
            with step("Conan, CMake and Ninja"):
                wheels = layer.locked_wheels(builder.wheels, store)
                sdists = {f"sdists/{sdist.filename}": store.path(sdist) for sdist in builder.sdists}
                layer.layer(engine, name, _dockerfile(), {"BASE": base}, {}, wheels, known, sdists, store=store)
    return name


def _build(name: str, sources: Path, container: Container, result: Path) -> None:
    """Build the package in a container, and write its tar on this machine."""
    log = paths.LOGS / f"native-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    container.copy_into(sources, _SOURCES)
    environment = {"CONAN_HOME": "/foundry/conan", "SOURCE_DATE_EPOCH": str(EPOCH), "LC_ALL": "C.UTF-8"}
    container.call(["conan", "export", f"{_SOURCES}/{_BASE}"], env=environment)
    with log.open("w") as file:
        done = container.run(
            ["conan", "create", f"{_SOURCES}/{name}", *_CONAN],
            env=environment,
            line=lambda text: print(text, file=file, flush=True),
        )
    if done.status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        raise CommandError(
            f"the native part {name} could not be built",
            why=f"{tail}\n(whole output: {log})",
            next=f"correct {source_folder(name)}, then the same command again",
        )
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        graph, packed = Path(work, "made.json"), Path(work, "package.tar")
        container.copy_out("/foundry/made.json", graph, only="file")
        nodes = json.loads(graph.read_text())["graph"]["nodes"].values()
        (package,) = {node["package_folder"] for node in nodes if node["name"] == name}
        container.call(["tar", "--create", "--file", "/foundry/package.tar", "--directory", package, "."])
        container.copy_out("/foundry/package.tar", packed, only="file")
        prefix.normalise(packed, result, without=NOTES)


def _sources(name: str) -> dict[str, Path]:
    """Return a part's source files by their names in the folder of sources: the recipe's and the shared ones."""
    return sources(name) | sources(_BASE) | {f"cmake/{file}": paths.CMAKE / file for file in _SHARED}


def sources(name: str) -> dict[str, Path]:
    """Return the files that a recipe's package is built from, by their names in the folder of sources.

    Raises:
        UsageError: there is no such recipe.
    """
    named = _named_folder(name)
    return {
        f"{place}/{inner}": path
        for place, folder in {name: paths.RECIPES / name, named or name: source_folder(name)}.items()
        for inner, path in folders.files(folder).items()
        if not _NOT_BUILT.intersection(inner.split("/"))
    }


def source_folder(name: str) -> Path:
    """Return the folder that has a recipe's sources and tests.

    Raises:
        UsageError: there is no such recipe.
    """
    named = _named_folder(name)
    return paths.ROOT / named if named else paths.RECIPES / name


def _named_folder(name: str) -> str:
    """Return the folder that a recipe names, from the root of the checkout; "" if it has its sources next to it."""
    recipe = paths.RECIPES / name / "conanfile.py"
    if not recipe.is_file():
        raise UsageError(f"there is no recipe toolchains/recipes/{name}", why="it has no conanfile.py")
    named = _FOLDER.search(recipe.read_text(encoding="utf-8"))
    return named[1] if named else ""


def _identity(sources: Mapping[str, Path], builder: LockedTarget) -> str:
    return digest(
        {
            "sources": folders.files_digest(sources),
            "builder": builder_identity(builder),
            "format": [FORMAT, prefix.FORMAT],
            **platforms.load(builder.platform).identity,
        }
    )


def recipe_builder_name(builder: LockedTarget) -> str:
    """Return the name of the builder's image."""
    return f"triton-foundry/{builder.name}:{builder_identity(builder)[:16]}"


def builder_identity(builder: LockedTarget) -> str:
    """Return the digest of all inputs of the builder's image."""
    return digest(
        {
            "base": rootfs.identity(builder),
            "python": sorted(artifact.sha256 for artifact in (*builder.wheels, *builder.sdists)),
            "recipe": layer.identity(_dockerfile()),
        }
    )


def _dockerfile() -> Path:
    return paths.DOCKER / "build.Dockerfile"
