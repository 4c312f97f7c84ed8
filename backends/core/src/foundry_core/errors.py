"""Errors that refuse a kernel. They name the operation and the source line in the user's code."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc, TensorType
from xdsl.ir import Operation


class LoweringError(Exception):
    """A kernel cannot be lowered."""


class UnsupportedOperation(LoweringError):
    """The lowering does not support an operation, or a form of it.

    Args:
        operation: the operation's name, for example `tt.histogram`.
        place: the source line, for example `kernels.py:12`, or "" if the IR has no location.
        why: the part of the operation that is not supported.
    """

    def __init__(self, operation: str, place: str, why: str = "") -> None:
        at = f" at {place}" if place else ""
        super().__init__(f"{operation}{at} is not supported{f': {why}' if why else ''}")
        self.operation = operation
        self.place = place
        self.why = why


class TooLarge(UnsupportedOperation):
    """A kernel needs more of a resource at once than the device has.

    Args:
        resource: such as `workgroup memory`.
        required, limit: in bytes.
    """

    def __init__(self, op: Operation, why: str, resource: str, required: int, limit: int) -> None:
        tiles = dict.fromkeys(
            "x".join(map(str, (*value.type.get_shape(), value.type.element_type)))
            for value in (*op.operands, *op.results)
            if isinstance(value.type, TensorType)
        )
        refusal = unsupported(op, f"{why}; make its tiles smaller" + f": {', '.join(tiles)}" * bool(tiles))
        super().__init__(refusal.operation, refusal.place, refusal.why)
        self.resource, self.required, self.limit = resource, required, limit


class ToolError(LoweringError):
    """mlir-opt, mlir-translate, llc or spirv-val failed on what we gave it: a defect of the lowering."""


def source_line(location: object) -> FileLineColLoc | None:
    """Return the place in a file for an MLIR location; for a call, where it was called: the user's line."""
    match location:
        case FileLineColLoc():
            return location
        case CallSiteLoc():
            return source_line(location.caller)
        case NameLoc():
            return source_line(location.location)
        case FusedLoc():
            parts = location.locations
            assert isinstance(parts, ArrayAttr)
            return next((found for part in parts if (found := source_line(part))), None)
        case _:
            return None


def source_lines(location: object) -> list[FileLineColLoc]:
    """Return the places in files for an MLIR location, innermost first: the line itself, then its function's calls."""
    match location:
        case FileLineColLoc():
            return [location]
        case NameLoc():
            return source_lines(location.location)
        case CallSiteLoc():
            return [*source_lines(location.callee), *source_lines(location.caller)]
        case _:
            found = source_line(location)
            return [found] if found is not None else []


def unsupported(op: Operation, why: str = "", name: str = "") -> UnsupportedOperation:
    """Build the error that refuses one operation of the IR; `name` is for one that xDSL does not know by name."""
    line, around = source_line(op.location), op.parent_op()
    while line is None and around is not None:
        line, around = source_line(around.location), around.parent_op()
    return UnsupportedOperation(name or op.name, f"{line.filename.data}:{line.line.data}" if line else "", why)
