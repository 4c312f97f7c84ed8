"""Rewrites tt.dot_scaled to a tt.dot of f32: every element of a and b is converted and multiplied by its scale.

A number of 4 to 16 bits and its product with a power of two are exact in f32, except beyond f32's range. A GPU computes
these products in bf16, or in f16 if an operand is fp16, where they may also overflow; `fast_math` allows it to ignore
scales that are NaN. We do not use that permission.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    Float8E4M3FNType,
    Float8E5M2Type,
    IntegerType,
    StringAttr,
    TensorType,
    bf16,
    f16,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..errors import unsupported
from ..ir import tt
from ..ir.arith import ConstantOp, TruncIOp
from ..ir.build import broadcast, builder_before, expand_dims, numbers, product, recast, reshape, transpose

# Without e2m1, two of which are in a byte.
FORMATS: dict[str, Attribute] = {"e4m3": Float8E4M3FNType(), "e5m2": Float8E5M2Type(), "bf16": bf16, "fp16": f16}


def replace_scaled(body: Block) -> None:
    """Rewrite the scaled products under a block.

    Raises:
        UnsupportedOperation: a format that OCP's Microscaling Formats do not have.
    """
    for op in list(body.walk()):
        if isinstance(op, tt.DotScaledOp):
            writer = _Writer(op)
            a, b = writer.operand(0), writer.operand(1)
            Rewriter.replace_op(op, [], [product(builder_before(op), a, b, op.c)])


class _Writer:
    """Writes the operands of one product in front of it."""

    def __init__(self, op: tt.DotScaledOp) -> None:
        self._op = op
        self._builder = builder_before(op)

    def operand(self, side: int) -> SSAValue:
        """Return a (side 0) or b (side 1) as f32, multiplied by its scales."""
        op = self._op
        value, scale = (op.b, op.b_scale) if side else (op.a, op.a_scale)
        rank = len(_shape(value))
        along_k = rank - 2 if side else rank - 1
        packed = along_k if op.packed_along_k.data[side] else 2 * rank - 3 - along_k
        wide = self._numbers(value, op.formats.data[side].data, packed)
        if scale is None:
            return wide
        factor = self._scales(scale)
        factor = self._repeated(factor, rank - 1, _shape(wide)[along_k] // _shape(scale)[-1])
        if side:
            order = [*range(rank - 2), rank - 1, rank - 2]
            factor = transpose(self._builder, factor, order)
        return self._builder.insert(arith.MulfOp(wide, factor)).result

    def _numbers(self, value: SSAValue, format: str, packed: int) -> SSAValue:
        """Convert elements to f32; two e2m1 of a byte are neighbours along the dimension `packed`."""
        if format == "e2m1":
            return self._function("__foundry_e2m1_to_fp32", self._halves(value, packed))
        if format in ("bf16", "fp16"):
            return self._builder.insert(arith.ExtFOp(value, TensorType(f32, _shape(value)))).result
        if format in FORMATS:
            kind = TensorType(FORMATS[format], _shape(value))
            if value.type != kind:  # 3.2 gives integers
                value = recast(self._builder, value, kind)
            return self._made(tt.FpToFpOp, [value], TensorType(f32, _shape(value)))
        raise unsupported(self._op, f"on elements of format {format}")

    def _scales(self, scale: SSAValue) -> SSAValue:
        """Convert scales to f32: bytes are e8m0, floats are e4m3 (NVIDIA's nvfp4)."""
        assert isinstance(scale.type, TensorType)
        if isinstance(scale.type.element_type, IntegerType):
            return self._function("__foundry_e8m0_to_fp32", scale)
        return self._made(tt.FpToFpOp, [scale], TensorType(f32, _shape(scale)))

    def _halves(self, value: SSAValue, dimension: int) -> SSAValue:
        """Return the halves of each byte, the lower one first, as neighbours along a dimension."""
        both = self._repeated(value, dimension, 2)
        shape = _shape(both)
        count = shape[dimension]
        at = numbers(self._builder, TensorType(i32, [count]))
        odd = self._builder.insert(arith.AndIOp(at, self._constant(1, at.type))).result
        bits = self._builder.insert(arith.ShLIOp(odd, self._constant(2, at.type))).result
        by: SSAValue = self._builder.insert(TruncIOp(bits, TensorType(i8, [count]))).result
        for axis in range(len(shape)):
            if axis != dimension:
                by = expand_dims(self._builder, by, axis)
        by = broadcast(self._builder, by, shape)
        shifted = self._builder.insert(arith.ShRUIOp(both, by)).result
        return self._builder.insert(arith.AndIOp(shifted, self._constant(0xF, both.type))).result

    def _repeated(self, value: SSAValue, dimension: int, times: int) -> SSAValue:
        """Return every element `times` times in a row along a dimension."""
        if times == 1:
            return value
        shape = _shape(value)
        value = expand_dims(self._builder, value, dimension + 1)
        value = broadcast(self._builder, value, [*shape[: dimension + 1], times, *shape[dimension + 1 :]])
        shape[dimension] *= times
        return reshape(self._builder, value, shape)

    def _function(self, symbol: str, value: SSAValue) -> SSAValue:
        kind = TensorType(f32, _shape(value))
        return self._made(tt.ExternElementwiseOp, [value], kind, {"symbol": StringAttr(symbol)})

    def _constant(self, value: int, type: Attribute) -> SSAValue:
        return self._builder.insert(ConstantOp.integer(value, type)).result

    def _made(
        self,
        kind: type[Operation],
        operands: list[SSAValue],
        type: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        made = kind.create(operands=operands, result_types=[type], properties=properties or {})
        return self._builder.insert(made).results[0]


def _shape(value: SSAValue) -> list[int]:
    assert isinstance(value.type, TensorType)
    return list(value.type.get_shape())
