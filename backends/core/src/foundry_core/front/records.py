"""Rewrites tt.print to tile.record and tt.assert to tile.check, and makes the table of their places in the kernel."""

from __future__ import annotations

import re

from xdsl.builder import Builder
from xdsl.dialects.builtin import Float64Type, IntegerType, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.flow import is_combined
from ..errors import source_lines, unsupported
from ..ir import tile, tt
from ..log import Site
from .offsets import shape

# The message of the assertions that Triton adds to integer arithmetic with debug=True.
_OVERFLOW = re.compile(r"^int\d+ overflow detected for operation (add|sub|mul)$")


def replace_prints(module: ModuleOp) -> list[Site]:
    """Rewrite all prints and assertions of a module in place.

    Triton's own checks for overflow in a function that combines elements (of tl.sum, for instance) are left out.

    Returns:
        the sites: the number of an operation is its site's place in this list.

    Raises:
        UnsupportedOperation: something is printed or asserted in a function that combines elements.
    """
    sites: list[Site] = []
    for op in list(module.walk()):
        if isinstance(op, tt.PrintOp | tt.AssertOp) and is_combined(op):
            if not isinstance(op, tt.AssertOp) or not _OVERFLOW.match(op.message.data):
                raise unsupported(op, "in a function that combines elements, as of tl.reduce")
        elif isinstance(op, tt.PrintOp):
            _print(op, sites)
        elif isinstance(op, tt.AssertOp):
            ends = not _OVERFLOW.match(op.message.data)
            _insert(op, tile.CheckOp(len(sites), op.condition, ends))
            sites.append(Site("assert", op.message.data, _places(op), shape=shape(op.condition)))
        else:
            continue
        Rewriter.erase_op(op)
    return sites


def _print(op: tt.PrintOp, sites: list[Site]) -> None:
    if not op.args:
        _insert(op, tile.RecordOp(len(sites), None))
        sites.append(Site("print", op.prefix.data, _places(op)))
    signs = op.is_signed.get_values()
    for number, value in enumerate(op.args):
        site = Site(
            "print",
            op.prefix.data,
            _places(op),
            type=_type(value),
            shape=shape(value),
            signed=bool(signs[number]),
            hex=bool(op.hex.value.data),
            operand=number if len(op.args) > 1 else None,
        )
        if isinstance(value.type, TensorType) and site.type == "ptr":
            kind = TensorType(i64, site.shape, value.type.encoding)
            addresses = tt.PtrToIntOp.create(operands=[value], result_types=[kind])
            addresses.location = op.location
            Builder(InsertPoint.before(op)).insert(addresses)
            value = addresses.results[0]
        _insert(op, tile.RecordOp(len(sites), value))
        sites.append(site)


def _insert(op: Operation, record: tile.RecordOp | tile.CheckOp) -> None:
    record.location = op.location
    Builder(InsertPoint.before(op)).insert(record)


def _places(op: Operation) -> tuple[tuple[str, int], ...]:
    return tuple((line.filename.data, line.line.data) for line in source_lines(op.location))


def _type(value: SSAValue) -> str:
    """Return a value's type as a Site names it."""
    type: Attribute = value.type.element_type if isinstance(value.type, TensorType) else value.type
    match type:
        case tt.PointerType():
            return "ptr"
        case IntegerType():
            return f"i{type.width.data}"
        case Float64Type():
            return "f64"
    return "f32"
