"""Write a folder of wheels that pip puts beside a stock Triton, on a machine without a container engine or a network.

    DIR/*.whl               the plugin; core with the C library of the Vulkan road, one for each kind of machine; what
                            they require, as locked
    DIR/requirements.txt    all of them, with hashes
    DIR/README.md           what to type

They install on each Python that core's pyproject.toml names. What is compiled for one version of Python stays out, and
so do Triton and PyOpenCL: the machine has its own Triton and NumPy, and the Vulkan road needs no more. The same inputs
give the same bytes.
"""

from __future__ import annotations

import email
import hashlib
import re
import shutil
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from toolchains.archives import folders, prefix
from toolchains.artifacts import native, plugin_wheels
from toolchains.assembly import platform_wheel, target_image
from toolchains.contents.component import Component, Licence
from toolchains.contents.licences import UNKNOWN
from toolchains.engine import host
from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact, Lock, LockedTarget
from toolchains.system import durable, paths
from toolchains.system.errors import PinError, UsageError
from toolchains.system.steps import step

# The recipe of the C library, and the library's name in the part and path in core's wheel.
RECIPE = "vulkan-runtime"
LIBRARY = "libfoundry_vulkan.so"
_IN_CORE = f"foundry_core/vulkan/{LIBRARY}"
_ANY = "py3-none-any"
# A wheel names in its classifiers the versions of Python that it is for.
_PYTHON = re.compile(r"Programming Language :: Python :: (3\.\d+)")
# What users call the machines of the tags.
_CALLED = {"x86_64": "x86-64", "aarch64": "arm64"}
# In a backend's folder: the README.md of its wheels, with names in braces for what differs.
_README = "WHEELS.md"
_CORE = ("triton-foundry-core",)


