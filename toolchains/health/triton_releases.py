"""What each release of Triton asks of a backend and gives it: triton_releases.json, and the tables made of it.

    python -m toolchains.health.triton_releases [WHEEL...]

asks the locked wheels that the store has, and these, writes what they say over what the file says of their releases,
and writes the tables of docs/triton-releases.md. Triton is imported in a container only (triton_probe.py).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from toolchains.archives import confine, wheel_file
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.system import durable, foreign, json_text, paths
from toolchains.system.errors import CheckError, UsageError, suggestion

FILE = Path(__file__).with_suffix(".json")
PAGE = paths.ROOT / "docs" / "triton-releases.md"
_PROBE = Path(__file__).with_name("triton_probe.py")
_INSIDE = "/foundry/release"
_SECONDS = 600
_MARK = "<!-- generated: python -m toolchains.health.triton_releases -->"
# What is imported of a wheel: not the programs that generate code for GPUs.
_TAKEN = re.compile(r"triton/(.*\.py|_C/libtriton[^/]*\.so)")
_ABI3 = re.compile(r"cp3(\d+)")


class Method(msgspec.Struct, frozen=True):
    """A method of one of Triton's base classes: its parameters, and whether it is abstract."""

    signature: str
    abstract: bool


class TritonRelease(msgspec.Struct, frozen=True):
    """A release of Triton, as triton_probe.py describes it.

    Attributes:
        version: "3.9.0".
        classes: the methods of BaseBackend, DriverBase and GPUDriver.
        calls: how Triton calls its backends and drivers, by the method's name.
        stages: the stages of Triton's own backends, by vendor.
        options: the fields of their options.
        hooks: what programs may set.
        names: the public names of each module.
    """

    version: str
    classes: dict[str, dict[str, Method]]
    calls: dict[str, list[str]]
    stages: dict[str, list[str]]
    options: dict[str, list[str]]
    hooks: list[str]
    names: dict[str, list[str]]


@cache
def recorded() -> dict[str, TritonRelease]:
    """Return the releases in triton_releases.json by version, the oldest first."""
    found = json_text.parse(FILE.read_text(encoding="utf-8"), dict[str, dict[str, Any]])
    shared, releases = found.pop("names"), sorted(found, key=Version)
    for place, release in enumerate(releases):
        # "0011" has the names of the last two of four releases.
        names = {
            module: [name for bits, each in having.items() if bits[place] == "1" for name in each]
            for module, having in shared.items()
        }
        found[release]["names"] = {module: each for module, each in names.items() if each}
    return {release: msgspec.convert(found[release], TritonRelease) for release in releases}


