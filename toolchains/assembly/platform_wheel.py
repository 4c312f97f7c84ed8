"""Rewrite one of the project's own wheels for machines without an image: with a C library, and with what it requires.

The wheels of plugin_wheels.py are for images, where native parts lie elsewhere and pip resolves nothing. On another
machine the library is in the wheel, whose tag then says which machines can load it. auditwheel decides that, by the
rules of the manylinux tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from auditwheel.error import AuditwheelError
from auditwheel.libc import Libc
from auditwheel.wheel_abi import WheelAbIInfo, analyze_wheel_abi

from toolchains.archives import wheel_file
from toolchains.contents.component import Component
from toolchains.contents.packages import wheel_documents
from toolchains.sdk import elf
from toolchains.system import paths
from toolchains.system.errors import UsageError

# By pyelftools' name of a machine, its name in a wheel's tag. Triton has wheels for these.
MACHINES = {"x64": "x86_64", "AArch64": "aarch64"}


def machine(library: Path) -> str:
    """Return the machine that a shared library is for, as a wheel's tag names it.

    Raises:
        UsageError: it is not a library for Linux on one of MACHINES.
    """
    with library.open("rb") as file:
        try:
            read = elf.read(file)
        except elf.DamagedElfError as error:
            raise UsageError(f"{library} is not a shared library", why=str(error)) from error
    if read.machine not in MACHINES or read.kind != "ET_DYN":
        known = " or ".join(MACHINES.values())
        raise UsageError(f"{library} is not a shared library for {known}", why=f"it is {read.machine}, {read.kind}")
    return MACHINES[read.machine]


def audit(wheel: Path) -> str:
    """Return the best platform tag that auditwheel's rules allow a wheel with libraries, such as manylinux_2_17_x86_64.

    Raises:
        UsageError: its libraries need files, symbols or instructions that no manylinux tag promises.
    """
    try:
        # With "", this machine's own libraries are not looked at.
        found = analyze_wheel_abi(
            Libc.GLIBC, None, wheel, frozenset(), disable_isa_ext_check=False, allow_graft=False, args_ldpaths=""
        )
    except AuditwheelError as error:
        raise UsageError(
            f"{wheel.name} has a library that a machine may not be able to load", why=str(error)
        ) from error
    name = str(found.overall_policy.name)
    if not name.startswith("manylinux_"):
        raise UsageError(
            f"{wheel.name} needs {', '.join(_missing(found)) or 'instructions'}, which a machine may not have",
            why=f"auditwheel gives it the tag {name}",
        )
    return name


def _missing(found: WheelAbIInfo) -> list[str]:
    """Return the libraries and the versions of symbols that no tag promises."""
    libraries = found.external_refs[found.policies.highest.name].libs
    versions = {each for names in found.versioned_symbols.values() for each in names}
    return sorted(libraries) or sorted(versions)


def rewrite(
    wheel: Path,
    folder: Path,
    described: Component,
    *,
    requires: Sequence[str] = (),
    libraries: Mapping[str, Path] | None = None,
) -> Path:
    """Write a copy of a pure wheel into a folder, the same bytes each time; return its path.

    Args:
        described: the result as a component.
        requires: distributions that it requires in addition.
        libraries: shared libraries of one machine to add, by their paths in the wheel. The wheel is then for it.

    Raises:
        UsageError: a library is for no machine, or see `audit`.
    """
    if not libraries:
        return _write(wheel, folder, described, requires, {}, "any")
    (name,) = {machine(library) for library in libraries.values()}
    with TemporaryDirectory(dir=paths.scratch()) as work:
        platform = audit(_write(wheel, Path(work), described, requires, libraries, f"linux_{name}"))
    return _write(wheel, folder, described, requires, libraries, platform)


def _write(
    wheel: Path,
    folder: Path,
    described: Component,
    requires: Sequence[str],
    libraries: Mapping[str, Path],
    platform: str,
) -> Path:
    name, version = wheel.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    target = folder / f"{name}-{version}-py3-none-{platform}.whl"
    content = wheel_file.read_files(wheel)
    marks = re.sub(rb"(?m)^Tag: .*$", f"Tag: py3-none-{platform}".encode(), content[f"{info}/WHEEL"])
    if libraries:
        marks = re.sub(rb"(?m)^Root-Is-Purelib: .*$", b"Root-Is-Purelib: false", marks)
    head, empty, text = content[f"{info}/METADATA"].partition(b"\n\n")
    head += b"".join(f"\nRequires-Dist: {requirement}".encode() for requirement in requires)
    content |= {f"{info}/WHEEL": marks, f"{info}/METADATA": head + empty + text}
    content |= wheel_documents(described, info)
    wheel_file.write_files(target, info, {**content, **libraries}, wheel_file.executables(wheel))
    return target
