"""Check a wheel or a shared library that a Python with Triton loads: by reading it, and by the loader of that Python.

machine     ELF for x86-64 Linux (this machine's)
versions    what it needs of glibc, libstdc++ and libgcc, against those of this machine
Python      the ABI in the names of its extension modules, against the Python that loads it
Triton      symbols of LLVM and MLIR that libtriton.so does not have: it was built with another LLVM, or another
            libtriton; a second LLVM in it; the LLVM commits of both; entry points
releases    of a plugin: what its sources need, against each release of Triton (plugin_sources.py)
compiler    how type identifiers of MLIR are written, which differs between GCC and Clang: an identifier that both
            sides must agree on does not match then, and casts between types of MLIR fail silently
loader      whether a process of the Python, with the same variables, loads it: only the loader knows which libstdc++
            comes first, and where all that it needs is. The library's own initialisers run in that process
"""

from __future__ import annotations

import email
import os
import platform
import re
import sys
import zipfile
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from toolchains.archives import confine
from toolchains.archives.wheel_file import wheel_files
from toolchains.artifacts.triton_wheel import llvm_hash
from toolchains.assembly.plugin import GROUP, backends_of
from toolchains.health import plugin_sources, triton_releases
from toolchains.health.machine import Problem
from toolchains.sdk import elf
from toolchains.sdk.elf import Elf
from toolchains.sdk.libraries import highest, version_key
from toolchains.system import children, foreign, paths
from toolchains.system.errors import LlvmHashError, UsageError

_RUNTIME = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1")
_FOLDERS = ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib")
_MACHINES = {"x86_64": "x64", "aarch64": "AArch64"}
# Triton 3.9 looks for this function in what TRITON_PLUGIN_PATHS names.
_ENTRY = "tritonGetPluginInfo"
# Names of LLVM and MLIR, as C++ mangles them, anywhere in a symbol.
_COMPILER = re.compile("4llvm|4mlir")
# What __PRETTY_FUNCTION__ says in llvm::getTypeName, from which MLIR derives identifiers of types.
_TYPE_NAMES = {"GCC": b"[with DesiredTypeName = ", "Clang": b" [DesiredTypeName = "}
_PYTHON = re.compile(r"\.cpython-(\d)(\d+)\w*-")
_SHOWN = 3
# Prints why the last file cannot be loaded, after those before it and, if the first word says so, torch.
_LOAD = """
import ctypes, os, sys
torch, *before, path = sys.argv[1:]
if torch:
    try:
        import torch
    except ImportError:
        pass
for each in before:
    try:
        ctypes.CDLL(each, os.RTLD_NOW | os.RTLD_GLOBAL)
    except OSError:
        pass
try:
    ctypes.CDLL(path, os.RTLD_NOW)
except OSError as error:
    print(error)
sys.stdout.flush()
os._exit(0)
"""
_TORCH = ("libtorch", "libc10")
# What glibc's loader says, and what helps.
_REMEDIES = {
    r"^(?P<library>\S+): version `.*' not found": "an older {library} comes first: take its folder out of "
    "LD_LIBRARY_PATH, or put a newer one into the environment of the Python",
    r"^libc\.musl": "take the wheel for glibc (manylinux), or build it on a system with glibc: this one is for musl",
    r"^(?P<library>\S+): cannot open shared object file": "install what has {library}, or add its folder to "
    "LD_LIBRARY_PATH",
    "undefined symbol": "link it with the library that defines the symbol, or name the Python that loads it: --python=",
}


@dataclass(frozen=True)
class Loading:
    """What loads a library.

    Attributes:
        libtriton: the library of the Triton that loads it, if there is one.
        python: the version of the Python, "3.11"; "" if any.
        program: the Python.
        variables: its environment.
    """

    libtriton: Path | None = None
    python: str = ""
    program: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def check(path: Path, loading: Loading, *, loaded_by_triton: bool = False, triton: str = "") -> Iterator[Problem]:
    """Yield what is wrong with a wheel or a shared library.

    Args:
        loaded_by_triton: whether TRITON_PLUGIN_PATHS names it.
        triton: with which release of Triton a plugin must work; see triton_releases.chosen.

    Raises:
        UsageError: it is neither.
    """
    if path.suffix == ".whl":
        yield from _wheel(path, loading, triton)
        return
    try:
        with foreign.open_file(path) as file:
            library = elf.read(file, [_ENTRY])
    except elf.DamagedElfError as error:
        raise UsageError(
            f"{path} is neither a wheel nor a shared library", why=str(error), next="./foundry doctor PLUGIN.whl"
        ) from error
    yield from _library(path, library, path.name, loading)
    if loaded_by_triton and _ENTRY not in library.exports:
        yield Problem(
            f"{path.name} has no function {_ENTRY}",
            "Triton 3.9 takes a library without it for a plugin of an earlier release, and stops",
            "build it against the headers of this release of Triton",
        )


