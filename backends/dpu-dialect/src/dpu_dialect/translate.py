"""dpu-mlir-translate: mlir-translate of LLVM 22, with a --mlir-to-llvmir whose output a DPU's LLVM 12 can read.

    dpu-mlir-translate --mlir-to-llvmir vec_add_llvm.mlir -o vec_add.ll

The module must be in the llvm dialect. The output has typed pointers and the DPU's target lines.
foundry_core.codegen.typed translates it and refuses by name what LLVM 12 does not know. `--mlir-to-llvmir` accepts
`-o` and, like mlir-translate, a file name or `-`. mlir-translate itself does every other translation.
"""

from __future__ import annotations

import re

from foundry_core.codegen.pipeline import DPU_DATALAYOUT, DPU_TRIPLE
from foundry_core.codegen.typed import write_typed_llvm

from . import syntax
from .commandline import UsageProblem
from .program import GENERIC, ProgramExit, call, hand_over, read, run_program, write

NAME = "mlir-translate"
_TRANSLATION = "mlir-to-llvmir"
# If a program in the llvm dialect names another target, it is for another machine.
_TARGET = re.compile(r'llvm\.target_triple = "([^"]*)"')


def main() -> int:
    """Run the console script; return the exit status."""
    return run_program(NAME, run)


def run(words: list[str]) -> int:
    """Execute a command line; return the exit status."""
    if _TRANSLATION not in (word.lstrip("-") for word in words) or any(word in ("-h", "--help") for word in words):
        return hand_over(NAME, words, None)
    source, output, passed = _parse([word for word in words if word.lstrip("-") != _TRANSLATION])
    data, shown = read(source), "<stdin>" if source == "-" else source
    if syntax.mentions(data.decode(errors="replace")):
        raise ProgramExit(f"{shown}: error: there are dpu operations; run dpu-mlir-opt --convert-dpu-to-llvm first")
    generic = call("mlir-opt", [*passed, *GENERIC], data, shown).decode().replace('loc("<stdin>":', f'loc("{shown}":')
    if (named := _TARGET.search(generic)) and named[1] != DPU_TRIPLE:
        raise ProgramExit(f"{shown}: error: the module is for {named[1]}, not for {DPU_TRIPLE}")
    write(output, write_typed_llvm(generic, triple=DPU_TRIPLE, datalayout=DPU_DATALAYOUT).encode())
    return 0


def _parse(words: list[str]) -> tuple[str, str, list[str]]:
    """Return the input's name, the output's name, and the options to pass on."""
    sources, output, passed, rest = [], "-", [], iter(words)
    for word in rest:
        if word in ("-o", "--o"):
            output = next(rest, "")
            if not output:
                raise UsageProblem("for the -o option: requires a value!")
        elif word.startswith(("-o=", "--o=")):
            output = word.partition("=")[2]
        elif word == "-" or not word.startswith("-"):
            sources.append(word)
        else:
            passed.append(word)
    if len(sources) > 1:
        raise UsageProblem(f"Too many positional arguments specified!\nCan specify at most 1: {' '.join(sources)}")
    return sources[0] if sources else "-", output, passed
