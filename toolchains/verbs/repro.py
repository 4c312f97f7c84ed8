"""The verb repro: build a target's image twice from nothing, in different surroundings, and compare all that was built.

    inputs      the locked files, by their sha256: each build's store gets them from the user's store, and nothing else
    built       base image, repacked Triton, native parts, linked programs, wheels, each layer of the image
    compared    the image's configuration and layers in the engine, and the parts in the two stores
    also with   the image and the parts that this machine built before, at another time, and the published IDs

Each build runs in another process, from another copy of this checkout. What runs in the engine's containers gets its
surroundings from the engine: another host name in each build, and the engine's own clock and processors.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table
from rich.text import Text

from toolchains.archives import folders
from toolchains.artifacts import native
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image, Inputs
from toolchains.engine import client, context, host
from toolchains.engine.client import Engine
from toolchains.fetch import manifest
from toolchains.fetch.store import Store
from toolchains.images import layer, provenance
from toolchains.lockfile.lock import Artifact
from toolchains.repro import compare, expected
from toolchains.repro.compare import Difference, Where
from toolchains.system import children, document, durable, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import CommandError, EngineError, ImageError, PartError
from toolchains.system.steps import step
from toolchains.system.terminal import make_console

_console = make_console()
# Differences that are printed; the file has all.
_SHOWN = 20
# What a copy of this checkout leaves out at its top: it is no input, and each checkout has its own.
_LEFT_OUT = (".git", ".venv", "build", ".import_linter_cache")
# Variables of this process that a build needs: which engine, and which archives.
_PASSED = ("DOCKER_", "FOUNDRY_")
_HOST_NAME = "another-host"
# Sets what a process inherits, and becomes the command.
_START = """
import os, socket, sys
umask, processors, host, *command = sys.argv[1:]
os.umask(int(umask, 8))
os.sched_setaffinity(0, map(int, processors.split(",")))
if host:
    socket.sethostname(host)
