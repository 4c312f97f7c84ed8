"""The verb target: list targets, show the contents of one, write the files of a new one (config/scaffold.py).

A new one is written into this tree, or with --out into a repository of its own.

list and show send no request to an archive. Sizes come from the lock and the store; images come from the container
engine, if there is one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
from rich.table import Table
from rich.text import Text

from toolchains.artifacts import linked, native, plugin_wheels
from toolchains.assembly.request import locked_target
from toolchains.assembly.target_image import Inputs
from toolchains.config import components, platforms, projects, scaffold
from toolchains.config.components import Target
from toolchains.config.reading import read_table
from toolchains.config.vendors import VendorSdk
from toolchains.engine import client
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.fromsource.choice import TRITON
from toolchains.images import provenance
from toolchains.lockfile import lock
from toolchains.lockfile.lock import AMD64, Artifact, LockedTarget, LockedTriton
from toolchains.system import children, document, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import EngineError, FoundryError, MissingToolError, UsageError, suggestion
from toolchains.system.terminal import make_console

_MEGA = 1e6
_console = make_console()


class TargetImage(msgspec.Struct, frozen=True):
    """The image that a target has if it is built now.

    Attributes:
        triton: the release of Triton in it.
        name: its name, with the digest of its inputs.
        state: "built", "not built", or "unknown" if no container engine answers.
        bytes: its size; null if it is not built.
    """

    triton: str
    name: str
    state: Literal["built", "not built", "unknown"]
    bytes: int | None = None

    def __str__(self) -> str:
        return (
            "no container engine answers"
            if self.state == "unknown"
            else _size(self.bytes)
            if self.bytes
            else self.state
        )


class ListedTarget(msgspec.Struct, frozen=True):
    """A target.

    Attributes:
        name: its name.
        variant_of: the target that it is a variant of, or "".
        suite: the release of Debian.
        python: the version of Python.
        tritons: the releases of Triton, the default one first; none if the target is not in the lock.
        fetched: bytes that an image of the default release needs from archives; null if the target is not in the lock.
        image: the image with the default release; null if the target is not in the lock.
        platforms: the platforms that it is made for.
    """

    name: str
    variant_of: str
    suite: str
    python: str
    platforms: list[str]
    tritons: list[str] = []
    fetched: int | None = None
    image: TargetImage | None = None


class Missing(msgspec.Struct, frozen=True):
    """A target that is not made for a platform.

    Attributes:
        target: the target.
        platform: the platform.
        why: why it cannot be had there, or was not tried.
    """

    target: str
    platform: str
    why: str


class Targets(ShownDocument, kw_only=True, tag="target list"):
    """All targets: `target list`.

    Attributes:
        targets: the targets, by name.
        missing: what is not made for other platforms than linux/amd64.
    """

    targets: list[ListedTarget]
    missing: list[Missing]

    def render(self, console: Console) -> None:
        table = Table("target", "variant of", "suite", "python", "triton", "MB to fetch", "MB of image", box=None)
        for row in self.targets:
            size = "" if row.fetched is None else _size(row.fetched)
            image = str(row.image or f"not in the lock: ./foundry pin --update={row.name}")
            table.add_row(row.name, row.variant_of, row.suite, row.python, ", ".join(row.tritons), size, image)
        console.print(table)
        for platform in dict.fromkeys(row.platform for row in self.missing):
            console.print(
                f"\n{platform}, by --platform={platform} where it is not the machine's own; not made for it are:"
            )
            for gap in self.missing:
                if gap.platform == platform:
                    console.print(Text.assemble("  ", (gap.target, "bold"), f": {gap.why}"))
        console.print("\none of them: ./foundry target show TARGET")


class Part(msgspec.Struct, frozen=True):
    """A part of a target.

    Attributes:
        name: what it is.
        version: its version, or the suites of Debian packages; "" if it has none.
        bytes: its size; null if it is built here, and was not yet.
        origin: where it can come from.
    """

    name: str
    version: str
    bytes: int | None
    origin: str


class TargetParts(ShownDocument, kw_only=True, tag="target show"):
    """What a target consists of: `target show`.

    Attributes:
        name: the target.
        variant_of: the target that it is a variant of, or "".
        files: what describes it, relative to the checkout.
        suite: the release of Debian.
        python: the version of Python.
        components: the components in its image, files of toolchains/pins.
        built_with: the components that its native parts are built with.
        parts: what the image is made from.
        images: the image of each release of Triton, the default one first.
    """

    name: str
    variant_of: str
    files: list[str]
    suite: str
    python: str
    components: list[str]
    built_with: list[str]
    parts: list[Part]
    images: list[TargetImage]

    def render(self, console: Console) -> None:
        extends = f", a variant of {self.variant_of}" if self.variant_of else ""
        console.print(Text.assemble((self.name, "bold"), f"{extends}: {', '.join(self.files)}"))
        console.print(f"suite: Debian {self.suite}, Python {self.python}")
        console.print(f"components (toolchains/pins): {', '.join(self.components)}")
        if self.built_with:
            console.print(f"built with (toolchains/pins): {', '.join(self.built_with)}")
        table = Table("part", "version", "MB", "where it can come from", box=None)
        table.columns[2].justify = "right"
        table.columns[3].overflow = "fold"
        for part in self.parts:
            table.add_row(part.name, part.version, "-" if part.bytes is None else _size(part.bytes), part.origin)
        console.print(table)
        console.print("images:")
        for image in self.images:
            console.print(f"  Triton {image.triton}: {image.name} ({image}{' MB' * (image.state == 'built')})")


def target(action: str, name: str, *, like: str = "", out: str = "", licence: str = "") -> None:
    """Run the verb `target`; its help is in tasks.py.

    Raises:
        UsageError: no such target; a name that a new target cannot have; an option of `new` without it.
        FileError: a file to be written exists.
    """
    given = [f"--{option}={value}" for option, value in (("like", like), ("out", out), ("licence", licence)) if value]
    if given and action != "new":
        command = shlex.join(["target", "new", name or "NAME", *given])
        raise UsageError(f"{given[0]} is for a new target", next=f"./foundry {command}")
    if licence and not out:
        raise UsageError(
            "--licence is for a repository of its own",
            why="a plugin in this tree has this tree's licence",
            next=f"./foundry target new {name} --licence={licence} --out=FOLDER",
        )
    if name and action == "list":
        raise UsageError("list takes no name", next=f"./foundry target show {name}")
    match action:
        case "new" if out:
            new_repository(name, Path(out), like, licence)
        case "new":
            new(name, like)
        case "list":
            document.show(list_targets())
        case _:
            document.show(describe_target(name))


def new(name: str, like: str) -> None:
    """Write the files of a new target; print their paths and the next commands."""
    for place in scaffold.write(name, like):
        for path in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
            _console.print(f"wrote {path.relative_to(paths.ROOT)}")
    _console.print("\nnow, without an edit:")
    for words in (f"pin --update={name}", f"test --target={name} --plugin", f"e2e {name}"):
        _console.print(f"  ./foundry {words}")
    _console.print("then replace each TODO: docs/new-target.md")


def new_repository(name: str, folder: Path, like: str, licence: str) -> None:
    """Write a plugin that is a repository of its own; print its files and the next commands."""
    commit = children.run(["git", "rev-parse", "HEAD"], cwd=paths.ROOT, log="target-new").stdout.strip()
    model = scaffold.write_repository(name, folder, commit=commit, like=like, licence=licence).name
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        _console.print(f"wrote {path}")
    place = shlex.quote(str(folder.resolve()))
    _console.print("\nnow, without an edit:")
    for words in (f"e2e {model} --plugin={place}", f"run {model} --plugin={place} --with={place} -m pytest tests"):
        _console.print(f"  ./foundry {words}", soft_wrap=True)
    _console.print("then replace each TODO: docs/own-plugin.md")


def list_targets() -> Targets:
    """Return all targets."""
    engine, store = _engine(), Store(paths.cache(), offline=True)
    locks = {platform: lock.load(platform=platform).targets for platform in {_platform(n) for n in components.names()}}
    found = []
    for name in components.names():
        target, entry = components.target(name), locks[_platform(name)].get(name)
        variant_of = target.backend if target.backend != name else ""
        made_for = [platform for platform in platforms.names() if platforms.load(platform).has(name)]
        row = ListedTarget(name, variant_of, target.suite, target.python, made_for)
        if entry:
            default = entry.tritons[entry.default_triton]
            # The image of one release does not need the wheels of the others.
            fetched = replace(entry, tritons={entry.default_triton: default}).artifacts()
            image = _image(entry, default, engine, store)
            row = msgspec.structs.replace(row, tritons=_releases(entry), fetched=_bytes(fetched), image=image)
        found.append(row)
    missing = [
        Missing(name, platform, why)
        for platform in platforms.names()
        for name, why in platforms.load(platform).unavailable.items()
    ]
    return Targets(targets=found, missing=missing)


def describe_target(name: str) -> TargetParts:
    """Return what a target consists of.

    Raises:
        UsageError: no such target.
        PinError: it is not in the lock.
    """
    if name not in components.names():
        known = components.names()
        raise UsageError(
            f"there is no target {name}{suggestion(name, known)}",
            why=f"known: {', '.join(known)}",
            next="./foundry target list",
        )
    target, locked = components.target(name), locked_target(name, _platform(name))
    engine, store = _engine(), Store(paths.cache(), offline=True)
    dockerfiles = [f"docker/{owner}.Dockerfile" for owner in dict.fromkeys((target.backend, target.name))]
    return TargetParts(
        name=name,
        variant_of=target.backend if locked.variant else "",
        files=[f"toolchains/targets/{name}.toml", *(path for path in dockerfiles if (paths.ROOT / path).is_file())],
        suite=target.suite,
        python=target.python,
        components=[pin.name for pin in target.pins],
        built_with=[pin.name for pin in target.build],
        parts=[*_fetched(target, locked), *_built(target, locked, store)],
        images=[_image(locked, locked.tritons[version], engine, store) for version in _releases(locked)],
    )


def _platform(name: str) -> str:
    """Return the platform that a target is shown for: this machine's if it is made for it, or linux/amd64."""
    return platforms.here() if platforms.load(platforms.here()).has(name) else AMD64


