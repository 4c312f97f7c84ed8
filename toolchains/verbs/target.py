"""The verb target: list targets, show the contents of one, write the files of a new one (config/scaffold.py).

list and show send no request to an archive. Sizes come from the lock and the store; images come from the container
engine, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from toolchains.artifacts import linked, native, plugin_wheels
from toolchains.assembly.request import locked_target
from toolchains.assembly.target_image import Inputs
from toolchains.config import components, projects, scaffold
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
from toolchains.lockfile.lock import Artifact, LockedTarget, LockedTriton
from toolchains.system import paths
from toolchains.system.errors import EngineError, FoundryError, MissingToolError, UsageError, suggestion
from toolchains.system.terminal import make_console

_MEGA = 1e6
_UNRESOLVED = "not in the lock: ./foundry pin --update={}"
_console = make_console()


def target(action: str, name: str, *, like: str = "") -> None:
    """Run the verb `target`; its help is in tasks.py.

    Raises:
        UsageError: no such target; a name that a new target cannot have; --like without `new`.
        FileError: a file to be written exists.
    """
    if like and action != "new":
        raise UsageError("--like is for a new target", next=f"./foundry target new {name or 'NAME'} --like={like}")
    if name and action == "list":
        raise UsageError("list takes no name", next=f"./foundry target show {name}")
    match action:
        case "new":
            new(name, like)
        case "list":
            show_all()
        case _:
            show(name)


def new(name: str, like: str) -> None:
    """Write the files of a new target; print their paths and the next commands."""
    for place in scaffold.write(name, like):
        for path in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
            _console.print(f"wrote {path.relative_to(paths.ROOT)}")
    _console.print("\nnow, without an edit:")
    for words in (f"pin --update={name}", f"test --target={name} --plugin", f"e2e {name}"):
        _console.print(f"  ./foundry {words}")
    _console.print("then replace each TODO: docs/new-target.md")


def show_all() -> None:
    """Print all targets."""
    engine, store = _engine(), Store(paths.cache(), offline=True)
    locked = lock.load().targets
    table = Table("target", "variant of", "suite", "python", "triton", "MB to fetch", "MB of image", box=None)
    for name in components.names():
        target, entry = components.target(name), locked.get(name)
        base = target.backend if target.backend != name else ""
        if entry is None:
            table.add_row(name, base, target.suite, target.python, "", "", _UNRESOLVED.format(name))
            continue
        releases = ", ".join(_releases(entry))
        default = entry.tritons[entry.default_triton]
        # The image of one release does not need the wheels of the others.
        size = _megabytes(replace(entry, tritons={entry.default_triton: default}).artifacts())
        _, image_size = _image(entry, default, engine, store)
        table.add_row(name, base, target.suite, target.python, releases, size, image_size)
    _console.print(table)
    _console.print("\none of them: ./foundry target show TARGET")


def show(name: str) -> None:
    """Print what a target consists of.

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
    target, locked = components.target(name), locked_target(name)
    engine, store = _engine(), Store(paths.cache(), offline=True)
    extends = f", a variant of {target.backend}" if locked.variant else ""
    dockerfiles = [f"docker/{owner}.Dockerfile" for owner in dict.fromkeys((target.backend, target.name))]
    described = [f"toolchains/targets/{name}.toml", *(path for path in dockerfiles if (paths.ROOT / path).is_file())]
    _console.print(Text.assemble((name, "bold"), f"{extends}: {', '.join(described)}"))
    _console.print(f"suite: Debian {target.suite}, Python {target.python}")
    _console.print(f"components (toolchains/pins): {', '.join(pin.name for pin in target.pins)}")
    if target.build:
        _console.print(f"built with (toolchains/pins): {', '.join(pin.name for pin in target.build)}")
    table = Table("part", "version", "MB", "where it can come from", box=None)
    table.columns[2].justify = "right"
    table.columns[3].overflow = "fold"
    for row in (*_fetched(target, locked), *_built(target, locked, store)):
        table.add_row(*row)
    _console.print(table)
    _console.print("images:")
    for version in _releases(locked):
        image, image_size = _image(locked, locked.tritons[version], engine, store)
        _console.print(f"  Triton {version}: {image} ({image_size}{' MB' * image_size.isdigit()})")