os.execv(command[0], command)
"""


def repro(request: Request, *, engine: str) -> int:
    """Build and compare; return 1 if anything differs, else 0."""
    result = build_twice(request, engine=engine)
    document.show(result)
    if not result.differences:
        return 0
    place = paths.RESULTS / request.target.label / request.release.version / "repro.txt"
    durable.write(place, "\n\n".join(map(str, result.differences)) + "\n")
    _console.print(Text(f"\n{len(result.differences)} differences; all of them are in {place}", "bold red"))
    return 1


@dataclass(frozen=True)
class Surroundings:
    """What a build finds on its machine, and must not depend on.

    Attributes:
        name: "first" or "second".
        checkout: the folder with the copy of this checkout.
        store, temporary: the folders of its store and for its temporary files.
        host: the host name to set; "" for the machine's own.
        umask: in octal.
        processors: the numbers of the processors that it may use.
        variables: the locale and the time zone.
        engine: the address of its engine; "" for the user's.
    """

    name: str
    checkout: Path
    store: Path
    temporary: Path
    host: str
    umask: str
    processors: tuple[int, ...]
    variables: Mapping[str, str]
    engine: str = ""

    def described(self) -> dict[str, str]:
        """Return what it consists of, for people."""
        return {
            "checkout": str(self.checkout),
            "store": str(self.store),
            "temporary files": str(self.temporary),
            "host name": self.host or os.uname().nodename,
            "umask": self.umask,
            "processors": str(len(self.processors)),
            **{name: value for name, value in self.variables.items() if name != "HOSTNAME"},
            "engine": self.engine or "this machine's",
        }

    def run(self, words: Sequence[str | Path], line: Callable[[str], None]) -> None:
        """Run a command in these surroundings, in the checkout's folder.

        Raises:
            CommandError: it failed; carries the last lines printed.
        """
        passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
        passed |= {"FOUNDRY_CACHE": str(self.store), "TMPDIR": str(self.temporary), **self.variables}
        # The folder with docker's contexts may be another one in these surroundings.
        passed |= {"DOCKER_HOST": self.engine} if self.engine else context.variables()
        processors = ",".join(map(str, self.processors))
        try:
            children.run(
                [
                    *(["unshare", "--uts", "--"] if self.host else []),
                    *(sys.executable, "-P", "-c", _START, self.umask, processors, self.host, *words),
                ],
                log=f"repro-{self.name}",
                cwd=self.checkout,
                env=passed,
                network=True,
                line=line,
            )
        except CommandError as error:
            next = "./foundry build TARGET, which shows whether it fails in the usual surroundings, too"
            raise CommandError(f"the {self.name} build failed", why=error.why, next=next) from error


class Comparison(ShownDocument, kw_only=True, tag="repro"):
    """What comparing two builds of an image found: `repro`.

    Attributes:
        differences: all of them; none if the builds are equal.
        compared: what was compared, for people.
    """

    differences: list[Difference]
    compared: list[str]

    def render(self, console: Console) -> None:
        for text in self.compared:
            console.print(text)
        if not self.differences:
            console.print(Text("all is equal", "bold green"))
        for difference in self.differences[:_SHOWN]:
            console.print(f"\n{difference}")


def surroundings(work: Path, engine: str) -> tuple[Surroundings, Surroundings]:
    """Return the surroundings of both builds, as different as this machine allows.

    Args:
        work: an empty folder for both.
        engine: the address of the second build's engine; "" for the same one.
    """
    processors = tuple(sorted(os.sched_getaffinity(0)))
    # Only root may set a host name, and only in a new namespace. mmdebstrap runs with the rights of a
    # subordinate user if an ordinary user builds: that one must be able to read what the build wrote.
    as_root = os.geteuid() == 0
    named = as_root and children.run(["unshare", "--uts", "true"], log="repro-unshare", check=False).status == 0
    first = Surroundings(
        "first",
        work / "a" / "checkout",
        work / "a" / "store",
        work / "a" / "tmp",
        "",
        "022",
        processors,
        {"LC_ALL": "C.UTF-8", "TZ": "UTC"},
    )
    second = Surroundings(
        "second",
        work / "another place" / "a checkout with a longer name",
        work / "another-store",
        work / "another-folder-for-temporary-files",
        _HOST_NAME if named else "",
        "077" if as_root else "002",
        processors[-1:],
        {"LC_ALL": "POSIX", "TZ": "XST-11:30", "HOSTNAME": _HOST_NAME},
        engine,
    )
    return first, second


def not_varied(first: Surroundings, second: Surroundings, seconds: float) -> list[str]:
    """Return what was the same in both builds, for people.

    Args:
        seconds: from the begin of the first build to that of the second.
    """
    same = [name for name, value in first.described().items() if second.described()[name] == value]
    return [
        f"the clock: the second build began {seconds:.0f} s after the first one",
        *(f"the {name}" for name in same),
        "the kernel, the processor's kind, and the packages of .venv",
    ]


def build_twice(request: Request, *, engine: str = "") -> Comparison:
    """Build an image twice from nothing, and compare; print in which surroundings.

    Args:
        engine: the address of another engine for the second build; "" for the same one.

    Raises:
        FoundryError: whichever step of a build failed.
    """
    docker = host.ensure_engine()
    other = _connect(engine) if engine else docker
    store = request.store()
    inputs = fetch_inputs(request, store)
    options = list(request.options)
    if not request.allow_drift:
        options = [*(option for option in options if option != "--offline"), "--offline"]
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        # mmdebstrap may work with the rights of a subordinate user.
        Path(work).chmod(0o755)
        first, second = surroundings(Path(work), engine)
        table = Table("what", "first build", "second build")
        for (name, one), another in zip(first.described().items(), second.described().values(), strict=True):
            table.add_row(name, one, another)
        _console.print(table)
        began = []
        with _names_kept((docker, other) if engine else (docker,), request, store, (first, second)):
            # Both before the first build: somebody may edit this checkout meanwhile.
            for build in (first, second):
                prepare(build, inputs, store)
            for build in (first, second):
                began.append(time.monotonic())
                with step(f"the {build.name} build of {request.target.name} with Triton {request.release.version}"):
                    words = [sys.executable, "-P", "-m", "invoke", "--search-root", str(build.checkout)]
                    build.run(
                        [*words, "build", request.target.name, *options],
                        lambda text: _console.print(Text(f"    {text}", "dim")),
                    )
            _console.print("not varied:")
            for same in not_varied(first, second, began[1] - began[0]):
                _console.print(f"  {same}")
            with step("comparing"):
                return _compared(request, store, (first, second), (docker, other))


def fetch_inputs(request: Request, store: Store) -> list[Artifact]:
    """Ensure that a store has all files that an image is built from when no part is built yet; return the files."""
    target, place = (
        request.target,
        {
            "suite": request.target.suite,
            "python": request.target.python,
            "platform": request.target.platform,
        },
    )
    inputs = store.fetch([*target.debs, *target.wheels, request.release.wheel], **place)
    for program in target.linked:
        inputs += store.fetch(program.debs, **place)
    if target.recipes and target.builder:
        builder = native.fetch_builder(target.builder, store)
        inputs += [*builder.debs, *builder.wheels, *builder.sdists]
    return list(dict.fromkeys(inputs))


def prepare(each: Surroundings, inputs: Sequence[Artifact], store: Store) -> None:
    """Make the folders of a build: a copy of this checkout, and a store that has only the inputs."""
    # Neither times nor permissions of the copies are those of this checkout.
    shutil.copytree(paths.ROOT, each.checkout, symlinks=True, ignore=_left_out, copy_function=shutil.copy)
    for path in each.checkout.rglob("*"):
        if not path.is_symlink():
            path.chmod((0o777 if path.is_dir() or path.stat().st_mode & 0o100 else 0o666) & ~int(each.umask, 8))
    each.temporary.mkdir(parents=True)
    new = Store(each.store)
    for artifact in inputs:
        source = store.path(artifact)
        place = each.store / source.relative_to(store.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            place.hardlink_to(source)
        except OSError:
            shutil.copy(source, place)
        # It is checked, as each file that a store uses.
        new.path(artifact)


def _left_out(folder: str, names: Sequence[str]) -> set[str]:
    # The published IDs are compared when both builds are done.
    own = {*_LEFT_OUT, *folders.LITTER} if Path(folder) == paths.ROOT else {*folders.LITTER, paths.EXPECTED.name}
    return own.intersection(names)


def compare_stores(first: Path, second: Path, *, both: bool = True) -> Iterator[tuple[str, list[Difference]]]:
    """Yield what the parts of two stores are called, and their differences.

    Args:
        both: whether a part that only the first store has is a difference, too.
    """
    parts = [{path.relative_to(root) for path in root.glob("parts/*/[!.]*")} for root in (first, second)]
    for part in sorted(parts[0] | parts[1] if both else parts[0] & parts[1]):
        kind, identity = part.parts[1:]
        folder = next(root / part for root in (first, second) if (root / part).exists())
        files = sorted(path.name for path in folder.iterdir() if path.name != manifest.MANIFEST_FILE)
        name = f"{kind} {', '.join(files)} ({identity[:16]})"
        if part not in parts[0] or part not in parts[1]:
            present = ["built" if part in each else "" for each in parts]
            yield name, [Difference((name,), "presence", present[0], present[1], "its inputs have another digest")]
        else:
            without = {manifest.MANIFEST_FILE}
            yield name, list(compare.compare_folders(first / part, second / part, (name,), without=without))


def compare_engine_images(first: tuple[Engine, str], second: tuple[Engine, str], where: Where) -> list[Difference]:
    """Return the differences of two images, each given by its engine and ID."""
    if first[1] == second[1]:
        return []
    with layer.saved(*first) as one, layer.saved(*second) as other:
        digests = compare.config_digest(one), compare.config_digest(other)
        if digests[0] == digests[1]:
            return []
        differences = list(compare.compare_images(one, other, where))
        return differences or [Difference(where, "content", *digests, "only the digests of the layers differ")]


def _compared(
    request: Request, store: Store, both: tuple[Surroundings, Surroundings], engines: tuple[Engine, Engine]
) -> Comparison:
    differences: list[Difference] = []
    compared: list[str] = []

    def add(what: str, found: Sequence[Difference]) -> None:
        differences.extend(found)
        compared.append(f"{what}: {'different' if found else 'equal'}")

    target, release = request.target, request.release
    stores = [Store(each.store) for each in both]
    names = [_image_name(target.name, each) for each in stores]
    ids = [provenance.recorded(each)[name] for each, name in zip(stores, names, strict=True)]
    if names[0] != names[1]:
        add("name", [Difference(("the image",), "content", names[0], names[1], "its inputs have another digest")])
    built = [(engine, id) for engine, id in zip(engines, ids, strict=True)]
    add(f"image {names[0]}, {ids[0]}", compare_engine_images(built[0], built[1], (names[0],)))
    for name, found in compare_stores(both[0].store, both[1].store):
        add(name, found)
    # What this machine built before was built at another time, and perhaps by another version of the system.
    before = provenance.recorded(store).get(names[0])
    if before and engines[0].image(before):
        where = (f"{names[0]} that was built here before",)
        add(where[0], compare_engine_images(built[0], (engines[0], before), where))
    for name, found in compare_stores(both[0].store, store.root, both=False):
        add(f"{name} that was built here before", found)
    published = expected.load()
    info = engines[0].image(ids[0])
    assert info is not None, "the engine has what it just built"
    try:
        if expected.check_image(published, engines[0], Image(names[0], info, True), target, release.version):
            add("the published ID of the image", [])
        if count := expected.check_parts(published, stores[0], target, release):
            add(f"the published sha256 of {count} parts", [])
    except (ImageError, PartError) as error:
        add("what was published", [Difference(("toolchains/expected.json",), "content", error.what, error.why)])
    return Comparison(differences=differences, compared=compared)


def _image_name(target: str, store: Store) -> str:
    """Return the name of the target's image that a store recorded."""
    (name,) = [name for name in provenance.recorded(store) if name.startswith(f"triton-foundry/{target}:")]
    return name


