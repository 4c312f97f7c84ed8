"""Writes a packed folder: the same kernels give the same bytes.

foundry.json       what is in the folder: format, name, target, version, kernels, and each file with its sha256
include/ src/      NAME.h and foundry_packed.h for users; the library's sources
kernels/           compiled kernels
recorded/          arrays before and after recorded launches
example.c          launches the kernels as recorded, and compares
CMakeLists.txt, NAME.pc.in      to build and install
python/NAME/       the loader in Python
lib/ bin/          the library and the example, built in the image, if it has a compiler
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import symtable
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from . import tables
from .forms import Kernel
from .roads import COMMON, PackError, Road, c_sources

MANIFEST = "foundry.json"
_COMPILERS = ("cc", "gcc", "clang", "/usr/lib/llvm-18/bin/clang", "/usr/lib/llvm-14/bin/clang")
# Headers of the C library, as far as the sources need it, for an image that has a compiler and no headers.
_HEADERS = Path(__file__).parent / "headers"


def write(
    folder: Path, name: str, target: str, version: str, kernels: Sequence[Kernel], road: Road
) -> dict[str, bytes]:
    """Write a folder, which must not exist or be empty, and return its files.

    Args:
        name: the folder's name in C and Python.
        target, version: of what packs.

    Raises:
        PackError: a name is none in C.
    """
    contents = _contents(name, target, version, kernels, road)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        _write(folder / path, content)
    contents |= _built(folder, name, road)
    manifest = _manifest(name, target, version, kernels, contents)
    _write(folder / MANIFEST, manifest)
    return contents | {MANIFEST: manifest}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _contents(name: str, target: str, version: str, kernels: Sequence[Kernel], road: Road) -> dict[str, bytes]:
    called = tables.identifier(name)
    if called != name:
        raise PackError(
            f"{name} cannot be the folder's name", why="it is a word of C", next="choose another: --name=NAME"
        )
    contents = {file.path: file.content for kernel in kernels for each in tables.kernel_files(kernel) for file in each}
    example, recorded = tables.example(name, kernels)
    contents |= recorded
    common = c_sources(*COMMON)
    texts = {f"src/{file}": text for file, text in {**common, **road.sources}.items() if file != "foundry_packed.h"}
    texts["src/spans.h"] = files("foundry_core").joinpath("footprint", "spans.h").read_text()
    texts["include/foundry_packed.h"] = common["foundry_packed.h"]
    texts[f"include/{name}.h"] = tables.header(name, kernels)
    texts[f"src/{name}.c"] = tables.tables(name, version, target, kernels, road)
    texts["example.c"] = example
    listed = " ".join(sorted(path for path in texts if path.startswith("src/") and path.endswith(".c")))
    words = {
        "@NAME@": name,
        "@VERSION@": version.partition("+")[0],
        "@FORMAT@": str(tables.version_format()),
        "@SOURCES@": listed,
        "@LIBRARIES@": " ".join(road.libraries),
        "@ROAD@": road.cmake.replace("@NAME@", name),
    }
    texts["CMakeLists.txt"] = _filled("CMakeLists.txt.in", words)
    pc = {"%NAME%": name, "%VERSION%": words["@VERSION@"], "%KERNELS%": ", ".join(kernel.name for kernel in kernels)}
    texts[f"{name}.pc.in"] = _filled("pkgconfig.in", pc)
    texts[f"python/{name}/__init__.py"] = _loader(name, kernels)
    return contents | {path: text.encode() for path, text in texts.items()}


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = files(__package__).joinpath(template).read_text()
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _loader(name: str, kernels: Sequence[Kernel]) -> str:
    table = {}
    for kernel in kernels:
        chosen = [each for each, known in kernel.names.items() if known.constant == 2]
        written = sorted({n for v in kernel.variants for n, p in v.parameters.items() if p.is_written})
        table[kernel.name] = (list(kernel.names), chosen, written)
    rows = "".join(f"    {kernel!r}: {row!r},\n" for kernel, row in table.items())
    words = {
        "@NAME@": name,
        "@UPPER@": name.upper(),
        "@MODULE@": tables.identifier(name),
        "@KERNEL@": kernels[0].name,
        "@FORMAT@": str(tables.version_format()),
        "@ALL@": repr(["Array", "PackedError", "device", *(kernel.name for kernel in kernels)]),
        "@TABLE@": f"{{\n{rows}}}",
    }
    text = _filled("loader.py.in", words)
    if taken := table.keys() & set(symtable.symtable(text, name, "exec").get_identifiers()):
        raise PackError(
            f"a kernel cannot have the name {min(taken)}",
            why="the loader in Python has it",
            next="give the kernel another name",
        )
    return text


def _manifest(name: str, target: str, version: str, kernels: Sequence[Kernel], contents: Mapping[str, bytes]) -> bytes:
    # The library compares the first line with its own.
    first = {"format": tables.version_format(), "name": name, "target": target, "version": version}
    rest = {
        "kernels": {
            kernel.name: [
                {each: p.type or p.constant for each, p in variant.parameters.items()} for variant in kernel.variants
            ]
            for kernel in kernels
        },
        "files": {
            path: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for path, content in sorted(contents.items())
        },
    }
    return (json.dumps(first)[:-1] + ",\n" + json.dumps(rest, indent=1)[1:].lstrip("\n") + "\n").encode()


def _built(folder: Path, name: str, road: Road) -> dict[str, bytes]:
    """Build the library and the example, if there is a compiler, and return them by path."""
    compiler = next((found for each in _COMPILERS if (found := shutil.which(each))), "")
    if not compiler:
        return {}
    library, program = f"lib/lib{name}.so", f"bin/{name}_example"
    sources = sorted(str(path.relative_to(folder)) for path in (folder / "src").glob("*.c"))
    common = [compiler, "-O2", "-std=c11", "-fwrapv", "-s", "-Iinclude", "-Isrc", "-ffile-prefix-map=.=."]
    if not Path("/usr/include/stdio.h").exists():
        common += ["-nostdinc", f"-isystem{_HEADERS}"]
    # In the C library, where that is glibc 2.34 or newer, as in each image.
    linked = [f"-l{each}" for each in road.libraries if each not in ("dl", "pthread", "m")]
    commands = [
        [
            *common,
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            f"-Wl,-soname,lib{name}.so",
            *sources,
            "-o",
            library,
            *linked,
            *road.flags,
        ],
        [*common, "example.c", "-o", program, library, "-Wl,-rpath,$ORIGIN/../lib"],
    ]
    for made, command in zip((library, program), commands, strict=True):
        (folder / made).parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "SOURCE_DATE_EPOCH": "0"}, capture_output=True, text=True
        )
        if done.returncode:
            raise PackError(
                f"{made} cannot be built", why=done.stderr.strip()[-4000:] or f"exit status {done.returncode}"
            )
    return {made: (folder / made).read_bytes() for made in (library, program)}