def _wheel(path: Path, loading: Loading, triton: str) -> Iterator[Problem]:
    try:
        with (
            foreign.open_file(path) as file,
            zipfile.ZipFile(file) as archive,
            TemporaryDirectory(dir=paths.scratch()) as work,
        ):
            names = archive.namelist()
            packages = yield from _entry_points(archive, names)
            if packages:
                yield from _sources(archive, packages, triton)
            if "triton/__init__.py" in names and not path.name.startswith("triton-"):
                yield Problem(
                    f"{path.name} has the folder triton/",
                    "it overwrites files of the distribution triton, and uninstalling one breaks the other",
                    "install it in an environment without the distribution triton",
                )
            # All of them first: they find each other by their places in the wheel.
            libraries = {}
            for name in names:
                if PurePosixPath(name).suffix == ".so" or ".so." in PurePosixPath(name).name:
                    copy = libraries[name] = confine.path_below(Path(work), name, path.name)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(name) as packed, copy.open("wb") as target:
                        foreign.copy(packed, target, name)
            for name, copy in libraries.items():
                try:
                    with copy.open("rb") as file:
                        library = elf.read(file, [_ENTRY])
                except elf.DamagedElfError as error:
                    yield Problem(f"{name} is damaged", str(error), "fetch or build the wheel again")
                    continue
                yield from _library(copy, library, name, loading)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UsageError(f"{path.name} is a damaged wheel", why=str(error), next="fetch or build it again") from error


def _entry_points(archive: zipfile.ZipFile, names: list[str]) -> Generator[Problem, None, list[str]]:
    """Check that each backend of a wheel is a package with what Triton imports; return the packages."""
    packages = []
    for name in names:
        if not name.endswith(".dist-info/entry_points.txt"):
            continue
        try:
            backends = backends_of(archive.read(name).decode())
        except ValueError as error:
            yield Problem(f"{name} cannot be read", str(error), "build the wheel again")
            continue
        for backend, module in backends.items():
            packages.append(module)
            folder = module.replace(".", "/")
            missing = [file for file in ("compiler.py", "driver.py") if f"{folder}/{file}" not in names]
            if missing:
                yield Problem(
                    f"the backend {backend} has no {' and no '.join(missing)} in {folder}/",
                    "Triton imports both when it looks for backends, and stops",
                    f"let the entry point of the group {GROUP} name the package that has them",
                )
    return packages


def _sources(archive: zipfile.ZipFile, packages: list[str], triton: str) -> Iterator[Problem]:
    """Check the sources of a wheel's backends against releases of Triton."""
    sources, requires, size = dict[str, str](), list[str](), 0
    for entry in wheel_files(archive):
        place = PurePosixPath(entry.filename)
        is_metadata = entry.filename.endswith(".dist-info/METADATA")
        if place.suffix != ".py" and not is_metadata:
            continue
        with archive.open(entry) as file:
            content = foreign.read(file, foreign.TEXT - size, f"the text of {place}, and before it")
        size += len(content)
        if is_metadata:
            requires = email.message_from_bytes(content).get_all("Requires-Dist") or []
        else:
            parts = place.with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            sources[module] = content.decode(errors="replace")
    releases = triton_releases.chosen(triton)
    yield from plugin_sources.check(sources, packages, requires, releases, next(iter(releases)) if triton else "")


def _library(path: Path, library: Elf, name: str, loading: Loading) -> Iterator[Problem]:
    problems = list(_read(path, library, name, loading))
    yield from problems
    # What was read says more.
    if not any(problem.fatal for problem in problems):
        yield from _load(path, library, name, loading)


def _load(path: Path, library: Elf, name: str, loading: Loading) -> Iterator[Problem]:
    """Ask the loader, in a process of the Python, about what is not for another Python."""
    tag = _PYTHON.search(name)
    if tag and f"{tag[1]}.{tag[2]}" != (loading.python or ".".join(map(str, sys.version_info[:2]))):
        return
    torch = "torch" * any(soname.startswith(_TORCH) for soname in library.needed)
    before = [loading.libtriton] if loading.libtriton and loading.libtriton.is_file() else []
    command: list[str | Path] = [loading.program, "-c", _LOAD, torch, *before, path.resolve()]
    done = children.run(command, log="doctor-load", env=dict(loading.variables), check=False)
    message = done.stdout.strip()
    if done.status:
        message = f"the process that loaded it ended with status {done.status}: {done.stderr.strip()[-500:]}"
    if message:
        message = message.replace(f"{path.resolve()}: ", "").replace(str(path.resolve()), name)
        hits = ((re.search(pattern, message), remedy) for pattern, remedy in _REMEDIES.items())
        # Without --python, the process that will load it may have more symbols.
        fatal = bool(loading.python) or "undefined symbol" not in message
        remedies = (remedy.format(**hit.groupdict()) for hit, remedy in hits if hit)
        yield Problem(f"{name} cannot be loaded by {loading.program}", message, next(remedies, ""), fatal=fatal)


