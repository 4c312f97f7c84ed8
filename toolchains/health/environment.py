"""Check a Python that has Triton: distributions, drivers, variables and Triton's cache.

What Triton, torch and vLLM do with several drivers is read from their sources: Triton wants exactly one active driver,
and since 3.9 takes the one that TRITON_DEFAULT_BACKEND names. torch's has_triton() asks Triton. vLLM counts the active
ones itself, and turns Triton off unless there is one (vllm/triton_utils/importing.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolchains.health import extension
from toolchains.health.machine import Problem
from toolchains.sdk import elf
from toolchains.sdk.libraries import version_key
from toolchains.system import children, durable
from toolchains.system.errors import UsageError

_PROBE = Path(__file__).with_name("probe.py")
# The first release that heeds TRITON_DEFAULT_BACKEND.
_CHOOSES = (3, 9)


class Distribution(msgspec.Struct, frozen=True):
    """An installed distribution: whether triton/ is its, the backends of its entry points, what it requires."""

    version: str
    triton: bool
    backends: dict[str, str]
    requires: list[str]


class Installed(msgspec.Struct, frozen=True):
    """What probe.py prints about a Python without importing Triton.

    Attributes:
        extensions: suffixes of the extension modules that it loads.
        libc: the version of glibc, or "".
        path: the folders that it imports from.
    """

    python: str
    extensions: list[str]
    libc: str
    path: list[str]
    distributions: dict[str, Distribution]


class Active(msgspec.Struct, frozen=True):
    """What Triton says: its version and file, and of each backend whether it is active, or the error of asking it."""

    version: str
    file: str
    backends: dict[str, bool | str]


def check(python: str, variables: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what is wrong with the Triton of a Python.

    Args:
        python: the program, such as venv/bin/python.
        variables: the environment in which kernels will run.

    Raises:
        UsageError: it is no Python.
    """
    installed = msgspec.json.decode(_ask(python, variables, "static"), type=Installed)
    distributions = installed.distributions
    owners = {name: distribution for name, distribution in distributions.items() if distribution.triton}
    if not owners and not any(distribution.backends for distribution in distributions.values()):
        yield Problem(f"{python} has no Triton", next=f"{python} -m pip install triton", fatal=False)
        return
    if len(owners) > 1:
        yield Problem(
            "several distributions have the folder triton/: "
            + ", ".join(f"{name} {distribution.version}" for name, distribution in sorted(owners.items())),
            "each overwrote files of the others, and uninstalling one breaks the rest",
            f"{python} -m pip uninstall {' '.join(sorted(owners))}, then install the one that you want",
        )
    yield from _requirements(python, installed)
    try:
        active = msgspec.json.decode(_ask(python, variables), type=Active)
    except UsageError as error:
        yield Problem(f"Triton cannot be imported by {python}", error.why, "fix the error in the last line")
        return
    yield from _drivers(python, installed, active, variables)
    yield from _variables(python, active, variables)
    yield from _cache(installed, variables)


def loading_of(python: str, variables: Mapping[str, str]) -> extension.Loading:
    """Return what loads a library in a Python: with its Triton's libtriton.so, if it has Triton.

    Raises:
        UsageError: it is no Python.
    """
    installed = msgspec.json.decode(_ask(python, variables, "static"), type=Installed)
    places = (Path(folder, "triton", "_C", "libtriton.so") for folder in installed.path)
    version = ".".join(installed.python.split(".")[:2])
    return extension.Loading(next(filter(Path.is_file, places), None), version, python, variables)


def _ask(python: str, variables: Mapping[str, str], *words: str) -> bytes:
    """Return the line of JSON that probe.py prints; Triton's plugins may print other lines before it."""
    try:
        done = children.run([python, _PROBE, *words], log="doctor-python", env=dict(variables), check=False)
    except OSError as error:
        raise UsageError(f"{python} cannot be run", why=str(error), next="--python=VENV/bin/python") from error
    line = (done.stdout.strip().splitlines() or [""])[-1]
    if done.status or not line.startswith("{"):
        why = "\n".join(f"{done.stdout}{done.stderr}".strip().splitlines()[-5:])
        raise UsageError(f"{python} does not run as a Python", why=why, next="--python=VENV/bin/python")
    return line.encode()


def _requirements(python: str, installed: Installed) -> Iterator[Problem]:
    """Yield distributions that require another Triton, or another torch, than the installed one."""
    versions = {canonicalize_name(name): distribution.version for name, distribution in installed.distributions.items()}
    theirs = {
        "python_full_version": installed.python,
        "python_version": ".".join(installed.python.split(".")[:2]),
        "extra": "",
    }
    for name, distribution in sorted(installed.distributions.items()):
        for text in distribution.requires:
            try:
                wanted = Requirement(text)
            except InvalidRequirement:
                continue
            version = versions.get(canonicalize_name(wanted.name))
            relevant = wanted.name in ("triton", "torch") and (wanted.marker is None or wanted.marker.evaluate(theirs))
            if relevant and version and not wanted.specifier.contains(version, prereleases=True):
                yield Problem(
                    f"{name} {distribution.version} requires {wanted.name}{wanted.specifier}, "
                    f"and {version} is installed",
                    "a kernel may be compiled with passes or hooks that this release does not have",
                    f"{python} -m pip install '{wanted.name}{wanted.specifier}'",
                )


