"""State what a target's image consists of, from the lock and the sources, without the image.

Debian packages    the locked ones, all installed; patched files in their pedigree
Python packages    the locked wheels, the repacked Triton, the plugins, and pip, which `python3 -m venv` installs
our own            native parts, linked programs, what docker/python.Dockerfile compiles
others             a vendor's SDK, what is built from source
properties         which files of packages are left out, and the Dockerfiles
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from toolchains.artifacts import linked, native, plugin_wheels, triton_wheel
from toolchains.assembly import target_image
from toolchains.assembly.target_image import Inputs
from toolchains.contents import licences, packages
from toolchains.contents.component import Component, Licence, patches, properties
from toolchains.contents.licences import UNKNOWN
from toolchains.contents.packages import DebianPackages
from toolchains.fetch.store import Store
from toolchains.fromsource import compiled_triton
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.patching import debian_files
from toolchains.system import paths
from toolchains.system.errors import PinError, UsageError, suggestion
from toolchains.system.steps import step

# The packages with the wheels that `python3 -m venv` installs; setuptools is among them before Python 3.12.
_ENSURED, _ENSURED_BEFORE_312 = ("python3-pip-whl",), ("python3-setuptools-whl",)
# The steps of python.Dockerfile that remove files of Python packages.
_REMOVED = re.compile(r"&& (rm -rf .+|find \S+ .+ -delete) \\$", re.MULTILINE)
_ALL = "its licence is that of all its parts"


def image(inputs: Inputs, store: Store) -> Component:
    """Return a target's image as a component; its version is the digest in the image's name.

    Args:
        store: gets the files of all packages, because these state the licences.

    Raises:
        OfflineError, GoneError, FetchError: a file is not available; see Store.fetch.
    """
    inputs = _fetched(inputs, store)
    used = inputs.system
    patched = {what.package: debian_files.load_series(what) for what in used.patched}
    with step(f"what is in {len(used.debs)} Debian packages"):
        debs = [
            replace(deb, patches=patches(patched[deb.name])) if deb.name in patched else deb
            for deb in DebianPackages(used.suite, used.debs, store).components(used.debs)
        ]
    parts = [*debs, *_python_packages(inputs, store), *_own(inputs, store), *_others(inputs)]
    identity = inputs.identity()
    dockerfiles = [paths.DOCKER / "python.Dockerfile", *inputs.dockerfiles]
    return Component(
        "image",
        inputs.repository,
        identity[:16],
        Licence(origin=_ALL),
        parts=tuple(parts),
        properties=properties(
            inputs=identity,
            suite=used.suite,
            label=[f"{name}={value}" for name, value in inputs.labels.items()],
            left_out=list(used.left_out),
            kept=list(used.kept),
            removed=_REMOVED.findall(dockerfiles[0].read_text(encoding="utf-8")),
            dockerfile=[f"docker/{path.relative_to(paths.DOCKER)} sha256:{_sha256(path)}" for path in dockerfiles],
        ),
    )


def part(target: LockedTarget, locked: LockedTriton, name: str, *, store: Store) -> Component:
    """Return one of a target's native parts or linked programs as a component, with what it is built with.

    Raises:
        UsageError: the target has no such part.
    """
    known = [*target.recipes, *(program.recipe for program in target.linked)]
    if name not in known:
        raise UsageError(
            f"{target.name} has no native part {name}{suggestion(name, known)}",
            why=f"its parts: {', '.join(known) or 'none'}",
            next=f"./foundry target show {target.name}",
        )
    inputs = _fetched(Inputs(target, locked), store)
    used = inputs.system
    (component,) = [component for component in _own(inputs, store) if component.name == name]
    if used.builder is None or name not in target.recipes:
        return component
    builder = native.fetch_builder(used.builder, store)
    tools = (
        *DebianPackages(builder.suite, builder.debs, store).components(builder.debs),
        *(packages.wheel(artifact, store) for artifact in builder.wheels),
        *(packages.sdist(artifact, store) for artifact in builder.sdists),
    )
    return replace(native.component(name, builder), tools=tools)


def _fetched(inputs: Inputs, store: Store) -> Inputs:
    """Fetch the files of all components; return the inputs with those that are really used."""
    target = inputs.target
    used = linked.fetch_if_needed(target_image.fetch(inputs, store).system, store)
    for program in used.linked:
        if missing := {*program.debs} - {
            *store.fetch(program.debs, suite=target.suite, python=target.python, platform=target.platform)
        }:
            raise PinError(
                f"{program.recipe} was linked with packages that the archive no longer has",
                why=", ".join(sorted(map(str, missing))),
                next="./foundry pin --update",
            )
    return replace(inputs, used=used)


def _python_packages(inputs: Inputs, store: Store) -> Iterator[Component]:
    """Yield the Python packages of an image's environment."""
    target, triton = inputs.system, inputs.triton
    before = tuple(map(int, target.python.split("."))) < (3, 12)
    names = _ENSURED + _ENSURED_BEFORE_312 * before
    for deb in target.debs:
        if deb.name in names:
            for wheel in packages.ensured(deb, store):
                yield replace(wheel, properties=properties(installed_from=str(deb)))
    for locked_wheel in target.wheels:
        yield packages.wheel(locked_wheel, store)
    if inputs.sourced and inputs.sourced.triton:
        yield compiled_triton.component(triton, inputs.sourced.triton)
    else:
        yield triton_wheel.component(triton, store.path(triton.wheel), target_image.VENDOR_BACKENDS)
    for name in target_image.plugins(target):
        yield plugin_wheels.component(plugin_wheels.wheel(name, store))


def _own(inputs: Inputs, store: Store) -> Iterator[Component]:
    """Yield the native parts and programs of an image."""
    target = inputs.system
    for name in inputs.recipes:
        yield native.component(name, inputs.builder)
    for program in target.linked:
        yield linked.component(program, DebianPackages(target.suite, (*target.debs, *program.debs), store))
    files = [paths.DOCKER / "python.Dockerfile", *target_image.PYTHON_FILES]
    sources = properties(source=[f"docker/{path.name} sha256:{_sha256(path)}" for path in files])
    version = plugin_wheels.version()
    # The library in Z3's place, the programs of libMLIR, and the library in front of PoCL.
    yield Component("program", "triton-foundry-programs", version, licences.of_recipe("native"), properties=sources)


def _others(inputs: Inputs) -> Iterator[Component]:
    """Yield what a user supplied, or chose to build from source."""
    if sdk := inputs.sdk:
        terms = Licence(origin=f"{UNKNOWN}it is the vendor's, and was supplied by a user")
        facts = properties(label=[f"{name}={value}" for name, value in sdk.labels.items()])
        yield Component("native", sdk.kind.key, sdk.version, terms, sha256=sdk.sha256, properties=facts)
    for want in inputs.sourced.parts if inputs.sourced else ():
        yield want.component


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