def _releases(locked: LockedTarget) -> list[str]:
    """Return the releases of Triton, the default one first."""
    return sorted(locked.tritons, key=lambda version: version != locked.default_triton)


def _fetched(target: Target, locked: LockedTarget) -> Iterator[Part]:
    """Yield each kind of part that is fetched."""
    suites = ", ".join((target.suite, *target.extra_suites))
    yield Part(f"{len(locked.debs)} Debian packages", suites, _bytes(locked.debs), "prebuilt")
    wheels = (*locked.wheels, *locked.sdists)
    yield Part(f"{len(wheels)} Python packages", "", _bytes(wheels), "prebuilt")
    own_source = f", or --from-source={TRITON}" if TRITON in target.upstreams else ""
    for version in _releases(locked):
        default = " (default)" if version == locked.default_triton else ""
        size = _bytes([locked.tritons[version].wheel])
        yield Part("Triton", version + default, size, f"prebuilt wheel, patched{own_source}")


def _built(target: Target, locked: LockedTarget, store: Store) -> Iterator[Part]:
    """Yield each part that is or can be built on this machine."""
    for name in target.upstreams:
        if name != TRITON:
            profile = projects.load(name).profile()
            try:
                built = build.describe_build(name, target.suite, llvm_targets=target.llvm_targets).identity
            except FoundryError:
                # The source is not in the lock, or only a user can give it.
                built = ""
            size = _part(store, "upstream", built)
            yield Part(name, profile.version, size, f"prebuilt packages, or --from-source={name}")
    sdk = VendorSdk.read(target.sdk) if target.sdk else None
    for name in target.recipes:
        assert locked.builder is not None, "what has recipes has a builder"
        size = _part(store, "native", native.identity(name, locked.builder))
        vendor = f", or --sdk=PATH: {sdk.name}" if sdk and sdk.replaces == name else ""
        yield Part(name, "", size, f"built here, {native.source_folder(name).relative_to(paths.ROOT)}{vendor}")
    for program in locked.linked:
        size = _part(store, "linked", linked.identity(program))
        origin = f"linked here of {len(program.debs)} packages, toolchains/recipes/{program.recipe}"
        yield Part(program.recipe, "", size, origin)
    for name in target.plugins:
        project = read_table(paths.BACKENDS / name / "pyproject.toml")["project"]
        size = _part(store, "plugin", plugin_wheels.identity(name))
        yield Part(project["name"], plugin_wheels.version(), size, f"built here, backends/{name}")


def _part(store: Store, kind: str, identity: str) -> int | None:
    """Return the bytes of a part that was built here; None if it was not."""
    if not (identity and store.has_part(kind, identity)):
        return None
    folder = store.part(kind, identity, lambda folder: None)
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _image(target: LockedTarget, release: LockedTriton, engine: Engine | None, store: Store) -> TargetImage:
    """Return the image that a target would have if built now."""
    name, triton = Inputs(target, release).name, release.version
    if engine is None:
        return TargetImage(triton, name, "unknown")
    info = provenance.image(name, engine=engine, store=store)
    return TargetImage(triton, name, "built", info.size) if info else TargetImage(triton, name, "not built")


def _engine() -> Engine | None:
    try:
        return client.connect()
    except (EngineError, MissingToolError):
        return None


def _bytes(artifacts: Sequence[Artifact]) -> int:
    return sum(artifact.size for artifact in artifacts)


def _size(count: int) -> str:
    """Return a number of bytes in MB."""
    megabytes = count / _MEGA
    return f"{megabytes:.0f}" if megabytes >= 1 else f"{max(megabytes, 0.1):.1f}"
