"""Parses mlir-opt's command line for a program that replaces it and calls it several times.

mlir-opt's own --help says which options are passes, and which take their value from the next word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

PASS = "convert-dpu-to-llvm"
DESCRIPTION = "Convert the dpu dialect, and the upstream dialects around it, to the LLVM dialect"

_PIPELINE = "pass-pipeline"
# Options for how the result is written: only the last call needs them.
_PRINTING = (
    "emit-bytecode",
    "mlir-print-op-generic",
    "mlir-print-debuginfo",
    "mlir-print-local-scope",
    "mlir-elide",
    "mlir-pretty-debuginfo",
    "mlir-print-elementsattrs",
    "mlir-print-skip-regions",
    "mlir-print-unique-ssa-ids",
    "mlir-print-value-users",
    "mlir-print-assume-verified",
    "mlir-use-nameloc-as-prefix",
)
# Options for texts of more than one module, or for expected messages.
UNSUPPORTED = ("split-input-file", "verify-diagnostics", "irdl-file", "output-split-marker")


class UsageProblem(Exception):
    """The command line is invalid."""


@dataclass
class CommandLine:
    """A parsed command line.

    Attributes:
        source, output: file names; `-` is the standard stream.
        segments: what to run before, between and after the occurrences of --convert-dpu-to-llvm: passes as options, in
            order, or one --pass-pipeline. There is one more segment than occurrences.
        pipeline: whether the passes were given as a --pass-pipeline.
        common, printing: options for every call, and for the call that writes the result.
    """

    source: str = "-"
    output: str = "-"
    segments: list[list[str]] = field(default_factory=lambda: [[]])
    pipeline: bool = False
    common: list[str] = field(default_factory=list)
    printing: list[str] = field(default_factory=list)

    def after_conversion(self, passes: dict[str, str], rest: Sequence[str]) -> list[str]:
        """Return the options of a call that runs these passes (names and options) and then a segment."""
        if not self.pipeline:
            return [f"--{name}={options}" if options else f"--{name}" for name, options in passes.items()] + [*rest]
        elements = [f"{name}{{{options}}}" if options else name for name, options in passes.items()]
        return [_pipeline([*elements, *_elements(rest[0])] if rest else elements)]


def parse(words: Sequence[str], help_text: str) -> CommandLine:
    """Parse a command line.

    Args:
        words: the words after the program's name.
        help_text: the output of mlir-opt --help.

    Raises:
        UsageProblem: a value is missing, or passes are given in both ways.
    """
    command, rest, positional = CommandLine(), iter(words), []
    passes = set(re.findall(r"^      --([\w\-.]+)", help_text, re.MULTILINE))
    valued = set(re.findall(r"^  --?([\w\-.]+)(?:=| )<", help_text, re.MULTILINE))
    for word in rest:
        if word == "-" or not word.startswith("-"):
            positional.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if name in valued and not equals:
            value = next(rest, "")
            if not value:
                raise UsageProblem(f"for the {word} option: requires a value!")
            word = f"{word}={value}"
        if name == "o":
            command.output = value
        elif name == PASS:
            command.segments.append([])
        elif name == _PIPELINE:
            command.pipeline = True
            command.segments = _split(value)
        elif name in passes:
            command.segments[-1].append(word)
        else:
            (command.printing if name.startswith(_PRINTING) else command.common).append(word)
    if len(positional) > 1:
        raise UsageProblem(f"Too many positional arguments specified!\nCan specify at most 1: {' '.join(positional)}")
    command.source = positional[0] if positional else "-"
    options = [word for part in command.segments for word in part]
    if command.pipeline and any(not word.startswith(f"--{_PIPELINE}=") for word in options):
        raise UsageProblem(f"--{_PIPELINE} and passes as options do not go together")
    return command


def _split(pipeline: str) -> list[list[str]]:
    """Return the parts of a pipeline around our pass, which must be directly in its builtin.module(...)."""
    if not re.search(rf"(?<![\w\-]){PASS}(?![\w\-])", pipeline):
        return [[f"--{_PIPELINE}={pipeline}"]]
    segments: list[list[str]] = [[]]
    for element in _elements(f"--{_PIPELINE}={pipeline}"):
        if element == PASS:
            segments.append([])
        elif re.search(rf"(?<![\w\-]){PASS}(?![\w\-])", element):
            raise UsageProblem(f"{PASS} runs on a module; it cannot be nested as in '{element}'")
        else:
            segments[-1].append(element)
    return [[_pipeline(part)] if part else [] for part in segments]


def _pipeline(elements: Sequence[str]) -> str:
    return f"--{_PIPELINE}=builtin.module({','.join(elements)})"


def _elements(option: str) -> list[str]:
    """Return `a`, `b{c=1,2}`, `d(e,f)` of --pass-pipeline=builtin.module(a,b{c=1,2},d(e,f))."""
    inside = re.fullmatch(r"\s*(?:builtin\.module|any)\((.*)\)\s*", option.partition("=")[2], re.DOTALL)
    if inside is None:
        raise UsageProblem("a pass pipeline with dpu passes must be of the form builtin.module(...)")
    elements, depth, start = [], 0, 0
    for at, char in enumerate(inside[1] + ","):
        depth += (char in "({") - (char in ")}")
        if char == "," and depth == 0:
            elements.append(inside[1][start:at].strip())
            start = at + 1
    return [element for element in elements if element]


def extend_help(text: str) -> str:
    """Return mlir-opt's help, list of passes or list of dialects, with this program's additions."""
    text = re.sub(r"(?m)^(Available Dialects: .*?)(, ?)(emitc\b)", r"\1\2dpu\2\3", text)
    # Insert before the first pass that follows ours in the alphabet, with its indentation.
    for hit in re.finditer(r"^( +)--([\w\-]+)( +)-   ", text, re.MULTILINE):
        if hit[2] > PASS and text.find("Passes:") < hit.start():
            line = f"{hit[1]}--{PASS}".ljust(len(hit[0]) - 4) + f"-   {DESCRIPTION}\n"
            return text[: hit.start()] + line + text[hit.start() :]
    return text
