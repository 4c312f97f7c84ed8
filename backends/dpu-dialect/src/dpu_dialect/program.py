"""Run LLVM 22's mlir-opt and mlir-translate, and report errors in their form."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from foundry_core.tools import tool


class ProgramExit(Exception):
    """What ends a program with an exit status; the message is for standard error, "" if it has been said."""

    def __init__(self, said: str = "", status: int = 1) -> None:
        super().__init__(said)
        self.said, self.status = said, status


def located(source: str, line: int, column: int, message: str, text: str) -> ProgramExit:
    """Format a failure at a place of a text as LLVM's tools do; lines and columns count from 1."""
    lines = text.splitlines()
    shown = f"\n{lines[line - 1]}\n{' ' * (column - 1)}^" if 0 < line <= len(lines) else ""
    return ProgramExit(f"{source}:{line}:{column}: error: {message}{shown}")


def call(name: str, arguments: Sequence[str], data: bytes, source: str) -> bytes:
    """Run one of LLVM's programs on what its standard input is given.

    Args:
        name: mlir-opt or mlir-translate; what it calls itself in messages is our program's name.
        data: its input.
        source: what it is to call that input.

    Returns:
        What it wrote to standard output; warnings have gone to standard error.

    Raises:
        ProgramExit: it failed.
        ToolError: it is not there.
    """
    done = subprocess.run([f"dpu-{name}", *arguments], executable=tool(name), input=data, capture_output=True)
    said = done.stderr.decode(errors="replace").replace("<stdin>", source)
    if done.returncode != 0:
        raise ProgramExit(said, done.returncode if done.returncode > 0 else 1)
    sys.stderr.write(said)
    return done.stdout


def hand_over(name: str, arguments: Sequence[str], data: bytes | None) -> int:
    """Run one of LLVM's programs instead of this one, and return its status; `data` is its standard input if read."""
    return subprocess.run([f"dpu-{name}", *arguments], executable=tool(name), input=data).returncode


def read(source: str) -> bytes:
    """Return the contents of a file, or of standard input for `-`."""
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise ProgramExit(f"cannot open input file '{source}': {error.strerror}") from error


def write(output: str, data: bytes) -> None:
    """Write to a file, or to standard output for `-`."""
    if output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise ProgramExit(f"cannot open output file '{output}': {error.strerror}") from error
