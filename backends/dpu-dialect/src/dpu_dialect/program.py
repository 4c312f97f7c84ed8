"""What the two programs share: they run LLVM 22's mlir-opt and mlir-translate, and report errors in their form."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from foundry_core.codegen.tools import tool
from foundry_core.errors import LoweringError, ToolError

from .commandline import UsageProblem

# How a module is printed that the programs themselves read: with locations, and a form that needs no dialect.
GENERIC = ("--mlir-print-op-generic", "--mlir-print-debuginfo", "--mlir-print-local-scope")


class ProgramExit(Exception):
    """Ends a program with an exit status; the message is for standard error, "" if it is already printed."""

    def __init__(self, message: str = "", status: int = 1) -> None:
        super().__init__(message)
        self.message, self.status = message, status


def run_program(name: str, action: Callable[[list[str]], int]) -> int:
    """Run a console script for its words; return the exit status. Errors are printed in the form of LLVM's programs."""
    try:
        return action(sys.argv[1:])
    except ProgramExit as failure:
        if failure.message:
            print(failure.message.rstrip(), file=sys.stderr)
        return failure.status
    except UsageProblem as problem:
        print(f"dpu-{name}: {problem}", file=sys.stderr)
    except (ToolError, LoweringError) as error:
        print(f"dpu-{name}: error: {error}", file=sys.stderr)
    return 1


def locate_problem(source: str, line: int, column: int, message: str, text: str) -> ProgramExit:
    """Build an error at a place in a text in the format of LLVM's tools; lines and columns count from 1."""
    lines = text.splitlines()
    shown = f"\n{lines[line - 1]}\n{' ' * (column - 1)}^" if 0 < line <= len(lines) else ""
    return ProgramExit(f"{source}:{line}:{column}: error: {message}{shown}")


def call(name: str, arguments: Sequence[str], data: bytes, source: str) -> bytes:
    """Run one of LLVM's programs with an input.

    Args:
        name: mlir-opt or mlir-translate; in its messages it has our program's name.
        data: its standard input.
        source: the name of that input in messages.

    Returns:
        Its standard output; warnings are printed to standard error.

    Raises:
        ProgramExit: the program failed.
        ToolError: the program is not installed.
    """
    done = subprocess.run([f"dpu-{name}", *arguments], executable=tool(name), input=data, capture_output=True)
    messages = done.stderr.decode(errors="replace").replace("<stdin>", source)
    if done.returncode != 0:
        raise ProgramExit(messages, done.returncode if done.returncode > 0 else 1)
    sys.stderr.write(messages)
    return done.stdout


def hand_over(name: str, arguments: Sequence[str], data: bytes | None) -> int:
    """Run one of LLVM's programs instead of this one and return its status; `data` is its input if already read."""
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
