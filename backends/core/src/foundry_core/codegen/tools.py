"""Runs LLVM's command-line tools as functions from text to text.

The tools must be those of the image's lock (programs.py finds them). An LLVM of another major version than the one for
which the lowering was written is refused.
"""

from __future__ import annotations

import functools
import re
import struct
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from ..emit.mlir import LLVM_INTRINSIC
from ..errors import ToolError
from . import lines
from .programs import locate

LLVM_MAJOR = 22
# From structured control flow and vectors to the LLVM dialect. Canonicalization comes first: it folds the index
# arithmetic that the lowering writes without simplification. It runs again later, because code motion empties branches,
# and PoCL's SPIR-V reader crashes on a conditional branch with two equal targets. No pass may merge blocks, because
# PoCL finds the regions between barriers by the shape of the control flow. Vectors are converted first, because their
# conversion merges blocks wherever it finds some.
_PASSES = (
    "canonicalize,cse,loop-invariant-code-motion,convert-vector-to-llvm,convert-scf-to-cf,"
    "canonicalize{region-simplify=normal},convert-arith-to-llvm,convert-cf-to-llvm,"
    "canonicalize{region-simplify=disabled},cse,reconcile-unrealized-casts"
)
# What a loop, and then the branch back to its beginning, has if LLVM must not hoist code out of it.
_HINT = "llvm.loop_annotation ="
# MLIR writes places to LLVM IR only in functions that have a scope.
_KEEP_PLACES = "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}"
# PoCL 6 supports SPIR-V up to 1.2.
_TRIPLE = "spirv64v1.2-unknown-unknown"
# The integer widths of SPIR-V; i1 is its Boolean. LLVM 22's SPIR-V backend widens other integers without a mask: `& 7`
# of an i3 is lost, and results are wrong without a message.
_INTEGERS = frozenset((1, 8, 16, 32, 64))
_INTEGER_TYPE = re.compile(r"(?<![\w%@.$-])i([0-9]+)\b")
# Names, strings, comments and debug locations, which contain no types.
_NO_TYPES = re.compile(r'[%@!#$]?"[^"]*"|;[^\n]*')
# In one function: what is cut to fewer bits, and what is extended by zeros.
_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_CUT = re.compile(r"^ *(%[\w.]+) = trunc (?:nuw |nsw )*((?:<\d+ x )?i(\d+)>?) (%[\w.]+) to ", re.MULTILINE)
_EXTENDED = re.compile(
    r"^( *)(%[\w.]+) = zext (?:nneg )?((?:<\d+ x )?)i(\d+)>? (%[\w.]+) to ((?:<\d+ x )?i(\d+)>?)", re.MULTILINE
)

# LLVM's SPIR-V backend in the header of a module; registered in Khronos' SPIR-V-Headers, spir-v.xml.
_LLVM_GENERATOR = 43
# `OpCapability Int64Atomics`
_INT64_ATOMICS = struct.pack("<II", 2 << 16 | 17, 12)


@functools.cache
def tool(name: str) -> Path:
    """Return the path of a tool.

    Raises:
        ToolError: the tool is missing, or its LLVM is not LLVM_MAJOR.
    """
    path = _path(name)
    _check_version(name)
    return path


@functools.cache
def _path(name: str) -> Path:
    path = locate(name)
    if path is None:
        raise ToolError(f"{name} is not on PATH; the lowering needs LLVM {LLVM_MAJOR}'s tools (or FOUNDRY_LLVM_BIN)")
    return path


def _check_version(name: str) -> None:
    if not name.startswith("spirv-"):
        _check_folder(_path(name).resolve().parent)


@functools.cache
def _check_folder(folder: Path) -> None:
    """Check the version of one program in a folder of LLVM's; starting a program takes about 30 ms."""
    llc = folder / "llc"
    said = subprocess.run([llc, "--version"], capture_output=True, text=True).stdout if llc.is_file() else ""
    version = re.search(r"LLVM version (\d+)", said)
    if version is None or int(version[1]) != LLVM_MAJOR:
        what = f"LLVM {version[1]}" if version else "no LLVM that has an llc"
        raise ToolError(f"{folder} has {what}, the lowering needs LLVM {LLVM_MAJOR}")


def _run(text: str | bytes, *commands: Sequence[str], shows_version: bool = False) -> bytes:
    """Pipe a text through tools and return what the last one writes.

    Most of a tool's time is its start, so all of them start at once, and their version is checked meanwhile.

    Args:
        shows_version: what is written, or what is made of it next, shows the version (llvm_to_spirv). It is then
            checked here only if a tool fails, to give the reason.

    Raises:
        ToolError: a tool is missing, of another LLVM, or failed; says what the first one that failed printed.
    """
    processes: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        # Files instead of pipes: nothing waits until somebody reads or writes the other end.
        given, *messages = (stack.enter_context(TemporaryFile()) for _ in range(1 + len(commands)))
        given.write(text.encode() if isinstance(text, str) else text)
        given.seek(0)
        source: IO[bytes] = given
        try:
            for (name, *arguments), printed in zip(commands, messages, strict=True):
                line = [str(_path(name)), *arguments]
                processes.append(subprocess.Popen(line, stdin=source, stdout=subprocess.PIPE, stderr=printed))
                source.close()  # else the tool before would not notice if this one ends
                source = processes[-1].stdout or source
            if not shows_version:
                for name, *_ in commands:
                    _check_version(name)
            with source:
                written = source.read()
        except BaseException:
            for process in processes:
                process.kill()
            raise
        finally:
            for process in processes:
                process.wait()
        failed = []
        for (name, *arguments), process, printed in zip(commands, processes, messages, strict=True):
            if process.returncode != 0:
                printed.seek(0)
                said = printed.read().decode(errors="replace").strip()[-4000:]
                what = f"{name} {' '.join(arguments)} failed with exit status {process.returncode}"
                failed.append((not said, f"{what}:\n{said}"))
        if failed:
            for name, *_ in commands:
                _check_version(name)
            # One that printed nothing may have ended because the next one did not read its output.
            raise ToolError(min(failed, key=lambda failure: failure[0])[1])
    return written


