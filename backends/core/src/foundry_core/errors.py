"""Why a kernel is refused, in the words of the one who wrote it: the operation and the line it comes from."""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Operation


class LoweringError(Exception):
    """A kernel cannot be lowered."""


class UnsupportedOperation(LoweringError):
    """An operation, or a form of it, that the lowering does not take.

    Args:
        operation: its name, `tt.histogram`.
        place: the source line, `kernels.py:12`, or "" if the IR carries none.
        why: what exactly about it is not taken.
    """

    def __init__(self, operation: str, place: str, why: str = "") -> None:
        at = f" at {place}" if place else ""
        super().__init__(f"{operation}{at} is not supported{f': {why}' if why else ''}")
        self.operation = operation
        self.place = place
        self.why = why


class ToolError(LoweringError):
    """mlir-opt, mlir-translate, llc or spirv-val failed on what we gave it: a defect of the lowering."""


def place(location: object) -> str:
    """`file:line` of an MLIR location; of a call site, the innermost; "" if unknown."""
    match location:
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}"
        case NameLoc():
            return place(location.child_loc)
        case CallSiteLoc():
            return place(location.callee)
        case FusedLoc():
            return next((found for part in location.locations if (found := place(part))), "")
        case _:
            return ""


def unsupported(op: Operation, why: str = "") -> UnsupportedOperation:
    """The refusal of one operation of the IR."""
    name = op.name
    while op.location is None and (parent := op.parent_op()) is not None:
        op = parent
    return UnsupportedOperation(name, place(op.location), why)