def _drivers(python: str, installed: Installed, active: Active, variables: Mapping[str, str]) -> Iterator[Problem]:
    for name, answer in sorted(active.backends.items()):
        if isinstance(answer, str):
            yield Problem(
                f"the backend {name} cannot say whether it is active", answer, f"repair or uninstall the backend {name}"
            )
    here = sorted(name for name, answer in active.backends.items() if answer is True)
    chosen = variables.get("TRITON_DEFAULT_BACKEND", "")
    chooses = tuple(int(part) for part in active.version.split("+")[0].split(".")[:2]) >= _CHOOSES
    if not here:
        yield Problem(
            "no backend is active",
            f"Triton {active.version} has the backends {', '.join(sorted(active.backends)) or 'none'}",
            f"{python} -m PLUGIN says what its devices lack; ./foundry wheel --help tells how to get one",
        )
    elif len(here) > 1 and not (chooses and chosen in here):
        why = f"Triton {active.version} " + (
            "takes the one that TRITON_DEFAULT_BACKEND names"
            if chooses
            else "has no way to choose one: TRITON_DEFAULT_BACKEND is heeded since 3.9"
        )
        remedy = f"set TRITON_DEFAULT_BACKEND={here[0]}" if chooses else "uninstall the others, or hide their devices"
        yield Problem(f"several backends are active: {', '.join(here)}", why, remedy)
    if len(here) != 1 and "vllm" in installed.distributions:
        yield Problem(
            f"vLLM turns Triton off: it counts {len(here)} active drivers, and wants one",
            "it does not heed TRITON_DEFAULT_BACKEND",
            "uninstall the others, or hide their devices",
            fatal=False,
        )
    if chosen and chosen not in active.backends:
        yield Problem(
            f"TRITON_DEFAULT_BACKEND names {chosen}, which is no backend of this Triton",
            f"it has {', '.join(sorted(active.backends))}",
            "correct it, or unset it",
        )


def _variables(python: str, active: Active, variables: Mapping[str, str]) -> Iterator[Problem]:
    if variables.get("TRITON_BACKENDS_IN_TREE", "") in ("1", "true", "on", "yes", "y"):
        yield Problem(
            "TRITON_BACKENDS_IN_TREE hides backends that pip installed",
            "Triton looks only into triton/backends/ then",
            "unset TRITON_BACKENDS_IN_TREE",
            fatal=False,
        )
    for name in ("TRITON_PLUGIN_DIRS", "TRITON_PLUGIN_PATHS"):
        for text in filter(None, variables.get(name, "").replace(";", ":").split(":")):
            place = Path(text).expanduser()
            if name == "TRITON_PLUGIN_PATHS" and place.is_file():
                libtriton = Path(active.file).parent / "_C" / "libtriton.so"
                loading = extension.Loading(libtriton, program=python, variables=variables)
                yield from extension.check(place, loading, loaded_by_triton=True)
            elif name == "TRITON_PLUGIN_PATHS":
                yield Problem(f"{name} names {text}, which is no file", next=f"correct {name}, or unset it")
            elif not (place / "backend" / "name.conf").is_file():
                yield Problem(
                    f"{name} names {text}, which has no backend/name.conf",
                    "a build of Triton from source stops there; an installed Triton does not read this variable",
                    f"correct {name}, or unset it",
                )


def _cache(installed: Installed, variables: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what Triton's cache has that this Python cannot load, or that cannot be written."""
    home = Path(variables.get("TRITON_HOME") or variables.get("HOME") or "/")
    cache = Path(variables.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")
    try:
        durable.require_writable(cache, f"Triton's cache {cache}")
    except UsageError as error:
        yield Problem(error.what, error.why, "set TRITON_CACHE_DIR to a folder of yours")
    stale: dict[Path, str] = {}
    for file in sorted(cache.glob("*/*.so")):
        tagged = ".cpython-" in file.name
        if tagged and not any(file.name.endswith(suffix) for suffix in installed.extensions):
            stale[file.parent] = f"{file.name} is for another Python than {installed.python}"
        elif too_new := _needs_newer(file, installed.libc):
            stale[file.parent] = f"{file.name} needs {too_new}; this machine has glibc {installed.libc}"
    if stale:
        place, why = next(iter(stale.items()))
        yield Problem(
            f"{len(stale)} entries of Triton's cache {cache} cannot be loaded here",
            f"{place.name}: {why}; another Python or another machine wrote them",
            "./foundry doctor --fix, which removes them; they are compiled again",
            fatal=False,
            fix=partial(_remove, tuple(stale)),
        )


def _needs_newer(file: Path, libc: str) -> str:
    """Return the version of glibc that a library needs and that this machine lacks, or ""."""
    try:
        with file.open("rb") as stream:
            library = elf.read(stream)
    except (elf.DamagedElfError, OSError):
        return ""
    needed = [
        version for versions in library.versions.values() for version in versions if version.startswith("GLIBC_2")
    ]
    highest = max(needed, key=version_key, default="")
    return highest if libc and highest and version_key(highest) > version_key(f"GLIBC_{libc}") else ""


def _remove(folders: tuple[Path, ...]) -> str:
    for folder in folders:
        shutil.rmtree(folder)
    return f"removed {len(folders)} entries of {folders[0].parent}"
