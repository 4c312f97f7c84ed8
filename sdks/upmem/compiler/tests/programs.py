"""Builds and runs the programs of these tests with the SDK that is on PATH."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

HERE = Path(__file__).resolve().parent
COMPILER = "dpu-upmem-dpurte-clang"
LAYOUT = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"
TRIPLE = "dpu-upmem-dpurte"
HEAD = f'target datalayout = "{LAYOUT}"\ntarget triple = "{TRIPLE}"\n'


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command; return its status, output and errors."""
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)


def compile_with(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the compiler in a folder."""
    return run([COMPILER, *arguments], folder)


def built(folder: Path, *arguments: str) -> str:
    """Run the compiler; return its warnings. It must succeed."""
    done = compile_with(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def build_program(folder: Path, text: str, *more: str) -> None:
    """Build `program` of C code, which may include checks.h; `more` has flags and other files."""
    (folder / "program.c").write_text(text)
    built(folder, "-O2", f"-I{HERE}", *more, "program.c", "-o", "program")


def refused(folder: Path, *arguments: str) -> str:
    """Return what the compiler prints where it must refuse: it leaves no output, and its status is not 0."""
    done = compile_with(folder, *arguments, "-o", "refused.out")
    assert done.returncode != 0, done.stderr
    assert not (folder / "refused.out").exists()
    return done.stderr


@cache
def _host() -> Path:
    folder = Path(mkdtemp(prefix="compiler-tests-"))
    libraries = run(["dpu-pkg-config", "--cflags", "--libs", "dpu"], folder)
    assert libraries.returncode == 0, libraries.stderr
    done = run(["cc", "-std=gnu11", "-O1", str(HERE / "run.c"), "-o", "run", *shlex.split(libraries.stdout)], folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@dataclass(frozen=True)
class Ran:
    """What a program left: its `results` (16 numbers), its log, and what was written to stderr."""

    results: list[int]
    log: str
    errors: str


def launched(folder: Path, program: str = "program") -> Ran:
    """Launch a program on one DPU; fails if the DPU faults."""
    done = run([str(_host()), program], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    first, _, log = done.stdout.partition("\n")
    return Ran([int(word) for word in first.split()], log, done.stderr)


def faulted(folder: Path, program: str = "program") -> str:
    """Launch a program whose DPU must fault; return the message."""
    done = run([str(_host()), program], folder)
    assert (done.returncode, done.stdout) == (1, "dpu is in fault\n"), done.stdout + done.stderr
    return done.stderr
