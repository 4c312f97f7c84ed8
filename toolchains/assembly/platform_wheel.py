"""Rewrite one of the project's own wheels for machines without an image: with a C library, and with what it requires.

The wheels of plugin_wheels.py are for images, where native parts lie elsewhere and pip resolves nothing. On another
machine the library is in the wheel, whose tag then says which machines can load it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.archives import wheel_file
from toolchains.contents import documents
from toolchains.contents.component import Component
from toolchains.sdk import elf
from toolchains.system.errors import UsageError

_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
# What the manylinux tags let every library of a wheel expect of a machine, as far as C needs it.
_EVERYWHERE = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def tag(library: Path) -> str:
    """Return the platform tag of a wheel with this library, such as manylinux_2_34_x86_64: the glibc that it needs.

    Raises:
        UsageError: it is not a library for x86-64 Linux, or it needs libraries that a machine may not have.
    """
    with library.open("rb") as file:
        try:
            read = elf.read(file)
        except elf.DamagedElfError as error:
            raise UsageError(f"{library} is not a shared library", why=str(error)) from error
    if (read.machine, read.kind) != ("x64", "ET_DYN"):
        raise UsageError(f"{library} is not a shared library for x86-64", why=f"it is {read.machine}, {read.kind}")
    if others := sorted(set(read.needed) - _EVERYWHERE):
        raise UsageError(f"{library} needs {', '.join(others)}, which a machine may not have")
    needs = [version for names in read.versions.values() for name in names if (version := _GLIBC.fullmatch(name))]
    # The oldest tag of this form is that of glibc 2.5 (PEP 600).
    major, minor = max([(2, 5), *((int(version[1]), int(version[2])) for version in needs)])
    return f"manylinux_{major}_{minor}_x86_64"


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
        libraries: shared libraries to add, by their paths in the wheel. The wheel is then for their platform.
    """
    libraries = libraries or {}
    name, version = wheel.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    platforms = [tag(library) for library in libraries.values()]
    # The numbers are compared: 2_9 is older than 2_34.
    platform = max(platforms, key=lambda name: [int(number) for number in name.split("_")[1:3]], default="any")
    target = folder / f"{name}-{version}-py3-none-{platform}.whl"
    content = wheel_file.read_files(wheel)
    marks = re.sub(rb"(?m)^Tag: .*$", f"Tag: py3-none-{platform}".encode(), content[f"{info}/WHEEL"])
    if libraries:
        marks = re.sub(rb"(?m)^Root-Is-Purelib: .*$", b"Root-Is-Purelib: false", marks)
    head, empty, text = content[f"{info}/METADATA"].partition(b"\n\n")
    head += b"".join(f"\nRequires-Dist: {requirement}".encode() for requirement in requires)
    content |= {f"{info}/WHEEL": marks, f"{info}/METADATA": head + empty + text}
    content |= documents.wheel_documents(described, info)
    wheel_file.write_files(target, info, {**content, **libraries}, wheel_file.executables(wheel))
    return target
