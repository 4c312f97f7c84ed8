"""Readers in C and C++ of what others wrote, each with a function for libFuzzer in fuzz_native/, and valid inputs.

tests/faults/test_fuzz.py compiles them by g++ with its checks, and damages the inputs a fixed number of times.
tests/fuzz.py compiles them for libFuzzer by clang, which Debian's packages clang-14 and libclang-rt-14-dev have.

vulkan.c hands a kernel's module and its cache to the driver as they are, and reads neither. What it reads is what the
driver answers: its target is a driver that answers, and a program that calls, what the input says.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
_FOLDER = ROOT / "tests/fuzz_native"
_EMULATOR = ROOT / "sdks/upmem"
# Undefined behaviour ends the process, too.
_CHECKS = ("-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
# A read or write outside of an object, and a request for more memory than a reader needs, end the process.
ENVIRONMENT = {"ASAN_OPTIONS": "max_allocation_size_mb=1024:allocator_may_return_null=0:detect_leaks=0"}


@dataclass(frozen=True)
class NativeTarget:
    """A reader: its sources, the folders of its headers, and a function that makes valid inputs.

    Attributes:
        language: the words of the compiler for it.
        debs: names of the packages that have more headers, as they are locked for the target spirv-vulkan.
        tries: how many damaged inputs the test has.
    """

    sources: Sequence[Path]
    includes: Sequence[Path]
    seeds: Callable[[], Sequence[bytes]]
    language: Sequence[str] = ("-std=c++17",)
    debs: Sequence[str] = ()
    tries: int = 3000


def arrays() -> Sequence[bytes]:
    """Return files of an array, in versions 1.0 and 2.0 of NumPy's format."""
    found = []
    for version, width in ((1, "<H"), (2, "<I")):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"
        found.append(b"\x93NUMPY" + bytes((version, 0)) + struct.pack(width, len(header)) + header + bytes(24))
    return found


def _abi() -> int:
    """Return the version of the interface that the reader accepts."""
    found = re.search(r"FOUNDRY_DPU_ABI_VERSION ([0-9]+)", (_EMULATOR / "abi/abi.h").read_text())
    assert found
    return int(found[1])


def programs() -> Sequence[bytes]:
    """Return a DPU program: code, a variable in WRAM, data in MRAM, and the symbols that a program must have."""
    symbols, names = bytes(16), b"\0"
    for name, value, size, kind, section in (
        (b"__foundry_abi", _abi(), 0, 0, 0xFFF1),
        (b"NR_TASKLETS", 2, 0, 0, 0xFFF1),
        (b"STACK_SIZE_DEFAULT", 1024, 0, 0, 0xFFF1),
        (b"variable", 0x10000000, 8, 0x11, 4),
        (b"in_mram", 0x08000000, 8, 0x11, 3),
        (b"__sys_used_mram_end", 0x08000010, 0, 0x10, 3),
    ):
        symbols += struct.pack("<IIIBBH", len(names), value, size, kind, 0, section)
        names += name + b"\0"
    titles = b"\0.symtab\0.strtab\0.shstrtab\0.dpu_host\0.foundry.sites\0.foundry.lines\0"
    contents = [symbols, names, titles, b"8 bytes.", b"a.c:1\0", b"a.c:2\0.........."]
    at = [52 + 3 * 32]
    for content in contents:
        at.append(at[-1] + len(content))
    program = struct.pack("<IIIIIIII", 1, at[3], 0x10000000, 0, 8, 16, 6, 8)
    program += struct.pack("<IIIIIIII", 1, at[3], 0x08000000, 0, 8, 8, 6, 8)
    program += struct.pack("<IIIIIIII", 1, at[3], 0x40000000, 0, 8, 8, 5, 8)
    sections = bytes(40)
    kinds = ((b".symtab", 2, 2), (b".strtab", 3, 0), (b".shstrtab", 3, 0), (b".dpu_host", 1, 0))
    for number, (title, kind, link) in enumerate((*kinds, (b".foundry.sites", 1, 0), (b".foundry.lines", 1, 0))):
        place = (at[number], len(contents[number]))
        sections += struct.pack("<IIIIIIIIII", titles.index(title + b"\0"), kind, 0, 0, *place, link, 0, 1, 16)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIIIIIHHHHHH", 2, 62, 1, 0x40000000, 52, at[-1], 0, 52, 32, 3, 40, 7, 3)
    return [header + program + b"".join(contents) + sections]


def calls() -> Sequence[bytes]:
    """Return programs of a driver that never fails."""
    return [bytes(Random(number).choices(range(248), k=300)) for number in range(8)]


TARGETS = {
    "npy": NativeTarget([_FOLDER / "npy.cpp"], [ROOT / "backends/vsi/src/triton_vsi_backend/standalone"], arrays),
    "dpu-program": NativeTarget(
        [_FOLDER / "dpu_program.cpp", _EMULATOR / "host/program.cpp"],
        [_EMULATOR / "host", _EMULATOR / "host/include/dpu"],
        programs,
    ),
    "vulkan": NativeTarget(
        [_FOLDER / "vulkan_driver.c"],
        [ROOT / "toolchains/recipes/vulkan-runtime/src"],
        calls,
        ("-x", "c"),
        ("libvulkan-dev",),
        300,
    ),
}


def build(name: str, program: Path, compiler: Sequence[str | Path]) -> None:
    """Compile a target; the words of the compiler say with which checks, and what calls the target's function."""
    target = TARGETS[name]
    with TemporaryDirectory() as unpacked:
        for deb in _fetched(target.debs):
            subprocess.run(["dpkg-deb", "-x", deb, unpacked], check=True)
        includes = [f"-I{folder}" for folder in (*target.includes, Path(unpacked, "usr/include"))]
        words = [*compiler, *target.language, "-g", "-O1", "-D_GNU_SOURCE", *includes, *target.sources, "-o", program]
        subprocess.run(words, check=True)


def _fetched(names: Sequence[str]) -> list[Path]:
    if not names:
        return []
    from toolchains.fetch.store import Store
    from toolchains.lockfile import lock
    from toolchains.system import paths

    locked, store = lock.load().targets["spirv-vulkan"], Store(paths.cache())
    assert locked.builder
    debs = [deb for deb in locked.builder.debs if deb.name in names]
    return [store.path(deb) for deb in store.fetch(debs, suite=locked.suite, python=locked.python)]


@dataclass(frozen=True)
class Tried:
    """What became of files: what is wrong with the last one that was read, or ""; and how many were accepted."""

    wrong: str
    last: str = ""
    accepted: int = 0


def tried(program: Path, inputs: Sequence[Path], seconds: int) -> Tried:
    """Let a program without libFuzzer read files until it does not survive one."""
    try:
        done = subprocess.run(
            [program, *inputs], env=ENVIRONMENT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as late:
        return Tried("it does not end", Path((late.stdout or b"").decode().split("\n")[-2]).name)
    *_, last = done.stdout.splitlines() or [""]
    return Tried(done.stderr[-2000:] or "it died", Path(last).name) if done.returncode else Tried("", "", int(last))


def by_gcc() -> Sequence[str | Path]:
    """Return the words for a program that reads the files of its command line."""
    # With a thread of the reader, one input would not do the same in each run.
    return ["g++", "-DTHREADS=0", *_CHECKS, "-fsanitize=address,undefined", _FOLDER / "main.cpp"]


def by_clang(clang: str) -> Sequence[str]:
    """Return the words for a program of libFuzzer."""
    return [clang, "-DTHREADS=1", *_CHECKS, "-fsanitize=fuzzer,address,undefined"]
