"""The programs that the tests run: opt with the pass, and the readers of typed pointers on both sides of LLVM 12."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

LAYOUT = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"
HEAD = f'target datalayout = "{LAYOUT}"\ntarget triple = "dpu-upmem-dpurte"\n'
READERS = (11, 13, 14)


def opt() -> str:
    """The opt under test: the one that UPMEM_OPT names, else the first on PATH, as the plugin finds it."""
    found = os.environ.get("UPMEM_OPT") or shutil.which("opt")
    assert found, "UPMEM_OPT is not set, and no opt is on PATH"
    return found


def reader(version: int) -> str | None:
    """llvm-as of that version, if it is installed."""
    return shutil.which(f"llvm-as-{version}") or shutil.which(f"/usr/lib/llvm-{version}/bin/llvm-as")


def run(command: list[str], text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with a text as input; returns its status, output and errors."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)


def legalize(ir: str, *options: str) -> str:
    """What opt makes of a module without triple and layout; fails if it does not."""
    done = run([opt(), "-dpu-legalize", *options, "-S", "-", "-o", "-"], HEAD + ir)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(ir: str, *options: str) -> str:
    """What opt says to a module that it refuses; fails if it takes it."""
    done = run([opt(), "-dpu-legalize", *options, "-S", "-", "-o", "-"], ir)
    assert done.returncode != 0, done.stdout
    assert not done.stdout
    return done.stderr


def body(ir: str, name: str) -> str:
    """The text of one function."""
    found = re.search(rf"^define [^\n]*@{name}\(.*?^}}$", ir, re.DOTALL | re.MULTILINE)
    assert found, f"no function {name}"
    return found[0]
