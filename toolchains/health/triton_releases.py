"""What each release of Triton asks of a backend and gives it: triton_releases.json, and the tables made of it.

    python -m toolchains.health.triton_releases [WHEEL...]

asks the locked wheels that the store has, and these, writes what they say over what the file says of their releases,
and writes the tables of docs/triton-releases.md. Triton is imported in a container only (triton_probe.py).
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

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
# What is imported of a wheel: not the programs that generate code for GPUs.
_TAKEN = re.compile(r"triton/(.*\.py|_C/libtriton[^/]*\.so)")
_ABI3 = re.compile(r"cp3(\d+)")


class Method(msgspec.Struct, frozen=True):
    """A method of one of Triton's base classes: its parameters, whether it is abstract, and its decorator."""

    signature: str
    abstract: bool
    kind: str


class TritonRelease(msgspec.Struct, frozen=True):
    """A release of Triton, as triton_probe.py describes it.

    Attributes:
        version: "3.9.0".
        classes: the methods of BaseBackend, DriverBase and GPUDriver.
        target: the fields of GPUTarget.
        calls: how Triton calls its backends and drivers, by the method's name.
        stages: the stages of Triton's own backends, by vendor.
        options: the fields of their options.
        hooks: what programs may set.
        make_ir: the parameters of ASTSource.make_ir.
        names: the public names of each module.
    """

    version: str
    classes: dict[str, dict[str, Method]]
    target: list[str]
    calls: dict[str, list[str]]
    stages: dict[str, list[str]]
    options: dict[str, list[str]]
    hooks: list[str]
    make_ir: str
    names: dict[str, list[str]]


@cache
def recorded() -> dict[str, TritonRelease]:
    """Return the releases in triton_releases.json by version, the oldest first."""
    found = json_text.parse(FILE.read_text(encoding="utf-8"), dict[str, object])
    shared = msgspec.convert(found.pop("names"), dict[str, dict[str, list[str]]])
    releases = sorted(found, key=Version)
    names: dict[str, dict[str, list[str]]] = {release: {} for release in releases}
    for module, having in shared.items():
        # "0011" has the names of the last two of four releases.
        for bits, each in having.items():
            for release, bit in zip(releases, bits, strict=True):
                if bit == "1":
                    names[release].setdefault(module, []).extend(each)
    filled = {
        release: {**msgspec.convert(found[release], dict[str, object]), "names": names[release]} for release in releases
    }
    return msgspec.convert(filled, dict[str, TritonRelease])


def text(releases: Iterable[TritonRelease]) -> str:
    """Return the content of triton_releases.json, with the names that several releases have written once."""
    ordered = sorted(releases, key=lambda release: Version(release.version))
    names: dict[str, dict[str, list[str]]] = {}
    for module in sorted({module for release in ordered for module in release.names}):
        sets = [set(release.names.get(module, ())) for release in ordered]
        for name in sorted(set().union(*sets)):
            bits = "".join(str(int(name in each)) for each in sets)
            names.setdefault(module, {}).setdefault(bits, []).append(name)
    described = {}
    for release in ordered:
        described[release.version] = {**msgspec.to_builtins(release)}
        del described[release.version]["names"]
    lines = [f"{json.dumps(version)}: {json.dumps(each)}" for version, each in described.items()]
    lines.append(
        '"names": {\n' + ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in names.items()) + "\n}"
    )
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
            _unpack(archive, Path(work), wheel.name)
        with engine.sandbox(image.info.id, seconds=_SECONDS) as container:
            container.copy_into(Path(work), _INSIDE)
            container.copy_into(_PROBE, "/foundry/probe.py")
            done = container.run(["python", "-I", "/foundry/probe.py", _INSIDE])
    if done.status != 0:
        raise CheckError(f"{wheel.name} cannot be imported", why=done.stderr.strip()[-2000:])
    return json_text.parse(done.stdout, TritonRelease)


