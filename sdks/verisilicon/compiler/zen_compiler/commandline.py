"""Parse zen-compiler's command line, which is the documented one of the vendor's, by the rules of LLVM's tools.

One option is ours: --foundry-check.

An option may have one dash or two, its value may follow after `=` or as the next argument; none may be given twice.
What is not documented is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .spirv import CAPABILITIES, EXTENSIONS

# CL_DEVICE_MAX_WORK_GROUP_SIZE of the reference device, PoCL 6.
MAX_THREADS = 4096

_FLAGS = {
    "triton-kernel-compile": "compile a Triton kernel; required, there is nothing else that is done",
    "enable-verify-after-passes": "verify the IR between passes; that is always done",
    "disable-linalg-to-tc-pipeline": "do not use the tensor core",
    "disable-multi-engine-scheduling-pipeline": "use one engine; the reference device has one",
    "disable-threads-scheduling-pipeline": "one work-item a program",
    "foundry-check": "check each access; an option of ours, not of the vendor's",
}
_VALUES = {
    "workgroup-size-options": ("N,1,1", "work-items of a work-group along x, y and z"),
    "threads-per-workgroup": ("N", "the same N"),
    "spirv-target-options": (
        "'caps=A,B,... exts=X,... module=REGEX'",
        "what SPIR-V the device takes, and which kernel to compile",
    ),
    "o": ("FILE", "where the SPIR-V goes"),
    "out-lib": ("FILE", "where the library that generates commands goes"),
    "tc-bridge": ("FILE", "libZenTCBridge.so; required unless the tensor core is not used"),
}
_HELP = ("help", "h")


class UsageError(Exception):
    """A command line is refused."""


@dataclass(frozen=True)
class Options:
    """What a command line asks for.

    Attributes:
        input, output, library: TTIR to read; SPIR-V and command library to write.
        bridge: the tensor-core bridge; None if the tensor core is not to be used.
        threads: work-items a program.
        capabilities, extensions: those that the SPIR-V may use.
        module: a regular expression that the kernel's name must match somewhere.
        check: whether the kernel checks its accesses (foundry_core.checked).
    """

    input: Path
    output: Path
    library: Path
    bridge: Path | None
    threads: int
    capabilities: frozenset[str]
    extensions: frozenset[str]
    module: re.Pattern[str]
    check: bool


def parse(arguments: Sequence[str]) -> Options | None:
    """Return what the arguments (without the program's name) ask for; None if that is the help.

    Raises:
        UsageError: says which argument is not taken, and why.
    """
    flags, values, inputs = _split(arguments)
    if flags.intersection(_HELP):
        return None
    if "triton-kernel-compile" not in flags:
        raise UsageError("nothing to do: --triton-kernel-compile is not given")
    if len(inputs) != 1:
        raise UsageError(f"one TTIR file must be given, not {len(inputs)}{': ' if inputs else ''}{', '.join(inputs)}")
    for name in ("o", "out-lib", "workgroup-size-options", "threads-per-workgroup", "spirv-target-options"):
        if name not in values:
            raise UsageError(f"{_spelled(name)} is not given")
    source, output, library = Path(inputs[0]), Path(values["o"]), Path(values["out-lib"])
    if not source.is_file():
        raise UsageError(f"{source}: no such file")
    if len({path.resolve() for path in (source, output, library)}) != 3:
        raise UsageError("the input, -o and -out-lib must be three different files")
    bridge, threads = _bridge(flags, values), _threads(flags, values)
    target = _target(values["spirv-target-options"])
    return Options(source, output, library, bridge, threads, *target, "foundry-check" in flags)


def usage() -> str:
    """Return the help text."""
    lines = ["OVERVIEW: zen-compiler of the reference SDK: a Triton kernel's TTIR to SPIR-V for OpenCL", ""]
    lines += ["USAGE: zen-compiler [options] KERNEL.ttir -o KERNEL.spv -out-lib KERNEL_cmd_gen.so", "", "OPTIONS:"]
    for name, (value, what) in _VALUES.items():
        lines += [f"  {_spelled(name)}={value}", f"      {what}"]
    for name, what in _FLAGS.items():
        lines += [f"  {_spelled(name)}", f"      {what}"]
    return "\n".join([*lines, "  --help", "      this text"])


def _spelled(name: str) -> str:
    return f"-{name}" if name in ("o", "out-lib", "tc-bridge", "h") else f"--{name}"


def _split(arguments: Sequence[str]) -> tuple[set[str], dict[str, str], list[str]]:
    """Return the flags, the options with their values, and the rest."""
    flags: set[str] = set()
    values: dict[str, str] = {}
    inputs: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            inputs.append(argument)
            continue
        name, assigned, value = argument[2 if argument.startswith("--") else 1 :].partition("=")
        if name in flags or name in values:
            raise UsageError(f"for the {_spelled(name)} option: may only occur zero or one times")
        if name in _FLAGS or name in _HELP:
            if assigned:
                raise UsageError(f"for the {_spelled(name)} option: it takes no value, but {value!r} is given")
            flags.add(name)
        elif name in _VALUES:
            values[name] = value if assigned else next(rest, "")
            if not values[name]:
                raise UsageError(f"for the {_spelled(name)} option: requires a value")
        else:
            from difflib import get_close_matches

            near = "".join(
                f"; did you mean {_spelled(close)!r}?" for close in get_close_matches(name, [*_FLAGS, *_VALUES], n=1)
            )
            raise UsageError(f"unknown command line argument {argument!r}{near}; try: zen-compiler --help")
    return flags, values, inputs


def _bridge(flags: set[str], values: Mapping[str, str]) -> Path | None:
    path = Path(values["tc-bridge"]) if "tc-bridge" in values else None
    if path is not None and not path.is_file():
        raise UsageError(f"for the -tc-bridge option: {path}: no such file")
    if "disable-linalg-to-tc-pipeline" in flags:
        return None
    if path is None:
        raise UsageError("-tc-bridge is not given; without it, --disable-linalg-to-tc-pipeline must be")
    return path


def _threads(flags: set[str], values: Mapping[str, str]) -> int:
    def number(name: str, text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text):
            raise UsageError(f"for the {_spelled(name)} option: {text!r} value invalid for uint argument")
        value = int(text)
        if not 1 <= value <= MAX_THREADS:
            raise UsageError(f"for the {_spelled(name)} option: {value} is not from 1 to {MAX_THREADS}")
        return value

    name = "workgroup-size-options"
    sizes = [number(name, text) for text in values[name].split(",")]
    if len(sizes) != 3 or sizes[1:] != [1, 1]:
        raise UsageError(f"for the {_spelled(name)} option: {values[name]!r} is not of the form N,1,1")
    threads = number("threads-per-workgroup", values["threads-per-workgroup"])
    if threads != sizes[0]:
        raise UsageError(
            f"--workgroup-size-options asks for {sizes[0]} work-items, --threads-per-workgroup for {threads}"
        )
    if threads > 1 and "disable-threads-scheduling-pipeline" in flags:
        raise UsageError(f"{threads} work-items are asked for, and by --disable-threads-scheduling-pipeline one")
    return threads


def _target(text: str) -> tuple[frozenset[str], frozenset[str], re.Pattern[str]]:
    """Return capabilities, extensions and the expression for the kernel's name."""
    known: dict[str, Callable[[str], object]] = {
        "caps": lambda names: _known(names, CAPABILITIES, "capability"),
        "exts": lambda names: _known(names, EXTENSIONS, "extension"),
        "module": re.compile,
    }
    options: dict[str, object] = {}
    for part in text.split():
        key, assigned, value = part.partition("=")
        if key not in known or not assigned:
            raise _wrong_target(f"no such pass option {part!r}; there are caps=, exts= and module=")
        if key in options:
            raise _wrong_target(f"{key}= is given twice")
        try:
            options[key] = known[key](value)
        except re.error as error:
            raise _wrong_target(f"module={value}: not a regular expression: {error}") from error
    missing = [f"{key}=" for key in known if key not in options]
    if missing:
        raise _wrong_target(f"{' and '.join(missing)} not given")
    return options["caps"], options["exts"], options["module"]  # type: ignore[return-value]


def _known(names: str, known: frozenset[str], what: str) -> frozenset[str]:
    asked = frozenset(filter(None, names.split(",")))
    unknown = sorted(asked - known)
    if unknown:
        raise _wrong_target(f"unknown {what} {', '.join(map(repr, unknown))}")
    return asked


def _wrong_target(why: str) -> UsageError:
    return UsageError(f"for the --spirv-target-options option: {why}")