_OPT = ("mlir-opt", f"--pass-pipeline=builtin.module({_PASSES})")
# With the places of a module that has any.
_OPT_TO_LLVM = ("mlir-opt", f"--pass-pipeline=builtin.module({_PASSES},{_KEEP_PLACES})", "--mlir-print-debuginfo")


def mlir_to_llvm(mlir: str) -> str:
    """Translate MLIR in scf, arith, vector and llvm dialects to LLVM IR."""
    command = _OPT_TO_LLVM if _has_places(mlir) else _OPT
    translate = ("mlir-translate", "--mlir-to-llvmir")
    if _HINT not in mlir:
        return _run(mlir, command, translate, shows_version=True).decode()
    # MLIR passes the hint on from loops to branches, but translates it under another name only.
    lowered = _run(mlir, command, shows_version=True).decode().replace(_HINT, _HINT.removeprefix("llvm."))
    return _run(lowered, translate, shows_version=True).decode()


def mlir_to_llvm_dialect(mlir: str) -> str:
    """Translate MLIR in scf, arith and llvm dialects to the llvm dialect only, in generic form."""
    places = ("--mlir-print-debuginfo", "--mlir-print-local-scope") if _has_places(mlir) else ()
    return _run(mlir, (*_OPT, "--mlir-print-op-generic", *places)).decode()


def _has_places(mlir: str) -> bool:
    return " loc(" in mlir


def llvm_to_spirv(llvm: str) -> bytes:
    """Compile LLVM IR to validated SPIR-V.

    Raises:
        ToolError: llc or spirv-val failed, or the LLVM IR has integers that SPIR-V does not have.
    """
    _check_integers(llvm)
    # -O0, because llc's optimizations do not know what SPIR-V lacks. From -O1 on, loop strength reduction makes
    # induction variables of types such as i3, which are compiled wrongly (_INTEGERS), and CodeGenPrepare turns
    # comparisons into additions with overflow, OpIAddCarry, which PoCL cannot link. The device's own compiler optimizes
    # the kernel.
    llvm, file = lines.mark(_FUNCTION.sub(lambda function: _masked(function[0]), llvm))
    binary = _run(llvm, ("llc", f"-mtriple={_TRIPLE}", "-O0", "-filetype=obj", "-o", "-"), shows_version=True)
    # The third word has the number of LLVM's SPIR-V backend, and its major version.
    if binary[8:12] != struct.pack("<HH", LLVM_MAJOR, _LLVM_GENERATOR):
        _check_version("llc")
        raise ToolError(f"llc did not write a SPIR-V module of LLVM {LLVM_MAJOR}")
    binary = lines.unmark(binary, file) if file else binary
    binary = binary.replace(LLVM_INTRINSIC.encode(), b"llvm.")
    # OpenCL allows 64-bit atomics by an extension (cl_khr_int64_base_atomics), which spirv-val does not know.
    environment = "spv1.2" if _INT64_ATOMICS in binary else "opencl2.2"
    check_spirv(binary, environment)
    return binary


def check_spirv(binary: bytes, environment: str) -> None:
    """Check a module with spirv-val.

    Args:
        environment: what the module is for, as spirv-val calls it: opencl2.2, vulkan1.3.

    Raises:
        ToolError: spirv-val is missing, or does not accept the module.
    """
    _run(binary, ("spirv-val", "--target-env", environment, "-"))


def _masked(function: str) -> str:
    """Write the extension of a number that was cut before as a mask of the number that it was at first.

    LLVM 22's SPIR-V backend makes one OpBitwiseAnd of both. Its operand is as wide as the number was at first, not as
    the result, and it has none for vectors that were narrower at first.
    """
    cut = {name: (type, int(bits), value) for name, type, bits, value in _CUT.findall(function)}

    def write(found: re.Match[str]) -> str:
        indent, name, vector, narrow, value, type, bits = found.groups()
        if value not in cut:
            return found[0]
        source, before, value = cut[value]
        while value in cut:
            source, before, value = cut[value]
        mask, lines = (1 << int(narrow)) - 1, []
        if before != int(bits):
            resized, how = f"%cut.{name[1:]}", "trunc" if before > int(bits) else "zext"
            lines.append(f"{resized} = {how} {source} {value} to {type}")
            value = resized
        lines.append(f"{name} = and {type} {value}, {f'splat (i{bits} {mask})' if vector else mask}")
        return "\n".join(indent + line for line in lines)

    return _EXTENDED.sub(write, function)


def _check_integers(llvm: str) -> None:
    """Raise ToolError if LLVM IR has a value of an integer type that SPIR-V does not have."""
    for number, line in enumerate(llvm.splitlines(), 1):
        widths = {int(width) for width in _INTEGER_TYPE.findall(_NO_TYPES.sub("", line))} - _INTEGERS
        if widths:
            names = ", ".join(f"i{width}" for width in sorted(widths))
            what = f"SPIR-V has no type {names}, which line {number} of the kernel's LLVM IR uses"
            raise ToolError(f"{what}: {line.strip()}")
