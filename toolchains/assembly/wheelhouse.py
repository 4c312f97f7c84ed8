"""Write a folder of wheels that pip puts beside a stock Triton, on a machine without a container engine or a network.

    DIR/*.whl               the plugin; core with the C library of the Vulkan road; what they require, as locked
    DIR/requirements.txt    all of them, with hashes
    DIR/README.md           what to type

What is compiled for one version of Python stays out, and so do Triton and PyOpenCL: the machine has its own Triton and
NumPy, and the Vulkan road needs no more. The same inputs give the same bytes.
"""

from __future__ import annotations

import email
import hashlib
import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

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

# The recipe of the C library, and the library's paths in the part and in core's wheel.
RECIPE = "vulkan-runtime"
LIBRARY = "libfoundry_vulkan.so"
_IN_CORE = f"foundry_core/vulkan/{LIBRARY}"
_ANY = "py3-none-any"
# In a backend's folder: the README.md of its wheels, with names in braces for what differs.
_README = "WHEELS.md"
_CORE = ("triton-foundry-core",)


@dataclass(frozen=True)
class Library:
    """The C library of the Vulkan road: its path, and what it is."""

    path: Path
    part: Component

    @classmethod
    def given(cls, path: Path) -> Library:
        """Return a library that a user gave."""
        unknown = Licence(origin=f"{UNKNOWN}the file was given by --library")
        return cls(path, Component("native", LIBRARY, "", unknown))

    @property
    def component(self) -> Component:
        return replace(self.part, sha256=hashlib.sha256(self.path.read_bytes()).hexdigest())


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
    """Build the C library if the store does not have it, and unpack it to a folder."""
    if target.builder is None:
        raise PinError(f"{target.name} has recipes and nothing to build them in", next="./foundry pin --update")
    builder = native.fetch_if_needed([RECIPE], target.builder, store)
    # The engine is needed only if the part is not in the store.
    part = native.part(RECIPE, builder, store=store, engine=host.ensure_engine())
    with prefix.open_seekable(part.path) as tar:
        entries = prefix.tar_entries(tar, part.path.name)
        (entry,) = [entry for name, entry in entries.items() if Path(name).name == LIBRARY and not entry.link]
        with entry.open() as content, (folder / LIBRARY).open("wb") as file:
            shutil.copyfileobj(content, file)
    return Library(folder / LIBRARY, native.component(RECIPE, builder))


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
                    described = plugin_wheels.component(plugin, parts=[library.component])
                    platform_wheel.rewrite(plugin.path, work, described, libraries={_IN_CORE: library.path})
                else:
                    described = plugin_wheels.component(plugin, requires=_CORE)
                    platform_wheel.rewrite(plugin.path, work, described, requires=_CORE)
        needed, own = _needed(work.glob("*.whl"), target, store)
        for artifact in needed:
            shutil.copyfile(store.path(artifact), work / artifact.filename)
        wheels = sorted(work.glob("*.whl"))
        sums = {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}
        pins = [f"{'=='.join(name.split('-')[:2])} --hash=sha256:{digest}\n" for name, digest in sums.items()]
        (work / "requirements.txt").write_text("".join(pins))
        rows = "\n".join(f"| {name} | {digest} |" for name, digest in sums.items())
        platform = f"x86-64 Linux with glibc {'.'.join(platform_wheel.tag(library.path).split('_')[1:3])} or newer"
        readme = (paths.BACKENDS / target.backend / _README).read_text(encoding="utf-8")
        (work / "README.md").write_text(readme.format(platform=platform, own=", ".join(own), rows=rows))
        for path in (work, *work.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(folder, ignore_errors=True)
        durable.move(work, folder)
    return Wheelhouse(folder, tuple(folder / wheel.name for wheel in wheels), own)


def _needed(wheels: Iterable[Path], target: LockedTarget, store: Store) -> tuple[list[Artifact], tuple[str, ...]]:
    """Return the locked wheels that these require and that run on each Python, and the names of the others."""
    locked = {canonicalize_name(artifact.name): artifact for artifact in target.wheels}
    wheels = list(wheels)
    present, own = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}, set()
    pending = [name for wheel in wheels for name in _requires(wheel)]
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
            store.fetch([locked[name]], suite=target.suite, python=target.python)
        needed[name] = locked[name]
        pending += _requires(store.path(locked[name]))
    return list(needed.values()), tuple(sorted(own))


def _requires(wheel: Path) -> list[NormalizedName]:
    """Return the names of what a wheel requires, without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
    requirements = [Requirement(line) for line in lines]
    return [
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]
