"""Brings the lines of a kernel's source through LLVM's SPIR-V backend, and on to the device's own compiler.

LLVM 22's SPIR-V backend ignores the places (`!dbg`) of LLVM IR. So each change of the place becomes a call of a
function whose name says it (`mark`), and each call becomes an OpLine (`unmark`); both instructions have four words.

OpLine is all that SPIR-V needs. The LLVM translator of PoCL also needs to know the function in which a line is, in
OpenCL.DebugInfo.100 (`add_scopes`), which other devices may refuse. With both, the object that PoCL compiles has a
line table in DWARF, and the same instructions as without.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from ..spirv_numbers import numbers
from ..strings import llvm_text, spirv_string
from .spirv import instructions, reading, words_of

_MARK = "__foundry_line."
_PLACE = re.compile(r"^(!\d+) = !DILocation\(line: (\d+), (?:column: (\d+), )?scope: (!\d+)\b", re.MULTILINE)
_KERNEL = re.compile(r"^define spir_kernel .* !dbg (!\d+)", re.MULTILINE)
_FUNCTION_FILE = re.compile(r"^(!\d+) = distinct !DISubprogram\(.*? file: (!\d+),", re.MULTILINE)
_FILE = re.compile(r'^(!\d+) = !DIFile\(filename: "(.*?)", directory: "(.*?)"', re.MULTILINE)
_PLACED = re.compile(r", !dbg (!\d+)(?:, |$)")

_BOUND = 3
_SOURCE, _NAME, _STRING, _LINE, _EXT_INST_IMPORT, _EXT_INST = numbers(
    "Op", "Source Name String Line ExtInstImport ExtInst"
)
_MEMORY_MODEL, _ENTRY_POINT, _EXECUTION_MODE_ID, _TYPE_VOID = numbers(
    "Op", "MemoryModel EntryPoint ExecutionModeId TypeVoid"
)
_FUNCTION, _FUNCTION_END, _FUNCTION_CALL, _DECORATE, _LABEL = numbers(
    "Op", "Function FunctionEnd FunctionCall Decorate Label"
)
_COMPILATION_UNIT, _TYPE_FUNCTION, _DEBUG_FUNCTION, _SCOPE, _DEBUG_SOURCE = numbers(
    "OpenCL.DebugInfo.100", "DebugCompilationUnit DebugTypeFunction DebugFunction DebugScope DebugSource"
)
# DebugFunction's flags: a definition, with a prototype, optimized.
_FLAGS = 8 | 128 | 8192


def mark(llvm: str) -> tuple[str, str]:
    """Write a call of a marker where the place changes.

    Returns:
        The LLVM IR and the path of the kernel's file; the text as it is and "" if it has no places.
    """
    kernel = _KERNEL.search(llvm)
    if kernel is None:
        return llvm, ""
    # A place in another scope is one in the MLIR text, which MLIR gives to what has none.
    places = {
        name: (int(line), int(column or 0))
        for name, line, column, scope in _PLACE.findall(llvm)
        if scope == kernel[1] and int(line)
    }
    if not places:
        return llvm, ""
    lines: list[str] = []
    used: set[tuple[int, int]] = set()
    last: tuple[int, int] | None = None
    for text in llvm.split("\n"):
        if not text.startswith("  "):
            last = None  # another block, or another function
        elif (placed := _PLACED.search(text)) and " = phi " not in text:
            place = places.get(placed[1], last)
            if place is not None and place != last:
                last = place
                used.add(place)
                lines.append(f"  call void @{_MARK}{place[0]}.{place[1]}()")
        lines.append(text)
    lines += [f"declare void @{_MARK}{line}.{column}()" for line, column in sorted(used)]
    files = {number: path for number, *path in _FILE.findall(llvm)}
    path = files[dict(_FUNCTION_FILE.findall(llvm))[kernel[1]]]
    name, folder = map(llvm_text, path)
    return "\n".join(lines) + "\n", f"{folder}/{name}" if folder and not name.startswith("/") else name


def unmark(module: bytes, file: str) -> bytes:
    """Replace the calls of markers by OpLine, and remove the markers.

    Args:
        file: the path that OpLine names.
    """
    words = words_of(module)
    marks: dict[int, tuple[int, int]] = {}
    made = words[_BOUND]
    edits: list[tuple[int, int, Sequence[int]]] = []
    removed: int | None = None
    for at, opcode, end in instructions(words):
        if opcode == _NAME and (name := _text(words[at + 2 : end])).startswith(_MARK):
            line, column = name.removeprefix(_MARK).split(".")
            marks[words[at + 1]] = int(line), int(column)
        if opcode in (_NAME, _DECORATE) and words[at + 1] in marks:
            edits.append((at, end, ()))
        elif opcode == _FUNCTION and words[at + 2] in marks:
            removed = at
        elif opcode == _FUNCTION_END and removed is not None:
            edits.append((removed, end, ()))
            removed = None
        elif opcode == _FUNCTION_CALL and words[at + 3] in marks:
            edits.append((at, end, _instruction(_LINE, made, *marks[words[at + 3]])))
    if marks:
        strings = _first_string(words)
        edits.insert(0, (strings, strings, _string(made, file)))
    return _edited(words, edits, made + 1)


@reading()
def add_scopes(module: bytes) -> bytes:
    """Say in OpenCL.DebugInfo.100 in which function the lines of a module's one kernel are.

    Without lines, the module is returned as it is.

    Raises:
        ValueError: the module is damaged.
    """
    words = words_of(module)
    kernel = void = file = line = first_function = 0
    imports = 0
    name: Sequence[int] = ()
    scopes: list[int] = []
    scoped = False
    for at, opcode, end in instructions(words):
        if opcode == _LINE:
            file, line = file or words[at + 1], line or words[at + 2]
            if not scoped:
                scopes.append(at)
                scoped = True
        elif opcode == _LABEL:
            scoped = False
        elif opcode == _ENTRY_POINT and not kernel:
            # The name is followed by the interface, whose words a string's reader ignores.
            kernel, name = words[at + 2], words[at + 3 : end]
        elif opcode == _TYPE_VOID:
            void = words[at + 1]
        elif opcode == _MEMORY_MODEL:
            imports = at
        elif opcode == _FUNCTION and not first_function:
            first_function = at
    if not (file and kernel and void and imports):
        return module
    names, known, source, unit, type, function = range(words[_BOUND], words[_BOUND] + 6)
    empty = function + 1
    made = empty + 1

    def debug(result: int, number: int, *operands: int) -> list[int]:
        return _instruction(_EXT_INST, void, result, known, number, *operands)

    strings = _first_string(words)
    edits: list[tuple[int, int, Sequence[int]]] = [
        (imports, imports, _instruction(_EXT_INST_IMPORT, known, *words_of(spirv_string("OpenCL.DebugInfo.100")))),
        (
            strings,
            strings,
            [*_string(names, _text(name)), *_string(empty, "")],
        ),
        (
            first_function,
            first_function,
            [
                *debug(source, _DEBUG_SOURCE, file),
                # The version of the debug information, of DWARF, and the language: OpenCL C.
                *debug(unit, _COMPILATION_UNIT, 1 << 16, 4, source, _SOURCE),
                *debug(type, _TYPE_FUNCTION, 0, void),
                *debug(function, _DEBUG_FUNCTION, names, type, source, line, 0, unit, empty, _FLAGS, line, kernel),
            ],
        ),
        *((at, at, debug(made + number, _SCOPE, function)) for number, at in enumerate(scopes)),
    ]
    return _edited(words, edits, made + len(scopes))


def _first_string(words: Sequence[int]) -> int:
    """Return where the module's strings may begin: after entry points and execution modes."""
    return next(
        at
        for at, opcode, _ in instructions(words)
        if _SOURCE <= opcode <= _STRING or (opcode >= _TYPE_VOID and opcode != _EXECUTION_MODE_ID)
    )


def _instruction(opcode: int, *operands: int) -> list[int]:
    return [opcode | 1 + len(operands) << 16, *operands]


def _string(result: int, text: str) -> list[int]:
    return _instruction(_STRING, result, *words_of(spirv_string(text)))


def _text(words: Sequence[int]) -> str:
    return struct.pack(f"<{len(words)}I", *words).split(b"\0", 1)[0].decode(errors="replace")


def _edited(words: Sequence[int], edits: Sequence[tuple[int, int, Sequence[int]]], bound: int) -> bytes:
    """Return a module with parts replaced, given in any order as (first word, word after the last, new words)."""
    made = [*words[:_BOUND], bound]
    at = _BOUND + 1
    for first, last, new in sorted(edits, key=lambda edit: edit[0]):
        made += words[at:first]
        made += new
        at = last
    made += words[at:]
    return struct.pack(f"<{len(made)}I", *made)
