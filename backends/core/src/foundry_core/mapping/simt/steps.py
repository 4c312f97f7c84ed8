"""Divides products along K where workgroup memory does not hold both factors at once.

The factors are in registers when they are written to workgroup memory. So a product becomes several, one after another,
each of a part of K: the parts of both factors are written, read and multiplied before the next ones take their place.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.builder import Builder
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from ...front.structured import kernel
from ...ir import tt, ttg
from ...ir.build import builder_before
from ...ops.numeric import element_name

# The attributes of an allocation for a part of its operand: the dimension, the number of the part, how many there are.
AXIS, PART, OF = "foundry.axis", "foundry.part", "foundry.of"
# A part has at least so many elements along K, as a fragment of matrices of f16.
_LEAST = 16


class _Factor(NamedTuple):
    """A factor of a product that is written to workgroup memory: its allocation, a transposition, and its load."""

    alloc: ttg.LocalAllocOp
    trans: ttg.MemoryTransOp | None
    load: ttg.LocalLoadOp


def divide_products(module: ModuleOp, parts: int) -> bool:
    """Divide each product of two factors in workgroup memory into some parts, in place; return whether one was."""
    found = False
    for op in list(kernel(module).body.walk()):
        if isinstance(op, tt.DotOp) and _divisible(op, parts):
            a, b = _factor(op.a), _factor(op.b)
            if a and b:
                _divide(op, a, b, parts)
                found = True
    return found


def _divisible(op: tt.DotOp, parts: int) -> bool:
    assert isinstance(op.a.type, TensorType)
    shape = op.a.type.get_shape()
    # A sum of a narrower type would be rounded after each part.
    return len(shape) == 2 and shape[1] >= parts * _LEAST and element_name(op.c.type, op) in ("f32", "f64", "i32")


def _factor(value: SSAValue) -> _Factor | None:
    load = value.owner
    if not isinstance(load, ttg.LocalLoadOp):
        return None
    trans = load.src.owner if isinstance(load.src.owner, ttg.MemoryTransOp) else None
    alloc = trans.src.owner if trans else load.src.owner
    if not isinstance(alloc, ttg.LocalAllocOp) or alloc.src is None or OF in alloc.attributes:
        return None
    return _Factor(alloc, trans, load)


def _divide(op: tt.DotOp, a: _Factor, b: _Factor, parts: int) -> None:
    here, total = builder_before(op), op.c
    for part in range(parts):
        left, right = (_part(here, each, axis, part, parts) for each, axis in ((a, 1), (b, 0)))
        total = here.insert(tt.DotOp.build(operands=[left, right, total], result_types=[op.result.type])).result
    op.result.replace_all_uses_with(total)
    for each in (op, *(made for factor in (a, b) for made in (factor.load, factor.trans, factor.alloc) if made)):
        if not list(each.results[0].uses):
            Rewriter.erase_op(each)


def _part(here: Builder, factor: _Factor, axis: int, part: int, parts: int) -> SSAValue:
    """Write what makes a part of a factor, of which the dimension `axis` is K."""

    def shorter(type: Attribute, axis: int) -> TensorType[Attribute]:
        assert isinstance(type, TensorType)
        shape = [extent // parts if d == axis else extent for d, extent in enumerate(type.get_shape())]
        return TensorType(type.element_type, shape, type.encoding)

    def memory(value: SSAValue, axis: int) -> ttg.MemoryType:
        assert isinstance(value.type, ttg.MemoryType)
        return ttg.MemoryType(shorter(value.type.tile, axis), value.type.layout)

    stored = 1 - axis if factor.trans else axis
    numbers = {AXIS: stored, PART: part, OF: parts}
    made = ttg.LocalAllocOp.build(
        operands=[factor.alloc.src],
        result_types=[memory(factor.alloc.result, stored)],
        attributes={name: IntegerAttr(number, i32) for name, number in numbers.items()},
    )
    place = here.insert(made).result
    if factor.trans:
        order = {"order": factor.trans.order}
        turned = [memory(factor.trans.result, axis)]
        place = here.insert(ttg.MemoryTransOp.build(operands=[place], result_types=turned, attributes=order)).result
    load = ttg.LocalLoadOp.build(operands=[place], result_types=[shorter(factor.load.result.type, axis)])
    return here.insert(load).result