def _releases(locked: LockedTarget) -> list[str]:
    """Return the releases of Triton, the default one first."""
    return sorted(locked.tritons, key=lambda version: version != locked.default_triton)


def _fetched(target: Target, locked: LockedTarget) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each kind of part that is fetched."""
    suites = ", ".join((target.suite, *target.extra_suites))
    yield f"{len(locked.debs)} Debian packages", suites, _megabytes(locked.debs), "prebuilt"
    wheels = (*locked.wheels, *locked.sdists)
    yield f"{len(wheels)} Python packages", "", _megabytes(wheels), "prebuilt"
    own_source = f", or --from-source={TRITON}" if TRITON in target.upstreams else ""
    for version in _releases(locked):
        default = " (default)" if version == locked.default_triton else ""
        wheel = locked.tritons[version].wheel
        yield "Triton", version + default, _megabytes([wheel]), f"prebuilt wheel, patched{own_source}"


def _built(target: Target, locked: LockedTarget, store: Store) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each part that is or can be built on this machine."""
    for name in target.upstreams:
        if name != TRITON:
            profile = projects.load(name).profile()
            try:
                built = build.describe_build(name, target.suite, llvm_targets=target.llvm_targets).identity
            except FoundryError:
                # The source is not in the lock, or only a user can give it.
                built = ""
            size = _part(store, "upstream", built)
            yield name, profile.version, size, f"prebuilt packages, or --from-source={name}"
    sdk = VendorSdk.read(target.sdk) if target.sdk else None
    for name in target.recipes:
        assert locked.builder is not None, "what has recipes has a builder"
        size = _part(store, "native", native.identity(name, locked.builder))
        vendor = f", or --sdk=PATH: {sdk.name}" if sdk and sdk.replaces == name else ""
        yield name, "", size, f"built here, {native.source_folder(name).relative_to(paths.ROOT)}{vendor}"
    for program in locked.linked:
        size = _part(store, "linked", linked.identity(program))
        origin = f"linked here of {len(program.debs)} packages, toolchains/recipes/{program.recipe}"
        yield program.recipe, "", size, origin
    for name in target.plugins:
        project = read_table(paths.BACKENDS / name / "pyproject.toml")["project"]
        size = _part(store, "plugin", plugin_wheels.identity(name))
        yield project["name"], plugin_wheels.version(), size, f"built here, backends/{name}"


def _part(store: Store, kind: str, identity: str) -> str:
    """Return the size of a part that was built here (MB), or "-"."""
    if not (identity and store.has_part(kind, identity)):
        return "-"
    folder = store.part(kind, identity, lambda folder: None)
    return _size(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))


def _image(target: LockedTarget, release: LockedTriton, engine: Engine | None, store: Store) -> tuple[str, str]:
    """Return the name that a target's image would have if built now, and its size (MB) or why there is none."""
    name = Inputs(target, release).name
    if engine is None:
        return name, "no container engine answers"
    info = provenance.image(name, engine=engine, store=store)
    return name, _size(info.size) if info else "not built"


def _engine() -> Engine | None:
    try:
        return client.connect()
    except (EngineError, MissingToolError):
        return None


def _megabytes(artifacts: Sequence[Artifact]) -> str:
    return _size(sum(artifact.size for artifact in artifacts))


def _size(count: int) -> str:
    """Return a number of bytes in MB."""
    megabytes = count / _MEGA
    return f"{megabytes:.0f}" if megabytes >= 1 else f"{max(megabytes, 0.1):.1f}"