def text(releases: Iterable[TritonRelease]) -> str:
    """Return the content of triton_releases.json, with the names that several releases have written once."""
    described = [msgspec.to_builtins(release) for release in sorted(releases, key=lambda each: Version(each.version))]
    names = [release.pop("names") for release in described]
    lines = [f"{json.dumps(release['version'])}: {json.dumps(release)}" for release in described]
    shared = []
    for module in sorted(set().union(*names)):
        having: dict[str, list[str]] = {}
        for name in sorted(set().union(*(each.get(module, ()) for each in names))):
            bits = "".join(str(int(name in each.get(module, ()))) for each in names)
            having.setdefault(bits, []).append(name)
        shared += [f"{json.dumps(module)}: {json.dumps(having)}"] if having else []
    lines.append('"names": {\n' + ",\n".join(shared) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def chosen(words: str) -> dict[str, TritonRelease]:
    """Return the release that --triton names, by its number or a wheel; all recorded ones if it is empty.

    Raises:
        UsageError: it is neither.
        CheckError: the wheel cannot be imported.
    """
    known = recorded()
    if not words:
        return known
    if words.endswith(".whl"):
        if not Path(words).is_file():
            raise UsageError(f"--triton={words}: there is no such file", next="name a file triton-*.whl")
        asked = probe(Path(words))
        return {asked.version: asked}
    if words not in known:
        raise UsageError(
            f"--triton={words}: nothing is known of this release{suggestion(words, list(known))}",
            why=f"known: {', '.join(known)}",
            next="name one of these, or the release's wheel, such as a nightly one",
        )
    return {words: known[words]}


def probe(wheel: Path) -> TritonRelease:
    """Return what a wheel of Triton says, after importing it in a container of an image with the same Python.

    Raises:
        UsageError: it is no wheel of Triton, or no image has its Python.
        CheckError: it cannot be imported.
    """
    try:
        tags = parse_wheel_filename(wheel.name)[3]
    except InvalidWheelFilename as error:
        raise UsageError(f"{wheel} is no wheel of Triton", why=str(error), next="name a file triton-*.whl") from error
    fitting = [
        target
        for target in lock.load().targets.values()
        if not target.variant and any(_runs(tag.interpreter, tag.abi, target.python) for tag in tags)
    ]
    if not fitting:
        pythons = sorted({target.python for target in lock.load().targets.values()})
        raise UsageError(
            f"no image has the Python of {wheel.name}",
            why=f"there are images with Python {', '.join(pythons)}",
            next="take the wheel for one of these",
        )
    engine, image = ensure.ensure_image(Request.read(fitting[0].name))
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        with foreign.open_file(wheel) as file, wheel_file.opened(file) as archive:
            entries = [entry for entry in wheel_file.wheel_files(archive) if _TAKEN.fullmatch(entry.filename)]
            if "triton/__init__.py" not in {entry.filename for entry in entries}:
                raise UsageError(f"{wheel} is no wheel of Triton", next="name a file triton-*.whl")
            for entry in entries:
                place = confine.path_below(Path(work), entry.filename, wheel.name)
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, place.open("wb") as copy:
                    foreign.copy(packed, copy, entry.filename)
        with engine.sandbox(image.info.id, seconds=_SECONDS) as container:
            container.copy_into(Path(work), _INSIDE)
            container.copy_into(_PROBE, "/foundry/probe.py")
            done = container.run(["python", "-I", "/foundry/probe.py", _INSIDE])
    if done.status != 0:
        raise CheckError(f"{wheel.name} cannot be imported", why=done.stderr.strip()[-2000:])
    return json_text.parse(done.stdout, TritonRelease)


def _runs(interpreter: str, abi: str, python: str) -> bool:
    own = python.partition(".")[2]
    minor = _ABI3.fullmatch(interpreter)
    return minor is not None and (minor[1] == own or (abi == "abi3" and int(minor[1]) <= int(own)))


def locked_wheels() -> list[Path]:
    """Return the locked wheels of Triton that the store has, one for each release."""
    store = Store(paths.cache(), offline=True)
    artifacts = {
        version: release.wheel
        for target in lock.load().targets.values()
        for version, release in target.tritons.items()
        if store.path(release.wheel).is_file()
    }
    return [store.path(artifact) for artifact in artifacts.values()]


def page() -> str:
    """Return docs/triton-releases.md with the tables of the recorded releases."""
    releases = list(recorded().values())
    parts = [f"Asked of: {', '.join(release.version for release in releases)}."]
    for title, owner in (
        ("What a compiler must and may have", "BaseBackend"),
        ("What a driver must and may have", "DriverBase"),
    ):
        methods = [release.classes[owner] for release in releases]
        asked = [{name: "must" if method.abstract else "may" for name, method in each.items()} for each in methods]
        signatures = [{name: method.signature for name, method in each.items()} for each in methods]
        parts += [f"## {title}: `{owner}`", _grid("method", releases, asked), _changes(releases, signatures)]
    listed = {
        f"{kind.capitalize()} of Triton's backend for {vendor}": [getattr(each, kind)[vendor] for each in releases]
        for kind in ("stages", "options")
        for vendor in releases[-1].stages
    }
    for title, having in {**listed, "Hooks that a program may set": [release.hooks for release in releases]}.items():
        parts += [f"## {title}", _grid("name", releases, [dict.fromkeys(names, "yes") for names in having])]
    calls = [{name: "; ".join(texts) for name, texts in release.calls.items()} for release in releases]
    parts += ["## How Triton calls a backend", _changes(releases, calls)]
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    return "\n\n".join([f"{head}{mark}", *parts]) + "\n"


def _grid(title: str, releases: Sequence[TritonRelease], having: Sequence[Mapping[str, str]]) -> str:
    """Return a table with a column for each release."""
    lines = [[title, *map(_short, releases)], ["---"] * (len(releases) + 1)]
    for name in dict.fromkeys(name for each in having for name in each):
        lines.append([f"`{name}`", *(each.get(name, "") for each in having)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _changes(releases: Sequence[TritonRelease], having: Sequence[Mapping[str, str]]) -> str:
    """Return a table of what each name is, with the releases in which it is so."""
    lines = ["| name | releases | text |", "|---|---|---|"]
    for name in sorted({name for each in having for name in each}):
        pairs = ((each.get(name), release) for release, each in zip(releases, having, strict=True))
        for value, span in groupby(pairs, key=itemgetter(0)):
            versions = [_short(release) for _, release in span]
            if value is not None:
                when = " to ".join(dict.fromkeys((versions[0], versions[-1])))
                lines.append(f"| `{name}` | {when} | `{value.replace('|', chr(92) + '|')}` |")
    return "\n".join(lines)


def _short(release: TritonRelease) -> str:
    return ".".join(release.version.split(".")[:2])


def main(words: Sequence[str]) -> None:
    releases = recorded() if FILE.exists() else {}
    for wheel in (*locked_wheels(), *map(Path, words)):
        print(f"asking {wheel.name}", flush=True)
        asked = probe(wheel)
        releases[asked.version] = asked
    durable.write(FILE, text(releases.values()))
    recorded.cache_clear()
    durable.write(PAGE, page())


if __name__ == "__main__":
    main(sys.argv[1:])