@dataclass(frozen=True)
class Library:
    """The C library of the Vulkan road: its paths, one for each kind of machine, and what it is."""

    paths: tuple[Path, ...]
    part: Component

    @classmethod
    def given(cls, path: Path) -> Library:
        """Return a library that a user gave."""
        unknown = Licence(origin=f"{UNKNOWN}the file was given by --library")
        return cls((path,), Component("native", LIBRARY, "", unknown))

    def component(self, path: Path) -> Component:
        """Return one of the paths as a component."""
        return replace(self.part, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@dataclass(frozen=True)
class Wheelhouse:
    """What was written.

    Attributes:
        folder: where it is.
        wheels: the files, sorted by name.
        own: what the machine must have, beside Triton.
    """

    folder: Path
    wheels: tuple[Path, ...]
    own: tuple[str, ...]


def source(locked: Lock, target: LockedTarget) -> LockedTarget:
    """Return the target that a backend's wheels are made from: one with the C library of the Vulkan road.

    Raises:
        UsageError: the backend has no such target; its kernels need programs that only an image has.
    """
    having = [candidate for candidate in locked.targets.values() if RECIPE in candidate.recipes]
    chosen = next((candidate for candidate in having if candidate.backend == target.backend), None)
    if chosen is None:
        raise UsageError(
            f"there are no wheels of {target.name} for a machine without its image",
            why="its kernels are compiled by LLVM's programs, which are in the image",
            next=f"./foundry wheel {having[0].backend}" if having else "",
        )
    return chosen


def library(target: LockedTarget, store: Store, folder: Path) -> Library:
    """Build the C library for all machines if the store does not have it, and unpack it to a folder."""
    if target.builder is None:
        raise PinError(f"{target.name} has recipes and nothing to build them in", next="./foundry pin --update")
    builder = native.fetch_if_needed([RECIPE], target.builder, store)
    # The engine is needed only if the part is not in the store.
    part = native.part(RECIPE, builder, store=store, engine=host.ensure_engine())
    with prefix.open_seekable(part.path) as tar:
        entries = prefix.tar_entries(tar, part.path.name)
        copied = []
        for machine in platform_wheel.MACHINES.values():
            copied.append(folder / machine / LIBRARY)
            copied[-1].parent.mkdir()
            with entries[f"lib/{machine}/{LIBRARY}"].open() as content, copied[-1].open("wb") as file:
                shutil.copyfileobj(content, file)
    return Library(tuple(copied), native.component(RECIPE, builder))


def write(target: LockedTarget, library: Library, folder: Path, store: Store) -> Wheelhouse:
    """Write the wheels of a target; a folder that an earlier call wrote is replaced.

    Args:
        target: whose plugins and locked wheels are taken.
        library: the C library of the Vulkan road.
        folder: where to write.

    Raises:
        UsageError: the library does not run on other machines, or the folder has something else in it.
        FetchError, OfflineError: a locked wheel cannot be fetched.
    """
    others = [name for name in folders.files(folder) if not name.endswith(".whl")] if folder.exists() else []
    if set(others) - {"requirements.txt", "README.md"}:
        raise UsageError(f"{folder} has other files, which would be lost", why=", ".join(others), next="remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Write to a temporary folder next to it and rename it, so that an existing folder is always complete.
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        work = Path(temporary, folder.name)
        work.mkdir()
        names = target_image.plugins(target)
        with step(f"wheels of {', '.join(names)}"):
            for name in names:
                plugin = plugin_wheels.wheel(name, store)
                if name == "core":
                    for path in library.paths:
                        described = plugin_wheels.component(plugin, parts=[library.component(path)])
                        platform_wheel.rewrite(plugin.path, work, described, libraries={_IN_CORE: path})
                else:
                    described = plugin_wheels.component(plugin, requires=_CORE)
                    platform_wheel.rewrite(plugin.path, work, described, requires=_CORE)
        pythons = _pythons(work)
        needed, own = _needed([*work.glob("*.whl")], pythons, target, store)
        for artifact in needed:
            shutil.copyfile(store.path(artifact), work / artifact.filename)
        wheels = sorted(work.glob("*.whl"))
        sums = {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}
        # A line for each distribution, with the hashes of all its wheels: pip takes the one of its machine.
        pins: dict[str, str] = {}
        for name, digest in sums.items():
            pinned = "==".join(name.split("-")[:2])
            pins[pinned] = f"{pins.get(pinned, pinned)} --hash=sha256:{digest}"
        (work / "requirements.txt").write_text("".join(f"{line}\n" for line in pins.values()))
        rows = "\n".join(f"| {name} | {digest} |" for name, digest in sums.items())
        tags = [tag.split("_", 3) for wheel in wheels if (tag := wheel.stem.split("-")[-1]) != "any"]
        machines = " or ".join(_CALLED[machine] for *_, machine in sorted(tags, reverse=True))
        # The numbers are compared: 2.9 is older than 2.34.
        glibc = ".".join(map(str, max((int(major), int(minor)) for _, major, minor, _ in tags)))
        facts = {
            "platform": f"{machines} Linux with glibc {glibc} or newer",
            "python": f"{pythons[0]} to {pythons[-1]}",
            "own": ", ".join(own),
            "rows": rows,
        }
        readme = (paths.BACKENDS / target.backend / _README).read_text(encoding="utf-8")
        (work / "README.md").write_text(readme.format(**facts))
        for path in (work, *work.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(folder, ignore_errors=True)
        durable.move(work, folder)
    return Wheelhouse(folder, tuple(folder / wheel.name for wheel in wheels), own)


def _needed(
    wheels: Sequence[Path], pythons: Sequence[str], target: LockedTarget, store: Store
) -> tuple[list[Artifact], tuple[str, ...]]:
    """Return the locked wheels that these require and that run on each Python, and the names of the others.

    Raises:
        PinError: one is not locked, or does not install on a Python that our wheels are for.
    """
    locked = {canonicalize_name(artifact.name): artifact for artifact in target.wheels}
    present, own = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}, set()
    pending = [name for wheel in wheels for name in _requires(wheel, pythons)]
    needed: dict[str, Artifact] = {}
    while pending:
        name = pending.pop()
        if name in present or name in needed:
            continue
        if name not in locked:
            raise PinError(f"{name} is required and not locked for {target.name}", next="./foundry pin --update")
        if not locked[name].filename.endswith(f"-{_ANY}.whl"):
            own.add(name)
            continue
        with step(str(locked[name])):
            store.fetch([locked[name]], suite=target.suite, python=target.python, platform=target.platform)
        needed[name], path = locked[name], store.path(locked[name])
        allowed = SpecifierSet(_metadata(path).get("Requires-Python", ""))
        if refused := [python for python in pythons if not allowed.contains(python)]:
            raise PinError(
                f"{locked[name]} does not install on Python {', '.join(refused)}, which our wheels are for",
                why=f"it requires Python {allowed}",
                next=f"pin a release of {name} that does, or take these versions out of the classifiers in "
                "backends/*/pyproject.toml",
            )
        pending += _requires(path, pythons)
    return list(needed.values()), tuple(sorted(own))


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def _pythons(folder: Path) -> list[str]:
    """Return the versions of Python that core is for, by its classifiers."""
    core = next(folder.glob(f"{_CORE[0].replace('-', '_')}-*.whl"))
    named = [_PYTHON.fullmatch(text) for text in _metadata(core).get_all("Classifier") or ()]
    return sorted((found[1] for found in named if found), key=Version)


def _requires(wheel: Path, pythons: Iterable[str]) -> list[NormalizedName]:
    """Return the names of what a wheel requires, without extras, on any of these Pythons and kinds of machines."""
    environments: list[dict[str, str]] = [
        {"extra": "", "python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
        for python in pythons
        for machine in platform_wheel.MACHINES.values()
    ]
    requirements = [Requirement(line) for line in _metadata(wheel).get_all("Requires-Dist") or []]
    return [
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments))
    ]
