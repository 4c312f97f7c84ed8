"""dpu-mlir-opt: mlir-opt of LLVM 22, with the dpu dialect and --convert-dpu-to-llvm.

    dpu-mlir-opt vec_add.mlir --convert-dpu-to-llvm -o vec_add_llvm.mlir

All of mlir-opt's options and passes work, before and after ours, as options or in a --pass-pipeline. `-`, or no file
name, is standard input. Errors are reported like mlir-opt's, with file, line and column. A file that does not use the
dialect is passed to mlir-opt unchanged.

The steps are:

1. The dialect's operations are rewritten to generic form, in the text (syntax.py).
2. mlir-opt reads the text, with the dialect's names from an IRDL file, and prints it in generic form with locations.
3. xDSL reads the result and verifies the dialect's operations (operations.py).
4. At each --convert-dpu-to-llvm, mlir-opt runs the passes before it, and convert.py does the conversion.
5. mlir-opt runs the remaining passes, and prints the result as its options say.

Not supported for files that use the dialect: --split-input-file, --verify-diagnostics, another --irdl-file.
"""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from foundry_core.codegen.typed.body import name_of
from foundry_core.codegen.typed.reading import generic_context
from foundry_core.errors import LoweringError, source_line
from foundry_core.ir.parse import TextParser
from foundry_core.strings import llvm_string
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from . import commandline, syntax
from .commandline import PASS, CommandLine, UsageProblem
from .convert import PASSES, convert
from .operations import DPU
from .program import GENERIC, ProgramExit, call, hand_over, locate_problem, read, run_program, write

NAME = "mlir-opt"
_SAYING = ("help", "help-hidden", "help-list", "help-list-hidden", "list-passes", "show-dialects", "version", "h")
_BYTECODE = b"ML\xefR"

# xDSL would lose bits of a NaN that is given as bits. In an unknown attribute, the float stays text.
_BITS = re.compile(
    r'"(?:[^"\\]|\\.)*"|(\b0x[0-9A-Fa-f]+ : (?:f16|bf16|f32|f64)\b|dense<[^"<>]*0x[^"<>]*> : (?:tensor|vector)<[^<>]*>)'
)
_HIDDEN = re.compile(r'#dpu\.bits<"([^"]*)">')


def main() -> int:
    """Run the console script; return the exit status."""
    return run_program(NAME, run)


def run(words: list[str]) -> int:
    """Execute a command line; return the exit status."""
    if any(word.lstrip("-") in _SAYING for word in words if word.startswith("-")):
        asked = [word for word in words if word.lstrip("-") != PASS]
        output = call(NAME, asked, b"", "-").decode()
        sys.stdout.write(commandline.extend_help(output))
        return 0
    command = commandline.parse(words, call(NAME, ["--help"], b"", "-").decode())
    data = read(command.source)
    text = "" if data.startswith(_BYTECODE) else data.decode(errors="replace")
    if len(command.segments) == 1 and not syntax.mentions(text):
        return hand_over(NAME, words, data)
    for option in (*command.common, *command.printing):
        if option.lstrip("-").partition("=")[0] in commandline.UNSUPPORTED:
            raise UsageProblem(f"{option} is not supported together with the dpu dialect")
    write(command.output, _output(command, data, text))
    return 0


def _output(command: CommandLine, data: bytes, text: str) -> bytes:
    """Return the output of the command line for the input: text, or bytecode if requested."""
    source = "<stdin>" if command.source == "-" else command.source
    try:
        data = syntax.to_generic(text).encode() if text else data
    except syntax.SyntaxProblem as problem:
        before = text[: problem.offset]
        line, column = before.count("\n") + 1, problem.offset - (before.rfind("\n") + 1) + 1
        raise locate_problem(source, line, column, str(problem), text) from problem
    with TemporaryDirectory() as folder:
        irdl = Path(folder, "dpu.irdl.mlir")
        irdl.write_text(syntax.irdl())
        return _run_segments(command, data, text, source, [*command.common, f"--irdl-file={irdl}"])


def _run_segments(command: CommandLine, data: bytes, text: str, source: str, options: list[str]) -> bytes:
    first, *others = command.segments
    generic = _reprinted(data, [], options, source)
    module = _verified(generic, text)
    if others and first:
        module = _verified(_reprinted(generic.encode(), first, options, source), text)
    for number, passes in enumerate(others):
        try:
            convert(module, context())
        except LoweringError as error:
            raise ProgramExit(f"{source}: error: {error}") from error
        passes = command.after_conversion(PASSES, passes)
        if number == len(others) - 1:
            return call(NAME, [*command.common, *passes, *command.printing], _printed(module).encode(), source)
        module = _verified(_reprinted(_printed(module).encode(), passes, options, source), text)
    result = call(NAME, [*options, *first, *command.printing], generic.encode(), source)
    plain = any(word.lstrip("-").startswith(("mlir-print-op-generic", "emit-bytecode")) for word in command.printing)
    return result if plain else syntax.to_custom(result.decode()).encode()


def context() -> Context:
    """Return an xDSL context with the dialect, which accepts unknown operations."""
    known = generic_context()
    known.load_dialect(DPU)
    return known


def _reprinted(data: bytes, passes: list[str], options: list[str], source: str) -> str:
    """Return a module as mlir-opt prints it: generic form with locations."""
    # LLVM accepts no option twice.
    others = [option for option in options if option not in GENERIC]
    output = call(NAME, [*others, *passes, *GENERIC], data, source).decode()
    return output.replace('loc("<stdin>":', f"loc({llvm_string(source)}:")


def _verified(generic: str, text: str) -> ModuleOp:
    """Parse a text in generic form with locations, and verify it.

    Raises:
        ProgramExit: an operation of the dialect is wrong; the message has its place in the source text.
    """
    try:
        hidden = _BITS.sub(lambda hit: f'#dpu.bits<"{hit[1]}">' if hit[1] else hit[0], generic)
        module = TextParser(context(), hidden).parse_module()
    except (ParseError, UnicodeDecodeError) as error:
        raise ProgramExit(f"the dpu dialect cannot be read among this: {error}") from error
    for op in module.walk():
        if name_of(op).startswith("dpu."):
            try:
                op.verify(verify_nested_ops=False)
            except VerifyException as problem:
                message = f"'{op.name}' op {problem}"
                if (place := source_line(op.location)) is None:
                    raise ProgramExit(f"error: {message}") from problem
                place_in_text = place.filename.data, place.line.data, place.column.data
                raise locate_problem(*place_in_text, message, text) from problem
    return module


def _printed(module: ModuleOp) -> str:
    text = StringIO()
    Printer(text, print_generic_format=True, print_debuginfo=True).print_op(module)
    return _HIDDEN.sub(r"\1", text.getvalue())