def _connect(address: str) -> Engine:
    try:
        return client.connect(address)
    except EngineError as error:
        raise EngineError(
            f"no container engine answers at --engine={address}",
            why=error.why,
            next=f"DOCKER_HOST={address} docker version",
        ) from error


@contextmanager
def _names_kept(
    engines: Sequence[Engine], request: Request, store: Store, both: Sequence[Surroundings]
) -> Iterator[None]:
    """Leave the engines as they were: names lead to the images that had them, and what was built is removed."""
    before = [
        {name: id for id, (names, _) in engine.named("triton-foundry/*").items() for name in names}
        for engine in engines
    ]
    known = {*provenance.recorded(store).items()}
    try:
        yield
    finally:
        recorded = [provenance.recorded(Store(each.store)) for each in both]
        # What another process built for the user's store meanwhile.
        kept = {id for _, id in {*provenance.recorded(store).items()} - known}
        own_names = {*Inputs(request.target, request.release).moving_names}.union(*recorded)
        for engine, had in zip(engines, before, strict=True):
            for name in sorted(own_names):
                info = engine.image(name)
                if info is None or info.id == had.get(name) or info.id in kept:
                    continue
                if name in had:
                    engine.tag(had[name], name)
                else:
                    engine.remove(name)
            for id in {id for each in recorded for id in each.values()} - {*had.values()} - kept:
                info = engine.image(id)
                if info and not info.names:
                    engine.remove(id)