def _read(path: Path, library: Elf, name: str, loading: Loading) -> Iterator[Problem]:
    here = _MACHINES.get(platform.machine(), platform.machine())
    if library.machine != here:
        yield Problem(
            f"{name} is for {library.machine}; this machine is {here}", next="take the wheel for this machine"
        )
        return
    for soname in _RUNTIME:
        defined = _defined(soname)
        missing = sorted(set(library.versions.get(soname, ())) - defined, key=version_key)
        if defined and missing:
            known = highest(defined, missing[-1]) or "none like it"
            yield Problem(
                f"{name} needs {missing[-1]} of {soname}",
                f"this machine has {known}: the library was built on a newer system",
                "build it on this system or an older one, as manylinux images are",
            )
    tag = _PYTHON.search(name)
    if tag and loading.python and f"{tag[1]}.{tag[2]}" != loading.python:
        yield Problem(
            f"{name} is for Python {tag[1]}.{tag[2]}, and Python {loading.python} does not load it",
            next=f"take the wheel for Python {loading.python}",
        )
    # Triton's own library comes from no other Triton.
    libtriton = loading.libtriton
    if libtriton is not None and libtriton.is_file() and PurePosixPath(name).name != libtriton.name:
        yield from _against_triton(path, name, libtriton)


def _against_triton(path: Path, name: str, libtriton: Path) -> Iterator[Problem]:
    with path.open("rb") as file:
        undefined, own = _compiler_symbols(ELFFile(file))
    if not undefined and not own:
        return
    with libtriton.open("rb") as file:
        dynamic = _symbols(ELFFile(file))
        absent = [
            symbol
            for symbol in undefined
            if all(entry["st_shndx"] == "SHN_UNDEF" for entry in (dynamic and dynamic.get_symbol_by_name(symbol)) or ())
        ]
    ours, theirs = _commit(path), _commit(libtriton)
    if ours and theirs and ours != theirs:
        yield Problem(
            f"{name} has another LLVM in it than libtriton.so",
            f"{name}: {ours}\nlibtriton.so: {theirs}",
            f"build it against LLVM {theirs}, or keep it in another process than Triton",
            fatal=bool(undefined),
        )
    if absent:
        yield Problem(
            f"{name} needs {len(absent)} symbols of LLVM or MLIR that libtriton.so does not have",
            "\n".join(absent[:_SHOWN]) + "\nit was built with another LLVM, another libtriton or another compiler",
            f"build it against LLVM {theirs or 'of this Triton'}",
        )
    if undefined and own:
        yield Problem(
            f"{name} takes LLVM or MLIR from libtriton.so, and has some of it, too",
            f"it defines {own[0]} and {len(own) - 1} more: two copies have two sets of type identifiers and options",
            "link it with none of LLVM's libraries",
            fatal=False,
        )
    writers, others = _type_names(path), _type_names(libtriton)
    if undefined and writers and others and not writers & others:
        made_by = [" and ".join(sorted(compilers)) for compilers in (writers, others)]
        yield Problem(
            f"{name} was compiled by {made_by[0]}, and libtriton.so by {made_by[1]}",
            "they write names of types differently, and MLIR derives type identifiers from them: casts fail silently",
            f"compile it with {made_by[1]}",
        )


def _compiler_symbols(file: ELFFile) -> tuple[list[str], list[str]]:
    """Return the symbols of LLVM and MLIR that a library must find, and the functions of them that it exports.

    Weak symbols are neither: a library may lack them, and any C++ compiler writes them for templates.
    """
    undefined, own = [], []
    for symbol in ((dynamic := _symbols(file)) and dynamic.iter_symbols()) or ():
        if _COMPILER.search(symbol.name) and symbol["st_info"]["bind"] == "STB_GLOBAL":
            if symbol["st_shndx"] == "SHN_UNDEF":
                undefined.append(symbol.name)
            elif symbol["st_info"]["type"] == "STT_FUNC":
                own.append(symbol.name)
    # A plugin's own functions take types of MLIR as arguments: only those in LLVM's namespaces are LLVM's.
    return undefined, [symbol for symbol in own if re.match("_ZNK?(?:4llvm|4mlir)", symbol)]


def _symbols(file: ELFFile) -> DynamicSegment | None:
    return next((segment for segment in file.iter_segments() if isinstance(segment, DynamicSegment)), None)


@cache
def _commit(path: Path) -> str:
    """Return the LLVM commit, or version, in a library; "" if it has none."""
    try:
        with path.open("rb") as file:
            return llvm_hash(file)
    except LlvmHashError:
        return ""


@cache
def _type_names(path: Path) -> frozenset[str]:
    content = path.read_bytes()
    return frozenset(compiler for compiler, text in _TYPE_NAMES.items() if text in content)


@cache
def _defined(soname: str) -> frozenset[str]:
    """Return the versions that a library of this machine defines; none if it is not found."""
    place = next((Path(folder, soname) for folder in _FOLDERS if Path(folder, soname).is_file()), None)
    if place is None:
        return frozenset()
    with place.open("rb") as file:
        return elf.read(file).defined
