"""The programs of the conformance suite: what their sources say of how they are built, and building them.

A device source says in comments, one a line, as what it is built:

    /* built as: NAME FLAGS */                 a program that tests load
    /* measured as: NAME FLAGS */              one that the calibration runs
    /* taken as: NAME FLAGS */                 one that builds and runs
    /* refused as: NAME FLAGS -- WORDS */      one that does not, with these words in the output

The compilers and dpu-pkg-config are those on PATH, so that the suite runs against any SDK.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# A process that has ended; what it wrote to either output is in stdout.
Process = subprocess.CompletedProcess[str]
FOLDER = Path(__file__).resolve().parent
_AS = re.compile(r"^/\* (built|taken|refused|measured) as: (\S+) ?(.*?)(?: -- (.*?))? \*/$", re.MULTILINE)
# Kinds of tests: what holds on both SDKs, and what only the emulator refuses.
CONFORMS, STRICTER = "CONFORMS", "STRICTER"
_TEXT = r'"(?:[^"\\]|\\.)*"'
_TEST = re.compile(rf"^({CONFORMS}|{STRICTER})\((\w+),((?:\s*{_TEXT})+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A device program as one comment describes it."""

    source: Path
    what: str
    name: str
    flags: tuple[str, ...]
    words: tuple[str, ...]


def programs(*what: str) -> list[Program]:
    """The programs that the sources here describe, those of the kinds named."""
    return [
        Program(source, kind, name, tuple(flags.split()), tuple(words.split()))
        for source in sorted(FOLDER.glob("*.c"))
        for kind, name, flags, words in _AS.findall(source.read_text())
        if kind in what
    ]


@dataclass(frozen=True)
class HostTest:
    """A test of a host_*.c.

    Attributes:
        kind: CONFORMS or STRICTER.
        real: what the real SDK does.
    """

    source: Path
    kind: str
    name: str
    real: str

    def __str__(self) -> str:
        return f"{self.source.stem}-{self.name}"


def host_tests() -> list[HostTest]:
    """Return every test in the host_*.c here."""
    return [
        HostTest(source, kind, name, "".join(map(json.loads, re.findall(_TEXT, real))))
        for source in sorted(FOLDER.glob("host_*.c"))
        for kind, name, real in _TEST.findall(source.read_text())
    ]


def build_device(program: Program, folder: Path) -> Process:
    """Compile and link a device program into `folder`."""
    command = ["dpu-upmem-dpurte-clang", "-O2", "-Wall", "-Wextra", *program.flags]
    return _run([*command, "-o", str(folder / program.name), str(program.source)])


def build_from_ir(folder: Path) -> Process:
    """Build ir_program by the commands that TritonPIM's users type; return the last command that was run."""
    objects = [folder / "ir_kernel.o", folder / "ir_arguments.o"]
    compiler = ["dpu-upmem-dpurte-clang", "-O2", "-g0", "-DNR_TASKLETS=4"]
    for command in (
        [*compiler, "-x", "ir", "-c", str(FOLDER / "ir_kernel.ll"), "-o", str(objects[0])],
        [*compiler, "-c", str(FOLDER / "ir_arguments.c"), "-o", str(objects[1])],
        *(["llvm-objcopy", "--remove-section=.eh_frame", str(path)] for path in objects),
        [*compiler, *map(str, objects), "-o", str(folder / "ir_program")],
    ):
        process = _run(command)
        if process.returncode != 0:
            break
    return process


def build_host(name: str, folder: Path, *shared: str, more: Sequence[Path] = ()) -> Process:
    """Compile NAME.c, the shared sources and more files against the SDK's host library, as `folder`/NAME."""
    flags = subprocess.run(
        ["dpu-pkg-config", "--cflags", "--libs", "dpu"], capture_output=True, text=True, check=True
    ).stdout.split()
    sources = [*(str(FOLDER / f"{source}.c") for source in (name, *shared)), *map(str, more)]
    compiler = ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra"]
    return _run([*compiler, "-o", str(folder / name), *sources, *flags, "-ldl", "-lm"])


def _run(command: list[str]) -> Process:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
