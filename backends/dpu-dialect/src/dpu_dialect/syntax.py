"""Translates between the dpu dialect's own syntax and the generic form that mlir-opt reads.

    %r = dpu.tid : i32                                             %r = "dpu.tid"() : () -> i32
    dpu.ldma %w, %m, %n : !llvm.ptr, !llvm.ptr<255>, i32           "dpu.ldma"(%w, %m, %n) : (!llvm.ptr, ...) -> ()

mlir-opt accepts dialects described in IRDL, but only in generic form. So we rewrite the operations in the text before
mlir-opt reads it and after it has written it. Each operation keeps its line, so that line numbers in messages are
correct.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.irdl import IRDLOperation

from .operations import OPERATIONS

_VALUE = r"%[\w$.\-]+(?:#\d+)?"
_TYPE = r"!?\w+(?:\.\w+)*(?:<[^<>]*>)?"
_GAP = r"(?:\s|//[^\n]*\n)*"


class SyntaxProblem(Exception):
    """An operation of the dialect has wrong syntax.

    Args:
        offset: the operation's position in the text, in characters.
        what: the message for the user.
    """

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset


@dataclass(frozen=True)
class Form:
    """An operation's numbers of operands and results. All their types follow the colon, in this order."""

    name: str
    operands: int
    results: int
    example: str


def _form(op: type[IRDLOperation]) -> Form:
    definition = op.get_irdl_definition()
    operands, results = len(definition.operands), len(definition.results)
    words = [op.name, ", ".join(f"%{name}" for name, _ in definition.operands)]
    types = ["!llvm.ptr", "!llvm.ptr<255>", "i32"] if operands else ["i32" if op.name == "dpu.tid" else "!llvm.ptr"]
    colon = f" : {', '.join(types)}" if operands or results else ""
    return Form(op.name, operands, results, ("%r = " if results else "") + " ".join(filter(None, words)) + colon)


FORMS = {op.name: _form(op) for op in OPERATIONS}

# Strings and comments are matched so that their contents are not mistaken for operations.
_OPERATION = re.compile(rf'"(?:[^"\\\n]|\\.)*"|//[^\n]*|(?<![\w.#@!%$\-])({"|".join(map(re.escape, FORMS))})(?![\w.])')
_OPERANDS = re.compile(rf"{_GAP}({_VALUE}(?:{_GAP},{_GAP}{_VALUE})*)")
_ATTRIBUTES = re.compile(rf'{_GAP}(\{{(?:[^{{}}"]|"(?:[^"\\]|\\.)*")*\}})')
_TYPES = re.compile(rf"{_GAP}:{_GAP}({_TYPE}(?:{_GAP},{_GAP}{_TYPE})*)")
_WRITTEN = re.compile(
    rf'"({"|".join(map(re.escape, FORMS))})"\(([^()]*)\)( <?\{{(?:[^{{}}"]|"(?:[^"\\]|\\.)*")*\}}>?)? : '
    rf"\(([^()]*)\) -> (\(\)|{_TYPE})"
)


def mentions(text: str) -> bool:
    """Return whether the text has operations of the dialect, in either form."""
    return any(hit[1] or hit[0].startswith('"dpu.') for hit in _OPERATION.finditer(text))


def to_generic(text: str) -> str:
    """Return the text with the dialect's operations in generic form, each on its original line.

    Raises:
        SyntaxProblem: an operation does not have the syntax in `FORMS`.
    """
    parts, done = [], 0
    for hit in _OPERATION.finditer(text):
        if hit[1]:
            operation, end = _rewritten(text, hit)
            # An operation on several lines is written on the first of them.
            parts += [text[done : hit.start()], operation, "\n" * text.count("\n", hit.start(), end)]
            done = end
    return "".join([*parts, text[done:]])


def _rewritten(text: str, hit: re.Match[str]) -> tuple[str, int]:
    form, at = FORMS[hit[1]], hit.end()
    matched = {}
    for key, pattern in (("operands", _OPERANDS), ("attributes", _ATTRIBUTES), ("types", _TYPES)):
        if (key == "operands" and not form.operands) or (key == "types" and not form.operands + form.results):
            continue
        if match := pattern.match(text, at):
            matched[key], at = match[1], match.end()
    operands, types = _listed(matched.get("operands", "")), _listed(matched.get("types", ""))
    if len(operands) != form.operands or len(types) != form.operands + form.results:
        raise SyntaxProblem(hit.start(), f"custom op '{form.name}' is written `{form.example}`")
    attributes = f" {matched['attributes']}" if "attributes" in matched else ""
    inputs, outputs = types[: form.operands], types[form.operands :]
    kind = f"({', '.join(inputs)}) -> {outputs[0] if outputs else '()'}"
    return f'"{form.name}"({", ".join(operands)}){attributes} : {kind}', at


def _listed(text: str) -> list[str]:
    return [part.strip() for part in re.sub(r"//[^\n]*\n", " ", text).split(",") if part.strip()]


def to_custom(text: str) -> str:
    """Return mlir-opt's output with the dialect's operations in their own syntax."""

    def custom(hit: re.Match[str]) -> str:
        types = [part for part in (hit[4], hit[5]) if part and part != "()"]
        words = [hit[1], hit[2], (hit[3] or "").strip(" <>")]
        return " ".join(filter(None, words)) + (f" : {', '.join(types)}" if types else "")

    return _WRITTEN.sub(custom, text)


def irdl() -> str:
    """Describe the dialect for mlir-opt --irdl-file: names and counts only. operations.py checks types and sizes."""
    lines = []
    for form in FORMS.values():
        values = [f"v{number}: %{number}" for number in range(form.operands + form.results)]
        clauses = [f"%{number} = irdl.any" for number in range(len(values))]
        for word, part in (("operands", values[: form.operands]), ("results", values[form.operands :])):
            clauses += [f"irdl.{word}({', '.join(part)})"] if part else []
        lines.append(f"  irdl.operation @{form.name.removeprefix('dpu.')} {{ {' '.join(clauses)} }}")
    return "\n".join(["irdl.dialect @dpu {", *lines, "}", ""])