def _unpack(archive: zipfile.ZipFile, folder: Path, called: str) -> None:
    entries = [entry for entry in wheel_file.wheel_files(archive) if _TAKEN.fullmatch(entry.filename)]
    if "triton/__init__.py" not in {entry.filename for entry in entries}:
        raise UsageError(f"{called} is no wheel of Triton", next="name a file triton-*.whl")
    for entry in entries:
        place = confine.path_below(folder, entry.filename, called)
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as packed, place.open("wb") as file:
            foreign.copy(packed, file, entry.filename)


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


def tables(releases: Sequence[TritonRelease]) -> str:
    """Return the tables of docs/triton-releases.md."""
    columns = [".".join(release.version.split(".")[:2]) for release in releases]
    parts = [f"Asked of: {', '.join(release.version for release in releases)}."]
    for title, owner in (
        ("What a compiler must and may have", "BaseBackend"),
        ("What a driver must and may have", "DriverBase"),
    ):
        having = [release.classes[owner] for release in releases]
        parts.append(
            f"## {title}: `{owner}`\n\n"
            + _rows(
                "method",
                columns,
                {f"`{name}`": [_method(methods.get(name)) for methods in having] for name in _order(having)},
            )
            + "\n\n"
            + _changes(
                releases,
                [{name: method.signature for name, method in methods.items()} for methods in having],
            )
        )
    listed = {
        **{
            f"Stages of Triton's backend for {vendor}": _of(releases, "stages", vendor)
            for vendor in releases[-1].stages
        },
        **{
            f"Options of Triton's backend for {vendor}": _of(releases, "options", vendor)
            for vendor in releases[-1].options
        },
        "Hooks that a program may set": [release.hooks for release in releases],
    }
    for title, names in listed.items():
        rows = {f"`{name}`": ["yes" if name in each else "" for each in names] for name in _order(names)}
        parts.append(f"## {title}\n\n{_rows('name', columns, rows)}")
    parts.append(
        "## How Triton calls a backend\n\n"
        + _changes(
            releases,
            [
                {
                    "ASTSource.make_ir": f"make_ir{release.make_ir}",
                    "GPUTarget": f"GPUTarget({', '.join(release.target)})",
                }
                | {name: "; ".join(texts) for name, texts in release.calls.items()}
                for release in releases
            ],
        )
    )
    return "\n\n".join(parts)


def _of(releases: Sequence[TritonRelease], field: str, vendor: str) -> list[list[str]]:
    return [getattr(release, field)[vendor] for release in releases]


def _order(having: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for each in having for name in each))


def _method(method: Method | None) -> str:
    return "" if method is None else "must" if method.abstract else "may"


def _rows(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    lines = [[title, *columns], ["---"] * (len(columns) + 1), *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _changes(releases: Sequence[TritonRelease], having: Sequence[Mapping[str, str]]) -> str:
    """Return a list of what each name is, with the releases in which it is so."""
    lines = []
    for name in sorted(_order(having)):
        spans: list[tuple[str, list[str]]] = []
        for release, each in zip(releases, having, strict=True):
            if name in each and spans and spans[-1][0] == each[name]:
                spans[-1][1].append(release.version)
            elif name in each:
                spans.append((each[name], [release.version]))
        for said, versions in spans:
            short = [".".join(version.split(".")[:2]) for version in versions]
            when = short[0] if len(short) == 1 else f"{short[0]} to {short[-1]}"
            lines.append(f"| `{name}` | {when} | `{said.replace('|', chr(92) + '|')}` |")
    return "\n".join(["| name | releases | text |", "|---|---|---|", *lines])


def main(words: Sequence[str]) -> None:
    releases = recorded() if FILE.exists() else {}
    for wheel in (*locked_wheels(), *map(Path, words)):
        print(f"asking {wheel.name}", flush=True)
        asked = probe(wheel)
        releases[asked.version] = asked
    durable.write(FILE, text(releases.values()))
    recorded.cache_clear()
    write_page()


def page() -> str:
    """Return docs/triton-releases.md with the tables as they are now."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    return f"{head}{mark}\n\n{tables(list(recorded().values()))}\n"


_MARK = "<!-- generated: python -m toolchains.health.triton_releases -->"


def write_page() -> None:
    durable.write(PAGE, page())


if __name__ == "__main__":
    main(sys.argv[1:])
